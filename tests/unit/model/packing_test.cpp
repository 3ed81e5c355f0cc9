// Attention of packed documents against the sum over every document's length.
#include "model/packing.h"

#include <gtest/gtest.h>

#include "config/catalog.h"
#include "model/accounting.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

Lengths documents_of(std::string_view text) { return std::get<Lengths>(parse_lengths(text)); }

/// A document of l tokens has l of them, each with its own document's mean context.
double one_by_one(Reach reach, double span, const Lengths& documents) {
  double pairs = 0;
  double tokens = 0;
  for (const LengthBin& bin : documents.bins()) {
    for (std::int64_t l = bin.first; l <= bin.last; ++l) {
      const double length = static_cast<double>(l);
      const double share = bin.share / static_cast<double>(bin.last - bin.first + 1);
      pairs += share * length * mean_context(reach, span, length);
      tokens += share * length;
    }
  }
  return pairs / tokens;
}

TEST(Packing, ContextIsTheMeanOverTheTokensOfAllDocuments) {
  for (const char* text : {"4096", "512..4096", "100..300:0.7,1..6:0.1,250..1000:0.2", "1..2"}) {
    const Lengths documents = documents_of(text);
    for (const Reach reach : {Reach::kAll, Reach::kWindow, Reach::kChosen, Reach::kChunk}) {
      for (const double span : {1.0, 5.0, 128.0, 256.0, 1000.0, 5000.0}) {
        const double expected = one_by_one(reach, span, documents);
        EXPECT_NEAR(mean_context(reach, span, 8192.0, std::optional(documents)), expected, 1e-9 * expected)
            << text << ' ' << span;
      }
    }
  }
}

// Half the tokens lie in documents of 1,000 and half in ten times as many of 100: (1000 + 100) / 2 / 2.
TEST(Packing, LongDocumentsCountByTheirTokens) {
  const Lengths documents = documents_of("1000:1,100:10");
  EXPECT_DOUBLE_EQ(mean_context(Reach::kAll, 0.0, 8000.0, std::optional(documents)), 275);
}

TEST(Packing, FlopsOfDocumentsAreThoseOfShorterSequences) {
  for (const char* name : {"llama3.1-8b", "gemma-2-9b", "llama4-scout"}) {
    const ModelSpec model = load_model(Catalog().load(CatalogKind::kModel, name));
    const TrainingFlops packed = training_flops(model, 65536, true, {}, Lengths::fixed(16384));
    const TrainingFlops alone = training_flops(model, 16384);
    EXPECT_NEAR(packed.attention_causal, alone.attention_causal, 1e-9 * alone.attention_causal) << name;
    EXPECT_EQ(packed.attention_full, training_flops(model, 65536).attention_full) << "as frameworks count";
    EXPECT_EQ(packed.six_n, alone.six_n);
  }
}

}  // namespace
}  // namespace scalecalc
