// Words layouts, causes and reasons, for every command that shows a training plan.
#include "train/train_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/text.h"
#include "base/units.h"
#include "plan/dimensions.h"

namespace scalecalc {
namespace {

constexpr std::array kCauses{
    StepCause{"compute", "compute"},
    StepCause{"hbm", "memory-bound work"},
    StepCause{"tp_exposed", "tensor-parallel communication"},
    StepCause{"fsdp_exposed", "FSDP communication"},
    StepCause{"dp_exposed", "gradient reduction"},
    StepCause{"cp_exposed", "context-parallel communication"},
    StepCause{"ep_exposed", "expert all-to-alls"},
    StepCause{"pp_exposed", "pipeline transfers"},
    StepCause{"offload_exposed", "transfers to and from the host"},
    StepCause{"bubble", "pipeline bubble"},
    StepCause{"optimizer", "optimizer"},
    StepCause{"overhead", "kernel and step overhead"},
};

/// Dimensions that the others leave no choice. Offload and loss are open: a plan with room is searched with either.
bool goes_without_saying(const LayoutDimension& d, const Layout& layout) {
  return (d.name == "cp_comm" && layout.cp == 1) || (d.name == "split" && layout.pp == 1) ||
         (d.name == "ep_overlap" &&
          (layout.ep == 1 || layout.grad_accum == 1 || layout.schedule == Schedule::kDualPipe));
}

}  // namespace

std::span<const StepCause> step_causes() { return kCauses; }

std::string cause_words(std::string_view key) {
  const auto* const found =
      std::find_if(kCauses.begin(), kCauses.end(), [&](const StepCause& c) { return c.key == key; });
  return std::string(found == kCauses.end() ? key : found->words);
}

std::optional<double> detailed_rank(const TrainAnswer& answer) {
  if (answer.question.plan > 0) return static_cast<double>(answer.question.plan);
  if (!answer.recommended || !answer.recommended->rank) return std::nullopt;
  return static_cast<double>(*answer.recommended->rank);
}

std::string detailed_name(const TrainAnswer& answer) {
  const auto rank = detailed_rank(answer);
  if (answer.question.plan > 0) return fmt::format("plan {}", *rank);
  return rank ? fmt::format("plan {}, recommended", *rank) : "the recommended plan";
}

std::string training_words(const Workload& workload) {
  if (!workload.fine_tune) return "Training";
  const FineTune& tune = *workload.fine_tune;
  const std::string rank = fmt::format("rank {}", tune.rank);
  if (!is_unpacked(tune, workload.precision)) return fmt::format("LoRA fine-tuning ({}) of", rank);
  return fmt::format("QLoRA fine-tuning ({}, {} base) of", rank,
                     kBaseFormatNames.at(static_cast<std::size_t>(*tune.base)));
}

std::string workload_words(const Workload& w) {
  const std::string documents = w.documents ? fmt::format(" packed with {}", lengths_text(*w.documents)) : "";
  return fmt::format("batch {} tokens, sequences of {}{}, {}, {}",
                     compact_count(w.batch_seqs * static_cast<double>(w.seq)), group_thousands(w.seq), documents,
                     w.precision.name, w.optimizer.name);
}

std::string degrees_text(const Layout& l) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, std::int64_t degree) {
    if (degree > 1) parts.push_back(fmt::format("{} {}", name, degree));
  };
  add("dp", l.dp);
  add("fsdp", l.fsdp);
  add("tp", l.tp);
  if (l.tp > 1 && l.sp) parts.back() += "+sp";
  add("cp", l.cp);
  if (l.cp_comm != CpComm::kAllGather) parts.back() += fmt::format(" {}", name_of(l.cp_comm));
  add("pp", l.pp);
  add("vpp", l.vpp);
  add("ep", l.ep);
  if (l.ep > 1 && l.tp > 1) parts.push_back(fmt::format("etp {}", l.etp));
  return parts.empty() ? "unsharded" : join(parts, ", ");
}

std::string recipe_text(const Layout& l) {
  std::string out = fmt::format("mb {}", l.micro_batch_seqs);
  if (l.grad_accum > 1) out += fmt::format(" x {}", l.grad_accum);
  const LayoutDimension& remat = *find_dimension("remat");
  out += fmt::format(", remat {}", remat.word(remat.value(l)));
  out += fmt::format(", zero {}", l.zero);
  if (l.schedule != Schedule::kNone) out += fmt::format(", {}", name_of(l.schedule));
  if (l.split.chosen()) out += fmt::format(", split {}:{}", l.split.first, l.split.last);
  if (pairs_experts(l) && l.schedule != Schedule::kDualPipe) out += ", ep overlap";
  if (l.offload != 0) {
    const LayoutDimension& offload = *find_dimension("offload");
    out += fmt::format(", offload {}", offload.word(offload.value(l)));
  }
  if (l.loss != LossKind::kWhole) out += fmt::format(", {} loss", name_of(l.loss));
  return out;
}

std::string layout_words(const Layout& l) { return degrees_text(l) + "; " + recipe_text(l); }

FlagChange fix_flag(const Layout& layout, std::string_view without) {
  std::vector<std::string> pins;
  for (const bool words : {false, true}) {
    for (const LayoutDimension& d : layout_dimensions()) {
      const std::int64_t value = d.value(layout);
      if ((d.kind == DimensionKind::kWord) != words || value < d.least) continue;
      if (d.name == without || goes_without_saying(d, layout)) continue;
      pins.push_back(fmt::format("{}={}", d.name, value_text(d, value)));
    }
  }
  return {"--fix", join(pins, ",")};
}

std::string fix_text(const Layout& layout) { return fix_flag(layout).text(); }

std::string_view key_of(Reject reason) {
  static constexpr std::array<std::string_view, kRejectCount> kKeys{
      "pinned",       "heads",   "width",     "sequence", "batch_small", "batch_uneven", "stages",
      "microbatches", "experts", "placement", "memory",   "context",     "stack"};
  return kKeys.at(static_cast<std::size_t>(reason));
}

double sum_of(const std::vector<std::pair<std::string, double>>& figures) {
  return std::accumulate(figures.begin(), figures.end(), 0.0,
                         [](double sum, const auto& entry) { return sum + entry.second; });
}

std::string software_text(std::string_view software, const TrainQuestion& question) {
  const std::string why = question.ideal           ? "--efficiency ideal: the pure roofline"
                          : question.stack.empty() ? "default; --stack NAME chooses another"
                                                   : "--stack " + question.stack;
  return fmt::format("software: {} ({})", software, why);
}

std::vector<std::string> deciding_of_training() {
  return {"--seq", "--batch-tokens", "--tokens", "--precision", "--price"};
}

}  // namespace scalecalc
