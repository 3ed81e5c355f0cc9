#include "validate/splits.h"

#include <gtest/gtest.h>

#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

Splits splits_of(const std::string& text) { return Splits(read_yaml(text, "splits.yaml")); }

MeasuredFacts from(const std::string& source, const std::string& reference = "", const std::string& group = "g") {
  MeasuredFacts out;
  out.source = source;
  out.reference = reference;
  out.group = group;
  return out;
}

class PublicationOf : public testing::Test {
 protected:
  std::string operator()(const MeasuredFacts& row) const { return splits_.publication_of(row); }

  Splits splits_ = splits_of("salt: s\nsame: {aic: owner/tables, fork/engine: owner/engine}\nsets: [{title: A set}]\n");
};

TEST_F(PublicationOf, IsARepositoryAPaperOrASite) {
  EXPECT_EQ((*this)(from("README, table 2; NVIDIA/Megatron-LM@f2e5db402c:images/model_table.png")),
            "nvidia/megatron-lm");
  EXPECT_EQ((*this)(from("Table 1; arXiv:2104.04473 Table 1; also NVIDIA/Megatron-LM images")), "arxiv:2104.04473");
  EXPECT_EQ((*this)(from("Pope et al. (arXiv 2211.05102, MLSys 2023)")), "arxiv:2211.05102");
  EXPECT_EQ((*this)(from("blog; https://arxiv.org/abs/2401.10241.")), "arxiv:2401.10241");
  EXPECT_EQ((*this)(from("a page; intel.com developer page")), "intel.com");
  EXPECT_EQ((*this)(from("blog; https://github.com/a/b/issues/3")), "a/b");
}

// "Megatron/LiBai" of a title is two frameworks; what follows the semicolon says where the figures are.
TEST_F(PublicationOf, IsReadBehindTheTitleFirst) {
  EXPECT_EQ((*this)(from("DLPerf, Megatron/LiBai column; Oneflow-Inc/DLPerf report")), "oneflow-inc/dlperf");
  EXPECT_EQ((*this)(from("owner/name page; line 427")), "owner/name");
  EXPECT_EQ((*this)(from("a summary, forward/backward", "Owner/Name@1a2b:docs/x.md")), "owner/name");
}

TEST_F(PublicationOf, IsTheOneThatItsNameStandsFor) {
  EXPECT_EQ((*this)(from("Fork/Engine docs/a.md")), "owner/engine");
  EXPECT_EQ((*this)(from("AIC:b200/gemm/x.csv")), "owner/tables");
}

TEST_F(PublicationOf, IsTheGroupWhereNoWordNamesOne) {
  EXPECT_EQ((*this)(from("measured  on one card", "", "Own H100")), "own h100");
}

// SHA-256 as Python's hashlib computes it: "s:owner/name" begins with f, "s:owner/engine" with 7,
// "s:arxiv:2104.04473" with b.
TEST_F(PublicationOf, HasTheHalfThatItsHashSays) {
  EXPECT_EQ(splits_.half_of("owner/name"), RowHalf::kJudge);
  EXPECT_EQ(splits_.half_of("owner/engine"), RowHalf::kFit);
  EXPECT_EQ(splits_.half_of("arxiv:2104.04473"), RowHalf::kJudge);
}

TEST_F(PublicationOf, DividesTheSetsThatTheFileNames) {
  EXPECT_TRUE(splits_.divides("A set"));
  EXPECT_FALSE(splits_.divides("My runs"));
  EXPECT_TRUE(Splits::shipped().divides("Training runs whose speed was published"));
}

}  // namespace
}  // namespace scalecalc
