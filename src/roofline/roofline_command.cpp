// Runs `scalecalc roofline`: reads words and flags, asks its question and writes the answer.
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output_command.h"
#include "roofline/operation_options.h"
#include "roofline/roofline_output.h"

namespace scalecalc::cli {
namespace {

constexpr std::array<std::string_view, 2> kUnitNames{"matrix", "vector"};
constexpr std::array<std::string_view, 3> kHomeNames{"hbm", "vmem", "host"};
constexpr std::array<std::string_view, 3> kCountedNames{"all", "weights", "none"};
constexpr std::array<std::string_view, 4> kSplitNames{"even", "batch", "contraction", "output"};
constexpr std::array<std::string_view, 4> kFabricNames{"link", "ici", "scale-up", "scale-out"};

constexpr std::array kRooflineFlags{
    kHwFlag,
    sweep("--batch", UnitKind::kCount, "SWEEP",
          "rows of a matmul (its B), or sequences of attention: 512, or 8..8192*2 for a curve", "8..8192*2"),
    dtype_flag("--dtype", "format of all operands and of the arithmetic (default bf16)"),
    dtype_flag("--input", "format of the input alone").shown<&RooflineQuestion::types, &OperandTypes::input>(),
    dtype_flag("--weight", "of the second operand: a matmul's weights, attention's keys and values", "int8")
        .shown<&RooflineQuestion::types, &OperandTypes::weight>(),
    dtype_flag("--result", "of the result").shown<&RooflineQuestion::types, &OperandTypes::result>(),
    dtype_flag("--compute", "of the arithmetic: whose rate the matrix units run at", "int8")
        .shown<&RooflineQuestion::types, &OperandTypes::compute>(),
    word<&RooflineQuestion::unit>("--unit", kUnitNames,
                                  "where it runs (default: vector for add, elementwise and dot, else matrix)"),
    word<&RooflineQuestion::from>("--from", kHomeNames,
                                  "where the operands lie: in HBM (default), on the chip, or in host memory over PCIe"),
    quantity<&RooflineQuestion::vmem_multiple>(
        "--vmem-multiple", UnitKind::kNumber, "N",
        "bandwidth of VMEM over that of HBM, with --from vmem (default: the hardware file's)", "22"),
    word<&RooflineQuestion::counted>(
        "--count", kCountedNames,
        "whose bytes count: all operands' (default), the weights' alone (small batches), or none")
        .like("weights"),
    count<&RooflineQuestion::sharing, &Sharing::chips>("--chips", kChipRange, "N",
                                                       "chips that share the operation (default 1)", "32"),
    word<&RooflineQuestion::sharing, &Sharing::split>(
        "--split", kSplitNames, "how they share a matmul: FLOPs and bytes over N (default), or along B, D or F"),
    word<&RooflineQuestion::over>(
        "--over", kFabricNames,
        "what they exchange over: one link in one direction, one torus axis in both, the node's switches, the network "
        "beyond; with --split contraction or output"),
    convention_flag<&RooflineQuestion::convention>(kCollectiveConventionNames),
    sweep<&RooflineQuestion::measured>(
        "--measured", UnitKind::kSeconds, "T[,T...]",
        "measured times, to set beside the roofline: trials of one point, or one for each point of a sweep",
        "184ms,67ms"),
    efficiency_flag("ideal (default): peak rates; calibrated: the hardware's measured efficiencies")
        .when<1, &RooflineQuestion::calibrated>(),
    kSetFlag,
    kExplainFlag,
};

struct TypeFlag {
  std::string_view flag;
  std::string_view name;
  DType OperandTypes::*type;
};
constexpr std::array kTypeFlags{
    TypeFlag{"--input", "input", &OperandTypes::input}, TypeFlag{"--weight", "weight", &OperandTypes::weight},
    TypeFlag{"--result", "result", &OperandTypes::result}, TypeFlag{"--compute", "compute", &OperandTypes::compute}};

/// Whether a format enters the question's figures.
bool matters(const TypeFlag& type, const RooflineQuestion& q) {
  const Operation& operation = q.operations.front();
  const bool load = std::holds_alternative<ParameterLoad>(operation);
  const bool given = std::holds_alternative<GivenWork>(operation);
  if (type.flag == "--compute") {
    return !load && !(given && std::get<GivenWork>(operation).flops == 0) && unit_of(q) == ComputeUnit::kMatrix;
  }
  if (given) return false;
  if (type.flag == "--weight") return !std::holds_alternative<Elementwise>(operation);
  return !load;
}

/// After the operation and its unit are known.
void read_types(FlagReader& reader, const Arguments& arguments, RooflineQuestion& q, std::vector<Assumption>& noted) {
  const auto all = reader.word("--dtype");
  std::vector<std::string> defaulted;
  for (const TypeFlag& type : kTypeFlags) {
    const auto own = reader.word(type.flag);
    if (all) q.types.*type.type = static_cast<DType>(*all);
    if (own) q.types.*type.type = static_cast<DType>(*own);
    if (q.operations.empty()) continue;
    const bool enters = matters(type, q);
    if (own && !enters) reader.problem(fmt::format("{} plays no part in this operation", type.flag), "leave it out");
    if (!all && !arguments.has(type.flag) && enters) defaulted.emplace_back(type.name);
  }
  if (!defaulted.empty()) noted.push_back({fmt::format("bf16 {}", join_and(defaulted)), "--dtype", "default"});
}

void check_sharing(FlagReader& reader, const Arguments& arguments, const RooflineQuestion& q) {
  if (q.vmem_multiple && q.from != OperandHome::kVmem) {
    reader.problem("--vmem-multiple says how fast VMEM is, and the operands lie elsewhere", "add --from vmem");
  }
  const bool split = arguments.has("--split");
  const std::vector<std::string>& words = arguments.positionals();
  const bool backward = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "pass=backward" || word == "pass=training";
  });
  if (split && backward) {
    reader.problem("--split says what a forward product exchanges, and pass= asks for backward ones",
                   "ask of each product alone, with its own --split");
  }
  const bool exchanges = q.sharing.split == MatmulSplit::kContraction || q.sharing.split == MatmulSplit::kOutput;
  if (split && q.sharing.chips == 1)
    reader.problem("--split divides a matmul over chips, and there is one", "add --chips N");
  if (exchanges && !arguments.has("--over")) {
    reader.problem(fmt::format("--split {} makes the chips exchange data: over what?", *arguments.value("--split")),
                   "add --over link, ici, scale-up or scale-out");
  }
  if (!exchanges && q.over) {
    reader.problem("--over says what chips exchange over, and nothing is exchanged",
                   "add --split contraction or output");
  }
  if (!exchanges && arguments.has("--convention")) {
    reader.problem("--convention says how an exchange is timed, and nothing is exchanged",
                   "add --split contraction or output");
  }
}

/// What fits some operations and not others.
void check_operation(FlagReader& reader, const RooflineQuestion& q) {
  if (q.operations.empty()) return;
  const Operation& operation = q.operations.front();
  const Matmul* matmul = std::get_if<Matmul>(&operation);
  const bool split = q.sharing.split != MatmulSplit::kEven;
  if (split && matmul == nullptr) reader.problem("--split divides a matmul", "other operations are shared evenly");
  if (matmul != nullptr && matmul->tile && q.sharing.chips > 1) {
    reader.problem("tile= is for the matmul of one chip", "give the shape that one chip has, without --chips");
  }
  if (matmul != nullptr && matmul->pad != 1 && split) {
    reader.problem("pad= and --split do not go together", "give the shape that one chip has, without --chips");
  }
  const bool has_weights = matmul != nullptr || std::holds_alternative<Attention>(operation) ||
                           std::holds_alternative<Contraction>(operation) ||
                           std::holds_alternative<ParameterLoad>(operation);
  if (q.counted == Counted::kWeights && !has_weights) {
    reader.problem("--count weights: this operation has no weights", "matmul, attention, contract and load have");
  }
  const bool moves_only = std::holds_alternative<ParameterLoad>(operation) ||
                          (std::holds_alternative<GivenWork>(operation) && std::get<GivenWork>(operation).flops == 0);
  if (q.unit && moves_only)
    reader.problem("--unit plays no part in an operation that computes nothing", "leave it out");
  if (q.counted == Counted::kNone && moves_only) {
    reader.problem("--count none leaves nothing of an operation that only moves bytes", "");
  }
}

struct RooflineAsked {
  RooflineQuestion question;
  std::vector<Assumption> noted;
};

RooflineAsked roofline_asked(const Arguments& arguments) {
  FlagReader reader(arguments);
  RooflineAsked out;
  RooflineQuestion& q = out.question;
  const SpokenWords words(arguments.positionals());
  auto batch = reader.sweep("--batch");
  if (!batch && arguments.has("--batch")) batch = {1.0};  // wrong, which was said
  std::vector<Diagnostic> problems;
  SpokenOperation spoken = read_operation(words, batch, problems);
  reader.problems(std::move(problems));
  q.operations = std::move(spoken.points);
  q.swept = std::move(spoken.swept);
  out.noted = std::move(spoken.assumptions);
  reader.read(q);
  read_types(reader, arguments, q, out.noted);
  check_sharing(reader, arguments, q);
  check_operation(reader, q);
  reader.text("--hw");
  reader.finish();
  note_sets(arguments, out.noted);
  return out;
}

ExitCode run_roofline(const Arguments& arguments, Environment& env) {
  const RooflineAsked asked = roofline_asked(arguments);
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    const HardwareSpec hw = hardware_asked_for(arguments, catalog, Unpublished::kAllowed);
    return with_query(roofline_output(asked.question, answer(asked.question, hw, env.interrupted), hw, asked.noted),
                      arguments, {answered(asked.question)});
  });
}

std::string roofline_notes() {
  return fmt::format(
      "operations:\n"
      "  matmul BxDxF              [B,D] x [D,F]; DxF with --batch; NxBxDxF for N of them;\n"
      "                            weights=per-row, tile=BMxBKxBN, pad=128,\n"
      "                            pass=backward or training\n"
      "  attention                 heads= head_dim= query=, kv_heads= kv= mask=causal pass=backward\n"
      "  contract SPEC             \"ij,jk->ik\" i=128 j=256 k=512; \"A[I,J] * B[J,K] -> C[I,K]\" I=...\n"
      "  add N, elementwise N      inputs= flops= (on each element)\n"
      "  dot N                     of two vectors\n"
      "  load N                    N parameters read once\n"
      "  flops N, bytes N          bytes= or flops= beside it\n"
      "One size may be a sweep: 8..8192*2, 0..4096+512, 8,16,64.\n"
      "types: {}\n",
      fmt::join(kDTypeNames, ", "));
}

constexpr std::array kRooflineCommon{FlagGroup{"the operation", "--batch --dtype --weight --compute --chips --split"},
                                     FlagGroup{"the machine", "--hw --efficiency --measured --set"}};

}  // namespace

const Command& roofline_command() {
  static const std::string kNotes = roofline_notes();
  static const Command kRoofline{
      .name = "roofline",
      .summary = "One operation on one chip, or shared by N: FLOPs, bytes, time, what binds it.",
      .usage = "OPERATION SHAPE --hw HW [flags]",
      .examples =
          "  scalecalc roofline matmul 512x8192x28672 --hw tpu-v5e --weight int8\n"
          "  scalecalc roofline attention heads=32 kv_heads=8 head_dim=128 query=1 kv=8192 --hw h100-sxm\n",
      .notes = kNotes,
      .flags = kRooflineFlags,
      .run = run_roofline,
      .interruptible = true,
      .draws = "the roof and the operation below it, or time over a size that is swept",
      .figures = "time_s attained_flops_per_s fraction_of_peak intensity_flops_per_byte bound_by",
      .common = kRooflineCommon};
  return kRoofline;
}

}  // namespace scalecalc::cli
