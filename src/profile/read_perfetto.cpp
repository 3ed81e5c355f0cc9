// Reads Perfetto's trace format as rocprofv3 writes it (--output-format pftrace): slices of kernels and copies on
// tracks named after their agent and queue, or after their stream. Field numbers are those of protos/perfetto/trace in
// github.com/google/perfetto: trace_packet.proto, track_event.proto, track_descriptor.proto, interned_data.proto,
// clock_snapshot.proto; names of tracks and categories those of rocprofiler-sdk's generatePerfetto.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/text.h"
#include "profile/byte_source.h"
#include "profile/roc_records.h"
#include "profile/wire.h"

namespace scalecalc {
namespace {

constexpr std::uint32_t kTracePacket = 1;
constexpr std::uint32_t kPacketClocks = 6, kPacketTimestamp = 8, kPacketSequence = 10, kPacketEvent = 11,
                        kPacketInterned = 12, kPacketFlags = 13, kPacketCompressed = 50, kPacketClock = 58,
                        kPacketDefaults = 59, kPacketTrack = 60;
constexpr std::uint64_t kStateCleared = 1;
constexpr std::uint32_t kSnapshotClock = 1, kClockId = 1, kClockTime = 2;
constexpr std::uint64_t kIncrementalClock = 64;
constexpr std::uint32_t kDefaultEvent = 11, kDefaultTrack = 11;
constexpr std::uint32_t kCategories = 1, kEventNames = 2, kInternedId = 1, kInternedName = 2;
constexpr std::uint32_t kTrackId = 1, kTrackName = 2, kTrackParent = 5, kTrackStaticName = 10;
constexpr std::uint32_t kEventCategoryId = 3, kEventType = 9, kEventNameId = 10, kEventTrack = 11, kEventCategory = 22,
                        kEventName = 23;
constexpr std::uint64_t kSliceBegin = 1, kSliceEnd = 2;

class PerfettoReader {
 public:
  PerfettoReader(const std::string& path, const Stop& stop) : stop_(stop), path_(path), records_(path) {
    ByteSource source(path);
    constexpr std::size_t kPerfettoPiece = 1 << 22;
    for (;;) {
      const std::size_t had = bytes_.size();
      bytes_.resize(had + kPerfettoPiece);
      bytes_.resize(had + source.read(bytes_.data() + had, kPerfettoPiece));
      if (bytes_.size() == had) break;
      if (bytes_.size() > limits::kWholeRecording) {
        fail("Perfetto's format " + limits::too_large(limits::kWholeRecording), "record fewer steps");
      }
    }
  }

  Recording read() {
    WireMessage trace(bytes_, bytes_, path_);
    std::uint64_t packets = 0;
    while (trace.next()) {
      constexpr std::uint64_t kPolled = 4096;
      if (++packets % kPolled == 0 && should_stop(stop_)) throw Stopped();
      if (trace.field() == kTracePacket) packet(trace.message());
    }
    std::size_t open = 0;
    for (const auto& [track, slices] : open_) open += slices.size();
    if (open > 0) {
      records_.recording().notes.push_back(
          fmt::format("{} slices have no end: recording stopped meanwhile, and they are left out", open));
    }
    return records_.finish();
  }

 private:
  struct Sequence {
    std::uint64_t now = 0;    ///< of the incremental clock
    std::uint64_t clock = 0;  ///< where a packet says none
    std::uint64_t track = 0;
    std::map<std::uint64_t, SharedText> names, categories;
  };
  struct Track {
    std::string name;
    std::uint64_t parent = 0;
  };
  struct Slice {
    std::uint64_t start;
    SharedText name, category;
  };

  [[noreturn]] void fail(std::string message, std::string hint) const {
    throw UserError({Diagnostic{SourceSpan{.file = path_}, std::move(message), std::move(hint)}});
  }

  void packet(WireMessage all) {
    std::uint64_t timestamp = 0, sequence = 0, flags = 0, clock = 0;
    std::optional<WireMessage> event, interned, clocks, defaults, descriptor;
    while (all.next()) {
      switch (all.field()) {
        case kPacketTimestamp: timestamp = all.number(); break;
        case kPacketSequence: sequence = all.number(); break;
        case kPacketFlags: flags = all.number(); break;
        case kPacketClock: clock = all.number(); break;
        case kPacketEvent: event = all.message(); break;
        case kPacketInterned: interned = all.message(); break;
        case kPacketClocks: clocks = all.message(); break;
        case kPacketDefaults: defaults = all.message(); break;
        case kPacketTrack: descriptor = all.message(); break;
        case kPacketCompressed: fail("packets of Perfetto's that are packed are not read", "record it without"); break;
        default: break;
      }
    }
    Sequence& of = sequences_[sequence];
    if ((flags & kStateCleared) != 0) of = {};
    if (clocks) snapshot(*clocks, of);
    if (defaults) defaults_of(*defaults, of);
    if (interned) names_of(*interned, of);
    if (descriptor) track_of(*descriptor);
    if (!event) return;
    if (clock == 0) clock = of.clock;
    if (clock == kIncrementalClock) timestamp = of.now += timestamp;
    event_of(*event, of, timestamp);
  }

  static void snapshot(WireMessage all, Sequence& of) {
    while (all.next()) {
      if (all.field() != kSnapshotClock) continue;
      WireMessage clock = all.message();
      std::uint64_t id = 0, time = 0;
      while (clock.next()) {
        if (clock.field() == kClockId) id = clock.number();
        if (clock.field() == kClockTime) time = clock.number();
      }
      if (id == kIncrementalClock) of.now = time;
    }
  }

  static void defaults_of(WireMessage all, Sequence& of) {
    while (all.next()) {
      if (all.field() == kPacketClock) of.clock = all.number();
      if (all.field() != kDefaultEvent) continue;
      WireMessage event = all.message();
      while (event.next()) {
        if (event.field() == kDefaultTrack) of.track = event.number();
      }
    }
  }

  void names_of(WireMessage all, Sequence& of) const {
    while (all.next()) {
      if (all.field() != kCategories && all.field() != kEventNames) continue;
      WireMessage entry = all.message();
      std::uint64_t id = 0;
      SharedText name;
      while (entry.next()) {
        if (entry.field() == kInternedId) id = entry.number();
        if (entry.field() == kInternedName) name = SharedText(entry.text());
      }
      if (name.str().size() > limits::kNameText) fail(fmt::format("a name of {} bytes", name.str().size()), "");
      (all.field() == kCategories ? of.categories : of.names)[id] = std::move(name);
    }
  }

  void track_of(WireMessage all) {
    std::uint64_t id = 0;
    Track track;
    while (all.next()) {
      if (all.field() == kTrackId) id = all.number();
      if (all.field() == kTrackName || all.field() == kTrackStaticName) track.name = all.text();
      if (all.field() == kTrackParent) track.parent = all.number();
    }
    if (track.name.size() > limits::kNameText) fail(fmt::format("a name of {} bytes", track.name.size()), "");
    tracks_[id] = std::move(track);
  }

  void event_of(WireMessage all, const Sequence& of, std::uint64_t timestamp) {
    std::uint64_t type = 0, track = of.track;
    Slice slice{.start = timestamp};
    while (all.next()) {
      switch (all.field()) {
        case kEventType: type = all.number(); break;
        case kEventTrack: track = all.number(); break;
        case kEventName: slice.name = SharedText(all.text()); break;
        case kEventCategory: slice.category = SharedText(all.text()); break;
        case kEventNameId: slice.name = known(of.names, all.number()); break;
        case kEventCategoryId:
          if (all.text().empty()) slice.category = known(of.categories, all.number());
          break;
        default: break;
      }
    }
    std::vector<Slice>& open = open_[track];
    if (type == kSliceBegin) {
      if (open.size() > limits::kSliceLevels)
        fail("slices " + limits::too_deep(limits::kSliceLevels), "record it again");
      open.push_back(std::move(slice));
    } else if (type == kSliceEnd && !open.empty()) {
      close(open.back(), timestamp, tracks_[track].name);
      open.pop_back();
    }
  }

  static SharedText known(const std::map<std::uint64_t, SharedText>& names, std::uint64_t id) {
    const auto at = names.find(id);
    return at == names.end() ? SharedText(fmt::format("name {}", id)) : at->second;
  }

  void close(const Slice& slice, std::uint64_t end, const std::string& track) {
    const std::string place = lower_case(track);
    const bool kernel = slice.category.str() == "kernel_dispatch" || place.starts_with("compute ");
    const bool copy = slice.category.str() == "memory_copy" || place.starts_with("copy to ");
    const bool range = slice.category.str().starts_with("marker_");
    if (!kernel && !copy && !range) return;
    RocRecord r{
        .name = slice.name, .stream = track, .direction = slice.name, .start = whole(slice.start), .end = whole(end)};
    r.agent = r.from = r.to = agent_in(track);
    const RocTable table = kernel ? RocTable::kKernels : copy ? RocTable::kCopies : RocTable::kRanges;
    const std::string problem = records_.take(table, r);
    if (!problem.empty()) fail(problem, "record it again: nothing of a damaged file is used");
  }

  static std::optional<std::int64_t> whole(std::uint64_t ns) {
    return ns > static_cast<std::uint64_t>(INT64_MAX) ? std::nullopt : std::optional(static_cast<std::int64_t>(ns));
  }

  /// "GPU 7" of "COMPUTE AGENT [7] QUEUE [0] (GPU)"; streams do not say whose they are.
  static std::string agent_in(const std::string& track) {
    const std::size_t agent = lower_case(track).find("agent [");
    const std::size_t open = agent == std::string::npos ? agent : track.find('[', agent);
    const std::size_t close = open == std::string::npos ? open : track.find(']', open);
    return close == std::string::npos ? "GPU" : "GPU " + track.substr(open + 1, close - open - 1);
  }

  const Stop& stop_;
  std::string path_;
  std::string bytes_;
  RocRecords records_;
  std::map<std::uint64_t, Sequence> sequences_;
  std::map<std::uint64_t, Track> tracks_;
  std::map<std::uint64_t, std::vector<Slice>> open_;
};

}  // namespace

Recording read_perfetto(const std::string& path, const Stop& stop) { return PerfettoReader(path, stop).read(); }

}  // namespace scalecalc
