#include "spec/evidence.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/yaml_reader.h"
#include "plan/mechanisms.h"

namespace scalecalc {
namespace {

std::vector<MechanismRuns> rows_of(const std::string& rows) {
  return load_evidence(read_yaml("schema: scalecalc-evidence/1\nname: x\nsource: y\nruns:\n" + rows, "evidence.yaml"));
}

TEST(Evidence, IsOfThisChipAndStackAndOfTheFamily) {
  const auto rows = rows_of(
      "  - {family: gpu, chip: a, stack: s, mechanism: tensor, runs: 3, error: 10%}\n"
      "  - {family: gpu, chip: b, stack: s, mechanism: tensor, runs: 1, error: 2%}\n"
      "  - {family: gpu, chip: a, stack: t, mechanism: pipeline, runs: 5, error: 4%}\n"
      "  - {family: tpu, chip: c, stack: s, mechanism: tensor, runs: 9, error: 1%}\n");
  const MechanismEvidence tensor = evidence_of(rows, "tensor", "gpu", "a", "s");
  EXPECT_EQ(tensor.here.runs, 3);
  EXPECT_EQ(tensor.family.runs, 4);
  EXPECT_DOUBLE_EQ(tensor.family.error, (3 * 0.10 + 1 * 0.02) / 4);
  EXPECT_EQ(evidence_of(rows, "pipeline", "gpu", "a", "s").here.runs, 0);
  EXPECT_EQ(evidence_of(rows, "dualpipe", "gpu", "a", "s").family.runs, 0);
}

TEST(Evidence, AWrongRowIsNamed) {
  EXPECT_THROW(rows_of("  - {family: gpu, chip: a, stack: s, mechanism: tensor, runs: many, error: 10%}\n"), UserError);
}

TEST(Evidence, WhatIsShippedNamesMechanisms) {
  const auto shipped = load_evidence(Catalog().load(CatalogKind::kEvidence, "train"));
  EXPECT_GT(shipped.size(), 50U);
  for (const MechanismRuns& row : shipped) {
    EXPECT_TRUE(std::any_of(mechanisms().begin(), mechanisms().end(), [&](const Mechanism& m) {
      return m.name == row.mechanism;
    })) << row.mechanism;
  }
}

}  // namespace
}  // namespace scalecalc
