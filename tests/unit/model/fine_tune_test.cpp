// Adapters in the operation lists: how many weights train, what a step of them computes, what the backward pass keeps.
#include "model/fine_tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "config/catalog.h"
#include "model/accounting.h"
#include "spec/load.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

std::int64_t adapters(const std::string& model, const FineTune& tune) {
  return static_cast<std::int64_t>(adapter_parameters(test::shipped_model(model), tune));
}

/// arXiv:2106.09685 table 4 and section 5.5: 4.7M at rank 1 and 37.7M at rank 8 on the queries and values of GPT-3;
/// LitGPT's resource tables count rank 8 on those of Llama 2, PEFT's print_trainable_parameters the others.
TEST(AdapterParameters, AsPublished) {
  const FineTune qv1{.rank = 1, .targets = kLoraQ | kLoraV};
  const FineTune qv8{.rank = 8, .targets = kLoraQ | kLoraV};
  EXPECT_EQ(adapters("gpt3-175b", qv1), 4'718'592);
  EXPECT_EQ(adapters("gpt3-175b", qv8), 37'748'736);
  EXPECT_EQ(adapters("llama2-7b", qv8), 4'194'304);
  EXPECT_EQ(adapters("llama2-13b", qv8), 6'553'600);
  EXPECT_EQ(adapters("llama3-8b", {.rank = 16}), 41'943'040);
  EXPECT_EQ(adapters("llama2-7b", {.rank = 64}), 159'907'840);
}

/// Every target adds rank x (its two widths), and groups are their members.
TEST(AdapterParameters, SumOverTargets) {
  for (const ModelSpec& model : {test::dense_model(3), test::moe_model(3), test::hybrid_model()}) {
    for (const bool experts : {false, true}) {
      double sum = 0;
      for (std::size_t i = 0; i < kLoraTargetNames.size(); ++i) {
        sum +=
            adapter_parameters(model, {.rank = 4, .targets = static_cast<std::uint8_t>(1U << i), .experts = experts});
      }
      EXPECT_DOUBLE_EQ(adapter_parameters(model, {.rank = 4, .experts = experts}), sum);
      EXPECT_DOUBLE_EQ(adapter_parameters(model, {.rank = 8, .experts = experts}), 2 * sum);
    }
  }
}

/// d_model 1024, 4 KV heads of 64; the keys' adapter has 1024 + 256 weights a rank, and so has the values'.
TEST(AdapterParameters, KeysAndValuesHaveOneEach) {
  const ModelSpec model = test::dense_model(1);
  EXPECT_EQ(adapter_parameters(model, {.rank = 2, .targets = kLoraK}), 2 * (1024 + 256));
  EXPECT_EQ(adapter_parameters(model, {.rank = 2, .targets = kLoraK | kLoraV}), 2 * 2 * (1024 + 256));
}

/// 8 experts of width 1024 beside d_model 1024, in one of two layers.
TEST(AdapterParameters, OfEachRoutedExpertIfAskedFor) {
  const ModelSpec model = test::moe_model(2);
  const FineTune shared{.rank = 2, .targets = kLoraUp};
  const FineTune each{.rank = 2, .targets = kLoraUp, .experts = true};
  EXPECT_EQ(adapter_parameters(model, each) - adapter_parameters(model, shared), 8 * 2 * (1024 + 1024));
}

/// A frozen matrix costs 2 FLOPs a weight and token forward and 2 for its input's gradient; an adapter 6.
TEST(TrainingFlops, AreFourTimesFrozenAndSixTimesAdapterWeights) {
  const ModelSpec model = test::dense_model(3);
  const FineTune tune{.rank = 16};
  const TrainingFlops full = training_flops(model, 2048);
  const TrainingFlops lora = training_flops(model, 2048, true, tune);
  EXPECT_DOUBLE_EQ(lora.six_n, full.six_n * 4 / 6 + 6 * adapter_parameters(model, tune));
  EXPECT_EQ(lora.attention_causal, full.attention_causal) << "scores have no weights";
}

/// arXiv:2305.14314 section 3: 32/64 = 0.5 bits of scales become 8/64 + 32/(64 x 256) = 0.127.
TEST(BaseFormats, NormalFloatHasItsScales) {
  EXPECT_NEAR(bits_of(BaseFormat::kNf4), 4.127, 0.0005);
  EXPECT_EQ(bits_of(BaseFormat::kInt8), 8);
}

std::set<std::string> kept_inputs(const FineTune& tune, const ModelSpec& model) {
  std::set<std::string> out;
  const ModelDims<double> dims = read_dims(Reader<double>{}, model);
  for (const Op<double>& op : adapted(layer_ops(model, model.kinds.back(), dims), tune)) {
    if (op.input != KeptInput::kNo && !op.unread) out.insert(std::string(op.name));
  }
  return out;
}

/// Activations are kept for gradients of weights that train, and for nothing else.
TEST(KeptInputs, AreThoseOfAdapters) {
  using Names = std::set<std::string>;
  const ModelSpec dense = test::dense_model(1);
  EXPECT_EQ(kept_inputs({.targets = kLoraQ}, dense), Names{"norm output"});
  EXPECT_EQ(kept_inputs({.targets = kLoraO}, dense), Names{}) << "attention keeps its own output";
  EXPECT_EQ(kept_inputs({.targets = kLoraDown}, dense), Names{"mlp activation"});
  EXPECT_EQ(kept_inputs({}, dense), (Names{"norm output", "mlp activation"}));
  const ModelSpec moe = test::moe_model(2);
  EXPECT_EQ(kept_inputs({.targets = kLoraQ}, moe), Names{"norm output"}) << "no dispatched copies";
  EXPECT_EQ(kept_inputs({.targets = kLoraUp, .experts = true}, moe),
            (Names{"norm output", "expert dispatch and combine"}));
}

TEST(KeptInputs, OfOneNormAreNotThoseOfAnother) {
  const ModelSpec model = test::dense_model(1);
  const ModelDims<double> dims = read_dims(Reader<double>{}, model);
  const auto kept = [&](std::uint8_t targets) {
    int out = 0;
    for (const Op<double>& op : adapted(layer_ops(model, model.kinds[0], dims), {.targets = targets})) {
      out += op.name == "norm output" && !op.unread ? 1 : 0;
    }
    return out;
  };
  EXPECT_EQ(kept(kLoraQ), 1);
  EXPECT_EQ(kept(kLoraQ | kLoraUp), 2);
}

/// A renamed operation would silently lose its adapters: every model has some, every projection of mixer and FFN is
/// one.
TEST(Targets, CoverTheCatalog) {
  const Catalog catalog;
  for (const std::string& name : catalog.names(CatalogKind::kModel)) {
    const ModelSpec model = test::shipped_model(name);
    const ModelDims<double> dims = read_dims(Reader<double>{}, model);
    const FineTune tune{.rank = 1, .experts = true};
    for (const LayerKind& kind : model.kinds) {
      const std::vector<Op<double>> ops = adapted(layer_ops(model, kind, dims), tune);
      for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
        const bool matmul = ops[i].kind == OpKind::kMatmul || ops[i].kind == OpKind::kGroupedMatmul;
        if (!ops[i].frozen || !matmul || ops[i].part == Part::kRouter) continue;
        static const std::set<std::string_view> kWithout{"index query projection",
                                                         "index key projection",
                                                         "index weights projection",
                                                         "output gate projection",
                                                         "latent down-projection",
                                                         "latent up-projection",
                                                         "step projection",
                                                         "step and state projection",
                                                         "state projection",
                                                         "decay and write strength projection",
                                                         "relative position projection"};
        EXPECT_NE(ops[i + 1].frozen, kWithout.count(ops[i].name) == 0) << name << ": " << ops[i].name;
      }
    }
  }
}

TEST(Targets, AreNamedInOrder) {
  EXPECT_EQ(target_names(kLoraAttention), "q,k,v,o");
  EXPECT_EQ(target_names(kLoraAll), "q,k,v,o,gate,up,down,recurrent");
}

}  // namespace
}  // namespace scalecalc
