// Headers of GGUF files, written here byte by byte.
#include "import/gguf.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "import/named_model.h"
#include "model/accounting.h"
#include "model/checkpoint_check.h"
#include "spec/load.h"
#include "support/scratch.h"

namespace scalecalc {
namespace {

template <class T>
void put(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 255);
}
void put_text(std::string& out, const std::string& text) {
  put<std::uint64_t>(out, text.size());
  out += text;
}
void put_number(std::string& out, const std::string& key, std::uint32_t value) {
  put_text(out, key);
  put<std::uint32_t>(out, 4);
  put(out, value);
}

struct Described {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::uint32_t type;
};

constexpr std::uint32_t kF32 = 0, kQ4K = 12, kQ6K = 14;

/// Llama 3.2 1B as llama.cpp writes it in Q4_K_M, simplified: values and the tied table in Q6_K, the rest in Q4_K.
std::vector<Described> llama_tensors() {
  std::vector<Described> out{{"token_embd.weight", {2048, 128256}, kQ6K},
                             {"output_norm.weight", {2048}, kF32},
                             {"rope_freqs.weight", {32}, kF32}};
  for (int i = 0; i < 16; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    out.push_back({layer + "attn_norm.weight", {2048}, kF32});
    out.push_back({layer + "ffn_norm.weight", {2048}, kF32});
    out.push_back({layer + "attn_q.weight", {2048, 2048}, kQ4K});
    out.push_back({layer + "attn_k.weight", {2048, 512}, kQ4K});
    out.push_back({layer + "attn_v.weight", {2048, 512}, kQ6K});
    out.push_back({layer + "attn_output.weight", {2048, 2048}, kQ4K});
    out.push_back({layer + "ffn_gate.weight", {2048, 8192}, kQ4K});
    out.push_back({layer + "ffn_up.weight", {2048, 8192}, kQ4K});
    out.push_back({layer + "ffn_down.weight", {8192, 2048}, kQ4K});
  }
  return out;
}

std::string header(const std::string& architecture, const std::vector<Described>& tensors) {
  std::string out = "GGUF";
  put<std::uint32_t>(out, 3);
  put<std::uint64_t>(out, tensors.size());
  put<std::uint64_t>(out, 9);
  put_text(out, "general.architecture");
  put<std::uint32_t>(out, 8);
  put_text(out, architecture);
  const std::string a = architecture + ".";
  put_number(out, a + "block_count", 16);
  put_number(out, a + "embedding_length", 2048);
  put_number(out, a + "feed_forward_length", 8192);
  put_number(out, a + "context_length", 131072);
  put_number(out, a + "attention.head_count", 32);
  put_number(out, a + "attention.head_count_kv", 8);
  put_number(out, a + "attention.key_length", 64);
  put_number(out, a + "vocab_size", 128256);
  for (const Described& t : tensors) {
    put_text(out, t.name);
    put<std::uint32_t>(out, static_cast<std::uint32_t>(t.shape.size()));
    for (const std::uint64_t size : t.shape) put(out, size);
    put(out, t.type);
    put<std::uint64_t>(out, 0);
  }
  return out;
}

std::string written(const std::string& name, const std::string& bytes) {
  static const test::Scratch scratch;
  return scratch.put(name, bytes);
}

std::string problem_of(const std::string& path) {
  try {
    load_model_document(Catalog(), path);
  } catch (const UserError& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

TEST(Gguf, IsReadAsTheModelItHolds) {
  const std::string path = written("llama-3.2-1b.Q4_K_M.gguf", header("llama", llama_tensors()));
  const ModelDocument document = load_model_document(Catalog(), path);
  const ModelSpec model = load_model(document.document);
  EXPECT_EQ(static_cast<long long>(count_parameters(model).total), 1235814400) << "llama-3.2-1b's";
  EXPECT_TRUE(model.tied_embeddings) << "there is no output.weight";
  EXPECT_EQ(model.quantization->format(WeightPart::kEmbedding), WeightFormat::kInt6);
  EXPECT_NEAR(model.quantization->bits(WeightPart::kMlp), 4.5, 1e-12) << "144 bytes for 256 weights";
  const double q4 = 16.0 * (2 * 2048 * 2048 + 2048 * 512), q6 = 16.0 * 2048 * 512;
  EXPECT_NEAR(model.quantization->bits(WeightPart::kAttention), (4.5 * q4 + 6.5625 * q6) / (q4 + q6), 1e-9);
  ASSERT_TRUE(document.index);
  EXPECT_NE(check_checkpoint(model, *document.index).text.find("as counted here"), std::string::npos);
}

TEST(Gguf, WhatIsNoneIsAnError) {
  EXPECT_NE(problem_of(written("a.gguf", "GGML and more")).find("is no GGUF file"), std::string::npos);
  const std::string whole = header("llama", llama_tensors());
  for (const std::size_t cut : {4U, 20U, 60U, 300U, 1000U}) {
    EXPECT_NE(problem_of(written("cut.gguf", whole.substr(0, cut))).find("ends within its header"), std::string::npos);
  }
  EXPECT_NE(problem_of(written("b.gguf", header("rwkv6", {}))).find("architecture 'rwkv6' of GGUF is not read"),
            std::string::npos);
  EXPECT_NE(problem_of(written("c.gguf", header("llama", {{"token_embd.weight", {8}, 99}}))).find("type 99 of ggml"),
            std::string::npos);
  EXPECT_NE(problem_of("/dev/null/d.gguf").find("cannot be opened"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc
