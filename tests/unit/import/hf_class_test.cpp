// The class under `architectures`, keys that a family does not have, and layers by their own lists.
#include <gtest/gtest.h>

#include "import/hf_families.h"
#include "model/kv_cache.h"
#include "model/stored_bytes.h"
#include "unit/import/imported.h"

namespace scalecalc {
namespace {

using test::contains;
using test::has_default;
using test::import;
using test::Json;
using test::mixers;
using test::problems;
using test::small;
using test::spec;

/// A layer of small("llama"): 4 x 64^2 of attention, 3 x 64 x 256 of MLP, two norms of 64.
constexpr long long kLayer = 4 * 64 * 64 + 3 * 64 * 256 + 2 * 64;
/// 8 of them, the final norm and the embedding of 1000.
constexpr long long kHeadless = 8 * kLayer + 64 + 1000 * 64;

long long total(const Json& config) { return static_cast<long long>(count_parameters(spec(config)).total); }

Json of_class(const std::string& architecture, Json config = small("llama")) {
  config["architectures"] = {architecture};
  return config;
}

TEST(HfClass, SaysWhichHeadThereIs) {
  EXPECT_EQ(total(small("llama")), kHeadless + 64 * 1000);
  EXPECT_EQ(total(of_class("LlamaForCausalLM")), kHeadless + 64 * 1000);
  EXPECT_EQ(total(of_class("LlamaModel")), kHeadless);
  EXPECT_EQ(total(of_class("LlamaForSequenceClassification")), kHeadless + 2 * 64) << "two labels if none are said";
  Json labels = of_class("LlamaForSequenceClassification");
  labels["id2label"] = {{"0", "a"}, {"1", "b"}, {"2", "c"}};
  EXPECT_EQ(total(labels), kHeadless + 3 * 64);
  labels = of_class("LlamaForTokenClassification");
  labels["num_labels"] = 5;
  EXPECT_EQ(total(labels), kHeadless + 5 * 64 + 5) << "with a bias";
  Json tied = of_class("GemmaForSequenceClassification", small("gemma"));
  tied["num_labels"] = 1;
  // head_dim is 256 by default: 4 x 64 x 4 x 256 of attention. The tied head gives way to one of 64.
  EXPECT_EQ(total(tied), 8 * (4 * 64 * 4 * 256 + 3 * 64 * 256 + 2 * 64) + 64 + 1000 * 64 + 64);
}

TEST(HfClass, OfAWrapperSaysTheHeadAndOfItsLanguageModelTheFamily) {
  const auto wrapped = [](const std::string& top, const std::string& text) {
    return Json{{"architectures", {top}}, {"model_type", "wrapper"}, {"text_config", of_class(text)}};
  };
  EXPECT_EQ(total(wrapped("LlavaForConditionalGeneration", "LlamaModel")), kHeadless + 64 * 1000);
  EXPECT_EQ(total(wrapped("InternVLChatModel", "LlamaForCausalLM")), kHeadless + 64 * 1000);
  EXPECT_EQ(total(wrapped("LlavaModel", "LlamaForCausalLM")), kHeadless);
  Json named = wrapped("SomeModel", "LlamaModel");
  named["auto_map"] = {{"AutoModelForCausalLM", "modeling_some.SomeModel"}};
  EXPECT_EQ(total(named), kHeadless + 64 * 1000) << "called a model, and for generating";
  const Json omni = {
      {"architectures", {"SomeOmniModel"}},
      {"model_type", "wrapper"},
      {"thinker_config",
       {{"architectures", {"SomeThinkerForConditionalGeneration"}}, {"text_config", of_class("LlamaModel")}}}};
  EXPECT_EQ(total(omni), kHeadless + 64 * 1000) << "the thinker's class says the head, not that of all parts";
  EXPECT_NE(problems(wrapped("LlavaForConditionalGeneration", "BertModel")).find("'BertModel' is none of family"),
            std::string::npos);
}

TEST(HfClass, OfAnotherFamilyOrHeadIsRefused) {
  EXPECT_EQ(
      problems(of_class("BertModel")),
      "11: architecture 'BertModel' is none of family 'llama', which 'model_type' says | --assume llama reads the "
      "file as that family all the same\n");
  EXPECT_NE(problems(of_class("MistralForCausalLM")).find("is none of family 'llama'"), std::string::npos);
  EXPECT_NE(problems(of_class("LlamaForRewardModel")).find("the head of architecture 'LlamaForRewardModel' is not"),
            std::string::npos)
      << problems(of_class("LlamaForRewardModel"));
  EXPECT_EQ(problems(of_class("BertModel"), "llama"), "");
  EXPECT_EQ(problems(of_class("LLaMAForCausalLM")), "") << "letters and digits count alone";
  for (const char* draft : {"DFlashDraftModel", "PEagleDraftModel", "EagleLlamaForCausalLM", "DSparkDraftModel"}) {
    EXPECT_NE(problems(of_class(draft)).find("is a draft that is not read"), std::string::npos) << draft;
  }
}

Json eagle3(const std::string& model_type = "llama") {
  Json config = of_class("LlamaForCausalLMEagle3", small(model_type));
  config.update({{"hidden_size", 4096},
                 {"num_hidden_layers", 1},
                 {"num_attention_heads", 32},
                 {"num_key_value_heads", 8},
                 {"intermediate_size", 14336},
                 {"vocab_size", 128256},
                 {"draft_vocab_size", 32000}});
  return config;
}

TEST(HfClass, AnEagle3DraftReadsTwoWidthsAndOwnsNoEmbedding) {
  // The draft of Llama 3 8B: queries, keys and values of 2 x 4096 inputs, three norms in the layer and one behind it,
  // the states of three layers of the target brought to one width, a head of 32,000.
  constexpr long long kQkv = 2LL * 4096 * (32 + 2 * 8) * 128;  // 50,331,648
  constexpr long long kOutput = 32LL * 128 * 4096;             // 16,777,216
  constexpr long long kMlp = 3LL * 4096 * 14336;               // 176,160,768
  constexpr long long kFuse = 3LL * 4096 * 4096;               // 50,331,648
  constexpr long long kHead = 32000LL * 4096;                  // 131,072,000
  constexpr long long kNorms = 4LL * 4096;
  constexpr long long kTotal = kQkv + kOutput + kMlp + kFuse + kHead + kNorms;
  static_assert(kTotal == 424689664);
  EXPECT_EQ(total(eagle3()), kTotal);
  EXPECT_EQ(total(eagle3("qwen2")), kTotal) << "the class has Llama's layer, whatever the target is";
  const ModelSpec draft = spec(eagle3());
  EXPECT_EQ(draft.head_width(), 32000);
  EXPECT_EQ(kv_cache(draft).elements_per_token(), 2 * 8 * 128);
  Json config = eagle3();
  config["target_hidden_size"] = 8192;
  config["eagle_config"] = {{"eagle_aux_hidden_state_layer_ids", {1, 2, 3, 4}}};
  EXPECT_EQ(total(config), kTotal - kFuse + 4LL * 8192 * 4096);
}

TEST(HfClass, OtherEagle3DraftsAreRefused) {
  Json config = eagle3();
  config["num_hidden_layers"] = 2;
  EXPECT_NE(problems(config).find("an EAGLE-3 draft is read as one layer of Llama's"), std::string::npos);
  config = eagle3();
  config["fc_norm"] = true;
  EXPECT_NE(problems(config).find("'fc_norm' is set"), std::string::npos);
  config = eagle3();
  config.erase("draft_vocab_size");
  EXPECT_NE(problems(config).find("no 'draft_vocab_size' (vocabulary of the draft)"), std::string::npos);
  EXPECT_NE(problems(of_class("Eagle3DeepseekV2ForCausalLM", small("deepseek_v2"))).find("n_routed_experts"),
            std::string::npos);
}

TEST(HfChecks, WhatAFamilyDoesNotHaveIsAnErrorWhereItStands) {
  const auto said = [](const std::string& key, const Json& value) {
    Json config = small("llama");
    config[key] = value;
    return problems(config);
  };
  for (const char* key : {"draft_vocab_size", "cross_attention_layers", "num_nextn_predict_layers", "sliding_window",
                          "num_loops", "num_experts", "index_n_heads", "hc_mult"}) {
    EXPECT_EQ(said(key, 7).find(std::string("10: '") + key + "' is set, and models of family 'llama' have no such"), 0U)
        << said(key, 7);
    EXPECT_EQ(said(key, nullptr), "") << key;
    EXPECT_EQ(said(key, 0), "") << key;
  }
  EXPECT_NE(said("cross_attention_layers", Json{3, 8}), "");
  EXPECT_NE(said("dflash_config", Json{{"block_size", 16}}), "");
  EXPECT_NE(said("is_encoder_decoder", true), "");
  for (const char* key : {"qkv_bias", "use_qk_norm", "parallel_attn", "lm_head_bias"}) {
    EXPECT_EQ(said(key, true).find(std::string("10: '") + key + "' is true, and models of family 'llama' are read"), 0U)
        << said(key, true);
    EXPECT_EQ(said(key, false), "") << key;
  }
}

TEST(HfChecks, AThingTheFamilyAlwaysHasMayBeSaid) {
  Json config = small("qwen2");
  config["attention_bias"] = true;
  EXPECT_EQ(problems(config), "");
  EXPECT_TRUE(import(config).notes.warnings.empty());
  config["attention_bias"] = false;
  EXPECT_TRUE(
      contains(import(config).notes.warnings, "'attention_bias' is false, and models of family 'qwen2' always"));
}

TEST(HfChecks, KeysOfNoKnownMeaningAreReported) {
  Json config = small("llama");
  config.update({{"rope_theta", 10000.0}, {"eos_token_id", 2}, {"num_key_value_head", 2}, {"frobnicate", true}});
  EXPECT_EQ(
      import(config).notes.warnings,
      std::vector<std::string>{"keys of no known meaning, from which nothing is read: num_key_value_head, frobnicate"});
}

/// A sparse attention of 8 layers, d 64: latents of 32 and 16, 4 heads, an indexer of 2 heads of 8.
Json sparse() {
  Json config = small("glm_moe_dsa");
  config.update({{"q_lora_rank", 32},
                 {"kv_lora_rank", 16},
                 {"qk_nope_head_dim", 16},
                 {"qk_rope_head_dim", 8},
                 {"v_head_dim", 16},
                 {"n_routed_experts", 4},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 64},
                 {"first_k_dense_replace", 1},
                 {"n_group", 1},
                 {"topk_group", 1},
                 {"index_n_heads", 2},
                 {"index_head_dim", 8},
                 {"index_topk", 128}});
  return config;
}

TEST(HfIndexers, StandInTheLayersThatOwnOne) {
  Json config = sparse();
  const double everywhere = count_parameters(spec(config)).total;
  EXPECT_EQ(kv_cache(spec(config)).elements_per_token(), 8 * (16 + 8 + 8));
  config["indexer_types"] = {"full", "full", "shared", "shared", "shared", "full", "shared", "shared"};
  // One has 32 x 2 x 8 of queries, 64 x 8 of keys with a norm of 2 x 8, and 64 x 2 of head weights.
  constexpr double kIndexer = 32 * 2 * 8 + 64 * 8 + 2 * 8 + 64 * 2;
  const ModelSpec m = spec(config);
  EXPECT_EQ(count_parameters(m).total, everywhere - 5 * kIndexer);
  EXPECT_EQ(kv_cache(m).elements_per_token(), 8 * (16 + 8) + 3 * 8) << "index keys of three layers";
  // Scores of a sequence of 4096 against half of it, forward and backward: 2 x 2048 x (2 x 8) a token and layer.
  constexpr double kScores = 3 * 2 * 2048.0 * 2 * 8;
  Json all = sparse();
  const auto causal = [](const ModelSpec& model) {
    return training_flops(model, 4096, false, std::nullopt, std::nullopt).attention_causal;
  };
  EXPECT_DOUBLE_EQ(causal(spec(all)) - causal(m), 5 * kScores);
}

TEST(HfIndexers, TheModuleBehindTheLayersHasItsOwn) {
  Json config = sparse();
  config["num_nextn_predict_layers"] = 1;
  config["indexer_types"] = {"full", "shared", "shared", "shared", "shared", "shared", "shared", "shared"};
  const ModelSpec m = spec(config);
  EXPECT_FALSE(m.kinds[m.mtp_kind].reuse);
  EXPECT_TRUE(m.kinds[m.layer_kind.back()].reuse);
}

TEST(HfIndexers, ListsThatDoNotFitAreErrors) {
  Json config = sparse();
  config["indexer_types"] = {"full", "shared"};
  EXPECT_NE(problems(config).find("'indexer_types' lists 2 layers, and the model has 8"), std::string::npos);
  config["indexer_types"] = {"shared", "full", "full", "full", "full", "full", "full", "full"};
  EXPECT_NE(problems(config).find("the first layer has no indexer before it to share"), std::string::npos);
  config["indexer_types"] = {"full", "half", "full", "full", "full", "full", "full", "full"};
  EXPECT_NE(problems(config).find("indexer type 'half' is not known"), std::string::npos);
  config.erase("indexer_types");
  config["index_topk_freq"] = 4;
  EXPECT_NE(problems(config).find("'index_topk_freq' is 4, and no 'indexer_types' says"), std::string::npos);
}

TEST(HfChecks, AnUnknownRouterIsAnError) {
  Json config = sparse();
  config["topk_method"] = "noaux";
  EXPECT_NE(problems(config).find("topk_method 'noaux' is not known"), std::string::npos);
}

TEST(HfChecks, SinksOfSlidingLayersAlone) {
  Json config = small("mimo_v2_flash");
  config.update({{"head_dim", 16},
                 {"v_head_dim", 16},
                 {"swa_num_attention_heads", 8},
                 {"swa_num_key_value_heads", 4},
                 {"swa_head_dim", 16},
                 {"swa_v_head_dim", 16},
                 {"sliding_window", 128},
                 {"hybrid_layer_pattern", {0, 1, 1, 1, 0, 1, 1, 1}},
                 {"n_routed_experts", 4},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 64},
                 {"n_group", 1},
                 {"topk_group", 1}});
  const double none = count_parameters(spec(config)).total;
  config["add_swa_attention_sink_bias"] = true;
  EXPECT_EQ(count_parameters(spec(config)).total, none + 6 * 8) << "one for each of the 8 heads of six layers";
  config["add_full_attention_sink_bias"] = true;
  EXPECT_EQ(count_parameters(spec(config)).total, none + 6 * 8 + 2 * 4);
  config["add_swa_attention_sink_bias"] = false;
  EXPECT_EQ(count_parameters(spec(config)).total, none + 2 * 4);
}

TEST(HfClass, OfARewardModelIsItsFamilysScore) {
  EXPECT_EQ(total(of_class("InternLM2ForRewardModel", small("internlm2"))), kHeadless + 64);
  // Biases of queries, keys and values in each of 8 layers; a layer with a bias before the score, which has one.
  constexpr long long kQwen = kHeadless + 8 * 3 * 64 + 64 * 64 + 64;
  EXPECT_EQ(total(of_class("Qwen2ForRewardModel", small("qwen2"))), kQwen + 64 + 1);
  EXPECT_EQ(total(of_class("Qwen2ForProcessRewardModel", small("qwen2"))), kQwen + 2 * 64 + 2) << "two labels a step";
  EXPECT_NE(problems(of_class("BertForRewardModel", small("bert"))).find("is not modelled"), std::string::npos);
}

TEST(HfClass, OfOneFamilyMayHaveSeveralNames) {
  const auto family = [](const char* stem) {
    const HfFamily* found = find_hf_family_of_class(stem);
    return found == nullptr ? "" : std::string(found->name);
  };
  EXPECT_EQ(family("MiniMaxM3Sparse"), "minimax_m3");
  EXPECT_EQ(family("BailingMoeV2_5"), "bailing_hybrid");
  EXPECT_EQ(family("BailingMoeV3"), "bailing_hybrid");
  EXPECT_EQ(family("LlavaLlama"), "llama");
  EXPECT_EQ(family("LlavaQwen"), "qwen2");
  EXPECT_EQ(family("LlavaMistral"), "mistral");
}

/// A file of LLaVA's own names the wrapper as its type, and its class the language model: Qwen's keys have biases.
TEST(HfVariants, OfLlavaAreReadByTheirClass) {
  Json named = small("llava");
  named["mm_vision_tower"] = "openai/clip-vit-large-patch14-336";
  named["mm_projector_type"] = "mlp2x_gelu";
  named["tune_mm_mlp_adapter"] = false;
  EXPECT_EQ(total(of_class("LlavaLlamaForCausalLM", named)), kHeadless + 64 * 1000);
  EXPECT_EQ(total(of_class("LlavaQwenForCausalLM", named)), kHeadless + 64 * 1000 + 8 * 3 * 64);
  EXPECT_EQ(import(of_class("LlavaMistralForCausalLM", named)).notes.family, "mistral");
  const ImportNotes notes = import(of_class("LlavaLlamaForCausalLM", named)).notes;
  EXPECT_TRUE(contains(notes.remarks, "the projector behind it is not counted: mm_projector_type mlp2x_gelu"));
  EXPECT_TRUE(notes.warnings.empty());
  Json other = small("llama");
  other["mm_projector_type"] = "mlp2x_gelu";
  ASSERT_EQ(import(other).notes.warnings.size(), 1U) << "a file that names no tower";
  EXPECT_NE(import(other).notes.warnings.front().find("mm_projector_type"), std::string::npos);
}

TEST(HfVariants, ThatSpeakSayWhatIsNotCounted) {
  const Json omni = {{"model_type", "qwen2_5_omni"},
                     {"talker_config", {{"hidden_size", 896}}},
                     {"token2wav_config", {{"dit_config", {{"depth", 22}}}}},
                     {"thinker_config", {{"text_config", small("qwen2_5_omni_text")}}}};
  const std::vector<std::string> remarks = import(omni).notes.remarks;
  EXPECT_TRUE(contains(remarks, "the language model alone is read: talker_config is not counted"));
  EXPECT_TRUE(contains(remarks, "the language model alone is read: token2wav_config is not counted"));
}

Json exaone_moe() {
  Json config = small("exaone_moe");
  config.update({{"head_dim", 16},
                 {"num_experts", 4},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 32},
                 {"sliding_window", 128},
                 {"num_nextn_predict_layers", 1}});
  return config;
}

/// vLLM's exaone_moe.py builds the modules' MLP dense whatever the layers have, and their attention full.
TEST(HfVariants, OfExaoneHaveDenseModules) {
  // A dense layer with norms of queries and keys; the projection of state and embedding, and three norms.
  EXPECT_EQ(static_cast<long long>(count_parameters(spec(exaone_moe())).mtp), kLayer + 2 * 16 + 2 * 64 * 64 + 3 * 64);
  const ModelSpec model = spec(exaone_moe());
  EXPECT_EQ(model.kinds[model.mtp_kind].mixer, MixerKind::kFull);
  Json slides = exaone_moe();
  slides["mtp_layer_types"] = {"sliding_attention"};
  EXPECT_EQ(spec(slides).kinds[spec(slides).mtp_kind].mixer, MixerKind::kSliding);
  slides["mtp_layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_NE(problems(slides).find("modules of one kind are read"), std::string::npos);
}

TEST(HfVariants, OfExaoneListTheirExpertsAndWindows) {
  EXPECT_EQ(mixers(spec(exaone_moe())), "sssfsssf");
  Json config = exaone_moe();
  config["is_moe_layer"] = {false, 0, true, 1, true, true, true, true};
  EXPECT_EQ(test::ffns(spec(config)), "ddmmmmmm");
  config["is_moe_layer"] = {false, "yes", true, 2, true, true, true, true};
  EXPECT_NE(problems(config).find("'is_moe_layer' must list true or false, not 'yes'"), std::string::npos);
  EXPECT_NE(problems(config).find("'is_moe_layer' must list true or false, not '2'"), std::string::npos);
  config = exaone_moe();
  config["first_last_k_dense_replace"] = 1;
  EXPECT_NE(problems(config).find("nothing says which layers have experts"), std::string::npos);
  config["is_moe_layer"] = {0, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(problems(config), "");
  config = exaone_moe();
  config["sliding_windows"] = {64, 0, 64, 0, 64, nullptr, 64, 0};
  EXPECT_EQ(mixers(spec(config)), "sfsfsfsf");
  EXPECT_EQ(spec(config).attention.window, 64) << "before sliding_window";
  config["sliding_windows"] = {64, 0, 32, 0, 64, 0, 64, 0};
  EXPECT_NE(problems(config).find("'sliding_windows' has a window of 32 beside one of 64"), std::string::npos);
  config["sliding_windows"] = {64, 0};
  EXPECT_NE(problems(config).find("'sliding_windows' lists 2 layers, and the model has 8"), std::string::npos);
}

Json ling() {
  Json config = small("bailing_hybrid");
  config.update({{"q_lora_rank", nullptr},
                 {"kv_lora_rank", 16},
                 {"qk_nope_head_dim", 8},
                 {"qk_rope_head_dim", 8},
                 {"v_head_dim", 16},
                 {"head_dim", 16},
                 {"num_experts", 4},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 32},
                 {"n_group", 1},
                 {"topk_group", 1},
                 {"layer_group_size", 3}});
  return config;
}

/// Latent attention ends each group of layers and stands behind the last whole one.
TEST(HfVariants, OfLingHaveLightningOrDeltaAttention) {
  EXPECT_EQ(mixers(spec(ling())), "llmllmmm");
  Json delta = ling();
  delta["no_kda_lora"] = false;
  EXPECT_NE(problems(delta).find("'no_kda_lora' is read as true only"), std::string::npos);
  delta["no_kda_lora"] = true;
  EXPECT_EQ(mixers(spec(delta)), "kkmkkmmm");
  delta["gated_attention_proj_granularity_type"] = nullptr;
  const long long plain = total(delta);
  delta.erase("gated_attention_proj_granularity_type");
  EXPECT_TRUE(has_default(import(delta).notes, "gated_attention_proj_granularity_type", "head_wise"));
  EXPECT_EQ(total(delta), plain + 4 * 64 * 4) << "4 latent layers of 4 heads";
  delta["gated_attention_proj_granularity_type"] = "element_wise";
  EXPECT_EQ(total(delta), plain + 4 * 64 * 4 * 16);
  delta["gated_attention_proj_granularity_type"] = "block_wise";
  EXPECT_NE(problems(delta).find("gates of kind 'block_wise' are not read"), std::string::npos);
  Json listed = ling();
  listed["layer_group_size"] = {1, 1, 0, 1, 1, 0, 0, 1};
  EXPECT_EQ(mixers(spec(listed)), "llmllmml");
  listed["layer_group_size"] = {1, 0};
  EXPECT_NE(problems(listed).find("'layer_group_size' lists 2 layers, and the model has 8"), std::string::npos);
  for (const char* key : {"use_bias", "use_mla_nope", "multi_gate", "value_norm", "use_kda_lora", "mtp_use_kda"}) {
    Json other = ling();
    other[key] = true;
    EXPECT_NE(problems(other).find(std::string("'") + key + "' is read as false only"), std::string::npos) << key;
  }
}

TEST(HfVariants, OfLingHaveDefaultsByTheirClass) {
  Json second = of_class("BailingMoeV2_5ForCausalLM", ling());
  second.erase("layer_group_size");
  EXPECT_EQ(mixers(spec(second)), "llllmmmm") << "groups of five";
  Json third = of_class("BailingMoeV3ForCausalLM", ling());
  EXPECT_EQ(mixers(spec(third)), "kkmkkmmm") << "by its class alone";
  EXPECT_EQ(spec(third).kda.value_or(KdaSpec{}).conv_kernel, 4);
  EXPECT_TRUE(has_default(import(third).notes, "no_kda_lora", "true"));
  third.erase("layer_group_size");
  EXPECT_NE(problems(third).find("the file has no 'layer_group_size'"), std::string::npos);
  Json heads = ling();
  for (const int same : {0, 4}) {
    heads["num_kv_heads_for_linear_attn"] = same;
    EXPECT_EQ(problems(heads), "") << same;
  }
  heads["num_kv_heads_for_linear_attn"] = 2;
  EXPECT_NE(problems(heads).find("'num_kv_heads_for_linear_attn' is 2, and is read as 0 or num_attention_heads (4)"),
            std::string::npos);
}

Json t5gemma() {
  Json stack = small("t5_gemma_module");
  stack["head_dim"] = 16;
  return {{"architectures", {"T5GemmaForConditionalGeneration"}},
          {"model_type", "t5gemma"},
          {"encoder", stack},
          {"decoder", stack}};
}

/// Eight layers of Gemma 2 twice, four norms each, with a cross attention and its two norms in the decoder's.
TEST(HfVariants, T5GemmaIsTwoStacks) {
  constexpr long long kStack = 8 * (kLayer + 2 * 64) + 64 + 1000 * 64, kCross = 8 * (4 * 64 * 64 + 2 * 64);
  EXPECT_EQ(total(t5gemma()), 2 * kStack + kCross) << "the encoder has an embedding of its own";
  EXPECT_EQ(count_parameters(spec(t5gemma())).embedding, 2 * 1000 * 64);
  EXPECT_EQ(count_parameters(spec(t5gemma())).norms, 2 * (8 * 4 * 64 + 64) + 8 * 2 * 64);
  for (const TowerPart<double>& part : tower_parts<double>(spec(t5gemma()))) {
    for (const Op<double>& op : part.ops) {
      if (op.part != Part::kEmbedding) continue;
      EXPECT_EQ(part.weight_ways(op, 8), 8) << "tensor ranks divide its rows";
      EXPECT_EQ(stored_bytes(op, nullptr, {}), 1000 * 64 * 2);
    }
  }
  const ModelSpec model = spec(t5gemma());
  EXPECT_EQ(name_of(model.kinds[model.layer_kind[0]].mixer), "sliding+cross");
  EXPECT_EQ(name_of(model.kinds[model.layer_kind[1]].mixer), "full+cross");
  Json wide = t5gemma();
  wide["encoder"]["hidden_size"] = 128;
  // Twice the width of all matrices and norms; of cross attention keys and values read it.
  EXPECT_EQ(total(wide), kStack + 8 * (2 * kLayer + 2 * 128) + 128 + 1000 * 128 + kCross + 8 * 2 * 64 * 64);
  wide["decoder"]["cross_attention_hidden_size"] = 64;
  EXPECT_NE(problems(wide).find("'cross_attention_hidden_size' is 64, and the encoder is 128 wide"), std::string::npos);
  Json alone = t5gemma();
  alone.erase("encoder");
  EXPECT_NE(problems(alone).find("the file has no 'encoder'"), std::string::npos);
  for (const char* other : {"T5GemmaEncoderModel", "T5GemmaForTokenClassification"}) {
    EXPECT_NE(problems(of_class(other, t5gemma())).find("is not read"), std::string::npos) << other;
  }
}

}  // namespace
}  // namespace scalecalc
