// Turns the records of AMD's profilers into a recording, whichever file they come from.
#include "profile/roc_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/limits.h"

namespace scalecalc {
namespace {

constexpr Ticks kTicksPerRocNanosecond = 1000;
constexpr std::int64_t kFarthestRocNanosecond = 4'000'000'000'000'000;  // 46 days from the recording's first event

}  // namespace

RocRecords::RocRecords(const std::string& path) : tables_(out_) {
  out_.file = path;
  out_.format = RecordingFormat::kRocprof;
}

std::string RocRecords::take(RocTable table, const RocRecord& r) {
  ++out_.read;
  if (!r.start || !r.end) return "a record without its start and end";
  if (*r.start < 0) return "a record that starts before the clock does";
  if (*r.end < *r.start) return "a record that ends before it starts";
  if (!base_) base_ = *r.start;
  if (*r.start - *base_ > kFarthestRocNanosecond || *r.start - *base_ < -kFarthestRocNanosecond ||
      *r.end - *r.start > kFarthestRocNanosecond) {
    return "a record that is 46 days from the first";
  }
  if (std::max(out_.events.size(), std::max(out_.markers.size(), launches_.size()) / kHostEvents) >=
      limits::kRecordedEvents) {
    return limits::too_many(limits::kRecordedEvents, kEventsKept);
  }
  const Ticks start = (*r.start - *base_) * kTicksPerRocNanosecond;
  const Ticks end = (*r.end - *base_) * kTicksPerRocNanosecond;
  switch (table) {
    case RocTable::kKernels: event(start, end, r.name, r.agent, r, 0); break;
    case RocTable::kCopies: copy(start, end, r); break;
    case RocTable::kCalls:
      if (r.correlation != 0) launches_.emplace(r.correlation, start);
      break;
    case RocTable::kRanges: out_.markers.push_back({start, end, tables_.marker(r.name), std::nullopt}); break;
    case RocTable::kOther: break;
  }
  return "";
}

Recording RocRecords::finish() {
  for (std::size_t i = 0; i < out_.events.size(); ++i) {
    const auto launch = launches_.find(correlations_[i]);
    if (correlations_[i] != 0 && launch != launches_.end()) out_.events[i].launch = launch->second;
  }
  return std::move(out_);
}

void RocRecords::event(Ticks start, Ticks end, const std::string& name, const std::string& agent, const RocRecord& r,
                       std::uint32_t op) {
  const std::uint32_t device = tables_.device(agent);
  out_.events.push_back({start, end, kNoTick, 0, tables_.name(name), op, tables_.lane(device, r.stream)});
  correlations_.push_back(r.correlation);
}

void RocRecords::copy(Ticks start, Ticks end, const RocRecord& r) {
  std::string direction = r.direction;
  constexpr std::string_view kPrefix = "MEMORY_COPY_";
  if (direction.starts_with(kPrefix)) direction.erase(0, kPrefix.size());
  // As CUPTI's are called, by which they are known.
  constexpr std::array<std::array<std::string_view, 2>, 4> kDirections{{{"HOST_TO_DEVICE", "Memcpy HtoD"},
                                                                        {"DEVICE_TO_HOST", "Memcpy DtoH"},
                                                                        {"DEVICE_TO_DEVICE", "Memcpy DtoD"},
                                                                        {"HOST_TO_HOST", ""}}};
  std::string name = "Memcpy";
  for (const auto& [said, called] : kDirections) {
    if (direction == said) name = called;
  }
  if (name.empty()) return;
  RecordedOp op;
  if (r.bytes > 0) op.bytes = r.bytes;
  event(start, end, name, direction == "HOST_TO_DEVICE" ? r.to : r.from, r, op.bytes ? tables_.op(op) : 0);
}

}  // namespace scalecalc
