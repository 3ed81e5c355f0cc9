// `scalecalc matmul`: an expression and flags to a question, its answer to a Sheet.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/sheet_command.h"
#include "network/slice.h"
#include "primitives/matmul.h"
#include "report/matmul_sheet.h"

namespace scalecalc::cli {
namespace {

constexpr std::int64_t kMostChips = 16'777'216;
constexpr CountRange kSizeRange{1, 100'000'000'000};
constexpr CountRange kChipRange{1, kMostChips};
constexpr CountRange kTopRange{1, 10'000};
constexpr std::size_t kDefaultTop = 10;

constexpr std::array kFlags{
    Flag{"--mesh", 0, FlagKind::kValue, "X=N,Y=N",
         "named axes of the chips: of a torus slice (X=4x4 runs along two of its axes; an axis named after the outer "
         "tier, dcn=2, counts slices), or ranks behind switches, the last axis innermost",
         "X=4,Y=4"},
    Flag{"--dims", 0, FlagKind::kRepeatable, "I=N,J=N", "sizes of the dimensions", "I=1024,J=8192,K=8192"},
    Flag{"--local", 0, FlagKind::kRepeatable, "I=N,...",
         "what one chip holds of a dimension; the whole follows from its sharding", "I=256"},
    kHwFlag,
    Flag{"--dtype", 0, FlagKind::kValue, "TYPE", "format of arrays without one in the expression (default bf16)",
         "bf16"},
    Flag{"--compute", 0, FlagKind::kValue, "TYPE",
         "of the arithmetic: whose rate the matmuls run at (default: the widest operand's)", "int8"},
    Flag{"--wraparound", 0, FlagKind::kValue, "auto|on|off", "auto (default): as the hardware builds such a slice",
         "on"},
    Flag{"--ring", 0, FlagKind::kValue, "N",
         "all N chips of the mesh form one closed ring, such as the four of a 2x2; collectives run over all of them",
         "4"},
    kConventionFlag,
    kInNetworkFlag,
    Flag{"--measured", 0, FlagKind::kValue, "T[,T...]", "measured times, to set beside the fastest strategy's",
         "311us,244us"},
    Flag{"--top", 0, FlagKind::kValue, "N",
         "strategies to list, 10 by default; those with at most one collective are listed in any case", "50"},
    Flag{"--efficiency", 0, FlagKind::kValue, "ideal|calibrated",
         "ideal (default): full rates; calibrated: the hardware's measured efficiencies", "calibrated"},
    kSetFlag,
    kExplainFlag,
};

constexpr const char* kExample =
    "for example: scalecalc matmul \"A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]\" --hw tpu-v5e --mesh X=4,Y=4 "
    "--dims I=1024,J=8192,K=8192";

bool is_axis_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

class Options {
 public:
  explicit Options(const Arguments& arguments) : arguments_(arguments), reader_(arguments) {}

  MatmulQuestion question() {
    read_expression();
    read_mesh();
    read_sizes("--dims", false);
    read_sizes("--local", true);
    if (const auto word = reader_.word("--dtype", kDTypeNames)) q_.input.dtype = static_cast<DType>(*word);
    if (const auto word = reader_.word("--compute", kDTypeNames)) q_.compute = static_cast<DType>(*word);
    read_network();
    if (const auto times = sweep_flag(reader_, arguments_, "--measured", UnitKind::kSeconds)) q_.measured_s = *times;
    constexpr std::array<std::string_view, 2> kEfficiencies{"ideal", "calibrated"};
    q_.calibrated = reader_.word("--efficiency", kEfficiencies) == 1U;
    reader_.count("--top", kTopRange);
    reader_.finish();
    return std::move(q_);
  }

 private:
  void read_expression() {
    const std::vector<std::string>& words = arguments_.positionals();
    if (words.size() == 1) {
      q_.input.expression = words.front();
      return;
    }
    reader_.problem(words.empty() ? std::string("EXPRESSION is missing: which arrays?")
                                  : fmt::format("unexpected argument {}: the expression is one argument in quotes",
                                                in_quotes(words[1])),
                    kExample);
  }

  /// NAME=VALUE,...
  template <class Use>
  void pairs(std::string_view flag, std::string_view text, std::string_view example, Use&& use) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      std::string_view item = text.substr(at, end - at);
      while (item.starts_with(' ')) item.remove_prefix(1);
      at = end + 1;
      const std::size_t equals = item.find('=');
      if (equals == std::string_view::npos || equals == 0 || equals + 1 == item.size()) {
        reader_.problem(fmt::format("{}: {} is not NAME=SIZE", flag, in_quotes(item)),
                        fmt::format("for example {} {}", flag, example));
        continue;
      }
      const std::string name(item.substr(0, equals));
      if (!is_axis_name(name)) {
        reader_.problem(fmt::format("{}: {} is no name", flag, in_quotes(name)), "letters and digits, a letter first");
        continue;
      }
      use(name, item.substr(equals + 1));
    }
  }

  void read_mesh() {
    const auto text = arguments_.value("--mesh");
    if (!text) {
      reader_.problem("--mesh is missing: over which chips?", "named axes of the machine, such as --mesh X=4,Y=4");
      return;
    }
    Mesh& mesh = q_.input.mesh;
    pairs("--mesh", *text, "X=4,Y=4", [&](const std::string& name, std::string_view value) {
      const Shape parts = parse_shape(std::string(value));
      if (parts.empty()) {
        reader_.problem(fmt::format("--mesh {}: {} is no size", name, in_quotes(value)),
                        "chips along the axis, such as 16, or 4x4 along two axes of the machine");
        return;
      }
      MeshAxis axis{name, 1, parts};
      for (const std::int64_t part : parts) axis.size *= std::min(part, kMostChips / axis.size + 1);
      const bool known =
          std::any_of(mesh.axes.begin(), mesh.axes.end(), [&](const MeshAxis& a) { return a.name == name; });
      if (known) reader_.problem(fmt::format("--mesh gives axis {} twice", in_quotes(name)));
      mesh.axes.push_back(std::move(axis));
    });
    if (mesh.axes.size() > kMostMeshAxes) {
      reader_.problem(fmt::format("--mesh has {} axes, and at most {} are understood", mesh.axes.size(), kMostMeshAxes),
                      "fold axes that are used together into one");
      mesh.axes.resize(kMostMeshAxes);
    }
    std::int64_t chips = 1;
    for (const MeshAxis& axis : mesh.axes) chips *= std::min(axis.size, kMostChips / chips + 1);
    if (chips > kMostChips) reader_.problem("--mesh has too many chips", "up to 16,777,216");
  }

  void read_sizes(std::string_view flag, bool local) {
    for (const std::string& text : arguments_.values(flag)) {
      pairs(flag, text, "I=1024,J=8192", [&](const std::string& name, std::string_view value) {
        const auto size = reader_.count_of(fmt::format("{} {}", flag, name), value, kSizeRange);
        std::vector<GivenSize>& sizes = q_.input.sizes;
        if (std::any_of(sizes.begin(), sizes.end(), [&](const GivenSize& s) { return s.dim == name; })) {
          reader_.problem(fmt::format("{} gives {} a second size", flag, in_quotes(name)), "give it once");
        } else if (size) {
          sizes.push_back({name, *size, local});
        }
      });
    }
  }

  void read_network() {
    constexpr std::array<std::string_view, 3> kAutoOnOff{"auto", "on", "off"};
    if (const auto word = reader_.word("--wraparound", kAutoOnOff); word && *word > 0) {
      q_.placement.wraparound = *word == 1;
    }
    q_.placement.ring = reader_.count("--ring", kChipRange);
    if (const auto word = reader_.word("--convention", kCollectiveConventionNames)) {
      q_.placement.convention = static_cast<CollectiveConvention>(*word);
    }
    if (const auto word = reader_.word("--in-network", kInNetworkNames)) {
      q_.placement.in_network = static_cast<InNetwork>(*word);
    }
  }

  const Arguments& arguments_;
  FlagReader reader_;
  MatmulQuestion q_;
};

std::size_t top_of(const Arguments& arguments) {
  FlagReader reader(arguments);
  return static_cast<std::size_t>(reader.count("--top", kTopRange).value_or(kDefaultTop));
}

ExitCode run_matmul(const Arguments& arguments, Environment& env) {
  const MatmulQuestion question = Options(arguments).question();
  return answer_with_sheet(arguments, env, [&](const Catalog& catalog) {
    std::optional<HardwareSpec> hw;
    if (arguments.has("--hw")) hw = hardware_asked_for(arguments, catalog);
    MatmulAnswer found = answer(question, hw ? &*hw : nullptr);
    note_sets(arguments, found.assumptions);
    return matmul_sheet(question, found, hw ? &*hw : nullptr, top_of(arguments));
  });
}

constexpr std::string_view kExamples =
    "  scalecalc matmul \"A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]\" --hw tpu-v5e --mesh X=4,Y=4 \\\n"
    "      "
    "--dims I=1024,J=8192,K=8192\n"
    "  scalecalc matmul \"int8[I_XY, J]\" --mesh X=2,Y=8,Z=2 --dims I=128,J=2048\n";

constexpr std::string_view kNotes =
    "notation:\n"
    "  A[I_X, J]                 I is cut over mesh axis X; I_XY, I_{XY}, I_{X,Y}: over X and then Y\n"
    "  A[I, J]{U_X}              partial sums, still to be added over X\n"
    "  int8[I, J], A: int8[I,J]  a number format\n"
    "  A * B -> C                what both have and C lacks is summed over; without \"-> C\" all they "
    "share\n"
    "  A * B * W -> C            a chain, from the left; \"A * B -> T * W -> C\" writes the result between\n"
    "\n"
    "exit status: 0 answered, 2 the question is wrong, 70 a bug of ours,\n"
    "             74 the output could not be written\n";

}  // namespace

const Command& matmul_command() {
  static const Command kMatmul{"matmul",
                               "A sharded matmul in named-axis notation: its case, strategies, collectives, times.",
                               "EXPRESSION --mesh X=N,... --dims I=N,... --hw HW [flags]",
                               kExamples,
                               kNotes,
                               kFlags,
                               run_matmul};
  return kMatmul;
}

}  // namespace scalecalc::cli
