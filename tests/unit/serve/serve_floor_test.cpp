// No model of the catalog decodes faster than it can read, holds more than its chips, or does better with fewer
// choices.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "config/catalog.h"
#include "serve/serve_search.h"
#include "serve/serving_cost.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

TEST(ServeFloor, NoModelOfTheCatalogIsFasterThanItsReads) {
  const Catalog catalog;
  const HardwareSpec hw = test::shipped_chip("h200");
  for (const std::string& name : catalog.names(CatalogKind::kModel)) {
    const ModelSpec model = test::shipped_model(name);
    const ServingSystem system{.model = &model, .hw = &hw, .efficiency = ideal_efficiency(hw.efficiency)};
    const ServingCost<double> cost = serving_cost(system, {}, slices_of(hw, 1, 1).front());
    for (const double batch : {1.0, 64.0}) {
      for (const double context : {1.0, 5000.0, 20000.0}) {
        const double step = cost.decode_step(batch, context).total().value();
        EXPECT_GE(step, cost.floor(batch, context).value() * (1 - 1e-9)) << name << ' ' << batch << ' ' << context;
      }
    }
  }
}

bool forgets_at_once(const ModelSpec& model) {
  return std::any_of(model.kinds.begin(), model.kinds.end(),
                     [](const LayerKind& kind) { return kind.mixer == MixerKind::kChunked; });
}

/// One more token of the prompt never makes the first or the next ones sooner, and costs one more step at most. But
/// where layers forget all that is before a chunk's end (Llama 4), decoding gets faster there: true of the model.
TEST(ServeFloor, NoModelOfTheCatalogIsFasterWithALongerPrompt) {
  const Catalog catalog;
  const HardwareSpec hw = test::shipped_chip("h200");
  for (const std::string& name : catalog.names(CatalogKind::kModel)) {
    const ModelSpec model = test::shipped_model(name);
    const ServingSystem system{.model = &model, .hw = &hw, .efficiency = hw.efficiency};
    const ServingCost<double> cost = serving_cost(system, {}, slices_of(hw, 1, 1).front());
    for (const double chunk : {2048.0, 3000.0}) {
      const auto at = [&](double prompt) {
        return cost.steady(8, {.prompt = prompt, .generate = 129, .context = prompt + 64, .chunk = chunk});
      };
      for (const double prompt : {1.0,    63.0,   64.0,   127.0,  511.0,   512.0,   1023.0,  1024.0, 2047.0, 2048.0,
                                  2999.0, 3000.0, 4031.0, 4095.0, 4096.0,  5047.0,  6000.0,  6143.0, 6144.0, 7095.0,
                                  7096.0, 8191.0, 8192.0, 9000.0, 16384.0, 32767.0, 32768.0, 39999.0}) {
        const SteadyTimes<double> before = at(prompt), after = at(prompt + 1);
        const double step = cost.mixed_step(8, prompt, 1, prompt).total().value();
        SCOPED_TRACE(name + " at " + std::to_string(prompt) + " in chunks of " + std::to_string(chunk));
        EXPECT_GE(after.ttft.value(), before.ttft.value() * (1 - 1e-9));
        EXPECT_LE(after.ttft.value(), before.ttft.value() + 1.1 * step);
        EXPECT_LE(after.tpot.value(), before.tpot.value() * 1.01 + step / 128);
        if (forgets_at_once(model)) continue;
        EXPECT_GE(after.request.value(), before.request.value() * (1 - 1e-9));
        // Where prompts fill every step, longer ones leave fewer of the sequences in flight to decode.
        if (!after.saturated) {
          EXPECT_GE(after.tpot.value(), before.tpot.value() * (1 - 1e-9));
        }
      }
    }
  }
}

double most_tokens(const std::vector<ServePoint>& points) {
  double out = 0;
  for (const ServePoint& p : points) out = std::max(out, p.tokens_per_s_per_chip());
  return out;
}

/// Each model on one of the chips; on every one with SCALECALC_EVERY_CHIP in the environment.
TEST(ServeFloor, SearchesOverTheCatalogKeepMemoryFloorAndPins) {
  const Catalog catalog;
  const bool every = std::getenv("SCALECALC_EVERY_CHIP") != nullptr;
  std::size_t searched = 0, turn = 0;
  for (const char* chip : {"h100-sxm", "mi300x", "tpu-v5p"}) {
    const auto hw = std::make_shared<const HardwareSpec>(test::shipped_chip(chip));
    std::size_t index = turn++;
    for (const std::string& name : catalog.names(CatalogKind::kModel)) {
      if (!every && index++ % 3 != 0) continue;
      SCOPED_TRACE(name + " on " + chip);
      ServeAnswer answer;
      answer.model = std::make_shared<const ModelSpec>(test::shipped_model(name));
      ServeSystem system;
      system.hw = hw;
      system.chip_counts = {8};
      system.serving = {.model = answer.model.get(), .hw = hw.get(), .efficiency = hw->efficiency};
      system.serving.formats.weights.weights = WeightFormat::kFp8;
      system.serving.formats.weights.bits_per_weight = 8;
      system.serving.engine.rule = CacheRule::kShareOfAll;
      system.serving.engine.share = 0.9;
      system.serving.engine.most_sequences = 256;
      answer.systems.push_back(system);
      answer.question.prompt = 9000;  // past the spans of windows and chunks
      answer.question.generate = 500;
      const std::vector<ServePoint> free = ServeSearch(answer, 0, nullptr).run();
      for (const ServePoint& p : free) {
        ++searched;
        EXPECT_LE(p.memory.total(), p.capacity * (1 + 1e-12));
        EXPECT_GE(p.decode_step_s, p.floor_s * (1 - 1e-9));
        EXPECT_NEAR(p.requests_per_s * p.request_s / p.batch, 1, 1e-9);
      }
      answer.question.fix.tp = 4;
      EXPECT_LE(most_tokens(ServeSearch(answer, 0, nullptr).run()), most_tokens(free) * (1 + 1e-9));
    }
  }
  EXPECT_GT(searched, 300U);
}

}  // namespace
}  // namespace scalecalc
