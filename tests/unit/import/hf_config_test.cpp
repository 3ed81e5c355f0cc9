// What the import makes of keys that are absent, null, nested, listed or wrong.
#include "import/hf_config.h"

#include <gtest/gtest.h>

#include "unit/import/imported.h"

namespace scalecalc {
namespace {

using test::contains;
using test::ffns;
using test::has_default;
using test::import;
using test::Json;
using test::mixers;
using test::problems;
using test::small;
using test::spec;

TEST(HfConfig, ReadsALlama) {
  Json config = small("llama");
  config["num_key_value_heads"] = 2;
  const ImportedModel model = import(config);
  EXPECT_EQ(model.notes.family, "llama");
  const ModelSpec m = load_model(model.document);
  EXPECT_EQ(m.name, "llama");
  EXPECT_EQ(m.source, "hf-config");
  EXPECT_EQ(m.layers(), 8);
  EXPECT_EQ(m.attention.kv_heads, 2);
  EXPECT_EQ(m.attention.head_dim, 16);
  EXPECT_EQ(m.mlp.d_ff, 256);
  EXPECT_TRUE(m.mlp.gated);
  EXPECT_FALSE(m.tied_embeddings);
  EXPECT_FALSE(m.training.tokens.has_value());
}

TEST(HfConfig, SaysWhatItReadFilledInAndIgnored) {
  Json config = small("llama");
  config.erase("num_key_value_heads");
  config["rms_norm_eps"] = 1e-05;
  config["rope_scaling"] = {{"factor", 8.0}};
  const ImportNotes notes = import(config).notes;
  const auto read = [&](const std::string& key) {
    return std::any_of(notes.read.begin(), notes.read.end(), [&](const auto& r) { return r.key == key; });
  };
  EXPECT_TRUE(read("hidden_size"));
  EXPECT_TRUE(has_default(notes, "num_key_value_heads", "4"));
  EXPECT_TRUE(has_default(notes, "head_dim", "16"));
  EXPECT_TRUE(has_default(notes, "tie_word_embeddings", "false"));
  EXPECT_TRUE(has_default(notes, "dtype", "bfloat16"));
  EXPECT_EQ(notes.ignored, (std::vector<std::string>{"rms_norm_eps", "rope_scaling"}));
  const std::vector<ImportStatement> said = import_statements(notes);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0].text, "config.json read as a model of family 'llama'");
  EXPECT_NE(said[1].text.find("head_dim 16"), std::string::npos);
}

TEST(HfConfig, TyingFollowsTheFamilyAndTheTopLevelFirst) {
  EXPECT_TRUE(spec(small("gemma")).tied_embeddings);
  EXPECT_FALSE(spec(small("mistral")).tied_embeddings);
  Json config = {{"model_type", "qwen3_vl"}, {"text_config", small("qwen3_vl_text")}};
  config["text_config"]["num_key_value_heads"] = 2;
  config["text_config"]["tie_word_embeddings"] = false;
  EXPECT_FALSE(spec(config).tied_embeddings);
  config["tie_word_embeddings"] = true;
  EXPECT_TRUE(spec(config).tied_embeddings);
}

TEST(HfConfig, ReadsTheLanguageModelOfANestedFile) {
  Json text = small("llama");
  text["attention_bias"] = true;
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    const ImportedModel model =
        import({{"model_type", "some_vision_model"}, {key, text}, {"vision_config", {{"depth", 2}}}});
    EXPECT_TRUE(load_model(model.document).attention.qkv_bias);
    EXPECT_TRUE(contains(model.notes.remarks, "vision_config is not counted"));
    EXPECT_EQ(model.notes.read.at(1).key, std::string(key) + ".model_type");
  }
  EXPECT_EQ(spec({{"model_type", "omni"}, {"thinker_config", {{"text_config", text}}}}).layers(), 8);
}

TEST(HfConfig, TakesTheClassWhereNoModelTypeIsGiven) {
  Json config = small("");
  config.erase("model_type");
  config["architectures"] = {"GPTNeoXForCausalLM"};
  EXPECT_EQ(import(config).notes.family, "gpt_neox");
  config["architectures"] = {"Qwen3ForCausalLM"};
  config["num_key_value_heads"] = 4;
  EXPECT_EQ(import(config).notes.family, "qwen3");
}

TEST(HfConfig, MistralSlidesUnlessToldOtherwise) {
  Json config = small("mistral");
  config["num_key_value_heads"] = 4;
  EXPECT_EQ(spec(config).attention.window, 4096);
  EXPECT_EQ(mixers(spec(config)), "ssssssss");
  config["sliding_window"] = nullptr;
  EXPECT_EQ(mixers(spec(config)), "ffffffff");
  config["sliding_window"] = 128;
  EXPECT_EQ(spec(config).attention.window, 128);
}

TEST(HfConfig, QwenUsesItsWindowOnlyWhenSwitchedOn) {
  Json config = small("qwen2");
  config["num_key_value_heads"] = 4;
  config["sliding_window"] = 128;
  config["max_window_layers"] = 6;
  const ImportedModel off = import(config);
  EXPECT_EQ(mixers(load_model(off.document)), "ffffffff");
  EXPECT_TRUE(contains(off.notes.remarks, "sliding_window has no effect"));
  config["use_sliding_window"] = true;
  EXPECT_EQ(mixers(spec(config)), "ffffffss");
  EXPECT_TRUE(spec(config).attention.qkv_bias);
  EXPECT_FALSE(spec(config).attention.o_bias);
}

TEST(HfConfig, LocalAndGlobalLayersAlternateByPattern) {
  EXPECT_EQ(mixers(spec(small("gemma2"))), "sfsfsfsf");
  EXPECT_EQ(mixers(spec(small("gemma3_text"))), "sssssfss");
  Json config = small("gemma3_text");
  config["sliding_window_pattern"] = 2;
  EXPECT_EQ(mixers(spec(config)), "sfsfsfsf");
  config["layer_types"] = Json::array();
  for (int i = 0; i < 8; ++i) config["layer_types"].push_back(i < 2 ? "full_attention" : "sliding_attention");
  EXPECT_EQ(mixers(spec(config)), "ffssssss") << "a list wins over the pattern";
  EXPECT_EQ(mixers(spec(small("cohere2"))), "sssfsssf");
}

TEST(HfConfig, ExpertLayersFollowTheFamilysRule) {
  Json qwen = small("qwen3_moe");
  qwen.update({{"num_experts", 8},
               {"num_experts_per_tok", 2},
               {"moe_intermediate_size", 64},
               {"decoder_sparse_step", 2},
               {"mlp_only_layers", {3}}});
  EXPECT_EQ(ffns(spec(qwen)), "dmdddmdm");
  Json deepseek = small("deepseek_v3");
  deepseek.update({{"n_routed_experts", 8},
                   {"num_experts_per_tok", 2},
                   {"moe_intermediate_size", 64},
                   {"first_k_dense_replace", 2},
                   {"moe_layer_freq", 2}});
  EXPECT_EQ(ffns(spec(deepseek)), "ddmdmdmd");
  deepseek["moe_layer_freq"] = {0, 0, 1, 1, 1, 1, 0, 1};
  EXPECT_EQ(ffns(spec(deepseek)), "ddmmmmdm");
  Json llama4 = small("llama4_text");
  llama4.update({{"num_local_experts", 4}, {"interleave_moe_layer_step", 2}, {"intermediate_size_mlp", 512}});
  EXPECT_EQ(ffns(spec(llama4)), "dmdmdmdm");
  EXPECT_EQ(mixers(spec(llama4)), "cccfcccf");
  EXPECT_EQ(spec(llama4).mlp.d_ff, 512);
  EXPECT_EQ(spec(llama4).moe->shared_d_ff, 256);
  llama4["moe_layers"] = {0, 7};
  llama4["no_rope_layers"] = {1, 0, 1, 1, 1, 1, 1, 0};
  EXPECT_EQ(ffns(spec(llama4)), "mddddddm");
  EXPECT_EQ(mixers(spec(llama4)), "cfcccccf");
}

TEST(HfConfig, NullHasAMeaningOfItsOwn) {
  Json config = small("deepseek_v2");
  config.update({{"n_routed_experts", 8},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", nullptr},
                 {"q_lora_rank", nullptr},
                 {"n_shared_experts", nullptr}});
  const ModelSpec m = spec(config);
  EXPECT_EQ(m.attention.mla->q_lora_rank, 0);
  EXPECT_EQ(m.moe->shared_experts, 0);
  EXPECT_EQ(m.moe->d_ff, 256);
  config.erase("q_lora_rank");
  EXPECT_EQ(spec(config).attention.mla->q_lora_rank, 1536) << "absent is the default of the class";
}

TEST(HfConfig, NullHeadsAreTheModelsOwn) {
  Json config = small("gpt_oss");
  config.update({{"num_local_experts", 8}, {"num_key_value_heads", nullptr}, {"head_dim", nullptr}});
  EXPECT_EQ(spec(config).attention.kv_heads, 4);
  EXPECT_EQ(spec(config).attention.head_dim, 16);
  config["num_attention_heads"] = 8;
  config.erase("num_key_value_heads");
  config.erase("head_dim");
  EXPECT_EQ(spec(config).attention.kv_heads, 8) << "the default of the class";
  EXPECT_EQ(spec(config).attention.head_dim, 64);
}

TEST(HfConfig, OneExpertIsADenseModel) {
  Json config = small("mixtral");
  config.update({{"num_key_value_heads", 4}, {"num_local_experts", 1}});
  const ImportedModel model = import(config);
  EXPECT_EQ(ffns(load_model(model.document)), "dddddddd");
  EXPECT_TRUE(contains(model.notes.remarks, "one expert or none"));
}

TEST(HfConfig, FalconGroupsHeadsInTheNewArchitectureOnly) {
  Json config = small("falcon");
  config.erase("num_key_value_heads");
  config["num_kv_heads"] = 4;
  EXPECT_EQ(spec(config).attention.kv_heads, 1);
  EXPECT_EQ(spec(config).norms_per_layer, 1);
  config["new_decoder_architecture"] = true;
  config["num_kv_heads"] = 2;
  EXPECT_EQ(spec(config).attention.kv_heads, 2);
  EXPECT_EQ(spec(config).norms_per_layer, 2);
}

TEST(HfConfig, HandEditedNamesAreRead) {
  Json config = small("deepseek_v3");
  config.update({{"num_routed_experts", 8},
                 {"num_shared_experts", 2},
                 {"num_experts_per_token", 2},
                 {"moe_intermediate_size", 64}});
  EXPECT_EQ(spec(config).moe->experts, 8);
  EXPECT_EQ(spec(config).moe->shared_d_ff, 128);
}

TEST(HfConfig, CallsTheModelLikeItsDirectory) {
  const auto name = [](const std::string& file, const std::string& said) {
    Json config = small("llama");
    if (!said.empty()) config["_name_or_path"] = said;
    return import_hf_config(read_json(config.dump(), file)).document.find("name")->text;
  };
  EXPECT_EQ(name("models/My-7B/config.json", ""), "My-7B");
  EXPECT_EQ(name("./config.json", "meta-llama/Llama-3.1-8B"), "Llama-3.1-8B");
  EXPECT_EQ(name("config.json", ""), "llama");
  EXPECT_EQ(name("My-7B.json", ""), "My-7B");
  EXPECT_EQ(name("<standard input>", "/data/runs/step-10/"), "step-10");
  EXPECT_EQ(name("hub/models--Qwen--Qwen3-8B/snapshots/9c925d64d72725edaf899c6cb9c377fd0709d9c5/config.json", ""),
            "Qwen3-8B");
}

TEST(HfConfig, AnUnknownFamilyNamesTheKnownOnes) {
  const std::string message = problems(small("hyena"));
  EXPECT_TRUE(
      message.starts_with("2: 'model_type' 'hyena' is not known | known: afmoe, apertus, arcee, bailing_hybrid, "))
      << message;
  EXPECT_TRUE(message.ends_with("--assume FAMILY reads the file as one of them\n")) << message;
  Json config = small("");
  config.erase("model_type");
  EXPECT_TRUE(
      problems(config).starts_with("1: the file has no 'model_type' and no 'architectures' to tell its family"));
  config["architectures"] = {"HyenaForCausalLM"};
  EXPECT_TRUE(problems(config).find("architecture 'HyenaForCausalLM' is not known") != std::string::npos);
  config["architectures"] = {"OpenELMForCausalLM"};
  EXPECT_TRUE(problems(config).find("models of family 'openelm' are not read: each of its layers") !=
              std::string::npos);
}

TEST(HfConfig, AFamilyThatIsNotModelledSaysWhy) {
  EXPECT_EQ(problems(small("openelm")),
            "2: models of family 'openelm' are not read: each of its layers has a number of heads of its own | "
            "describe the model in a scalecalc-model/1 file: docs/howto/add-model.md\n");
  for (const char* family : {"bitnet", "t5gemma2", "zamba", "zamba2"}) {
    EXPECT_NE(problems(small(family)).find("are not read: "), std::string::npos) << family;
  }
}

TEST(HfConfig, AssumeForcesAFamilyAndWarns) {
  const ImportedModel model = import(small("my_llama"), "llama");
  EXPECT_EQ(model.notes.family, "llama");
  EXPECT_EQ(
      model.notes.warnings,
      std::vector<std::string>{"read as family 'llama' because --assume says so; the file says model_type 'my_llama'"});
  EXPECT_TRUE(import_statements(model.notes).back().warning);
  EXPECT_TRUE(problems(small("my_llama"), "lama")
                  .starts_with("--assume 'lama': no family of that name is known | did you "
                               "mean 'llama'? known: "));
  EXPECT_NE(problems(small("my_llama"), "openelm").find("are not read"), std::string::npos);
}

TEST(HfConfig, AssumeCannotReadWhatTheFamilyDoesNotHave) {
  Json config = small("my_moe");
  config.update({{"num_experts", 8}, {"kv_lora_rank", 512}});
  EXPECT_EQ(problems(config, "llama"),
            "10: 'num_experts' is set, and models of family 'llama' have no such thing | is 'model_type' right?\n"
            "11: 'kv_lora_rank' is set, and models of family 'llama' have no such thing | is 'model_type' right?\n");
  Json hybrid = small("my_hybrid");
  hybrid["layer_types"] = {"full_attention", "linear_attention"};
  EXPECT_EQ(problems(hybrid, "llama"), "12: layer type 'linear_attention' is not known of family 'llama'\n");
}

TEST(HfConfig, TwoNamesOfOneQuantityMustAgree) {
  Json config = small("mixtral");
  config.update({{"num_key_value_heads", 4}, {"num_local_experts", 8}, {"num_experts", 8}});
  EXPECT_EQ(problems(config), "");
  config["num_experts"] = 16;
  EXPECT_EQ(problems(config), "11: 'num_experts' is 16, and another key says 8\n");
}

TEST(HfConfig, EssentialKeysAreNamed) {
  EXPECT_EQ(problems({{"model_type", "llama"}}),
            "1: the file has no 'hidden_size' (width of the model) | also read: n_embd, n_embed, d_model\n"
            "1: the file has no 'vocab_size' (entries of the vocabulary) | also read: padded_vocab_size\n"
            "1: the file has no 'num_hidden_layers' (number of layers) | also read: n_layer, n_layers, num_layers\n"
            "1: the file has no 'num_attention_heads' (attention heads) | also read: n_head, n_heads, num_heads\n"
            "1: the file has no 'intermediate_size' (width of the MLP) | also read: ffn_dim, n_inner, "
            "ffn_hidden_size, ffn_config.ffn_hidden_size\n");
  Json config = small("deepseek_v2");
  EXPECT_EQ(problems(config).find("1: the file has no 'n_routed_experts' (routed experts)"), 0U);
  config = small("llama");
  config["hidden_size"] = nullptr;
  EXPECT_EQ(problems(config), "3: 'hidden_size' (width of the model) is null, and has no default\n");
}

TEST(HfConfig, SizesMustBeNumbersInRange) {
  Json config = small("llama");
  config["hidden_size"] = "64";
  EXPECT_EQ(problems(config), "3: 'hidden_size' must be a number, not '64'\n");
  config["hidden_size"] = 64.5;
  EXPECT_EQ(problems(config), "3: 'hidden_size' is 64.5; it must be a whole number\n");
  config["hidden_size"] = -64;
  EXPECT_EQ(problems(config), "3: 'hidden_size' is -64; it must be from 1 to 1e+07\n");
  config["hidden_size"] = 1e300;
  EXPECT_EQ(problems(config), "3: 'hidden_size' is 1e+300; it must be from 1 to 1e+07\n");
  config["hidden_size"] = {64};
  EXPECT_EQ(problems(config), "3: 'hidden_size' must be a number, not a list\n");
  config["hidden_size"] = 64.0;
  EXPECT_EQ(problems(config), "");
  config["attention_bias"] = "yes";
  EXPECT_EQ(problems(config), "10: 'attention_bias' must be true or false\n");
}

TEST(HfConfig, SizesMustFitEachOther) {
  Json config = small("llama");
  config["num_key_value_heads"] = 3;
  EXPECT_EQ(problems(config), "9: num_attention_heads (4) is not a multiple of num_key_value_heads (3)\n");
  config = small("llama");
  config.erase("num_key_value_heads");
  config["num_attention_heads"] = 5;
  EXPECT_EQ(problems(config),
            "5: hidden_size (64) is not a multiple of num_attention_heads (5), and the file has no 'head_dim'\n");
  config["head_dim"] = 16;
  EXPECT_EQ(problems(config), "") << "heads x head_dim need not be hidden_size";
  config = small("mixtral");
  config.update({{"num_key_value_heads", 4}, {"num_local_experts", 4}, {"num_experts_per_tok", 5}});
  EXPECT_EQ(problems(config), "11: a token visits 5 experts, and there are 4\n");
}

TEST(HfConfig, ListsMustHaveAnItemForEachLayer) {
  Json config = small("gemma2");
  config["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_EQ(problems(config), "10: 'layer_types' lists 2 layers, and the model has 8\n");
  config["layer_types"] = "full_attention";
  EXPECT_EQ(problems(config), "10: 'layer_types' must be a list, not a text\n");
  config["layer_types"] = Json::array();
  for (int i = 0; i < 8; ++i) config["layer_types"].push_back("hybrid");
  EXPECT_NE(problems(config).find("layer type 'hybrid' is not known of family 'gemma2'"), std::string::npos);
  Json nemotron = small("nemotron_h");
  nemotron.update(
      {{"hybrid_override_pattern", "M-*"}, {"num_key_value_heads", 4}, {"mamba_num_heads", 8}, {"mamba_head_dim", 16}});
  EXPECT_EQ(problems(nemotron), "4: 'num_hidden_layers' is 8, and the pattern has 3 layers\n");
  nemotron["num_hidden_layers"] = 3;
  EXPECT_EQ(problems(nemotron), "");
  EXPECT_EQ(spec(nemotron).mamba2->chunk, 128) << "NemotronHConfig's default";
  nemotron["mamba_ssm_cache_dtype"] = "float32";
  EXPECT_TRUE(import(nemotron).notes.warnings.empty());
  nemotron["mamba_ssm_cache_dtype"] = "float16";
  const ImportedModel halved = import(nemotron);
  ASSERT_EQ(halved.notes.warnings.size(), 1U);
  EXPECT_NE(halved.notes.warnings.front().find("recurrent states are counted in fp32"), std::string::npos);
  for (const char* key : {"chunk_size", "mamba_chunk_size"}) {
    Json own = nemotron;
    own[key] = 64;
    EXPECT_EQ(spec(own).mamba2->chunk, 64) << key;
  }
  nemotron["hybrid_override_pattern"] = "M?*";
  EXPECT_EQ(problems(nemotron),
            "10: layer '?' is not known of family 'nemotron_h' | known: M mamba, * attention, - mlp, E moe\n");
}

TEST(HfConfig, ImplausibleTotalsAreWarnedOf) {
  Json tiny = small("llama");
  tiny.update({{"hidden_size", 8},
               {"vocab_size", 10},
               {"intermediate_size", 8},
               {"num_attention_heads", 1},
               {"num_key_value_heads", 1}});
  EXPECT_TRUE(contains(import(tiny).notes.warnings, "which no published model has"));
  Json huge = small("llama");
  huge.update({{"hidden_size", 1000000}, {"intermediate_size", 4000000}});
  EXPECT_TRUE(contains(import(huge).notes.warnings, "which no published model has"));
}

TEST(HfConfig, BiasesAndMixersThatAreNotCountedAreRefused) {
  Json config = small("deepseek_v3");
  config.update({{"n_routed_experts", 8}, {"num_experts_per_tok", 2}, {"attention_bias", true}});
  EXPECT_NE(problems(config).find("biases of latent attention are not read"), std::string::npos);
  Json jamba = small("jamba");
  jamba.update({{"num_key_value_heads", 4}, {"mamba_proj_bias", true}});
  EXPECT_NE(problems(jamba).find("Mamba layers are read with a bias of the convolution and no other"),
            std::string::npos);
  Json minimax = small("minimax_m2");
  minimax.update({{"num_attention_heads", 8}, {"qk_norm_type", "per_head"}});
  EXPECT_NE(problems(minimax).find("'qk_norm_type' is read as per_layer only"), std::string::npos);
}

// Classes of transformers: Gemma, RecurrentGemma and ModernBERT gate with GELU where a file does not say, Llama with
// SiLU.
TEST(HfConfig, AFileThatNamesNoActivationHasThatOfItsClass) {
  const auto activation = [](const Json& config) {
    const ImportedModel model = import(config);
    const ConfigNode* said = model.document.find("mlp")->find("activation");
    return said == nullptr ? std::string() : said->text;
  };
  for (const char* family :
       {"gemma", "gemma2", "gemma3_text", "gemma4_text", "gemma3n_text", "recurrent_gemma", "modernbert"}) {
    Json config = small(family);
    config["num_kv_shared_layers"] = 0;  // eight layers are fewer than a Gemma 3n shares
    EXPECT_EQ(activation(config), "gelu") << family;
    EXPECT_TRUE(has_default(import(config).notes, "hidden_activation", "gelu")) << family;
    config["hidden_activation"] = "gelu_pytorch_tanh";
    EXPECT_FALSE(has_default(import(config).notes, "hidden_activation", "gelu")) << family;
  }
  EXPECT_EQ(activation(small("llama")), "");
}

TEST(HfConfig, KnowsItsFilesFromOurs) {
  const auto is_hf = [](const char* text) { return is_hf_config(read_json(text, "x.json")); };
  EXPECT_TRUE(is_hf(R"({"model_type": "llama"})"));
  EXPECT_TRUE(is_hf(R"({"architectures": []})"));
  EXPECT_TRUE(is_hf(R"({"hidden_size": 1})"));
  EXPECT_FALSE(is_hf(R"({"schema": "scalecalc-model/1", "model_type": "llama"})"));
  EXPECT_FALSE(is_hf(R"({"d_model": 64})"));
  EXPECT_FALSE(is_hf("[1]"));
}

/// flash-linear-attention's class (fla/models/rwkv6, fla/layers/rwkv6): hidden_ratio rounds up to a multiple of 32,
/// norms may have no biases and the embedding no norm, and num_heads counts. RWKV's own class knows none of it and cuts
/// down.
TEST(HfRwkv, OfVersionSixIsReadAsEitherClassHasIt) {
  const Json own = {
      {"model_type", "rwkv6"}, {"hidden_size", 192}, {"num_hidden_layers", 2}, {"vocab_size", 1000}, {"head_size", 64}};
  EXPECT_EQ(spec(own).mlp.d_ff, 672) << "3.5 x 192 is 21 x 32";
  Json narrow = own;
  narrow["hidden_size"] = 100;
  narrow["attention_hidden_size"] = 64;
  EXPECT_EQ(spec(narrow).mlp.d_ff, 320) << "3.5 x 100 from above";
  Json fla = own;
  fla.erase("head_size");
  fla.update(Json{{"expand_k", 1.0}, {"num_heads", 2}, {"hidden_ratio", 3.3}});
  EXPECT_EQ(spec(fla).mlp.d_ff, 640) << "3.3 x 192 = 633.6, cut to 633: 20 x 32 from below";
  EXPECT_EQ(spec(fla).rwkv->head_dim, 96) << "192 / 2";
  fla["hidden_ratio"] = nullptr;
  EXPECT_EQ(spec(fla).mlp.d_ff, 672) << "null: 3.5";
  const auto total = [](const Json& config) { return count_parameters(spec(config)).total; };
  Json plain = fla;
  plain["norm_first"] = false;
  EXPECT_EQ(total(fla) - total(plain), 2 * 192) << "the embedding's norm and its bias";
  plain["norm_bias"] = false;
  EXPECT_EQ(total(fla) - total(plain), 2 * 192 + (2 * 2 + 1) * 192) << "and two biases a layer, one at the end";
  fla["num_heads"] = 5;
  EXPECT_NE(problems(fla).find("192 channels are no whole number of 5 heads"), std::string::npos) << problems(fla);
  fla["num_heads"] = 2;
  fla["attn"] = {{"layers", {1}}, {"num_heads", 2}};
  EXPECT_NE(problems(fla).find("layers of attention between"), std::string::npos) << problems(fla);
}

TEST(HfRwkv, OfVersionSevenRoundsItsRatioUp) {
  const Json config = {{"model_type", "rwkv7"},    {"hidden_size", 192},   {"num_hidden_layers", 2},
                       {"vocab_size", 1000},       {"hidden_ratio", 3.3},  {"head_dim", 64},
                       {"decay_low_rank_dim", 32}, {"a_low_rank_dim", 32}, {"v_low_rank_dim", 32},
                       {"gate_low_rank_dim", 64}};
  EXPECT_EQ(spec(config).mlp.d_ff, 640) << "633 from below";
}

}  // namespace
}  // namespace scalecalc
