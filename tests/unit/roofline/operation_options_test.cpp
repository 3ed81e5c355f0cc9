#include "roofline/operation_options.h"

#include <gtest/gtest.h>

namespace scalecalc::cli {
namespace {

using Batch = std::optional<std::vector<double>>;

struct Read {
  SpokenOperation spoken;
  std::string problems;

  template <class T>
  const T& as(std::size_t point = 0) const {
    return std::get<T>(spoken.points.at(point));
  }
};

Read read_operations(std::vector<std::string> words, const Batch& batch = {}) {
  std::vector<Diagnostic> problems;
  Read out;
  out.spoken = read_operation(SpokenWords(std::move(words)), batch, problems);
  for (const Diagnostic& problem : problems) out.problems += render(problem);
  return out;
}

TEST(OperationWords, MatmulShapes) {
  const Read three = read_operations({"matmul", "512x8192x28672"});
  EXPECT_EQ(three.problems, "");
  EXPECT_EQ(three.as<Matmul>().rows, 512);
  EXPECT_EQ(three.as<Matmul>().contraction, 8192);
  EXPECT_EQ(three.as<Matmul>().columns, 28672);
  EXPECT_EQ(three.as<Matmul>().matrices, 1);
  const Read four = read_operations({"matmul", "16x1Kix64x128"});
  EXPECT_EQ(four.as<Matmul>().matrices, 16);
  EXPECT_EQ(four.as<Matmul>().rows, 1024);
  const Read words = read_operations({"matmul", "8x64x64", "weights=per-row", "pad=128"});
  EXPECT_TRUE(words.as<Matmul>().per_row_weights);
  EXPECT_EQ(words.as<Matmul>().pad, 128);
  const Read tiled = read_operations({"matmul", "8x64x64", "tile=4x16x32", "weights=shared"});
  ASSERT_TRUE(tiled.as<Matmul>().tile);
  EXPECT_EQ(tiled.as<Matmul>().tile->columns, 32);
}

TEST(OperationWords, MatmulSweeps) {
  const Read flag = read_operations({"matmul", "64x128"}, Batch{{8, 16}});
  EXPECT_EQ(flag.spoken.swept, "batch");
  ASSERT_EQ(flag.spoken.points.size(), 2U);
  EXPECT_EQ(flag.as<Matmul>(1).rows, 16);
  EXPECT_EQ(flag.as<Matmul>(1).contraction, 64);
  const Read word = read_operations({"matmul", "8..32*2x64x128"});
  EXPECT_EQ(word.spoken.points.size(), 3U);
  const Read both = read_operations({"matmul", "512x64x128"}, Batch{{8}});
  EXPECT_EQ(both.as<Matmul>().rows, 8);
  EXPECT_EQ(both.spoken.swept, "");
  ASSERT_EQ(both.spoken.assumptions.size(), 1U);
  EXPECT_EQ(both.spoken.assumptions[0].text, "--batch stands in the place of the shape's own B");
}

TEST(OperationWords, WrongMatmuls) {
  EXPECT_EQ(read_operations({"matmul"}).problems,
            "<command line>: error: the shape is missing\n"
            "     | matmul\n"
            "     |       ^\n"
            "hint: BxDxF such as 512x8192x28672, DxF with --batch, or NxBxDxF for N matmuls alike\n");
  EXPECT_EQ(read_operations({"matmul", "512x81q2x64"}).problems,
            "<command line>: error: '81q2' is not a count: unknown unit 'q2'\n"
            "     | matmul 512x81q2x64\n"
            "     |            ^~~~\n"
            "hint: accepted: 8960, 4M, 70B, 15T, 128k, 16e6, 4Mi\n");
  const auto complains = [](std::vector<std::string> words, const std::string& message, const Batch& batch = {}) {
    const Read found = read_operations(std::move(words), batch);
    EXPECT_NE(found.problems.find(message), std::string::npos) << found.problems;
    EXPECT_TRUE(found.spoken.points.empty());
  };
  complains({"matmul", "64x64"}, "'64x64' has no batch");
  complains({"matmul", "64"}, "a matmul has 3 sizes, and '64' has 1");
  complains({"matmul", "1x2x3x4x5"}, "a matmul has 3 sizes, and '1x2x3x4x5' has 5");
  complains({"matmul", "1x0x3"}, "'0' is out of range");
  complains({"matmul", "1x2..8x3"}, "only the first size of a shape may be a sweep");
  complains({"matmul", "1,2x2x4x4"}, "the number of matrices cannot be swept");
  complains({"matmul", "8x8x8", "tile=8x8"}, "a tile has 3 sizes, and '8x8' has 2");
  complains({"matmul", "8x8x8", "tile=8x8x8", "weights=per-row"}, "weights=per-row has no tiles");
  complains({"matmul", "2x8x8x8", "weights=per-row"}, "NxBxDxF says already which rows share a matrix");
  complains({"matmul", "8x8x8", "weights=own"}, "weights cannot be 'own'");
  complains({"matmul", "8x8x8", "padd=8"}, "unknown key 'padd'");
  complains({"matmul", "8x8x8", "pad=8", "pad=9"}, "'pad' is given twice");
  complains({"matmul", "8x8x8", "128"}, "'128' is not KEY=VALUE");
  complains({"matmul", "8x8x8", "pad=8..16"}, "'8..16' is a sweep, and one size is expected here");
}

TEST(OperationWords, UnknownOperationsNameTheNearest) {
  EXPECT_EQ(read_operations({"atention", "heads=32"}).problems,
            "<command line>: error: unknown operation 'atention'\n"
            "     | atention heads=32\n"
            "     | ^~~~~~~~\n"
            "hint: did you mean 'attention'? operations: matmul, attention, contract, einsum, add, elementwise, dot, "
            "load, flops, bytes\n");
  EXPECT_NE(read_operations({}).problems.find("the operation is missing"), std::string::npos);
}

TEST(OperationWords, Attention) {
  const Read full = read_operations(
      {"attention", "heads=32", "kv_heads=8", "head_dim=128", "query=1", "kv=8Ki", "mask=causal", "pass=backward"},
      Batch{{4}});
  EXPECT_EQ(full.problems, "");
  const Attention& a = full.as<Attention>();
  EXPECT_EQ(a.kv_heads, 8);
  EXPECT_EQ(a.kv, 8192);
  EXPECT_EQ(a.sequences, 4);
  EXPECT_TRUE(a.causal);
  EXPECT_TRUE(a.backward);
  EXPECT_TRUE(full.spoken.assumptions.empty());
  const Read least = read_operations({"attention", "heads=32", "head_dim=128", "query=64"});
  EXPECT_EQ(least.as<Attention>().kv_heads, 32);
  EXPECT_EQ(least.as<Attention>().kv, 64);
  EXPECT_TRUE(least.as<Attention>().causal) << "as model and train count";
  EXPECT_EQ(least.spoken.assumptions.size(), 5U);
  const auto causal = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"attention", "heads=8", "head_dim=64"});
    return read_operations(std::move(words)).as<Attention>().causal;
  };
  EXPECT_FALSE(causal({"query=64", "mask=full"}));
  EXPECT_FALSE(causal({"query=1", "kv=64"})) << "one query sees every key";
  EXPECT_FALSE(causal({"query=64", "kv=16"})) << "fewer keys than queries are those of another sequence";
  EXPECT_TRUE(causal({"query=64", "kv=128"}));
}

TEST(OperationWords, AttentionSweeps) {
  const Read prompt = read_operations({"attention", "heads=8", "head_dim=64", "query=64..256"});
  EXPECT_EQ(prompt.spoken.swept, "query");
  EXPECT_EQ(prompt.as<Attention>(2).query, 256);
  EXPECT_EQ(prompt.as<Attention>(2).kv, 256);
  const Read context = read_operations({"attention", "heads=8", "head_dim=64", "query=1", "kv=64,128"});
  EXPECT_EQ(context.spoken.swept, "kv");
  EXPECT_EQ(context.as<Attention>(1).query, 1);
  EXPECT_EQ(context.as<Attention>(1).kv, 128);
  const Read batch = read_operations({"attention", "heads=8", "head_dim=64", "query=1", "kv=64"}, Batch{{1, 2}});
  EXPECT_EQ(batch.spoken.swept, "batch");
  EXPECT_EQ(batch.as<Attention>(1).sequences, 2);
}

TEST(OperationWords, WrongAttention) {
  const auto complaint = [](std::vector<std::string> words, const Batch& batch = {}) {
    words.insert(words.begin(), "attention");
    return read_operations(std::move(words), batch).problems;
  };
  EXPECT_NE(complaint({"query=1"}).find("heads= is missing"), std::string::npos);
  EXPECT_NE(complaint({"query=1"}).find("head_dim= is missing"), std::string::npos);
  EXPECT_NE(complaint({"heads=8", "head_dim=64"}).find("query= is missing"), std::string::npos);
  EXPECT_NE(complaint({"heads=8", "kv_heads=3", "head_dim=64", "query=1"})
                .find("8 query heads cannot share 3 KV heads evenly"),
            std::string::npos);
  EXPECT_NE(complaint({"heads=8", "head_dim=64", "query=1,2", "kv=3,4"}).find("two sizes are swept at once"),
            std::string::npos);
  EXPECT_NE(complaint({"heads=8", "head_dim=64", "query=8", "kv=4", "mask=causal"})
                .find("mask=causal: 8 queries have only 4 keys"),
            std::string::npos);
  // A word that is given and wrong is not missing too.
  EXPECT_EQ(complaint({"heads=8q", "head_dim=64", "query=1"}).find("missing"), std::string::npos);
}

TEST(OperationWords, ContractionsInBothNotations) {
  const Read letters = read_operations({"contract", "ij,jk->ik", "i=2", "j=3", "k=5"});
  EXPECT_EQ(letters.problems, "");
  const Read arrays = read_operations({"einsum", "A[i, j] * B[j, k] -> C[i, k]", "i=2", "j=3", "k=5"});
  EXPECT_EQ(arrays.problems, "");
  for (const Read* found : {&letters, &arrays}) {
    const Contraction& c = found->as<Contraction>();
    ASSERT_EQ(c.indices.size(), 3U);
    EXPECT_EQ(c.indices[1].name, "j");
    EXPECT_EQ(c.indices[1].size, 3);
    EXPECT_TRUE(c.indices[1].in_first && c.indices[1].in_second && !c.indices[1].in_result);
    EXPECT_TRUE(c.indices[2].in_second && c.indices[2].in_result && !c.indices[2].in_first);
  }
  EXPECT_EQ(read_operations({"contract", "p,p->", "p=8"}).as<Contraction>().indices.size(), 1U);
  EXPECT_EQ(read_operations({"contract", "A[P] * B[P] -> C[]", "P=8"}).as<Contraction>().indices.size(), 1U);
}

TEST(OperationWords, WrongContractions) {
  EXPECT_EQ(read_operations({"contract", "ij,jk->il", "i=2", "j=2", "k=2"}).problems,
            "<command line>: error: the result's 'l' is in neither array\n"
            "     | contract ij,jk->il i=2 j=2 k=2\n"
            "     |                  ^\n"
            "hint: \"ij,jk->ik\" or \"A[I,J] * B[J,K] -> C[I,K]\"\n");
  const auto complaint = [](std::vector<std::string> words) {
    words.insert(words.begin(), "contract");
    return read_operations(std::move(words)).problems;
  };
  EXPECT_NE(complaint({}).find("the contraction is missing"), std::string::npos);
  EXPECT_NE(complaint({"ij,jk"}).find("has no '->'"), std::string::npos);
  EXPECT_NE(complaint({"ij->i"}).find("has no ','"), std::string::npos);
  EXPECT_NE(complaint({"A[I,J] -> C[I]"}).find("has no '*'"), std::string::npos);
  EXPECT_NE(complaint({"i1,jk->k"}).find("'1' is no index"), std::string::npos);
  EXPECT_NE(complaint({"A[I,] * B[I] -> C[]"}).find("'' is no index"), std::string::npos);
  EXPECT_NE(complaint({"A[I * B[I] -> C[]"}).find("'A[I' is no array"), std::string::npos);
  EXPECT_NE(complaint({"ii,ij->j"}).find("'i' is twice in one array"), std::string::npos);
  EXPECT_NE(complaint({"ij,jk->ik", "i=2", "j=2"}).find("k= is missing"), std::string::npos);
  EXPECT_NE(complaint({"ij,jk->ik", "i=2", "j=2", "k=2", "l=2"}).find("unknown key 'l'"), std::string::npos);
  EXPECT_NE(complaint({"abcdefghijklmnopq,a->a"}).find("more than 16 indices"), std::string::npos);
}

TEST(OperationWords, VectorWorkAndGivenWork) {
  const Read add = read_operations({"add", "1Gi", "inputs=4"});
  EXPECT_EQ(add.as<Elementwise>().elements, 1073741824);
  EXPECT_EQ(add.as<Elementwise>().inputs, 4);
  EXPECT_EQ(add.as<Elementwise>().flops, 3);
  EXPECT_EQ(read_operations({"elementwise", "1024x8"}).as<Elementwise>().elements, 8192);
  EXPECT_EQ(read_operations({"elementwise", "8", "flops=2.5"}).as<Elementwise>().flops, 2.5);
  const Read dots = read_operations({"dot", "1k..4k"});
  EXPECT_EQ(dots.spoken.swept, "elements");
  EXPECT_EQ(dots.as<DotProduct>(2).elements, 4000);
  EXPECT_EQ(read_operations({"load", "70B"}).as<ParameterLoad>().parameters, 70e9);
  EXPECT_EQ(read_operations({"flops", "1e12"}).as<GivenWork>().flops, 1e12);
  EXPECT_EQ(read_operations({"flops", "1e12", "bytes=4GB"}).as<GivenWork>().bytes, 4e9);
  EXPECT_EQ(read_operations({"bytes", "400GB"}).as<GivenWork>().bytes, 400e9);
  EXPECT_EQ(read_operations({"bytes", "400GB", "flops=1T"}).as<GivenWork>().flops, 1e12);
}

TEST(OperationWords, WrongVectorWorkAndGivenWork) {
  const auto complaint = [](std::vector<std::string> words, const Batch& batch = {}) {
    return read_operations(std::move(words), batch).problems;
  };
  EXPECT_NE(complaint({"add"}).find("the size is missing"), std::string::npos);
  EXPECT_NE(complaint({"add", "8", "inputs=1"}).find("'1' is out of range"), std::string::npos);
  EXPECT_NE(complaint({"add", "8", "flops=0"}).find("'0' is out of range"), std::string::npos);
  EXPECT_NE(complaint({"add", "1e15x1e15"}).find("more than 1e18 elements"), std::string::npos);
  EXPECT_NE(complaint({"dot", "8", "inputs=2"}).find("takes no KEY=VALUE words"), std::string::npos);
  EXPECT_NE(complaint({"bytes", "400s"}).find("is not a size"), std::string::npos);
  EXPECT_NE(complaint({"flops"}).find("how many FLOPs?"), std::string::npos);
  EXPECT_NE(complaint({"bytes"}).find("how many bytes?"), std::string::npos);
  EXPECT_NE(complaint({"load", "70B"}, Batch{{8}}).find("load has no batch"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc::cli
