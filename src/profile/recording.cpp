// Recognizes the format of a recording and reads it with the reader of that format.
#include "profile/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/diagnostic.h"
#include "profile/byte_source.h"
#include "profile/kernel_names.h"

namespace scalecalc {
namespace {

constexpr Ticks kTicksPerMicrosecond = 1'000'000;
constexpr std::int64_t kFarthestMicrosecond = 4'000'000'000'000;  // 46 days from the recording's first event

std::uint32_t next_id(std::size_t size) { return static_cast<std::uint32_t>(size); }

}  // namespace

std::uint32_t RecordingTables::name(std::string_view text) {
  const auto found = names_.find(text);
  if (found != names_.end()) return found->second;
  return name(text, work_of_kernel(text));
}

void RecordingTables::keeps(std::size_t bytes) {
  constexpr std::size_t kOfEach = 128;  // the entry itself, and its place in a table
  if (kept_.makes(bytes + kOfEach)) return;
  throw UserError({Diagnostic{SourceSpan{.file = out_.file}, "what is kept of its names " + kept_.message(),
                              "record fewer steps, or without shapes"}});
}

std::uint32_t RecordingTables::name(std::string_view text, DeviceWork work) {
  const auto found = names_.find(text);
  if (found != names_.end()) return found->second;
  keeps(2 * text.size());
  out_.names.push_back({std::string(text), work});
  return names_.emplace(std::string(text), next_id(out_.names.size() - 1)).first->second;
}

std::uint32_t RecordingTables::op(const RecordedOp& op) {
  const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", op.name, op.dims, op.types,
                                      op.values, op.collective, op.element, op.elements_in, op.elements_out,
                                      op.group_size, op.group, op.flops.value_or(-1), op.bytes.value_or(-1));
  const auto [at, is_new] = ops_.try_emplace(key, next_id(out_.ops.size()));
  if (!is_new) return at->second;
  keeps(2 * key.size() + sizeof(RecordedOp));
  out_.ops.push_back(op);
  return at->second;
}

std::uint32_t RecordingTables::device(std::string_view name) {
  const auto [at, is_new] = devices_.try_emplace(std::string(name), next_id(out_.devices.size()));
  if (!is_new) return at->second;
  keeps(2 * name.size());
  out_.devices.emplace_back(name);
  return at->second;
}

std::uint32_t RecordingTables::lane(std::uint32_t device, std::string_view name) {
  const auto [at, is_new] = lanes_.try_emplace(fmt::format("{}\n{}", device, name), next_id(out_.lanes.size()));
  if (!is_new) return at->second;
  keeps(2 * name.size());
  out_.lanes.push_back({device, std::string(name)});
  return at->second;
}

SharedText RecordingTables::marker(std::string_view name) {
  const auto found = markers_.find(name);
  if (found != markers_.end()) return found->second;
  keeps(2 * name.size());
  return markers_.emplace(std::string(name), SharedText(name)).first->second;
}

std::optional<Ticks> ticks_of_microseconds(std::string_view text, std::int64_t base) {
  const std::size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    const double value = std::strtod(std::string(text).c_str(), nullptr) - static_cast<double>(base);
    if (!(std::fabs(value) < static_cast<double>(kFarthestMicrosecond))) return std::nullopt;
    return std::llround(value * static_cast<double>(kTicksPerMicrosecond));
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  std::int64_t whole = 0;
  const char* const end = text.data() + point;
  const auto [stop, error] = std::from_chars(text.data(), end, whole);
  if (error != std::errc() || stop != end) return std::nullopt;
  Ticks part = 0;
  Ticks digit = kTicksPerMicrosecond / 10;
  for (std::size_t i = point + 1; i < text.size() && digit > 0; ++i, digit /= 10) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    part += digit * (text[i] - '0');
  }
  if (whole < base - kFarthestMicrosecond || whole > base + kFarthestMicrosecond) return std::nullopt;
  return (whole - base) * kTicksPerMicrosecond + (text.starts_with('-') ? -part : part);
}

namespace {

std::string_view without_mark(std::string_view first) {
  const std::size_t at = first.find_first_not_of(" \t\r\n", first.starts_with("\xEF\xBB\xBF") ? 3 : 0);
  return at == std::string_view::npos ? std::string_view{} : first.substr(at);
}

// XSpace: its first field is a plane (1), an error, a warning or a host name (2 to 4), each with a length. A plane
// begins with its number or name; a packet of Perfetto's, whose field has the same number, with other fields.
bool is_xspace(std::string_view first) {
  return !first.empty() && (first[0] & 7) == 2 && first[0] >= 0x0a && first[0] <= 0x22;
}
bool is_perfetto(std::string_view first) {
  // Trace { packet = 1 { timestamp 8, trusted_uid 3, track_event 11, clock_snapshot 6 ... } }: the second key decides.
  if (first.size() < 3 || first[0] != 0x0a || first[1] == 0) return false;
  std::size_t at = 1;
  while (at < first.size() && (static_cast<unsigned char>(first[at]) & 0x80U) != 0) ++at;
  if (++at >= first.size()) return false;
  const auto key = static_cast<unsigned char>(first[at]);
  return key != 0x08 && key != 0x12 && key != 0x1a && key != 0x22 && key != 0x2a;
}

}  // namespace

bool looks_recorded(std::string_view first_bytes) {
  const std::string_view first = without_mark(first_bytes);
  if (first.starts_with("HloModule") || is_rocprof_csv(first) || first_bytes.starts_with("SQLite format 3"))
    return true;
  if (first.empty()) return false;
  if (first[0] != '{' && first[0] != '[') return is_xspace(first_bytes);
  constexpr std::array<std::string_view, 7> kWords{"\"traceEvents\"",         "\"ph\"",
                                                   "\"schemaVersion\"",       "\"deviceProperties\"",
                                                   "\"displayTimeUnit\"",     "\"scalecalc/trace",
                                                   "\"rocprofiler-sdk-tool\""};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return first.find(word) != std::string_view::npos; });
}

Recording read_recording(const std::string& path, const Stop& stop) {
  constexpr std::size_t kEnough = 4096;
  const std::string bytes = first_bytes(path, kEnough);
  const std::string_view first = without_mark(bytes);
  if (bytes.starts_with("SQLite format 3")) return read_nsight(path, stop);
  if (is_rocprof_json(first)) return read_rocprof_json(path, stop);
  if (!first.empty() && (first[0] == '{' || first[0] == '[')) return read_chrome_trace(path, stop);
  if (is_rocprof_csv(first)) return read_rocprof_csv(path, stop);
  if (is_perfetto(bytes)) return read_perfetto(path, stop);
  if (is_xspace(bytes)) return read_xplane(path, stop);
  throw UserError({Diagnostic{
      SourceSpan{.file = path},
      bytes.empty() ? "the file is empty"
                    : "is no recording: neither JSON, nor CSV, nor an XPlane, nor an SQLite database",
      "profile reads PyTorch's Chrome traces (also gzipped), JAX's trace.json.gz and .xplane.pb, Nsight Systems' "
      "SQLite export (nsys export --type sqlite), rocprofv3's JSON, CSV and pftrace, the JSON of `scalecalc trace`, "
      "HLO text, "
      "and "
      "tar archives of these"}});
}

}  // namespace scalecalc
