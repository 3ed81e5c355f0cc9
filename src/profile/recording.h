// What a profiler recorded, whatever its file format: what each stream of each device did when, what the host launched,
// and where steps begin.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "base/shared_text.h"
#include "base/stop.h"

namespace scalecalc {

/// Picoseconds since some moment of the recording: exact for every format.
using Ticks = std::int64_t;
inline constexpr double kTicksPerSecond = 1e12;
inline constexpr double seconds_of(Ticks ticks) { return static_cast<double>(ticks) / kTicksPerSecond; }
inline constexpr Ticks kNoTick = INT64_MIN;

/// What a device does, in the order in which a moment is counted: while a matmul runs, what runs beside it is hidden.
enum class DeviceWork : std::uint8_t {
  kExposed,  ///< communication that the recording itself says nothing hides
  kMatmul,
  kAttention,
  kConvolution,
  kVector,   ///< norms, activations, elementwise, reductions, softmax, embeddings
  kRouting,  ///< tokens sorted and moved for experts
  kOptimizer,
  kPass,  ///< a forward or backward that is not told apart
  kUnknown,
  kHost,  ///< the host's share of a step, where it is drawn
  kCollective,
  kSendReceive,
  kCopy,
};
inline constexpr std::array<std::string_view, 13> kDeviceWorkNames{"exposed communication",
                                                                   "matmuls",
                                                                   "attention",
                                                                   "convolutions",
                                                                   "norms and elementwise",
                                                                   "expert routing",
                                                                   "optimizer",
                                                                   "passes",
                                                                   "unrecognised",
                                                                   "host",
                                                                   "collectives",
                                                                   "sends and receives",
                                                                   "copies"};
inline constexpr std::size_t kDeviceWorks = kDeviceWorkNames.size();
constexpr std::string_view name_of(DeviceWork work) { return kDeviceWorkNames.at(static_cast<std::size_t>(work)); }
constexpr bool is_compute(DeviceWork work) { return work >= DeviceWork::kMatmul && work <= DeviceWork::kUnknown; }

struct RecordedName {
  std::string text;
  DeviceWork work = DeviceWork::kUnknown;
};

/// What launched a kernel, or what the recording says of it. Alike ones are one.
struct RecordedOp {
  std::string name;         ///< "aten::mm"
  std::string dims, types;  ///< JSON lists, operand by operand; empty: not recorded
  std::string values;       ///< of operands that are no tensors, of attention alone
  std::string collective;   ///< "allreduce"
  std::string element;      ///< its elements' type
  double elements_in = 0, elements_out = 0;
  std::int64_t group_size = 0;
  std::string group;                   ///< its process group
  std::optional<double> flops, bytes;  ///< as recorded
  friend bool operator==(const RecordedOp&, const RecordedOp&) = default;
};

struct RecordedEvent {
  Ticks start = 0;
  Ticks end = 0;
  Ticks launch = kNoTick;  ///< when the host launched it
  std::uint64_t call = 0;  ///< which call of `op` it belongs to; 0: it stands alone
  std::uint32_t name = 0;
  std::uint32_t op = 0;  ///< 0: none
  std::uint32_t lane = 0;
};

/// One stream of one device.
struct RecordedLane {
  std::uint32_t device = 0;
  std::string name;
};

/// A stretch of time that somebody named.
struct RecordedMarker {
  Ticks start = 0;
  Ticks end = 0;
  SharedText name;                      ///< many have one
  std::optional<std::uint32_t> device;  ///< nothing: of the host
};

enum class RecordingFormat : std::uint8_t { kKineto, kTraceViewer, kOwnTrace, kXPlane, kNsight, kRocprof };
inline constexpr std::array<std::string_view, 6> kRecordingFormatNames{
    "PyTorch profiler", "JAX trace viewer", "scalecalc trace", "XPlane", "Nsight Systems", "rocprofv3"};

struct Recording {
  std::string file;
  RecordingFormat format = RecordingFormat::kKineto;
  std::string chip;  ///< as the recording names it; may be empty
  std::optional<std::int64_t> rank, world;
  std::vector<RecordedName> names;
  std::vector<RecordedOp> ops{RecordedOp{}};
  std::vector<RecordedEvent> events;  ///< of devices
  std::vector<RecordedLane> lanes;
  std::vector<std::string> devices;
  std::vector<RecordedMarker> markers;
  std::uint64_t read = 0;          ///< events of any kind
  std::vector<std::string> notes;  ///< what a reader of the figures should know
};

/// The host has several events for each event of a device: a launch, waits, ranges. At most this many times
/// limits::kRecordedEvents are kept of them.
inline constexpr std::size_t kHostEvents = 4;
inline constexpr std::string_view kEventsKept = "events of devices, or four times as many of the host";

/// Puts alike texts and operations into a recording once. UserError where they grow beyond limits::kRecordedTexts.
class RecordingTables {
 public:
  explicit RecordingTables(Recording& out) : out_(out) {}
  std::uint32_t name(std::string_view text);
  std::uint32_t name(std::string_view text, DeviceWork work);
  std::uint32_t op(const RecordedOp& op);
  std::uint32_t device(std::string_view name);
  std::uint32_t lane(std::uint32_t device, std::string_view name);
  /// A name of markers.
  SharedText marker(std::string_view name);

 private:
  void keeps(std::size_t bytes);
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Ids = std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>>;
  Recording& out_;
  Ids names_, ops_, devices_, lanes_;
  std::unordered_map<std::string, SharedText, Hash, std::equal_to<>> markers_;
  limits::Expansion kept_{limits::kRecordedTexts};
};

/// By what the file holds, not by its name. UserError (exit 2) for a file that is none of these, was cut off or is
/// damaged; Stopped if asked to end.
Recording read_recording(const std::string& path, const Stop& stop);

// Its parts, one for each format.
Recording read_chrome_trace(const std::string& path, const Stop& stop);
Recording read_xplane(const std::string& path, const Stop& stop);
Recording read_nsight(const std::string& path, const Stop& stop);
Recording read_rocprof_json(const std::string& path, const Stop& stop);
Recording read_rocprof_csv(const std::string& path, const Stop& stop);
Recording read_perfetto(const std::string& path, const Stop& stop);
bool is_rocprof_json(std::string_view first_bytes);
bool is_rocprof_csv(std::string_view first_bytes);
/// Whether a member of an archive is a recording, or a program's text, rather than a file that lies beside them.
bool looks_recorded(std::string_view first_bytes);

/// Decimal microseconds, as written, to ticks after `base` whole microseconds; nothing if it is no finite number or out
/// of reach.
std::optional<Ticks> ticks_of_microseconds(std::string_view text, std::int64_t base);

}  // namespace scalecalc
