#include "import/named_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "unit/import/imported.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

class NamedModel : public testing::Test {
 protected:
  NamedModel() : place_(fs::temp_directory_path() / ("scalecalc_named_model_" + std::to_string(::getpid()))) {
    put("My-1B/config.json", test::small("llama").dump());
  }
  ~NamedModel() override { fs::remove_all(place_); }

  void put(const std::string& name, const std::string& content) const {
    fs::create_directories((place_ / name).parent_path());
    std::ofstream(place_ / name) << content;
  }
  std::string at(const std::string& name) const { return (place_ / name).string(); }

  std::string error(const std::string& name, const std::string& assume = "") const {
    try {
      load_model_document(Catalog(), name, assume);
      return "";
    } catch (const UserError& e) {
      return e.diagnostics().front().message;
    }
  }

  fs::path place_;
};

TEST_F(NamedModel, IsAFileOrTheDirectoryItLiesIn) {
  for (const char* name : {"My-1B/config.json", "My-1B", "My-1B/"}) {
    const ModelDocument found = load_model_document(Catalog(), at(name));
    ASSERT_TRUE(found.import.has_value()) << name;
    EXPECT_EQ(load_model(found.document).name, "My-1B");
    EXPECT_EQ(found.document.find("d_model")->span.file.str(), at("My-1B/") + "config.json");
  }
}

TEST_F(NamedModel, IsLeftAloneIfItIsOneOfOurs) {
  const ModelDocument found = load_model_document(Catalog(), "llama3-8b");
  EXPECT_FALSE(found.import.has_value());
  EXPECT_EQ(load_model(found.document).name, "llama3-8b");
  EXPECT_EQ(error("llama3-8b", "llama"), "--assume says how to read a Hugging Face config.json, and the model is none");
}

TEST_F(NamedModel, ReadsTheQuantizationBesideIt) {
  put("My-1B/hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}})");
  EXPECT_EQ(load_model(load_model_document(Catalog(), at("My-1B")).document).quantization->weights, WeightFormat::kFp8);
  put("My-1B/hf_quant_config.json", R"({"quantization": )");
  EXPECT_NE(error(at("My-1B")), "");
}

TEST_F(NamedModel, ReadsTheCheckpointBesideIt) {
  EXPECT_FALSE(load_model_document(Catalog(), at("My-1B")).index.has_value());
  // One file: eight bytes of length, the header, the tensors.
  const std::string header = R"({"lm_head.weight": {"dtype": "U8", "shape": [5], "data_offsets": [0, 5]}})";
  put("My-1B/model.safetensors",
      std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "12345");
  EXPECT_EQ(load_model_document(Catalog(), at("My-1B")).index->total_bytes, 5);
  put("My-1B/model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n");
  EXPECT_FALSE(load_model_document(Catalog(), at("My-1B")).index.has_value());
  put("My-1B/model.safetensors.index.json", R"({"metadata": {"total_size": 7}, "weight_map": {"a": "b"}})");
  EXPECT_EQ(load_model_document(Catalog(), at("My-1B")).index->total_bytes, 7);
  put("My-1B/model.safetensors.index.json", "{");
  EXPECT_EQ(load_model_document(Catalog(), at("My-1B")).index->problem, "line 1: expected a text in double quotes");
  put("My-1B/model.safetensors.index.json", "\xff");
  EXPECT_NE(load_model_document(Catalog(), at("My-1B")).index->problem, "");
}

/// Every matrix of Kimi K2's experts, as ModelOpt lists them: 207,360 values in ten megabytes.
TEST_F(NamedModel, ReadsAQuantizationThatListsEveryMatrix) {
  for (const std::string end : {"\n", ""}) {  // a minified one is a single line
    std::string text = R"({"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": {)" + end;
    for (int i = 0; i < 69120; ++i) {
      text += (i == 0 ? "" : ",") + end + "\"model.layers." + std::to_string(i % 8) + ".mlp.experts." +
              std::to_string(i) + R"(.up_proj": {"quant_algo": "NVFP4", "group_size": 16})";
    }
    put("My-1B/hf_quant_config.json", text + end + "}}}");
    EXPECT_TRUE(load_model_document(Catalog(), at("My-1B")).import.has_value());
  }
}

TEST_F(NamedModel, SaysWhatIsNotThere) {
  fs::create_directories(place_ / "empty");
  EXPECT_EQ(error(at("empty")), "cannot read the file: it is a directory");
  put("list/config.json", "[1, 2]");
  const ModelDocument list = load_model_document(Catalog(), at("list"));
  EXPECT_THROW(load_model(list.document), UserError);
  put("bad/config.json", "{\"model_type\": \"llama\",}");
  EXPECT_EQ(error(at("bad")), "JSON allows no comma before '}'");
}

}  // namespace
}  // namespace scalecalc
