// Reads XPlane files (tsl/profiler/protobuf/xplane.proto), which JAX and TensorFlow write: a plane for each device, a
// line for each of its streams, and names and figures of events in tables beside them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/text.h"
#include "profile/byte_source.h"
#include "profile/hlo_category.h"
#include "profile/kernel_names.h"
#include "profile/recording.h"
#include "profile/wire.h"

namespace scalecalc {
namespace {

// Field numbers of xplane.proto.
constexpr std::uint32_t kPlanes = 1;
constexpr std::uint32_t kPlaneName = 2, kPlaneLines = 3, kPlaneEvents = 4, kPlaneStats = 5, kPlaneOwnStats = 6;
constexpr std::uint32_t kLineName = 2, kLineTimestamp = 3, kLineEvents = 4, kLineDisplay = 11;
constexpr std::uint32_t kEventMetadata = 1, kEventOffset = 2, kEventDuration = 3, kEventStats = 4;
constexpr std::uint32_t kMetadataName = 2, kMetadataDisplay = 4, kMetadataStats = 5;
constexpr std::uint32_t kMapKey = 1, kMapValue = 2;
constexpr std::uint32_t kStatMetadata = 1, kStatDouble = 2, kStatUnsigned = 3, kStatSigned = 4, kStatText = 5,
                        kStatReference = 7;

/// What we take of the statistics of an event or its metadata.
struct XStats {
  std::string category, op_path, device_type;
  std::optional<double> flops, bytes;
};

struct XName {
  std::uint32_t id = 0;  ///< among the recording's names
  std::uint32_t op = 0;
};

class PlaneReader {
 public:
  PlaneReader(WireMessage plane, Recording& out, RecordingTables& tables, std::optional<std::int64_t>& base_ns,
              const Stop& stop)
      : plane_(plane), out_(out), tables_(tables), base_ns_(base_ns), stop_(stop) {}

  void read() {
    names();
    const std::size_t at = name_.find("/device:");
    if (at == std::string::npos || name_.find("SparseCore") != std::string::npos) return;
    const bool tpu = name_.find("TPU", at) != std::string::npos;
    if (!tpu && name_.find("GPU", at) == std::string::npos) return;
    WireMessage all = plane_;
    while (all.next()) {
      if (all.field() == kPlaneLines) line(all.message(), tpu);
    }
  }

 private:
  void names() {
    WireMessage all = plane_;
    std::vector<WireMessage> own;
    while (all.next()) {
      if (all.field() == kPlaneName) name_ = all.text();
      if (all.field() == kPlaneEvents) entry(all.message(), events_);
      if (all.field() == kPlaneStats) entry(all.message(), stats_);
      if (all.field() == kPlaneOwnStats) own.push_back(all.message());
    }
    if (name_.find("/device:") == std::string::npos) return;
    XStats of_plane;
    for (const WireMessage& stat : own) take(stat, of_plane);
    if (out_.chip.empty()) out_.chip = of_plane.device_type;
  }

  static void entry(WireMessage all, std::unordered_map<std::uint64_t, WireMessage>& into) {
    std::uint64_t key = 0;
    std::optional<WireMessage> value;
    while (all.next()) {
      if (all.field() == kMapKey) key = all.number();
      if (all.field() == kMapValue) value = all.message();
    }
    if (value) into.insert_or_assign(key, *value);
  }

  std::string_view name_of_stat(std::uint64_t id) const {
    const auto found = stats_.find(id);
    if (found == stats_.end()) return {};
    WireMessage all = found->second;
    while (all.next()) {
      if (all.field() == kMetadataName) return all.text();
    }
    return {};
  }

  void take(WireMessage stat, XStats& out) const {
    std::string_view name, text;
    double number = 0;
    while (stat.next()) {
      switch (stat.field()) {
        case kStatMetadata: name = name_of_stat(stat.number()); break;
        case kStatDouble: number = stat.real(); break;
        case kStatUnsigned:
        case kStatSigned: number = static_cast<double>(stat.number()); break;
        case kStatText: text = stat.text(); break;
        case kStatReference: text = name_of_stat(stat.number()); break;
        default: break;
      }
    }
    if (name == "hlo_category") out.category = text;
    if (name == "tf_op") out.op_path = text;
    if (name == "device_type_string") out.device_type = text;
    if (name == "flops" || (name == "model_flops" && number > 0)) out.flops = number;
    if (name == "bytes_accessed") out.bytes = number;
  }

  XName name_of_event(std::uint64_t id) {
    const auto [at, is_new] = known_.try_emplace(id);
    if (!is_new) return at->second;
    const auto found = events_.find(id);
    std::string text = fmt::format("event {}", id);
    XStats stats;
    if (found != events_.end()) {
      std::string_view display;
      WireMessage all = found->second;
      while (all.next()) {
        if (all.field() == kMetadataName && !all.text().empty()) text = all.text();
        if (all.field() == kMetadataDisplay) display = all.text();
        if (all.field() == kMetadataStats) take(all.message(), stats);
      }
      if (!display.empty()) text = display;
    }
    if (invalid_utf8_at(text) != std::string::npos) text = fmt::format("event {} (its name is no text)", id);
    const auto work = work_of_hlo_category(stats.category);
    at->second.id = work ? tables_.name(text, *work) : tables_.name(text);
    if (stats.flops || stats.bytes) {
      at->second.op = tables_.op({.name = stats.op_path, .flops = stats.flops, .bytes = stats.bytes});
    }
    return at->second;
  }

  void line(WireMessage all, bool tpu) {
    std::string name, display;
    std::int64_t start_ns = 0;
    for (WireMessage head = all; head.next();) {
      if (head.field() == kLineName) name = head.text();
      if (head.field() == kLineDisplay) display = head.text();
      if (head.field() == kLineTimestamp) start_ns = static_cast<std::int64_t>(head.number());
    }
    if (!display.empty()) name = display;
    const bool marks = name == "Steps" || name == "XLA Modules";
    const bool runs = tpu ? name == "XLA Ops" : name.find("Stream") != std::string::npos;
    if (!marks && !runs) return;
    if (!base_ns_) base_ns_ = start_ns;
    constexpr std::int64_t kFarthest = std::int64_t{4'000'000} * 1'000'000'000;
    const std::int64_t after = start_ns - *base_ns_;
    if (after > kFarthest || after < -kFarthest) {
      throw UserError({Diagnostic{SourceSpan{.file = out_.file}, "lines of the file begin months apart",
                                  "it is damaged, or made of several recordings"}});
    }
    const std::uint32_t device = tables_.device(name_.substr(name_.find("/device:") + 1));
    const std::uint32_t lane = tables_.lane(device, name);
    while (all.next()) {
      if (all.field() == kLineEvents) event(all.message(), after * 1000, name, device, lane, marks);
    }
  }

  void event(WireMessage all, Ticks line_start, const std::string& line, std::uint32_t device, std::uint32_t lane,
             bool marks) {
    constexpr std::uint64_t kPolled = 4096;
    if (++out_.read % kPolled == 0 && should_stop(stop_)) throw Stopped();
    constexpr std::uint64_t kLongest = std::uint64_t{1} << 62U;
    std::uint64_t metadata = 0, offset = 0, length = 0;
    while (all.next()) {
      if (all.field() == kEventMetadata) metadata = all.number();
      if (all.field() == kEventOffset) offset = all.number();
      if (all.field() == kEventDuration) length = all.number();
    }
    if (offset > kLongest / 4 || length > kLongest / 4 ||
        std::max(out_.events.size(), out_.markers.size() / kHostEvents) >= limits::kRecordedEvents) {
      throw UserError({Diagnostic{SourceSpan{.file = out_.file},
                                  fmt::format("an event of {} that cannot be, or one too many", name_),
                                  "record fewer steps, or record again"}});
    }
    const Ticks start = line_start + static_cast<Ticks>(offset);
    const Ticks end = start + static_cast<Ticks>(length);
    const XName name = name_of_event(metadata);
    if (marks) {
      const auto [known, is_new] = markers_.try_emplace({line, name.id});
      if (is_new) known->second = tables_.marker(fmt::format("{}: {}", line, out_.names[name.id].text));
      out_.markers.push_back({start, end, known->second, device});
    } else if (end > start) {
      out_.events.push_back({start, end, kNoTick, 0, name.id, name.op, lane});
    }
  }

  WireMessage plane_;
  Recording& out_;
  RecordingTables& tables_;
  std::optional<std::int64_t>& base_ns_;
  const Stop& stop_;
  std::string name_;
  std::unordered_map<std::uint64_t, WireMessage> events_, stats_;
  std::unordered_map<std::uint64_t, XName> known_;
  std::map<std::pair<std::string, std::uint32_t>, SharedText> markers_;  ///< by their line and name
};

std::string whole_file(const std::string& path) {
  ByteSource source(path);
  std::string out;
  constexpr std::size_t kXPiece = 1 << 22;
  for (;;) {
    const std::size_t had = out.size();
    out.resize(had + kXPiece);
    out.resize(had + source.read(out.data() + had, kXPiece));
    if (out.size() == had) return out;
    if (out.size() > limits::kWholeRecording) {
      throw UserError({Diagnostic{SourceSpan{.file = path}, "XPlane " + limits::too_large(limits::kWholeRecording),
                                  "record fewer steps"}});
    }
  }
}

}  // namespace

Recording read_xplane(const std::string& path, const Stop& stop) {
  const std::string bytes = whole_file(path);
  Recording out;
  out.file = path;
  out.format = RecordingFormat::kXPlane;
  RecordingTables tables(out);
  std::optional<std::int64_t> base_ns;
  WireMessage space(bytes, bytes, path);
  while (space.next()) {
    if (space.field() == kPlanes) PlaneReader(space.message(), out, tables, base_ns, stop).read();
  }
  return out;
}

}  // namespace scalecalc
