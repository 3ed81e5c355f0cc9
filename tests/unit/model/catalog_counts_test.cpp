// The whole catalog against the counts of tests/data: every model to the digit, and the vendors' own figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/io.h"
#include "base/units.h"
#include "config/catalog.h"
#include "config/yaml_reader.h"
#include "model/accounting.h"
#include "model/kv_cache.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

const std::string kData = std::string(SCALECALC_SOURCE_DIR) + "/tests/data/";

double number(const std::string& text) { return std::get<double>(parse_quantity(text, UnitKind::kCount)); }

struct Expected {
  std::string name;
  double total = 0, active = 0, mtp = 0, kv_full = 0, kv_windowed = 0;
  double stated_off = 0, active_off = 0;  ///< 0: within the rounding of the figure as the vendor prints it
};

std::vector<Expected> expected_models() {
  const ConfigNode document = read_yaml(read_text_file(kData + "model_counts.yaml"), "model_counts.yaml");
  std::vector<Expected> out;
  for (const ConfigNode& item : document.find("models")->items) {
    const auto field = [&](const char* key) {
      const ConfigNode* found = item.find(key);
      return found == nullptr ? 0 : number(found->text);
    };
    const auto fraction = [&](const char* key) {
      const ConfigNode* found = item.find(key);
      return found == nullptr ? 0 : std::stod(found->text);
    };
    out.push_back({item.find("name")->text, field("total"), field("active"), field("mtp"), field("kv_full"),
                   field("kv_windowed"), fraction("stated_off"), fraction("active_off")});
  }
  return out;
}

/// A model of the catalog, its counts, and what they should be.
struct Counted {
  Expected expected;
  ModelSpec model;
  ParameterCount count;
};

std::vector<Counted> counted_models() {
  std::vector<Counted> out;
  for (const Expected& e : expected_models()) {
    ModelSpec model = test::shipped_model(e.name);
    const ParameterCount count = count_parameters(model);
    out.push_back({e, std::move(model), count});
  }
  return out;
}

/// What stands under `parameters:` in a model's file, as written; empty if absent.
std::string written(const std::string& name, const char* key) {
  const ConfigNode document = Catalog().load(CatalogKind::kModel, name);
  const ConfigNode* parameters = document.find("parameters");
  const ConfigNode* found = parameters == nullptr ? nullptr : parameters->find(key);
  return found == nullptr ? "" : found->text;
}

TEST(CatalogModels, CountToTheDigit) {
  for (const auto& [expected, model, count] : counted_models()) {
    SCOPED_TRACE(expected.name);
    EXPECT_EQ(count.total, expected.total);
    EXPECT_EQ(count.active, expected.active);
    EXPECT_EQ(count.mtp, expected.mtp);
    EXPECT_EQ(count.total,
              count.embedding + count.head + count.attention + count.mlp + count.experts + count.router + count.norms);
  }
}

TEST(CatalogModels, CacheToTheElement) {
  for (const auto& [expected, model, count] : counted_models()) {
    SCOPED_TRACE(expected.name);
    const KvCache cache = kv_cache(model);
    EXPECT_EQ(cache.unlimited_elements_per_token(), expected.kv_full);
    EXPECT_EQ(cache.elements_per_token() - cache.unlimited_elements_per_token(), expected.kv_windowed);
  }
}

/// Half a unit of the last digit of a figure such as "31.6B".
double rounding(const std::string& text) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::size_t point = text.find('.');
  const double decimals = point == std::string::npos ? 0 : static_cast<double>(end - point - 1);
  return 0.5 * std::pow(10, -decimals) * number("1" + text.substr(end));
}

/// A vendor's figure must be met within its rounding, or within `off` where the data say why, and only there.
void expect_stated(const std::string& text, double ours, double off) {
  const double stated = number(text);
  const double distance = std::abs(ours - stated);
  if (off == 0) {
    EXPECT_LE(distance, rounding(text)) << text << " stated, " << ours << " counted";
  } else {
    EXPECT_LE(distance, off * stated) << text << " stated, " << ours << " counted";
    EXPECT_GT(distance, rounding(text)) << text << " is met: the entry in model_counts.yaml is not needed";
  }
}

TEST(CatalogModels, MeetTheOfficialCount) {
  for (const auto& [expected, model, count] : counted_models()) {
    SCOPED_TRACE(expected.name);
    if (model.official.exact > 0) {
      EXPECT_EQ(count.total, static_cast<double>(model.official.exact));
      EXPECT_EQ(expected.stated_off, 0) << "an exact count has no rounding";
    } else if (model.official.stated > 0) {
      expect_stated(written(expected.name, "stated"), count.total, expected.stated_off);
    } else {
      EXPECT_EQ(expected.name.substr(0, 5), "book/") << "every published model has a published size";
    }
  }
}

TEST(CatalogModels, MeetTheStatedActiveCountInItsConvention) {
  int compared = 0;
  for (const auto& [expected, model, count] : counted_models()) {
    if (model.official.active == 0) continue;
    SCOPED_TRACE(expected.name);
    const double table = static_cast<double>(model.vocab * model.d_model);
    const std::string& convention = model.official.active_convention;
    double ours = count.active;
    if (convention == "without the input embedding") {
      ours -= table;
    } else if (convention == "without embedding and head") {
      ours -= model.tied_embeddings ? table : 2 * table;
    } else {
      EXPECT_TRUE(convention == "with both embedding matrices" || convention.empty()) << convention;
      EXPECT_FALSE(convention.empty() && expected.active_off == 0) << "a figure without convention is doubtful";
    }
    expect_stated(written(expected.name, "active"), ours, expected.active_off);
    ++compared;
  }
  EXPECT_GE(compared, 29);
}

TEST(CatalogModels, AreAllInTheData) {
  std::vector<std::string> listed;
  for (const Expected& e : expected_models()) listed.push_back(e.name);
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(listed, Catalog().names(CatalogKind::kModel));
  EXPECT_GE(listed.size(), 138U);
}

TEST(CatalogModels, AreFoundByTheirSpellings) {
  std::istringstream lines(read_text_file(kData + "model_ids.txt"));
  std::string line;
  int found = 0;
  while (std::getline(lines, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string spelling, name;
    words >> spelling >> name;
    EXPECT_EQ(Catalog().load(CatalogKind::kModel, spelling).find("name")->text, name) << spelling;
    ++found;
  }
  EXPECT_GE(found, 280);
}

}  // namespace
}  // namespace scalecalc
