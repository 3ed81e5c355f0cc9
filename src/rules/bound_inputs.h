// What the rules read: the question's figures as traced inputs, each with its symbol in the book, defaults filled in
// and recorded as assumptions. A figure the question does not give is absent; a rule that needs it is left out by name.
#pragma once

#include <optional>
#include <string>

#include "cost/workload.h"
#include "model/accounting.h"
#include "rules/bound_list.h"
#include "rules/bound_rates.h"
#include "rules/bounds.h"
#include "rules/formulas.h"

namespace scalecalc {

using rules::LayerShape;

class BoundInputs : public BoundRates {
 public:
  /// Keeps a reference to `question`; puts what it assumed into `list`. UserError for a question that contradicts
  /// itself.
  BoundInputs(const BoundsQuestion& question, BoundList& list);

  const BoundsQuestion& question() const { return q_; }
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

  Traced parameters;         ///< P
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

}  // namespace scalecalc
