// Degrees together: sequences against data ranks (ch. 5 and 6), layouts of chapter 12's examples, pipeline stages.
#include <fmt/format.h>

#include "base/scalar.h"
#include "base/units.h"
#include "rules/bound_rules.h"

namespace scalecalc {
namespace {

class DegreeRules {
 public:
  DegreeRules(const BoundInputs& in, BoundList& list) : in_(in), list_(list), fix_(in.question().fix) {}

  void run() {
    sequences();
    if (in_.chips) degrees();
    pipeline();
  }

 private:
  /// Ranks that hold the same weights, sequence sharding among them: as given, or what the chips leave.
  std::int64_t data_degree() const {
    if (fix_.dp || fix_.fsdp || fix_.cp) return fix_.dp.value_or(1) * fix_.fsdp.value_or(1) * fix_.cp.value_or(1);
    return static_cast<std::int64_t>(in_.chips->value()) / in_.model_degree();
  }

  void sequences() {
    if (!in_.batch || !in_.seq) return list_.leave_out("sequences of a batch", "--batch-tokens and --seq");
    const Traced count = *in_.batch / *in_.seq;
    std::optional<bool> holds;
    if (in_.chips) {
      const std::int64_t ranks = data_degree() / fix_.cp.value_or(1);
      holds = static_cast<double>(ranks) <= count.value();
      if (!*holds) {
        list_.conclude(fmt::format("The batch has {} sequences: {} data ranks need sequence (context) sharding.",
                                   format_quantity(count.value(), UnitKind::kNumber, 6), group_thousands(ranks)));
      }
    }
    list_.add(BoundGroup::kData,
              {"sequences_per_batch", "B / T", "sequences", "most data ranks without sharding sequences",
               "book ch. 5, Question 3"},
              count, holds);
  }

  void degrees() {
    const char* source = "book ch. 12, Examples";
    const auto degree = [](std::int64_t value, const char* name) {
      return value == 1 ? Traced(1.0) : kReader.input(static_cast<double>(value), name, "--fix");
    };
    const Traced copy =
        degree(in_.tensor_degree(), "tp") * degree(in_.pipeline_degree(), "pp") * degree(in_.expert_degree(), "ep");
    const Traced known = list_.add(BoundGroup::kPipeline,
                                   {"model_parallel_degree", "tp pp ep", "chips",
                                    "chips of one copy of the model, experts on chips of their own", source},
                                   copy);
    const bool given = fix_.dp || fix_.fsdp || fix_.cp;
    const Traced data = given ? degree(fix_.dp.value_or(1), "dp") * degree(fix_.fsdp.value_or(1), "fsdp") *
                                    degree(fix_.cp.value_or(1), "cp")
                              : *in_.chips / known;
    const Traced ranks = list_.add(
        BoundGroup::kPipeline,
        {"data_parallel_degree", given ? "dp fsdp cp" : "n / (tp pp ep)", "ranks", "copies of the model", source},
        data);
    const Traced product = known * ranks;
    const bool all = product.value() == in_.chips->value();
    const bool folded = product.value() / static_cast<double>(in_.expert_degree()) == in_.chips->value();
    list_.add(BoundGroup::kPipeline,
              {"degrees_product", "dp fsdp cp tp pp ep", "chips",
               "is the number of chips, with experts on chips of their own or laid over the data ranks", source},
              product, all || folded);
    if (ranks.value() > 1) {
      list_.add(
          BoundGroup::kPipeline,
          {"dp_bandwidth_factor", "dp / (dp - 1)", "times", "what few data ranks gain over the volume of many", source},
          ranks / (ranks - Traced(1.0)));
    }
  }

  void pipeline() {
    if (in_.pipeline_degree() < 2) return;
    if (!fix_.microbatches) return list_.leave_out("pipeline bubble and transfers", "--fix ga=N, the microbatches");
    const char* source = "book ch. 12, Pipeline Parallelism";
    const Traced stages = kReader.input(static_cast<double>(in_.pipeline_degree()), "n_stages", "--fix pp");
    const Traced micro = kReader.input(static_cast<double>(*fix_.microbatches), "n_MB", "--fix ga");
    list_.add(BoundGroup::kPipeline,
              {"pp_bubble", "(n_stages - 1) / (n_MB + n_stages - 1)", "of the step",
               "idle share of a plain schedule without interleaving", "arXiv:2104.04473 s. 2.2"},
              (stages - Traced(1.0)) / (micro + stages - Traced(1.0)));
    if (!in_.batch || !in_.chips || !in_.shape || !in_.has_network()) {
      return list_.leave_out("pipeline transfers", "a network, a catalog model, --chips and --batch-tokens");
    }
    const Traced ranks = kReader.input(static_cast<double>(data_degree()), "X", "data ranks");
    const BytesOf<Traced> sent =
        named(in_.activation_bytes() * (*in_.batch / ranks * in_.shape->d_model), "activations of a data rank", source);
    const auto rate = in_.is_torus() ? in_.link() : in_.has_outer_network() ? in_.node_egress() : in_.scale_up();
    const auto hop =
        list_.add(BoundGroup::kPipeline,
                  {"pp_hop_time", "b_a B D / (X W n_MB)", "", "one microbatch from a stage to the next", source},
                  sent / (rate * micro));
    const auto total =
        list_.add(BoundGroup::kPipeline,
                  {"pp_transfer_time", "hop (n_MB + n_stages - 2)", "", "all hops of a forward pass", source},
                  hop * (micro + stages - Traced(2.0)));
    list_.add(BoundGroup::kPipeline,
              {"pp_transfer_time_per_layer", "that / L", "", "against the other communication of a layer", source},
              total / in_.shape->layers);
  }

  const BoundInputs& in_;
  BoundList& list_;
  const BoundDegrees& fix_;
};

}  // namespace

void degree_bounds(const BoundInputs& in, BoundList& list) { DegreeRules(in, list).run(); }

}  // namespace scalecalc
