// What the groups of rules read, the list they add to, and the groups themselves.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bounds/bounds.h"
#include "bounds/formulas.h"
#include "cost/workload.h"
#include "hw/named_rates.h"
#include "model/accounting.h"

namespace scalecalc {

using rules::LayerShape;

/// What a rule is called and says.
struct BoundHead {
  std::string name;
  std::string symbol;
  std::string unit;  ///< empty: the unit of the value's dimension
  std::string condition;
  std::string source;
};

/// Collects the rules of an answer. A rule is its head and its traced value:
///
///   list.add(BoundGroup::kData, {"fsdp_limit", "alpha / M_X", "tokens per chip",
///            "FSDP is compute-bound with more tokens per chip", "book ch. 5"}, alpha / axes, holds);
class BoundList {
 public:
  explicit BoundList(BoundsAnswer& answer) : answer_(answer) {}

  /// Adds the rule and gives back its value under the rule's name, for rules that build on it.
  Traced add(BoundGroup group, BoundHead head, const Traced& value, std::optional<bool> holds = std::nullopt);
  template <Dim D>
  Quantity<D, Traced> add(BoundGroup group, BoundHead head, const Quantity<D, Traced>& value,
                          std::optional<bool> holds = std::nullopt) {
    return Quantity<D, Traced>(add_of(group, std::move(head), value.value(), D, holds));
  }

  void add(LayerPass pass) { answer_.layers.push_back(std::move(pass)); }
  void add(ServingPoint point) { answer_.points.push_back(std::move(point)); }

  /// Names rules that the question does not say enough for: "the FSDP x TP split", "--chips".
  void leave_out(std::string_view rules, std::string_view needs);
  void conclude(std::string line) { answer_.verdict.push_back(std::move(line)); }
  /// Groups may rest on the same figure; it is said once.
  void assume(Assumption assumption);

 private:
  Traced add_of(BoundGroup group, BoundHead head, const Traced& value, Dim dim, std::optional<bool> holds);

  BoundsAnswer& answer_;
};

/// The rates a rule of thumb compares: one chip's, from the data sheet or times what its kernels and links reach.
class BoundRates {
 public:
  /// Keeps a reference to `hw`. `ideal`: data-sheet rates; otherwise times the hardware file's efficiencies.
  BoundRates(const HardwareSpec& hw, DType compute, bool ideal) : chip_(hw), compute_(compute), ideal_(ideal) {}

  const NamedRates& chip() const { return chip_; }
  const HardwareSpec& hw() const { return chip_.hw(); }
  bool is_torus() const { return chip_.is_torus(); }
  /// Whether the file describes a network between chips with its rate, and one between slices or nodes.
  bool has_network() const;
  bool has_outer_network() const;

  FlopsPerSecondOf<Traced> compute() const { return compute(compute_); }  ///< C
  FlopsPerSecondOf<Traced> compute(DType dtype) const;
  /// C as the data sheet has it whatever the efficiencies: what an MFU is a share of.
  FlopsPerSecondOf<Traced> peak() const { return chip_.matmul(compute_); }
  BytesPerSecondOf<Traced> hbm() const;          ///< W_hbm
  BytesPerSecondOf<Traced> link() const;         ///< W_uni; torus only
  BytesPerSecondOf<Traced> axis() const;         ///< W_ici; torus only. W_uni where the slice's axes are not closed
  BytesPerSecondOf<Traced> scale_up() const;     ///< W_gpu; switched only
  BytesPerSecondOf<Traced> scale_out() const;    ///< W_dcn, or a chip's share of W_node
  BytesPerSecondOf<Traced> node_egress() const;  ///< W_node; switched only
  double node_size() const { return static_cast<double>(chip_.node_size()); }  ///< switched only

  /// alpha_ici = C / W_ici; torus only.
  FlopsPerByteOf<Traced> axis_intensity() const;
  /// C / min(W_gpu, W_node): what data parallelism over many nodes sees; switched only.
  FlopsPerByteOf<Traced> collective_intensity() const;
  /// What a tensor-parallel group of that many chips sees: alpha_ici on a torus, C / W_gpu in a node, C / W_node
  /// beyond.
  FlopsPerByteOf<Traced> tensor_intensity(std::int64_t degree) const;

 protected:
  void take_axes_as_lines() { rings_ = false; }

 private:
  NamedRates chip_;
  DType compute_;
  bool ideal_;
  bool rings_ = true;  ///< every axis of the torus is closed
};

/// What the rules read: the question's figures as traced inputs, each with its symbol in the book, defaults filled in
/// and recorded as assumptions. A figure the question does not give is absent; a rule that needs it is left out by
/// name.
class BoundInputs : public BoundRates {
 public:
  /// Keeps a reference to `question`; puts what it assumed into `list`. UserError for a question that contradicts
  /// itself.
  BoundInputs(const BoundsQuestion& question, BoundList& list);

  const BoundsQuestion& question() const { return q_; }
  /// Whether a model or its size is given; otherwise `parameters` stand for nothing.
  bool sized() const { return q_.model || q_.parameters; }
  /// Null for a model of which only the size is known.
  const ModelSpec* model() const { return q_.model ? &*q_.model : nullptr; }

  // Bytes of one element.
  BytesOf<Traced> weight_bytes() const { return element(q_.weights, "b_w"); }
  BytesOf<Traced> gradient_bytes() const { return element(q_.gradients, "b_g"); }
  BytesOf<Traced> activation_bytes() const { return element(q_.activations, "b_a"); }
  // The same against the two bytes that the book's rules are written for: the constant 1 for those.
  Traced weight_scale() const { return scale(q_.weights, "b_w / 2"); }
  Traced gradient_scale() const { return scale(q_.gradients, "b_g / 2"); }
  Traced activation_scale() const { return scale(q_.activations, "b_a / 2"); }
  /// Of what FSDP sends per FLOP in the pass that is bound first: b_w / 2 forward, (b_w + b_g) / 4 backward.
  Traced fsdp_scale() const;

  Traced parameters;  ///< P
  Traced held;        ///< P, and where it is counted from a model file those of towers, which lie beside it
  double tower_parameters = 0;
  Traced active_parameters;  ///< P_act: those a token uses; P of a dense model
  std::optional<LayerShape> shape;

  std::optional<Traced> chips;            ///< n
  std::optional<Traced> batch;            ///< B: tokens of a step
  std::optional<Traced> seq;              ///< T
  std::optional<Traced> tokens;           ///< of the run
  std::optional<Traced> tokens_per_chip;  ///< B / n
  Optimizer optimizer;

  // Torus: axes that carry data and tensor parallelism.
  std::int64_t axes() const;                             ///< of the slice
  std::int64_t tensor_axes() const;                      ///< M_Y
  std::int64_t data_axes_alone() const;                  ///< M_X when only data parallelism is there
  std::optional<std::int64_t> data_axes_beside() const;  ///< M_X beside M_Y; nothing if no axis is left

  // Degrees: one where the question gives none.
  std::int64_t tensor_degree() const { return q_.fix.tp.value_or(1); }
  std::int64_t pipeline_degree() const { return q_.fix.pp.value_or(1); }
  std::int64_t expert_degree() const { return q_.fix.ep.value_or(1); }
  /// Chips that hold one copy of the model: every degree but the data ones.
  std::int64_t model_degree() const { return tensor_degree() * pipeline_degree() * expert_degree(); }
  std::int64_t slices() const { return slices_; }

  /// Whether each chip has more tokens than a rule asks for; nothing if the question does not say how many it has.
  std::optional<bool> more_tokens_than(const Traced& limit) const;
  /// The flags that would say it: "--chips", "--batch-tokens" or both.
  std::string missing_for_tokens_per_chip() const;

 private:
  BytesOf<Traced> element(const std::optional<DType>& dtype, const char* symbol) const;
  Traced scale(const std::optional<DType>& dtype, const char* symbol) const;
  void parameters_of_model(BoundList& list);
  void shape_of_model(BoundList& list);
  void machine(BoundList& list);
  void machine_of_shape();
  void check_chips(std::int64_t count, BoundList& list);
  void check_degrees(std::int64_t count) const;
  void formats(BoundList& list) const;
  void job(BoundList& list);
  void batch_of(BoundList& list);
  std::string fact_source(const char* field) const;

  const BoundsQuestion& q_;
  std::int64_t slices_ = 1;
  std::optional<Slice> slice_;
};

// The groups of rules. Each adds what the inputs allow and names what they do not.
void training_bounds(const BoundInputs& in, BoundList& list);
void serving_bounds(const BoundInputs& in, BoundList& list, const Stop& stop);

// What training_bounds is made of.
void torus_bounds(const BoundInputs& in, BoundList& list);     ///< data, tensor and mixed parallelism, slices (ch. 5)
void switched_bounds(const BoundInputs& in, BoundList& list);  ///< the same behind switches, experts (ch. 12)
void memory_bounds(const BoundInputs& in, BoundList& list);

/// The passes through one layer under the degrees given, or under `tensor_degree` where they are not.
void layer_passes(const BoundInputs& in, std::optional<std::int64_t> tensor_degree, BoundList& list);

// Shared between groups.

/// What a step's data-parallel reduction goes through when `inner` chips hold one copy of the model: on a torus the
/// array is that much smaller; behind switches a chip's own links and then the nodes that the copy spans (ch. 12,
/// reductions of an array sharded over an inner axis).
BytesPerSecondOf<Traced> reduction_rate(const BoundInputs& in, std::int64_t inner, std::int64_t axes);
/// Chips of one copy of the model: whole nodes if --nodes-spanned says how many, otherwise as the degrees say.
std::int64_t copy_chips(const BoundInputs& in);
/// "468", "73.4k": tokens in a sentence.
std::string tokens_text(double tokens);
/// mfu of the question, or the book's 40 %, which it records once.
Traced assumed_mfu(const BoundInputs& in);

}  // namespace scalecalc
