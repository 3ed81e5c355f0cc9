// The limits on what comes from elsewhere: how deep it may nest, how much of it there may be, and how much more than
// itself a reader may make of it. Every reader asks here; docs/security.md says which one keeps which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace scalecalc::limits {

inline constexpr std::size_t kMiB = std::size_t{1} << 20U;

// ---- Levels of brackets, branches or calls in one another. Readers that recurse keep one of these.

/// Levels of a tree: YAML, JSON, a row of results, parentheses of a script's arithmetic.
inline constexpr std::size_t kTreeLevels = 32;
/// Levels of JSON that is read as a stream and mostly skipped.
inline constexpr std::size_t kStreamLevels = 200;
/// Levels of the header and the index of weights, which are two deep.
inline constexpr std::size_t kIndexLevels = 16;
/// Branches of a script in one another.
inline constexpr std::size_t kBranchLevels = 100;
/// Recipes that change each other, and their arguments in one another.
inline constexpr std::size_t kRecipeLevels = 50;
/// Computations of an HLO module that call each other.
inline constexpr std::size_t kCallLevels = 64;
/// Operations of an HLO module through which an annotation is followed.
inline constexpr std::size_t kTraceLevels = 200;
/// Slices of a recording in one another.
inline constexpr std::size_t kSliceLevels = 10'000;
/// Arrays in one another in the header of a GGUF file.
inline constexpr int kGgufLevels = 2;
/// Operators in one another in a condition.
inline constexpr int kConditionLevels = 200;

// ---- Sizes and counts of one input.

/// Bytes of a text file. A model or hardware file is a few kilobytes, but a quantization that lists every module of a
/// mixture of experts takes up to ten megabytes.
inline constexpr std::size_t kTextFile = 32 * kMiB;
/// Bytes of HLO text, unpacked.
inline constexpr std::size_t kHloText = 256 * kMiB;
/// Bytes of a recording that has to be in memory whole (XPlane, Perfetto), unpacked.
inline constexpr std::size_t kWholeRecording = 1024 * kMiB;
/// Bytes of one text of a recording: of JSON that is streamed, of a cell of CSV or of a database.
inline constexpr std::size_t kStreamedText = 64 * kMiB;
inline constexpr std::size_t kCellText = kMiB;
/// Bytes of the shapes that one operation of a recording lists.
inline constexpr std::size_t kShapesText = std::size_t{1} << 16U;
/// Bytes of a name that events share by its number: C++ gives kernels names of some kilobytes.
inline constexpr std::size_t kNameText = std::size_t{1} << 16U;

/// Values of a document. A model or hardware file has some hundreds.
inline constexpr std::size_t kDocumentNodes = 100'000;
/// Values of a table of measurements, or of a file that says something of each module: Kimi K2 has 69,120 matrices.
inline constexpr std::size_t kTableNodes = 1'000'000;
/// Values of a row of results, which has some hundreds.
inline constexpr std::size_t kRowValues = 10'000;
/// Events of devices that are kept of one recording; of the host profile/recording.h allows some times as many.
inline constexpr std::size_t kRecordedEvents = 8'000'000;
/// Numbers of one list of an HLO module (its devices), and dimensions of one array.
inline constexpr std::size_t kHloDevices = std::size_t{1} << 20U;
inline constexpr std::size_t kHloDimensions = 64;
/// Devices of all lists of an HLO module that are written in short, as [2,8]<=[16].
inline constexpr std::size_t kHloListed = std::size_t{1} << 29U;
/// Buffers that are looked at when tuples of an HLO module are passed on.
inline constexpr std::size_t kHloLooks = 100'000'000;
/// Documents in one launch file: of a script, or objects of Kubernetes.
inline constexpr std::size_t kLaunchDocuments = 1'000;
/// Files of an archive, and bytes of a name of one.
inline constexpr std::uint64_t kArchiveMembers = 10'000;
inline constexpr std::uint64_t kArchiveName = std::uint64_t{1} << 16U;
/// Values of a sweep that are answered at once, and those of one range of a study.
inline constexpr std::size_t kSweepValues = 10'000;
inline constexpr std::size_t kStudyRangeValues = 100'000;
/// Values of one axis of a study.
inline constexpr std::size_t kAxisValues = 1'000'000;
/// Keys and tensors of the header of a GGUF file; characters of a text and values of an array.
inline constexpr std::uint64_t kGgufEntries = 1'000'000;
inline constexpr std::uint64_t kGgufValues = std::uint64_t{1} << 24U;
/// Characters of a condition, bytes of a text that it makes, and steps of SQLite's machine for one row.
inline constexpr std::size_t kConditionText = 10'000;
inline constexpr int kConditionValue = 1'000'000;
inline constexpr int kConditionSteps = 100'000;

// ---- What a reader may make of its input: `free` of anything, and `times` what it has read; bytes, if nothing else is
// said.

struct ExpansionLimit {
  std::uint64_t free = 0;
  std::uint64_t times = 0;
};
/// What gzip unpacks. Traces and HLO shrink to a tenth or a twentieth, a file made for it to a thousandth.
inline constexpr ExpansionLimit kUnpacked{4 * kMiB, 64};
/// Instructions, arrays and operands of HLO in memory; XLA's own texts make one to two times their size.
inline constexpr ExpansionLimit kHloParts{32 * kMiB, 3};
/// Instructions and operands that are looked at when an HLO module's calls are followed, of the instructions it has.
inline constexpr ExpansionLimit kHloSteps{2'000'000, 64};
/// Names and operations kept of a recording, each once.
inline constexpr ExpansionLimit kRecordedTexts{64 * kMiB, 0};
/// Cells that a database gives: each stands in the file, except those that its schema computes.
inline constexpr ExpansionLimit kDatabaseCells{kMiB, 4};
/// Steps of SQLite's machine, of the bytes of the database.
inline constexpr ExpansionLimit kDatabaseSteps{20'000'000, 64};
/// Characters that the variables of a script stand for.
inline constexpr ExpansionLimit kScriptVariables{4 * kMiB, 0};
/// Characters that the aliases of a YAML document stand for.
inline constexpr ExpansionLimit kYamlAliases{kMiB, 0};

/// Counts what a reader makes of what it has read.
class Expansion {
 public:
  explicit Expansion(const ExpansionLimit& limit, std::uint64_t read = 0) : limit_(limit), read_(read) {}
  void reads(std::uint64_t bytes) { read_ += bytes; }
  /// False once more was made than the limit allows: the reader then refuses its input with message().
  [[nodiscard]] bool makes(std::uint64_t bytes) { return (made_ += bytes) <= limit_.free + limit_.times * read_; }
  /// "expands to more than 54.3 MB, from 600 kB".
  std::string message() const;

 private:
  ExpansionLimit limit_;
  std::uint64_t read_;
  std::uint64_t made_ = 0;
};

// ---- What is said of an input that is refused.

/// "nested more than 32 levels deep".
std::string too_deep(std::size_t most);
/// "more than 100,000 values".
std::string too_many(std::uint64_t most, std::string_view what);
/// "larger than 32 MiB".
std::string too_large(std::uint64_t most);

/// Whether the brackets of a JSON text, those in quotes left out, nest deeper than `levels`, or it has more than
/// `values` values: asked before a parser builds a tree that it would have to leave by recursion.
bool json_exceeds(std::string_view text, std::size_t levels, std::size_t values = SIZE_MAX);

}  // namespace scalecalc::limits
