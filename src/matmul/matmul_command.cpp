// Runs `scalecalc matmul`: reads an expression and flags, asks its question and writes the answer.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/name_pairs.h"
#include "cli/output_command.h"
#include "matmul/matmul.h"
#include "matmul/matmul_output.h"
#include "network/slice.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kDimensionRange{1, 100'000'000'000};
constexpr std::size_t kUsualStrategies = 10;

/// An expression may hold arrays alone; then the network is asked nothing.
constexpr std::array kMatmulModes{Mode{"a matmul"}, Mode{"arrays alone", "nothing is multiplied"},
                                  Mode{"a redistribution", "nothing is multiplied"}};
constexpr Modes kOfProducts = 1U << 0U;
constexpr Modes kOfNetworks = 1U << 0U | 1U << 2U;

std::optional<std::size_t> matmul_mode(const Arguments& arguments) {
  if (arguments.positionals().size() != 1) return std::nullopt;
  const std::string& expression = arguments.positionals().front();
  const auto has = [&](std::string_view symbol) { return expression.find(symbol) != std::string::npos; };
  if (has("*") || has("·") || has("⋅") || has("×") || has("@")) return 0;
  return has("->") || has("→") ? 2 : 1;
}

void read_matmul_mesh(FlagReader& reader, const Flag& flag, const std::string& text, MatmulQuestion& q) {
  Mesh& mesh = q.input.mesh;
  each_pair(reader, flag, text, [&](const std::string& name, std::string_view value) {
    const Shape parts = parse_shape(std::string(value));
    if (parts.empty()) {
      reader.problem(fmt::format("--mesh {}: {} is no size", name, in_quotes(value)),
                     "chips along the axis, such as 16, or 4x4 along two axes of the machine");
      return;
    }
    MeshAxis axis{name, 1, parts};
    for (const std::int64_t part : parts) axis.size *= std::min(part, kMostChips / axis.size + 1);
    const bool known =
        std::any_of(mesh.axes.begin(), mesh.axes.end(), [&](const MeshAxis& a) { return a.name == name; });
    if (known) reader.problem(fmt::format("--mesh gives axis {} twice", in_quotes(name)));
    mesh.axes.push_back(std::move(axis));
  });
  if (mesh.axes.size() > kMostMeshAxes) {
    reader.problem(fmt::format("--mesh has {} axes, and at most {} are understood", mesh.axes.size(), kMostMeshAxes),
                   "fold axes that are used together into one");
    mesh.axes.resize(kMostMeshAxes);
  }
  std::int64_t chips = 1;
  for (const MeshAxis& axis : mesh.axes) chips *= std::min(axis.size, kMostChips / chips + 1);
  if (chips > kMostChips) reader.problem("--mesh has too many chips", "up to 16,777,216");
}

void read_tile(FlagReader& reader, const Flag& flag, const std::string& text, MatmulQuestion& q) {
  q.tile = parse_shape(text);
  if (!q.tile.empty() && q.tile.size() <= 2) return;
  reader.problem(fmt::format("{}: {} is no tile", flag.name, in_quotes(text)),
                 "columns, or rows and columns: 128, 8x128");
}

template <bool kLocal>
void read_dimensions(FlagReader& reader, const Flag& flag, const std::string& text, MatmulQuestion& q) {
  each_pair(reader, flag, text, [&](const std::string& name, std::string_view value) {
    const auto size = reader.count_of(fmt::format("{} {}", flag.name, name), value, kDimensionRange);
    std::vector<GivenSize>& sizes = q.input.sizes;
    if (std::any_of(sizes.begin(), sizes.end(), [&](const GivenSize& s) { return s.dim == name; })) {
      reader.problem(fmt::format("{} gives {} a second size", flag.name, in_quotes(name)), "give it once");
    } else if (size) {
      sizes.push_back({name, *size, kLocal});
    }
  });
}

struct MatmulAsked {
  MatmulQuestion question;
  std::size_t top = kUsualStrategies;
};

constexpr std::array kMatmulFlags{
    text("--mesh", "X=N,Y=N",
         "named axes of the chips: of a torus slice (X=4x4 runs along two of its axes; an axis named after the outer "
         "tier, dcn=2, counts slices), or ranks behind switches, the last axis innermost",
         "X=4,Y=4")
        .by<read_matmul_mesh>()
        .asking("over which chips?"),
    text("--dims", "I=N,J=N", "sizes of the dimensions", "I=1024,J=8192,K=8192")
        .repeatable()
        .by<read_dimensions<false>>(),
    text("--local", "I=N,...", "what one chip holds of a dimension; the whole follows from its sharding", "I=256")
        .repeatable()
        .by<read_dimensions<true>>(),
    kHwFlag,
    dtype_flag<&MatmulQuestion::input, &MatmulInput::dtype>(
        "--dtype", "format of arrays without one in the expression (default bf16)"),
    dtype_flag<&MatmulQuestion::compute>(
        "--compute", "of the arithmetic: whose rate the matmuls run at (default: the widest operand's)", "int8")
        .in(kOfProducts),
    word<&MatmulQuestion::placement, &MeshPlacement::wraparound>("--wraparound", kAutoOnOff,
                                                                 "auto (default): as the hardware builds such a slice")
        .like("on")
        .in(kOfNetworks),
    count<&MatmulQuestion::placement, &MeshPlacement::ring>(
        "--ring", kChipRange, "N",
        "all N chips of the mesh form one closed ring, such as the four of a 2x2; collectives run over all of them",
        "4")
        .in(kOfNetworks),
    convention_flag<&MatmulQuestion::placement, &MeshPlacement::convention>(kCollectiveConventionNames).in(kOfNetworks),
    in_network_flag<&MatmulQuestion::placement, &MeshPlacement::in_network>(kInNetworkNames).in(kOfNetworks),
    sweep<&MatmulQuestion::measured_s>("--measured", UnitKind::kSeconds, "T[,T...]",
                                       "measured times, to set beside the fastest strategy's", "311us,244us")
        .in(kOfProducts),
    count<&MatmulAsked::top>(
        "--top", kTopRange, "N",
        "strategies to list, 10 by default; those with at most one collective are listed in any case", "50")
        .in(kOfProducts),
    text("--tile", "ROWSxCOLS",
         "tiles in which a chip stores the last two dimensions of an array; the padded bytes stand beside the needed "
         "ones",
         "8x128")
        .by<read_tile>(),
    efficiency_flag("ideal (default): full rates; calibrated: the hardware's measured efficiencies")
        .when<1, &MatmulQuestion::calibrated>()
        .needing("--hw", "{} has no meaning without hardware", "add --hw tpu-v5e"),
    kSetFlag.needing("--hw", "{} has no meaning without hardware", "add --hw tpu-v5e"),
    kExplainFlag,
};

MatmulAsked matmul_asked(const Arguments& arguments) {
  FlagReader reader(arguments);
  MatmulAsked out;
  out.question.input.expression = reader.only_word("EXPRESSION in quotes", "which arrays?");
  reader.read(out.question);
  reader.read(out);
  reader.finish();
  return out;
}

ExitCode run_matmul(const Arguments& arguments, Environment& env) {
  const MatmulAsked asked = matmul_asked(arguments);
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    std::optional<HardwareSpec> hw;
    if (arguments.has("--hw")) hw = hardware_asked_for(arguments, catalog);
    if (arguments.has("--in-network") && hw && hw->is_torus()) {
      throw UserError(fmt::format("--in-network has no meaning: {} has no switches", hw->name), "leave it out");
    }
    MatmulAnswer found = answer(asked.question, hw ? &*hw : nullptr, env.interrupted);
    note_sets(arguments, found.assumptions);
    return with_query(matmul_output(found, hw ? &*hw : nullptr, asked.top), arguments,
                      {answered(asked), answered(asked.question)});
  });
}

constexpr std::array kMatmulCommon{FlagGroup{"the matrices", "--mesh --dims --local --dtype --top"},
                                   FlagGroup{"the machine", "--hw --efficiency --convention --set"}};

}  // namespace

const Command& matmul_command() {
  static const Command kMatmul{
      .name = "matmul",
      .summary = "A sharded matmul in named-axis notation: its case, strategies, collectives, times.",
      .usage = "EXPRESSION --mesh X=N,... --dims I=N,... --hw HW [flags]",
      .examples =
          "  scalecalc matmul \"A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]\" --hw tpu-v5e --mesh X=4,Y=4 \\\n"
          "      "
          "--dims I=1024,J=8192,K=8192\n"
          "  scalecalc matmul \"A[I_X, J] -> A[I, J_X]\" --hw tpu-v5e --mesh X=4 --dims I=1024,J=8192\n"
          "  scalecalc matmul \"int8[I_XY, J]\" --mesh X=2,Y=8,Z=2 --dims I=128,J=2048\n",
      .notes =
          "notation:\n"
          "  A[I_X, J]                 I is cut over mesh axis X; I_XY, I_{XY}, I_{X,Y}: over X and then Y\n"
          "  A[I, J]{U_X}              partial sums, still to be added over X\n"
          "  int8[I, J], A: int8[I,J]  a number format\n"
          "  A * B -> C                what both have and C lacks is summed over; without \"-> C\" all they "
          "share\n"
          "  A[I_X, J] -> A[I, J_X]    one array, laid out otherwise afterwards\n"
          "  A * B * W -> C            a chain, from the left; \"A * B -> T * W -> C\" writes the result between\n",
      .flags = kMatmulFlags,
      .run = run_matmul,
      .modes = kMatmulModes,
      .mode_of = matmul_mode,
      .figures = "name time_s compute_time_s communication_time_s bound_by",
      .common = kMatmulCommon};
  return kMatmul;
}

}  // namespace scalecalc::cli
