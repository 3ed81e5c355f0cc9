// Reads the figures that the rules of `scalecalc bounds` share from the model, the chip and the job.
#include "bounds/bound_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/units.h"
#include "model/usual_batch.h"
#include "network/tier_rates.h"

namespace scalecalc {

BoundInputs::BoundInputs(const BoundsQuestion& question, BoundList& list)
    : BoundRates(question.hw, question.compute, question.ideal), q_(question) {
  parameters_of_model(list);
  shape_of_model(list);
  machine(list);
  if (q_.scope != BoundScope::kServing) {
    job(list);
    formats(list);
  }
  list.assume({q_.ideal ? "efficiency ideal: data-sheet rates" : "efficiency calibrated: " + q_.hw.efficiency.basis,
               "--efficiency", q_.ideal ? "book" : q_.hw.efficiency.confidence});
}

BytesOf<Traced> BoundInputs::element(const std::optional<DType>& dtype, const char* symbol) const {
  const DType format = dtype.value_or(q_.compute);
  return read(kReader, Bytes(bytes_per_element(format)), symbol, std::string(name_of(format)));
}

Traced BoundInputs::scale(const std::optional<DType>& dtype, const char* symbol) const {
  constexpr double kBookBytes = 2;
  const DType format = dtype.value_or(q_.compute);
  const double bytes = bytes_per_element(format);
  if (bytes == kBookBytes) return Traced(1.0);
  return kReader.input(bytes / kBookBytes, symbol, std::string(name_of(format)));
}

Traced BoundInputs::fsdp_scale() const {
  Traced weights = weight_scale();
  const Traced gradients = gradient_scale();
  if (!(weights < gradients)) return weights;
  return named((weights + gradients) / Traced(2.0), "(b_w + b_g) / 4",
               "backward: weights gathered and gradients scattered for twice the FLOPs");
}

std::optional<bool> BoundInputs::more_tokens_than(const Traced& limit) const {
  if (!tokens_per_chip) return std::nullopt;
  return limit < *tokens_per_chip;
}

std::string BoundInputs::missing_for_tokens_per_chip() const {
  if (batch) return "--chips";
  return chips ? "--batch-tokens" : "--chips and --batch-tokens";
}

void BoundInputs::parameters_of_model(BoundList& list) {
  if (!sized()) {
    parameters = active_parameters = held = kReader.input(1, "P", "no model is given");
    list.leave_out("rules that count parameters, memory and the run", "MODEL, or a size such as 70B");
    return;
  }
  const ParameterCount counted = q_.model ? count_parameters(*q_.model) : ParameterCount{};
  const OfficialParameters official = q_.model ? q_.model->official : OfficialParameters{};
  const bool moe = q_.model && q_.model->moe;
  double total = counted.total;
  double active = counted.active;
  std::string total_source = "counted from the model file";
  std::string active_source = total_source;
  const auto take = [](double& value, std::string& source, double other, const char* where) {
    value = other;
    source = where;
  };
  if (q_.stated_parameters) {
    if (official.stated <= 0) {
      throw UserError(fmt::format("{} states no rounded size", q_.model->name), "give one: --params 70B");
    }
    take(total, total_source, official.stated, "as the vendor states it");
    if (moe && official.active > 0) take(active, active_source, official.active, "as the vendor states it");
  }
  if (q_.parameters) take(total, total_source, *q_.parameters, q_.model ? "--params" : "MODEL");
  if (q_.active_parameters) take(active, active_source, *q_.active_parameters, "--active-params");
  parameters = kReader.input(total, "P", total_source);
  list.assume(Assumption{fmt::format("{} parameters, {}", compact_count(total, 6), total_source),
                         q_.model ? "--params" : "", ""}
                  .as("parameters")
                  .is(total));
  active_parameters = held = parameters;
  if (counted.towers > 0 && !q_.parameters) {
    tower_parameters = counted.towers;
    held = named(parameters + kReader.input(counted.towers, "P_t", "towers of the model file"), "P_held",
                 "model and towers");
    list.assume(
        Assumption{fmt::format("{} parameters of towers are held beside the model's", compact_count(counted.towers, 6)),
                   "--params", "docs/model.md [TOWERS]"}
            .as("tower_parameters")
            .is(counted.towers));
  }
  if (!moe && !q_.active_parameters) return;
  if (active > total) {
    throw UserError(fmt::format("{} active parameters are more than the {} there are", compact_count(active, 6),
                                compact_count(total, 6)),
                    "see --params and --active-params");
  }
  active_parameters = kReader.input(active, "P_act", active_source);
  list.assume({fmt::format("{} of them active, {}", compact_count(active, 6), active_source), "--active-params", ""});
}

void BoundInputs::shape_of_model(BoundList& list) {
  if (!q_.model) return;
  shape = rules::layer_shape(*q_.model);
  if (shape && !shape->left_out.empty()) {
    list.assume(Assumption{"rules for a layer leave out " + shape->left_out, "", "book ch. 12"}
                    .as("rules_leave_out")
                    .is(shape->left_out));
  }
}

void BoundInputs::formats(BoundList& list) const {
  const auto name = [&](const std::optional<DType>& dtype) { return name_of(dtype.value_or(q_.compute)); };
  list.assume({fmt::format("matmuls in {}; weights {}, gradients {}, activations {}", name_of(q_.compute),
                           name(q_.weights), name(q_.gradients), name(q_.activations)),
               "--precision, --weights, --gradients, --activations", "book ch. 5"});
}

std::string BoundInputs::fact_source(const char* field) const {
  const TrainingFacts& facts = q_.model->training;
  const auto at = facts.assumed.find(field);
  return at == facts.assumed.end() ? "as trained: " + facts.source : "assumed: " + at->second;
}

void BoundInputs::job(BoundList& list) {
  const TrainingFacts* facts = q_.model ? &q_.model->training : nullptr;
  if (q_.training.seq) {
    seq = kReader.input(static_cast<double>(*q_.training.seq), "T", "--seq");
  } else if (facts != nullptr && facts->seq) {
    seq = kReader.input(static_cast<double>(*facts->seq), "T", fact_source("seq"));
    list.assume({fmt::format("sequences of {} tokens", group_thousands(*facts->seq)), "--seq", fact_source("seq")});
  }
  batch_of(list);
  if (q_.training.tokens) {
    tokens = kReader.input(*q_.training.tokens, "tokens", "--tokens");
  } else if (facts != nullptr && facts->tokens) {
    tokens = kReader.input(*facts->tokens, "tokens", fact_source("tokens"));
    list.assume({compact_count(*facts->tokens) + " training tokens", "--tokens", fact_source("tokens")});
  }
  if (tokens && batch) {
    refuse_run_below_step(tokens->value(), batch->value(), facts != nullptr ? facts->tokens : std::nullopt,
                          q_.training.tokens.has_value());
  }
  const std::optional<std::string> trained = facts != nullptr ? facts->optimizer : std::nullopt;
  optimizer = optimizer_of(q_.training.optimizer.value_or(trained.value_or("adam")), {});
  if (!q_.training.optimizer) {
    list.assume(Assumption{"optimizer " + optimizer.name, "--optimizer",
                           trained ? fact_source("optimizer") : "assumed: the usual one"}
                    .is(optimizer.name));
  }
}

void BoundInputs::batch_of(BoundList& list) {
  const TrainingFacts* facts = q_.model ? &q_.model->training : nullptr;
  if (q_.training.batch_tokens) {
    batch = kReader.input(*q_.training.batch_tokens, "B", "--batch-tokens");
  } else if (q_.training.batch_seqs) {
    if (!seq) throw UserError("--batch-seqs needs to know how long a sequence is", "add --seq 8192");
    batch = named(kReader.input(*q_.training.batch_seqs, "sequences", "--batch-seqs") * *seq, "B", "sequences x T");
  } else if (facts != nullptr && facts->batch_tokens) {
    batch = kReader.input(*facts->batch_tokens, "B", fact_source("batch_tokens"));
    list.assume({fmt::format("batch of {} tokens", compact_count(*facts->batch_tokens)), "--batch-tokens",
                 fact_source("batch_tokens")});
  }
  if (batch && chips) tokens_per_chip = named(*batch / *chips, "tokens_per_chip", "B / n");
}

// The chips a question is about: how many, in how many slices, and which axes and degrees they are given to.

namespace {

std::string shape_text(const Shape& shape) {
  std::string out;
  for (const std::int64_t axis : shape) out += (out.empty() ? "" : "x") + std::to_string(axis);
  return out;
}

/// Product of the degrees given; nothing if none is.
std::optional<std::int64_t> product_of(const BoundDegrees& d) {
  std::optional<std::int64_t> out;
  for (const auto& degree : {d.dp, d.fsdp, d.tp, d.cp, d.pp, d.ep}) {
    if (degree) out = out.value_or(1) * *degree;
  }
  return out;
}

}  // namespace

void BoundInputs::machine(BoundList& list) {
  const bool shaped = q_.topology || q_.pods || q_.slices > 1;
  if (shaped && !is_torus()) {
    throw UserError(fmt::format("{} has no slices: its chips are joined by switches", q_.hw.name),
                    "give --chips alone; --topology, --pods and --slices are for a torus");
  }
  const std::int64_t most_axes = is_torus() ? chip().axes() : 0;
  using Axes = std::pair<std::optional<std::int64_t>, const char*>;
  for (const auto& [given, flag] : {Axes{q_.data_axes, "--mx"}, Axes{q_.tensor_axes, "--my"}}) {
    if (!given || (*given <= most_axes && is_torus())) continue;
    throw UserError(fmt::format("{} {}: {} has {} torus axes", flag, *given, q_.hw.name, most_axes),
                    is_torus() ? "" : "only a torus has axes");
  }
  slices_ = q_.pods.value_or(q_.slices);
  std::optional<std::int64_t> count = q_.chips;
  std::string source = "--chips";
  if (q_.pods) {
    require_pod(hw());
    count = *q_.pods * q_.hw.network.front().torus.max_chips;
    source = "--pods, whole ones";
  } else if (q_.topology) {
    machine_of_shape();
    count = slice_->chips;
    source = "--topology";
  } else if (!count) {
    count = product_of(q_.fix);
    source = "product of the degrees";
  }
  if (!count) return;
  if (*count % slices_ != 0) {
    throw UserError(fmt::format("{} chips do not make {} equal slices", group_thousands(*count), slices_),
                    "--chips counts the chips of all slices together");
  }
  if (!q_.topology) check_chips(*count, list);
  check_degrees(*count);
  chips = kReader.input(static_cast<double>(*count), "n", source);
  if (source != "--chips") {
    list.assume({fmt::format("{} chips", group_thousands(*count)), "--chips", source});
  }
}

void BoundInputs::machine_of_shape() {
  require_pod(hw());
  const std::vector<Slice> found = slice_of_shape(q_.hw, *q_.topology, q_.slices);
  if (found.empty()) {
    throw UserError(fmt::format("{} builds no {} slice", q_.hw.name, shape_text(*q_.topology)),
                    fmt::format("its pod is {}", shape_text(q_.hw.network.front().torus.pod)));
  }
  slice_ = found.front();
  for (std::size_t i = 0; i < slice_->shape.size(); ++i) {
    if (slice_->shape[i] > 1 && !slice_->wraps[i]) take_axes_as_lines();
  }
  if (q_.chips && *q_.chips != slice_->chips) {
    throw UserError(fmt::format("--topology {} has {} chips, --chips says {}", shape_text(*q_.topology),
                                group_thousands(slice_->chips), group_thousands(*q_.chips)),
                    "leave one of them out");
  }
}

/// A rule of thumb holds for any count; that nobody builds it is worth saying.
void BoundInputs::check_chips(std::int64_t count, BoundList& list) {
  if (hw().network.empty() || !hw().publishes("host") || !publishes_pod(hw())) {
    list.assume({fmt::format("whether {} is built with {} chips is not known", hw().name, group_thousands(count)),
                 "--chips", "hardware file", true});
    return;
  }
  const std::vector<Slice> found = slices_of(q_.hw, count, slices_);
  if (found.empty()) {
    const SliceError error = no_slice(q_.hw, count, slices_);
    list.assume({fmt::format("the rules are taken for a count nobody builds: {} ({})", error.message, error.hint),
                 "--chips", q_.hw.network.front().source, true});
    return;
  }
  if (!is_torus() || count == slices_) return;
  const auto closed = [](const Slice& s) {
    for (std::size_t i = 0; i < s.shape.size(); ++i) {
      if (s.shape[i] > 1 && !s.wraps[i]) return false;
    }
    return true;
  };
  const bool rings = std::any_of(found.begin(), found.end(), closed);
  list.assume({rings ? "every axis is a closed ring and carries both directions"
                     : fmt::format("every axis is taken as a closed ring, though no slice of {} chips has them: give "
                                   "--topology for one direction",
                                   group_thousands(count)),
               "--topology", "book ch. 5", !rings});
}

void BoundInputs::check_degrees(std::int64_t count) const {
  const std::int64_t copy = model_degree();
  if (count % copy == 0) return;
  throw UserError(
      fmt::format("tp {} x pp {} x ep {} = {} chips hold one copy of the model, and {} is no multiple", tensor_degree(),
                  pipeline_degree(), expert_degree(), group_thousands(copy), group_thousands(count)),
      "change --fix or --chips");
}

std::int64_t BoundInputs::axes() const {
  if (!slice_) return chip().axes();
  const auto used = std::count_if(slice_->shape.begin(), slice_->shape.end(), [](std::int64_t a) { return a > 1; });
  return std::max<std::int64_t>(used, 1);
}

std::int64_t BoundInputs::tensor_axes() const { return q_.tensor_axes.value_or(1); }

std::int64_t BoundInputs::data_axes_alone() const { return q_.data_axes.value_or(axes()); }

std::optional<std::int64_t> BoundInputs::data_axes_beside() const {
  const std::int64_t left = axes() - tensor_axes();
  const std::int64_t wanted = q_.data_axes.value_or(left);
  if (wanted < 1 || wanted > left) return std::nullopt;
  return wanted;
}

namespace {

/// The rate, times the share of it that kernels or links reach.
template <Dim D>
Quantity<D, Traced> reached(const Quantity<D, Traced>& rate, const Coefficient& share, bool ideal,
                            std::string_view name, std::string_view coefficient) {
  if (ideal) return rate;
  const Traced part = Reader<Traced>{}.input(share.value, coefficient, share.source);
  return named(rate * part, name, "rate x measured efficiency");
}

}  // namespace

bool BoundRates::has_outer_network() const {
  return has_network() && hw().network.size() > 1 && publishes_bandwidth(hw(), 1);
}

bool BoundRates::has_network() const { return !hw().network.empty() && publishes_bandwidth(hw(), 0); }

FlopsPerSecondOf<Traced> BoundRates::compute(DType dtype) const {
  return reached(chip_.matmul(dtype), hw().efficiency.matmul[static_cast<std::size_t>(dtype)], ideal_, "C",
                 fmt::format("hw.efficiency.matmul.{}", name_of(dtype)));
}

BytesPerSecondOf<Traced> BoundRates::hbm() const {
  return reached(chip_.hbm(), hw().efficiency.hbm, ideal_, "W_hbm", "hw.efficiency.hbm");
}

BytesPerSecondOf<Traced> BoundRates::link() const {
  return reached(chip_.link(), hw().efficiency.link_scale_up, ideal_, "W_uni reached", "hw.efficiency.link.scale_up");
}

BytesPerSecondOf<Traced> BoundRates::axis() const {
  if (!rings_) return link();
  return reached(chip_.ici(), hw().efficiency.link_scale_up, ideal_, "W_ici reached", "hw.efficiency.link.scale_up");
}

BytesPerSecondOf<Traced> BoundRates::scale_up() const {
  return reached(chip_.scale_up(), hw().efficiency.link_scale_up, ideal_, "W_gpu reached",
                 "hw.efficiency.link.scale_up");
}

BytesPerSecondOf<Traced> BoundRates::scale_out() const {
  return reached(chip_.scale_out(), hw().efficiency.link_scale_out, ideal_, "W_out reached",
                 "hw.efficiency.link.scale_out");
}

BytesPerSecondOf<Traced> BoundRates::node_egress() const {
  return reached(chip_.node_egress(), hw().efficiency.link_scale_out, ideal_, "W_node reached",
                 "hw.efficiency.link.scale_out");
}

FlopsPerByteOf<Traced> BoundRates::axis_intensity() const {
  return named(compute() / axis(), "alpha_ici", "book ch. 5: C / W_ici");
}

FlopsPerByteOf<Traced> BoundRates::collective_intensity() const {
  if (!has_outer_network()) return tensor_intensity(1);
  const auto slower =
      named(min(scale_up(), node_egress()), "W_collective", "book ch. 12: the slower of node and network");
  return named(compute() / slower, "alpha", "book ch. 12: C / W_collective");
}

FlopsPerByteOf<Traced> BoundRates::tensor_intensity(std::int64_t degree) const {
  if (is_torus()) return axis_intensity();
  if (static_cast<double>(degree) <= node_size() || !has_outer_network()) {
    return named(compute() / scale_up(), "alpha_gpu", "book ch. 12: C / W_gpu");
  }
  return named(compute() / node_egress(), "alpha_node", "book ch. 12: C / W_node");
}

Traced BoundList::add(BoundGroup group, BoundHead head, const Traced& value, std::optional<bool> holds) {
  return add_of(group, std::move(head), value, {}, holds);
}

Traced BoundList::add_of(BoundGroup group, BoundHead head, const Traced& value, Dim dim, std::optional<bool> holds) {
  if (!std::isfinite(value.value())) {
    throw UserError(fmt::format("{} is beyond any number with these figures", head.name),
                    "look for a figure that is far too large or too small");
  }
  const auto same = [&](const Bound& b) { return b.name == head.name; };
  check(std::none_of(answer_.bounds.begin(), answer_.bounds.end(), same), "a rule's name is given once");
  Traced known = value.with_name(head.name, head.source, dim);
  if (head.unit.empty()) head.unit = unit_name(dim);
  answer_.bounds.push_back({group, std::move(head.name), std::move(head.symbol), known, dim, std::move(head.unit),
                            std::move(head.condition), holds, std::move(head.source)});
  return known;
}

void BoundList::assume(Assumption assumption) {
  const auto said = [&](const Assumption& a) { return a.text == assumption.text && a.flag == assumption.flag; };
  if (std::any_of(answer_.assumptions.begin(), answer_.assumptions.end(), said)) return;
  answer_.assumptions.push_back(std::move(assumption));
}

void BoundList::leave_out(std::string_view rules, std::string_view needs) {
  answer_.left_out.push_back({std::string(rules), std::string(needs)});
}

}  // namespace scalecalc
