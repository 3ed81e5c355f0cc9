// `scalecalc collective`: flags to a question, its answer to a Sheet.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/sheet_command.h"
#include "network/slice.h"
#include "primitives/collective_answer.h"
#include "report/collective_sheet.h"
#include "spec/load_stack.h"

namespace scalecalc::cli {
namespace {

constexpr std::int64_t kMostChips = 16'777'216;
constexpr CountRange kChipRange{1, kMostChips};
constexpr CountRange kPositionRange{0, kMostChips};
constexpr CountRange kPortRange{1, 6};
constexpr std::size_t kMostMeshAxes = 5;

constexpr std::array kFlags{
    kHwFlag,
    Flag{"--bytes", 0, FlagKind::kValue, "SIZES", "bytes V of the array of one group: one size, a list or a range",
         "1KiB..1GiB*4"},
    Flag{"--array", 0, FlagKind::kValue, "ARRAY",
         "the same as an array; a subscript names the mesh axis that cuts a dimension", "bf16[2048_X,8192]"},
    Flag{"--mesh", 0, FlagKind::kValue, "X=N,Y=N",
         "named axes of the chips: those of a torus slice, or ranks behind switches, the last axis innermost; on a "
         "torus an axis named after the outer tier (dcn=2) counts slices",
         "X=4,Y=4"},
    Flag{"--topology", 0, FlagKind::kValue, "AxBxC", "a torus slice with axes X, Y, Z", "4x4x4"},
    Flag{"--axes", 0, FlagKind::kValue, "X,Y", "mesh axes the collective runs over (default: all)", "X,Y"},
    Flag{"--replicated", 0, FlagKind::kValue, "Z", "mesh axes that hold copies and help an all-gather", "Z"},
    Flag{"--sharded", 0, FlagKind::kValue, "Y", "with --bytes: other mesh axes that cut the array", "Y"},
    Flag{"--group", 0, FlagKind::kValue, "N",
         "instead of a mesh: members along one torus axis, consecutive chips behind switches; a list or range too",
         "8,16,64"},
    Flag{"--tier", 0, FlagKind::kValue, "TIER",
         "the group lies in one domain of this tier (all of it without --group); an outer tier of a torus: one chip of "
         "each of --group slices",
         "leaf"},
    Flag{"--wraparound", 0, FlagKind::kValue, "auto|on|off", "auto (default): as the hardware builds such a slice",
         "on"},
    kConventionFlag,
    kInNetworkFlag,
    Flag{"--top-k", 0, FlagKind::kValue, "K", "all-to-all: only K of the slots for all members are filled (ragged)",
         "4"},
    Flag{"--from", 0, FlagKind::kValue, "X,Y", "permute: the chip that sends, as coordinates from 0 or as a rank",
         "0,0"},
    Flag{"--to", 0, FlagKind::kValue, "X,Y", "permute: the chip that receives", "3,3"},
    Flag{"--ports", 0, FlagKind::kValue, "N", "permute: links used at once (default: one for each axis on the way)",
         "2"},
    Flag{"--measured", 0, FlagKind::kValue, "VALUES",
         "measured times or bus bandwidths of the same collective, to set beside the model", "370GB/s,480GB/s"},
    Flag{"--efficiency", 0, FlagKind::kValue, "ideal|calibrated",
         "ideal (default): links at their full rate; calibrated: at the share the hardware file gives", "calibrated"},
    Flag{"--stack", 0, FlagKind::kValue, "NAME",
         "with --efficiency calibrated: software stack or serving engine whose measured kernels and links count",
         "vllm"},
    kSetFlag,
    kExplainFlag,
};

constexpr const char* kExample =
    "for example: scalecalc collective all-gather --hw tpu-v5e --mesh X=4,Y=8 --axes X --bytes 64MiB";

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    out.emplace_back(part);
    begin = end + 1;
  }
  return out;
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

class Options {
 public:
  explicit Options(const Arguments& arguments) : arguments_(arguments), reader_(arguments) {}

  CollectiveQuestion question() {
    read_op();
    read_chips();
    read_sizes();
    read_manner();
    read_way();
    read_measured();
    reader_.finish();
    return std::move(q_);
  }

 private:
  void read_op() {
    const std::vector<std::string>& names = arguments_.positionals();
    if (names.size() != 1) {
      reader_.problem(names.empty()
                          ? "OP is missing: which collective?"
                          : fmt::format("unexpected argument {}: collective takes one OP", in_quotes(names[1])),
                      kExample);
      return;
    }
    std::vector<std::string_view> words(kCollectiveOpNames.begin(), kCollectiveOpNames.end());
    words.emplace_back("permute");
    const auto word = reader_.word_of("OP", names.front(), words);
    permute_ = word && *word == kCollectiveOpNames.size();
    if (word && !permute_) q_.op = static_cast<CollectiveOp>(*word);
  }

  void read_chips() {
    if (const auto text = arguments_.value("--mesh")) read_mesh(*text);
    if (const auto text = arguments_.value("--topology")) {
      q_.topology = parse_shape(*text);
      if (q_.topology.empty()) {
        reader_.problem(fmt::format("--topology: {} is not a shape", in_quotes(*text)),
                        "axis sizes with x between them, such as 4x4x4");
      }
    }
    if (const auto sizes = sweep_flag(reader_, arguments_, "--group", UnitKind::kCount)) {
      for (const double size : *sizes) {
        if (size > static_cast<double>(kMostChips)) {
          reader_.problem(fmt::format("--group {:g} is out of range", size), "up to 16,777,216");
        } else {
          q_.groups.push_back(static_cast<std::int64_t>(size));
        }
      }
    }
    q_.tier = arguments_.value("--tier");
    q_.axes = names_of("--axes");
    q_.replicated = names_of("--replicated");
    q_.sharded = names_of("--sharded");
    exclude({"--mesh", "--topology", "--group"});
    exclude({"--mesh", "--topology", "--tier"});
  }

  /// At most one of these flags.
  void exclude(std::initializer_list<std::string_view> flags) {
    std::vector<std::string> given;
    for (const std::string_view flag : flags) {
      if (arguments_.has(flag)) given.emplace_back(flag);
    }
    if (given.size() > 1) reader_.problem(fmt::format("{} contradict each other", join_and(given)), "give one of them");
  }

  void read_mesh(const std::string& text) {
    for (const std::string& part : parts_of(text)) {
      const std::size_t equals = part.find('=');
      const std::string name = part.substr(0, equals);
      if (equals == std::string::npos || !is_name(name)) {
        reader_.problem(fmt::format("--mesh: {} is not an axis with its size", in_quotes(part)), "such as X=4,Y=4");
        return;
      }
      const auto known = [&](const NamedAxis& axis) { return axis.name == name; };
      if (std::any_of(q_.mesh.begin(), q_.mesh.end(), known)) {
        reader_.problem(fmt::format("--mesh names axis {} twice", name), "one size for each axis");
      }
      const auto size = reader_.count_of(fmt::format("--mesh {}", name), part.substr(equals + 1), kChipRange);
      q_.mesh.push_back({name, size.value_or(1)});
    }
    double chips = 1;
    for (const NamedAxis& axis : q_.mesh) chips *= static_cast<double>(axis.size);
    if (q_.mesh.size() > kMostMeshAxes || chips > static_cast<double>(kMostChips)) {
      reader_.problem(fmt::format("--mesh {} is too large", in_quotes(text)), "up to five axes and 16,777,216 chips");
    }
  }

  std::vector<std::string> names_of(std::string_view flag) {
    const auto text = arguments_.value(flag);
    if (!text) return {};
    std::vector<std::string> names = parts_of(*text);
    for (const std::string& name : names) {
      if (!is_name(name)) reader_.problem(fmt::format("{}: {} is not a name", flag, in_quotes(name)), "such as X,Y");
      if (std::count(names.begin(), names.end(), name) > 1) {
        reader_.problem(fmt::format("{} names {} twice", flag, name), "each axis once");
        break;
      }
    }
    return names;
  }

  void read_sizes() {
    if (const auto bytes = sweep_flag(reader_, arguments_, "--bytes", UnitKind::kBytes)) {
      q_.bytes = *bytes;
      const auto [least, most] = std::minmax_element(bytes->begin(), bytes->end());
      if (*least < 1 || *most > kMostCollectiveBytes) {
        reader_.problem(fmt::format("--bytes {} is out of range", in_quotes(*arguments_.value("--bytes"))),
                        "from one byte to 10^18");
      }
    }
    if (const auto text = arguments_.value("--array")) {
      const auto parsed = parse_sized_array(*text);
      if (const auto* error = std::get_if<UnitError>(&parsed)) {
        reader_.problem("--array: " + error->message, error->hint);
      } else {
        q_.array = std::get<SizedArray>(parsed);
      }
    }
    exclude({"--bytes", "--array"});
    exclude({"--sharded", "--array"});
    if (!arguments_.has("--bytes") && !arguments_.has("--array")) {
      reader_.problem("how large is the array?", "--bytes 64MiB, --bytes 1KiB..1GiB*4, or --array bf16[2048_X,8192]");
    }
  }

  void read_manner() {
    if (const auto word = reader_.word("--convention", kCollectiveConventionNames)) {
      q_.convention = static_cast<CollectiveConvention>(*word);
    }
    if (const auto word = reader_.word("--in-network", kInNetworkNames)) q_.in_network = static_cast<InNetwork>(*word);
    constexpr std::array<std::string_view, 3> kWraparounds{"auto", "on", "off"};
    if (const auto word = reader_.word("--wraparound", kWraparounds); word && *word > 0) q_.wraparound = *word == 1;
    constexpr std::array<std::string_view, 2> kEfficiencies{"ideal", "calibrated"};
    if (const auto word = reader_.word("--efficiency", kEfficiencies)) q_.calibrated = *word == 1;
    if (arguments_.has("--stack") && !q_.calibrated) {
      reader_.problem("--stack chooses measured coefficients, and the links are ideal", "add --efficiency calibrated");
    }
    q_.stack = arguments_.value("--stack").value_or("");
    if (const auto top_k = reader_.count("--top-k", kChipRange)) q_.top_k = static_cast<double>(*top_k);
    only_for("--top-k", "all-to-all", q_.op == CollectiveOp::kAllToAll);
    only_for("--replicated", "all-gather", q_.op == CollectiveOp::kAllGather);
    if (q_.in_network == InNetwork::kOn) only_for("--in-network", "all-reduce", q_.op == CollectiveOp::kAllReduce);
    if (permute_) {
      only_for("--convention", "collectives other than permute", false);
      only_for("--in-network", "all-reduce", false);
    }
  }

  void only_for(std::string_view flag, std::string_view what, bool allowed) {
    if (arguments_.has(flag) && !allowed) reader_.problem(fmt::format("{} is for {}", flag, what), "leave it out");
  }

  void read_way() {
    q_.from = position("--from");
    q_.to = position("--to");
    q_.ports = reader_.count("--ports", kPortRange);
    for (const std::string_view flag : {"--from", "--to", "--ports"}) only_for(flag, "permute", permute_);
    if (arguments_.has("--from") != arguments_.has("--to")) {
      reader_.problem("--from and --to belong together", "give both, or neither for a permute to the next member");
    }
    if (arguments_.has("--from")) exclude({"--from", "--axes"});
  }

  std::optional<MeshPosition> position(std::string_view flag) {
    const auto text = arguments_.value(flag);
    if (!text) return std::nullopt;
    MeshPosition out;
    for (const std::string& part : parts_of(*text)) {
      out.push_back(reader_.count_of(flag, part, kPositionRange).value_or(0));
    }
    return out;
  }

  void read_measured() {
    const auto text = arguments_.value("--measured");
    if (!text) return;
    for (const std::string& part : parts_of(*text)) {
      const auto rate = parse_quantity(part, UnitKind::kBytesPerSecond);
      const auto time = parse_quantity(part, UnitKind::kSeconds);
      const bool is_time = std::holds_alternative<double>(time);
      const auto& parsed = is_time ? time : rate;
      if (const auto* error = std::get_if<UnitError>(&parsed)) {
        reader_.problem(fmt::format("--measured: {}", error->message),
                        "times such as 680us, or bandwidths such as 370GB/s");
      } else if (std::get<double>(parsed) < (is_time ? 1e-12 : 1) || std::get<double>(parsed) > 1e18) {
        reader_.problem(fmt::format("--measured {} is out of range", in_quotes(part)),
                        "a picosecond or a byte a second at least");
      } else {
        q_.measured.push_back({is_time, std::get<double>(parsed)});
      }
    }
  }

  const Arguments& arguments_;
  FlagReader reader_;
  CollectiveQuestion q_;
  bool permute_ = false;
};

/// Of an engine, or of a stack that trains; engines without coefficients of their own on the chip serve by the chip's.
bool is_engine(const std::string& stack, const HardwareSpec& hw, const Catalog& catalog) {
  if (stack.empty()) return false;
  if (const StackCoefficients* own = coefficients_under(hw, stack)) return own->serves;
  const std::optional<std::string> known = stack_of_framework(catalog, stack);
  return known && load_stack(catalog.load(CatalogKind::kStack, *known)).serving.has_value();
}

ExitCode run_collective(const Arguments& arguments, Environment& env) {
  CollectiveQuestion question = Options(arguments).question();
  return answer_with_sheet(arguments, env, [&](const Catalog& catalog) {
    // Only the network matters here; answer_collective looks at what of it is published.
    const HardwareSpec hw = hardware_asked_for(arguments, catalog, Unpublished::kAllowed);
    question.serving = is_engine(question.stack, hw, catalog);
    CollectiveAnswer answer = answer_collective(question, hw);
    note_sets(arguments, answer.assumptions);
    return collective_sheet(answer, hw);
  });
}

constexpr std::string_view kExamples =
    "  scalecalc collective all-gather --hw tpu-v5p --mesh X=4,Y=4,Z=4 --axes X --array bf16[1Ki_X,4Ki_Y]\n"
    "  scalecalc collective all-reduce --hw h100-sxm --group 8 --bytes 1KiB..1GiB*32 --convention exact\n"
    "  scalecalc collective permute --hw tpu-v5e --mesh X=4,Y=4 --from 0,0 --to 3,3 --bytes 16MiB\n";

constexpr std::string_view kNotes =
    "V is what one group gathers, reduces or redistributes: an array that other axes cut too is divided\n"
    "by them first (--array and --sharded do that). For permute it is what one chip sends.\n"
    "Sizes take a suffix, 64MiB or 1GB; ranges rise by a factor, 1KiB..1GiB*4, or a step, 1MB..9MB+2MB.\n";

}  // namespace

const Command& collective_command() {
  static const Command kCollective{"collective",
                                   "Time of one collective on a mesh axis, a tier or across pods, and what binds it.",
                                   "OP --hw HW (--bytes SIZES | --array ARRAY) [flags]",
                                   kExamples,
                                   kNotes,
                                   kFlags,
                                   run_collective};
  return kCollective;
}

}  // namespace scalecalc::cli
