// `scalecalc roofline`: words and flags to a question, the answer to the outputs asked for.
#include <fmt/format.h>

#include <array>

#include "base/sweep.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/operation_words.h"
#include "cli/sheet_command.h"
#include "report/roofline_sheet.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kChipRange{1, 16'777'216};

constexpr std::array kFlags{
    kHwFlag,
    Flag{"--batch", 0, FlagKind::kValue, "SWEEP",
         "rows of a matmul (its B), or sequences of attention: 512, or 8..8192*2 for a curve", "8..8192*2"},
    Flag{"--dtype", 0, FlagKind::kValue, "TYPE", "format of all operands and of the arithmetic (default bf16)", "bf16"},
    Flag{"--input", 0, FlagKind::kValue, "TYPE", "format of the input alone", "bf16"},
    Flag{"--weight", 0, FlagKind::kValue, "TYPE",
         "of the second operand: a matmul's weights, attention's keys and values", "int8"},
    Flag{"--result", 0, FlagKind::kValue, "TYPE", "of the result", "bf16"},
    Flag{"--compute", 0, FlagKind::kValue, "TYPE", "of the arithmetic: whose rate the matrix units run at", "int8"},
    Flag{"--unit", 0, FlagKind::kValue, "matrix|vector",
         "where it runs (default: vector for add, elementwise and dot, else matrix)", "vector"},
    Flag{"--from", 0, FlagKind::kValue, "hbm|vmem|host",
         "where the operands lie: in HBM (default), on the chip, or in host memory over PCIe", "host"},
    Flag{"--vmem-multiple", 0, FlagKind::kValue, "N", "bandwidth of VMEM over that of HBM, with --from vmem", "22"},
    Flag{"--count", 0, FlagKind::kValue, "all|weights|none",
         "whose bytes count: all operands' (default), the weights' alone (small batches), or none", "weights"},
    Flag{"--chips", 0, FlagKind::kValue, "N", "chips that share the operation (default 1)", "32"},
    Flag{"--split", 0, FlagKind::kValue, "even|batch|contraction|output",
         "how they share a matmul: FLOPs and bytes over N (default), or along B, D or F", "contraction"},
    Flag{"--over", 0, FlagKind::kValue, "link|ici|scale-up|scale-out",
         "what they exchange over: one link in one direction, one torus axis in both, the node's switches, the network "
         "beyond; with --split contraction or output",
         "ici"},
    Flag{"--convention", 0, FlagKind::kValue, "book|first-order|exact",
         "how the exchange is timed, as in collective: the book's forms (default), to first order, or exact with the "
         "latency of messages",
         "exact"},
    Flag{"--measured", 0, FlagKind::kValue, "T[,T...]",
         "measured times, to set beside the roofline: trials of one point, or one for each point of a sweep",
         "184ms,67ms"},
    Flag{"--efficiency", 0, FlagKind::kValue, "ideal|calibrated",
         "ideal (default): peak rates; calibrated: the hardware's measured efficiencies", "calibrated"},
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
  const auto all = reader.word("--dtype", kDTypeNames);
  std::vector<std::string> defaulted;
  for (const TypeFlag& type : kTypeFlags) {
    const auto own = reader.word(type.flag, kDTypeNames);
    if (all) q.types.*type.type = static_cast<DType>(*all);
    if (own) q.types.*type.type = static_cast<DType>(*own);
    if (q.operations.empty()) continue;
    const bool enters = matters(type, q);
    if (own && !enters) reader.problem(fmt::format("{} plays no part in this operation", type.flag), "leave it out");
    if (!all && !arguments.has(type.flag) && enters) defaulted.emplace_back(type.name);
  }
  if (!defaulted.empty()) noted.push_back({fmt::format("bf16 {}", join_and(defaulted)), "--dtype", "default"});
}

template <class Word>
void read_word(FlagReader& reader, std::string_view flag, std::span<const std::string_view> words, Word& out) {
  if (const auto word = reader.word(flag, words)) out = static_cast<Word>(*word);
}

void read_memory(FlagReader& reader, const Arguments& arguments, RooflineQuestion& q) {
  constexpr std::array<std::string_view, 3> kHomes{"hbm", "vmem", "host"};
  constexpr std::array<std::string_view, 3> kCounts{"all", "weights", "none"};
  read_word(reader, "--from", kHomes, q.from);
  read_word(reader, "--count", kCounts, q.counted);
  q.vmem_multiple = reader.positive("--vmem-multiple", UnitKind::kNumber);
  if (arguments.has("--vmem-multiple") && q.from != OperandHome::kVmem) {
    reader.problem("--vmem-multiple says how fast VMEM is, and the operands lie elsewhere", "add --from vmem");
  }
}

void read_sharing(FlagReader& reader, const Arguments& arguments, RooflineQuestion& q) {
  constexpr std::array<std::string_view, 4> kSplits{"even", "batch", "contraction", "output"};
  constexpr std::array<std::string_view, 4> kFabrics{"link", "ici", "scale-up", "scale-out"};
  q.sharing.chips = reader.count("--chips", kChipRange).value_or(1);
  read_word(reader, "--split", kSplits, q.sharing.split);
  if (const auto word = reader.word("--over", kFabrics)) q.over = static_cast<Fabric>(*word);
  read_word(reader, "--convention", kCollectiveConventionNames, q.convention);
  const bool split = q.sharing.split != MatmulSplit::kEven;
  const bool exchanges = q.sharing.split == MatmulSplit::kContraction || q.sharing.split == MatmulSplit::kOutput;
  if (split && q.sharing.chips == 1)
    reader.problem("--split divides a matmul over chips, and there is one", "add --chips N");
  if (exchanges && !arguments.has("--over")) {
    reader.problem(fmt::format("--split {} makes the chips exchange data: over what?", *arguments.value("--split")),
                   "add --over link, ici, scale-up or scale-out");
  }
  if (!exchanges && arguments.has("--convention")) {
    reader.problem("--convention says how an exchange is timed, and nothing is exchanged",
                   "add --split contraction or output");
  }
  if (!exchanges && q.over) {
    reader.problem("--over says what chips exchange over, and nothing is exchanged",
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

void read_measured(FlagReader& reader, const Arguments& arguments, RooflineQuestion& q) {
  if (const auto times = sweep_flag(reader, arguments, "--measured", UnitKind::kSeconds)) q.measured = *times;
}

struct Asked {
  RooflineQuestion question;
  std::vector<Assumption> noted;
};

Asked asked_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  Asked out;
  RooflineQuestion& q = out.question;
  const SpokenWords words(arguments.positionals());
  auto batch = sweep_flag(reader, arguments, "--batch", UnitKind::kCount);
  if (!batch && arguments.has("--batch")) batch = {1.0};  // wrong, which was said
  std::vector<Diagnostic> problems;
  SpokenOperation spoken = read_operation(words, batch, problems);
  reader.problems(std::move(problems));
  q.operations = std::move(spoken.points);
  q.swept = std::move(spoken.swept);
  out.noted = std::move(spoken.assumptions);
  constexpr std::array<std::string_view, 2> kUnits{"matrix", "vector"};
  if (const auto word = reader.word("--unit", kUnits)) q.unit = static_cast<ComputeUnit>(*word);
  read_types(reader, arguments, q, out.noted);
  read_memory(reader, arguments, q);
  read_sharing(reader, arguments, q);
  read_measured(reader, arguments, q);
  constexpr std::array<std::string_view, 2> kEfficiencies{"ideal", "calibrated"};
  q.calibrated = reader.word("--efficiency", kEfficiencies) == 1U;
  check_operation(reader, q);
  if (!arguments.has("--hw")) {
    reader.problem("--hw is missing: on which hardware?", "a catalog name such as tpu-v5p, or a YAML file");
  }
  reader.finish();
  note_sets(arguments, out.noted);
  return out;
}

ExitCode run_roofline(const Arguments& arguments, Environment& env) {
  const Asked asked = asked_question(arguments);
  return answer_with_sheet(arguments, env, [&](const Catalog& catalog) {
    const HardwareSpec hw = hardware_asked_for(arguments, catalog, Unpublished::kAllowed);
    return roofline_sheet(asked.question, answer(asked.question, hw), hw, asked.noted);
  });
}

constexpr std::string_view kExamples =
    "  scalecalc roofline matmul 512x8192x28672 --hw tpu-v5e --weight int8\n"
    "  scalecalc roofline attention heads=32 kv_heads=8 head_dim=128 query=1 kv=8192 --hw h100-sxm\n";

std::string notes() {
  return fmt::format(
      "operations:\n"
      "  matmul BxDxF              [B,D] x [D,F]; DxF with --batch; NxBxDxF for N of them;\n"
      "                            weights=per-row, tile=BMxBKxBN, pad=128\n"
      "  attention                 heads= head_dim= query=, kv_heads= kv= mask=causal pass=backward\n"
      "  contract SPEC             \"ij,jk->ik\" i=128 j=256 k=512; \"A[I,J] * B[J,K] -> C[I,K]\" I=...\n"
      "  add N, elementwise N      inputs= flops= (on each element)\n"
      "  dot N                     of two vectors\n"
      "  load N                    N parameters read once\n"
      "  flops N, bytes N          bytes= or flops= beside it\n"
      "One size may be a sweep: 8..8192*2, 0..4096+512, 8,16,64.\n"
      "types: {}\n"
      "\n"
      "exit status: 0 answered, 2 the question is wrong, 70 a bug of ours,\n"
      "             74 the output could not be written\n",
      fmt::join(kDTypeNames, ", "));
}

}  // namespace

const Command& roofline_command() {
  static const std::string kNotes = notes();
  static const Command kRoofline{"roofline",
                                 "One operation on one chip, or shared by N: FLOPs, bytes, time, what binds it.",
                                 "OPERATION SHAPE --hw HW [flags]",
                                 kExamples,
                                 kNotes,
                                 kFlags,
                                 run_roofline};
  return kRoofline;
}

}  // namespace scalecalc::cli
