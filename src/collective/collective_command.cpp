// Runs `scalecalc collective`: reads its flags, asks its question and writes the answer.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/limits.h"
#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/foreign_words.h"
#include "cli/output_command.h"
#include "collective/collective_answer.h"
#include "collective/collective_output.h"
#include "network/slice.h"
#include "spec/load_stack.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kPositionRange{0, kMostChips};
constexpr CountRange kPermutePortRange{1, 6};
constexpr std::size_t kMostCollectiveAxes = 5;

/// One mode for each operation, in the order of CollectiveOp, and permute.
constexpr std::array kCollectiveModes{Mode{"all-gather"}, Mode{"reduce-scatter"}, Mode{"all-reduce"},
                                      Mode{"all-to-all"}, Mode{"gather"},         Mode{"scatter"},
                                      Mode{"broadcast"},  Mode{"reduce"},         Mode{"permute"}};
constexpr std::size_t kPermuteMode = 8;
constexpr Modes kOfPermute = 1U << kPermuteMode;
constexpr Modes of_op(CollectiveOp op) { return 1U << static_cast<unsigned>(op); }

std::vector<std::string_view> op_words() {
  std::vector<std::string_view> out;
  out.reserve(kCollectiveModes.size());
  for (const Mode& mode : kCollectiveModes) out.push_back(mode.name);
  return out;
}

std::optional<std::size_t> collective_mode(const Arguments& arguments) {
  if (arguments.positionals().size() != 1) return std::nullopt;
  return word_meant(arguments.positionals().front(), op_words());
}

/// Between commas, without blanks.
std::vector<std::string> trimmed_parts(std::string_view text) {
  std::vector<std::string> out = comma_parts(text);
  for (std::string& part : out) {
    part.erase(0, std::min(part.find_first_not_of(' '), part.size()));
    part.erase(part.find_last_not_of(' ') + 1);
  }
  return out;
}

bool is_mesh_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

void read_collective_mesh(FlagReader& reader, const Flag&, const std::string& text, CollectiveQuestion& q) {
  for (const std::string& part : trimmed_parts(text)) {
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    if (equals == std::string::npos || !is_mesh_name(name)) {
      reader.problem(fmt::format("--mesh: {} is not an axis with its size", in_quotes(part)), "such as X=4,Y=4");
      return;
    }
    const auto known = [&](const NamedAxis& axis) { return axis.name == name; };
    if (std::any_of(q.mesh.begin(), q.mesh.end(), known)) {
      reader.problem(fmt::format("--mesh names axis {} twice", name), "one size for each axis");
    }
    const auto size = reader.count_of(fmt::format("--mesh {}", name), part.substr(equals + 1), kChipRange);
    q.mesh.push_back({name, size.value_or(1)});
  }
  double chips = 1;
  for (const NamedAxis& axis : q.mesh) chips *= static_cast<double>(axis.size);
  if (q.mesh.size() > kMostCollectiveAxes || chips > static_cast<double>(kMostChips)) {
    reader.problem(fmt::format("--mesh {} is too large", in_quotes(text)), "up to five axes and 16,777,216 chips");
  }
}

template <std::vector<std::string> CollectiveQuestion::*kAxes>
void read_axis_names(FlagReader& reader, const Flag& flag, const std::string& text, CollectiveQuestion& q) {
  std::vector<std::string>& names = q.*kAxes = trimmed_parts(text);
  for (const std::string& name : names) {
    if (!is_mesh_name(name)) {
      reader.problem(fmt::format("{}: {} is not a name", flag.name, in_quotes(name)), "such as X,Y");
    }
    if (std::count(names.begin(), names.end(), name) > 1) {
      reader.problem(fmt::format("{} names {} twice", flag.name, name), "each axis once");
      break;
    }
  }
}

void read_sized_array(FlagReader& reader, const Flag& flag, const std::string& text, CollectiveQuestion& q) {
  const auto parsed = parse_sized_array(text);
  if (const auto* error = std::get_if<UnitError>(&parsed)) {
    reader.problem(fmt::format("{}: {}", flag.name, error->message), error->hint);
  } else {
    q.array = std::get<SizedArray>(parsed);
  }
}

template <std::optional<MeshPosition> CollectiveQuestion::*kEnd>
void read_mesh_position(FlagReader& reader, const Flag& flag, const std::string& text, CollectiveQuestion& q) {
  MeshPosition& out = (q.*kEnd).emplace();
  for (const std::string& part : trimmed_parts(text)) {
    out.push_back(reader.count_of(flag.name, part, kPositionRange).value_or(0));
  }
}

void read_collective_measured(FlagReader& reader, const Flag& flag, const std::string& text, CollectiveQuestion& q) {
  for (const std::string& part : trimmed_parts(text)) {
    const auto rate = parse_quantity(part, UnitKind::kBytesPerSecond);
    const auto time = parse_quantity(part, UnitKind::kSeconds);
    const bool is_time = std::holds_alternative<double>(time);
    const auto& parsed = is_time ? time : rate;
    if (const auto* error = std::get_if<UnitError>(&parsed)) {
      reader.problem(fmt::format("{}: {}", flag.name, error->message),
                     "times such as 680us, or bandwidths such as 370GB/s");
    } else if (std::get<double>(parsed) < (is_time ? 1e-12 : 1) || std::get<double>(parsed) > 1e18) {
      reader.problem(fmt::format("{} {} is out of range", flag.name, in_quotes(part)),
                     "a picosecond or a byte a second at least");
    } else {
      q.measured.push_back({is_time, std::get<double>(parsed)});
    }
  }
}

constexpr std::string_view kHowLarge = "how large the array is";
constexpr std::string_view kWhichChips = "which chips";
constexpr std::string_view kMeshes = "--mesh --topology";
constexpr std::string_view kBothEnds = "give both, or neither for a permute to the next member";

constexpr std::array kCollectiveFlags{
    kHwFlag,
    sweep<&CollectiveQuestion::bytes>("--bytes", UnitKind::kBytes, "SIZES",
                                      "bytes V of the array of one group: one size, a list or a range", "1KiB..1GiB*4")
        .saying(kHowLarge),
    text("--array", "ARRAY", "the same as an array; a subscript names the mesh axis that cuts a dimension",
         "bf16[2048_X,8192]")
        .by<read_sized_array>()
        .saying(kHowLarge),
    text("--mesh", "X=N,Y=N",
         "named axes of the chips: those of a torus slice, or ranks behind switches, the last axis innermost; on a "
         "torus an axis named after the outer tier (dcn=2) counts slices",
         "X=4,Y=4")
        .by<read_collective_mesh>()
        .saying(kWhichChips),
    text("--topology", "AxBxC", "a torus slice with axes X, Y, Z", "4x4x4")
        .by<kReadShape<&CollectiveQuestion::topology>>()
        .saying(kWhichChips),
    text("--axes", "X,Y", "mesh axes the collective runs over (default: all)", "X,Y")
        .by<read_axis_names<&CollectiveQuestion::axes>>(),
    text("--replicated", "Z", "mesh axes that hold copies and help an all-gather", "Z")
        .by<read_axis_names<&CollectiveQuestion::replicated>>()
        .shown<&CollectiveQuestion::replicated>()
        .in(of_op(CollectiveOp::kAllGather)),
    text("--sharded", "Y", "with --bytes: other mesh axes that cut the array", "Y")
        .by<read_axis_names<&CollectiveQuestion::sharded>>()
        .shown<&CollectiveQuestion::sharded>()
        .excluding("--array", "what cuts the array"),
    sweep("--group", UnitKind::kCount, "N",
          "instead of a mesh: members along one torus axis, consecutive chips behind switches; a list or range too",
          "8,16,64")
        .excluding(kMeshes, kWhichChips),
    text<&CollectiveQuestion::tier>("--tier", "TIER",
                                    "the group is inside one domain of this tier (the whole domain without --group); "
                                    "an outer tier of a torus: one chip of "
                                    "each of --group slices",
                                    "leaf")
        .excluding(kMeshes, kWhichChips),
    word<&CollectiveQuestion::wraparound>("--wraparound", kAutoOnOff,
                                          "auto (default): as the hardware builds such a slice")
        .like("on"),
    convention_flag<&CollectiveQuestion::convention>(kCollectiveConventionNames).in(~kOfPermute),
    in_network_flag<&CollectiveQuestion::in_network>(kInNetworkNames).in(of_op(CollectiveOp::kAllReduce)),
    count<&CollectiveQuestion::top_k>("--top-k", kChipRange, "K",
                                      "only K of the slots for all members are filled (ragged)", "4")
        .in(of_op(CollectiveOp::kAllToAll)),
    text("--from", "X,Y", "the chip that sends, as coordinates from 0 or as a rank", "0,0")
        .by<read_mesh_position<&CollectiveQuestion::from>>()
        .needing("--to", "{} needs --to: which chip receives?", kBothEnds)
        .excluding("--axes", "who sends to whom")
        .in(kOfPermute),
    text("--to", "X,Y", "the chip that receives", "3,3")
        .by<read_mesh_position<&CollectiveQuestion::to>>()
        .needing("--from", "{} needs --from: which chip sends?", kBothEnds)
        .in(kOfPermute),
    count<&CollectiveQuestion::ports>("--ports", kPermutePortRange, "N",
                                      "links used at once (default: one for each axis on the way)", "2")
        .in(kOfPermute),
    text("--measured", "VALUES", "measured times or bus bandwidths of the same collective, to set beside the model",
         "370GB/s,480GB/s")
        .by<read_collective_measured>(),
    efficiency_flag("ideal (default): links at their full rate; calibrated: at the share the hardware file gives")
        .when<1, &CollectiveQuestion::calibrated>(),
    text<&CollectiveQuestion::stack>(
        "--stack", "NAME",
        "with --efficiency calibrated: software stack or serving engine whose measured kernels and links count",
        "vllm"),
    kSetFlag,
    kExplainFlag,
};

CollectiveQuestion collective_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  CollectiveQuestion q;
  if (const std::string op = reader.only_word("OP", "which collective?"); !op.empty()) {
    const std::vector<std::string_view> words = op_words();
    const auto at = reader.word_of("OP", op, words);
    if (at && *at != kPermuteMode) q.op = static_cast<CollectiveOp>(*at);
  }
  reader.read(q);
  reader.text("--hw");
  for (const double size : reader.sweep("--group").value_or(std::vector<double>{})) {
    if (size > static_cast<double>(kMostChips)) {
      reader.problem(fmt::format("--group {:g} is out of range", size), "up to 16,777,216");
    } else {
      q.groups.push_back(static_cast<std::int64_t>(size));
    }
  }
  if (std::any_of(q.bytes.begin(), q.bytes.end(), [](double b) { return b < 1 || b > kMostCollectiveBytes; })) {
    reader.problem(fmt::format("--bytes {} is out of range", in_quotes(*arguments.value("--bytes"))),
                   "from one byte to 10^18");
  }
  if (q.bytes.size() * q.groups.size() > limits::kSweepValues) {
    reader.problem(fmt::format("--bytes has {} values and --group {}: together {}",
                               group_thousands(static_cast<long long>(q.bytes.size())), q.groups.size(),
                               limits::too_many(limits::kSweepValues, "points")),
                   "a larger step, such as *2");
  }
  if (!arguments.has("--bytes") && !arguments.has("--array")) {
    reader.problem("how large is the array?", "--bytes 64MiB, --bytes 1KiB..1GiB*4, or --array bf16[2048_X,8192]");
  }
  if (!q.stack.empty() && !q.calibrated) {
    reader.problem("--stack chooses measured coefficients, and the links are ideal", "add --efficiency calibrated");
  }
  reader.finish();
  return q;
}

/// Of an engine, or of a stack that trains; engines without coefficients of their own on the chip serve by the chip's.
bool is_engine(const std::string& stack, const HardwareSpec& hw, const Catalog& catalog) {
  if (stack.empty()) return false;
  if (const StackCoefficients* own = coefficients_under(hw, stack)) return own->serves;
  const std::optional<std::string> known = stack_of_framework(catalog, stack);
  return known && !stack_spec(catalog, *known)->serving.empty();
}

ExitCode run_collective(const Arguments& arguments, Environment& env) {
  CollectiveQuestion question = collective_question(arguments);
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    // Only the network matters here; answer_collective looks at what of it is published.
    const HardwareSpec hw = hardware_asked_for(arguments, catalog, Unpublished::kAllowed);
    question.serving = is_engine(question.stack, hw, catalog);
    CollectiveAnswer answer = answer_collective(question, hw, env.interrupted);
    note_sets(arguments, answer.assumptions);
    return with_query(collective_output(answer, hw), arguments, {answered(question)});
  });
}

constexpr std::array kCollectiveCommon{
    FlagGroup{"the array and its group", "--bytes --array --mesh --axes --group --tier"},
    FlagGroup{"the machine", "--hw --topology --efficiency --stack --convention --set"}};

}  // namespace

const Command& collective_command() {
  static const Command kCollective{
      .name = "collective",
      .summary = "Time of one collective on a mesh axis, a tier or across pods, and what binds it.",
      .usage = "OP --hw HW (--bytes SIZES | --array ARRAY) [flags]",
      .examples =
          "  scalecalc collective all-gather --hw tpu-v5p --mesh X=4,Y=4,Z=4 --axes X --array bf16[1Ki_X,4Ki_Y]\n"
          "  scalecalc collective all-reduce --hw h100-sxm --group 8 --bytes 1KiB..1GiB*32 --convention exact\n"
          "  scalecalc collective permute --hw tpu-v5e --mesh X=4,Y=4 --from 0,0 --to 3,3 --bytes 16MiB\n",
      .notes =
          "V is what one group gathers, reduces or redistributes: an array that other axes cut too is divided\n"
          "by them first (--array and --sharded do that). For permute it is what one chip sends.\n"
          "gather, scatter, broadcast and reduce have a root, at the end of an axis that does not wrap.\n"
          "Sizes take a suffix, 64MiB or 1GB; ranges rise by a factor, 1KiB..1GiB*4, or a step, 1MB..9MB+2MB.\n",
      .flags = kCollectiveFlags,
      .run = run_collective,
      .modes = kCollectiveModes,
      .mode_of = collective_mode,
      .interruptible = true,
      .draws = "time over bytes or over the chips of a group",
      .figures = "bytes group time_s bytes_per_s algorithm bound_by",
      .common = kCollectiveCommon};
  return kCollective;
}

}  // namespace scalecalc::cli
