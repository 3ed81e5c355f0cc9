// Reads measured reinforcement-learning steps from files of measurements.
#include <fmt/format.h>

#include <string>

#include "config/fields.h"
#include "validate/measurement.h"
#include "validate/measurement_document.h"

namespace scalecalc {
namespace {

constexpr Range kCounted{1, 1e9};
constexpr Range kAhead{0, 64};

class RlRowReader {
 public:
  RlRowReader(const ConfigNode& node, const SharedFacts& shared, Problems& problems)
      : f_(node, "measurement", problems), shared_(shared), problems_(problems) {}

  RlMeasurement run() {
    shared_.read(f_, out_, problems_);
    out_.complete = f_.flag("complete", true);
    out_.framework = f_.optional_text("framework").value_or("");
    out_.algorithm = f_.optional_text("algorithm").value_or("grpo");
    out_.depth = f_.optional_count("ahead", kAhead).value_or(0);
    out_.train_precision = f_.optional_text("train_precision").value_or("bf16");
    out_.generate_precision = f_.optional_text("generate_precision").value_or("bf16");
    responses();
    out_.generator_chips = f_.optional_count("generator_chips", kCounted);
    out_.generated = f_.optional_count("generated", kCounted);
    if (const auto word = f_.optional_text("recompute")) {
      if (*word != "none" && *word != "full") problems_.add(f_.span(), "recompute is none or full");
      out_.recompute = *word == "full";
    }
    if (const ConfigNode* node = f_.node("trainer")) trainer(*node);
    if (const ConfigNode* node = f_.node("engine")) {
      Fields e(*node, "engine", problems_);
      out_.engine_tp = e.optional_count("tp", kCounted);
      out_.engine_pp = e.optional_count("pp", kCounted);
      out_.engine_memory = e.optional_quantity("memory", UnitKind::kFraction, {0.01, 1});
      out_.engine_sequences = e.optional_count("sequences", kCounted);
      e.finish();
    }
    Fields m(f_.required_node("measured"), "measured", problems_);
    for (const char* beside : {"generation_s", "rest_s", "memory_gib_per_chip", "train_mfu_pct"}) {
      m.optional_quantity(beside, UnitKind::kNumber);
    }
    if (out_.complete) out_.step_s = m.quantity("step_time_s", UnitKind::kNumber);
    m.node("step_time_s");
    m.finish();
    for (const char* told : {"chips_per_node", "notes"}) f_.node(told);
    f_.finish();
    return std::move(out_);
  }

 private:
  void responses() {
    if (!out_.complete) {
      for (const char* key : {"samples", "train_batch", "mean_len", "max_len", "rollouts", "prompt_len"}) f_.node(key);
      return;
    }
    out_.samples = f_.count("samples", kCounted);
    out_.train_batch = f_.count("train_batch", kCounted);
    out_.mean_len = f_.quantity("mean_len", UnitKind::kCount);
    out_.max_len = f_.count("max_len", kCounted);
    out_.rollouts = f_.optional_count("rollouts", kCounted);
    out_.prompt_len = f_.optional_count("prompt_len", kCounted);
    if (!problems_.empty()) return;
    if (out_.samples % out_.train_batch != 0) {
      problems_.add(f_.span(), fmt::format("{} samples are no whole number of optimizer steps of {}", out_.samples,
                                           out_.train_batch));
    }
    if (out_.rollouts && out_.samples % *out_.rollouts != 0) {
      problems_.add(f_.span(), fmt::format("{} samples are not {} to each prompt", out_.samples, *out_.rollouts));
    }
    if (out_.mean_len >= static_cast<double>(out_.max_len)) {
      problems_.add(f_.span(), "mean_len is not below max_len");
    }
  }

  void trainer(const ConfigNode& node) {
    Fields t(node, "trainer", problems_);
    RowLayout& l = out_.trainer.emplace();
    l.tp = t.optional_count("tp", kCounted);
    l.cp = t.optional_count("cp", kCounted);
    l.pp = t.optional_count("pp", kCounted);
    l.ep = t.optional_count("ep", kCounted);
    l.vpp = t.optional_count("vpp", kCounted);
    l.zero = t.optional_count("zero_stage", {0, 3});
    t.finish();
  }

  Fields f_;
  const SharedFacts& shared_;
  Problems& problems_;
  RlMeasurement out_;
};

}  // namespace

bool is_rl(const ConfigNode& document) {
  const ConfigNode* rows = rows_of(document);
  return rows != nullptr && !rows->items.empty() && rows->items.front().find("samples") != nullptr;
}

std::vector<RlMeasurement> read_rl_measurements(const ConfigNode& document) { return read_rows<RlRowReader>(document); }

}  // namespace scalecalc
