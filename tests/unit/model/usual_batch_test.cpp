// The law of batches held against the published runs it stands for.
#include "model/usual_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "config/catalog.h"
#include "model/accounting.h"
#include "spec/load.h"
#include "support/errors.h"

namespace scalecalc {
namespace {

struct PublishedRun {
  double log_parameters, log_batch;
};

/// Of the catalog: models whose batch was published and not assumed.
std::vector<PublishedRun> published_batches() {
  std::vector<PublishedRun> out;
  const Catalog catalog;
  for (const std::string& name : catalog.names(CatalogKind::kModel)) {
    const ModelSpec model = load_model(catalog.load(CatalogKind::kModel, name));
    const TrainingFacts& facts = model.training;
    if (!facts.batch_tokens || facts.assumed.count("batch_tokens") > 0) continue;
    out.push_back({std::log(count_parameters(model).active), std::log(*facts.batch_tokens)});
  }
  return out;
}

TEST(UsualBatch, IsTheLeastSquaresOfPublishedRuns) {
  const std::vector<PublishedRun> runs = published_batches();
  const auto n = static_cast<double>(runs.size());
  ASSERT_GE(n, 60);
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const PublishedRun& r : runs) {
    x += r.log_parameters / n;
    y += r.log_batch / n;
  }
  for (const PublishedRun& r : runs) {
    xx += (r.log_parameters - x) * (r.log_parameters - x);
    xy += (r.log_parameters - x) * (r.log_batch - y);
  }
  const double slope = xy / xx;
  double squares = 0;
  for (const PublishedRun& r : runs) squares += std::pow(r.log_batch - y - slope * (r.log_parameters - x), 2);
  // A run more moves the fit; a twentieth of the scatter is no reason to change answers.
  EXPECT_NEAR(kBatchExponent, slope, 0.01);
  for (const double parameters : {1e9, 1e10, 1e11}) {
    const double fitted = std::exp(y + slope * (std::log(parameters) - x));
    EXPECT_NEAR(kBatchScale * std::pow(parameters, kBatchExponent) / fitted, 1, 0.05);
  }
  EXPECT_NEAR(kBatchScatter, std::exp(std::sqrt(squares / n)), 0.1);
}

TEST(UsualBatch, IsThatOfLlamaFor70B) {
  EXPECT_EQ(usual_batch(70.6e9), 4 << 20) << "10,500 x 70.6e9^0.245 = 4.78M; the file of llama3-70b says 4Mi";
  EXPECT_EQ(usual_batch(8e9), 1 << 21) << "2.80M, nearer to 2Mi than to 4Mi in ratio";
}

std::string short_run(double tokens, std::optional<double> usual, bool typed) {
  return test::problems_of([&] { refuse_run_below_step(tokens, 4'194'304, usual, typed); });
}

TEST(RunBelowStep, IsRefusedWithTheSuffixThatComesNearest) {
  EXPECT_EQ(short_run(4'194'304, 15e12, true), "") << "one step is a run";
  const std::string said = short_run(15, 15e12, true);
  EXPECT_NE(said.find("15 tokens are less than one step of 4,194,304 tokens"), std::string::npos) << said;
  EXPECT_NE(said.find("--tokens 15T"), std::string::npos) << said;
  EXPECT_NE(short_run(300, 300e9, true).find("--tokens 300B"), std::string::npos);
  EXPECT_NE(short_run(4'194'303, 15e12, true), "");
  EXPECT_NE(short_run(4, std::nullopt, true).find("--tokens 4B"), std::string::npos) << "a thousand steps";
  EXPECT_NE(short_run(1e6, 1e6, false).find("the run's 1,000,000 tokens are less"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc
