// What stacks keep in memory, as their files say it.
#include "spec/stack_memory.h"

#include <gtest/gtest.h>

#include "config/yaml_reader.h"
#include "spec/load_stack.h"

namespace scalecalc {
namespace {

std::string problems_of(const std::string& memory) {
  try {
    load_stack(read_yaml("schema: scalecalc-stack/1\nname: acme\ntitle: Acme\nmemory: {source: us, " + memory + "}\n",
                         "acme.yaml"));
  } catch (const UserError& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

TEST(StackMemoryFile, EveryShippedStackSaysItsSource) {
  const Catalog catalog;
  for (const char* name : {"composer", "deepspeed", "hai-llm", "litgpt", "maxtext", "megatron", "nanotron", "nemo",
                           "oneflow", "primus", "torchtitan"}) {
    const StackMemory memory = stack_memory(catalog, name);
    EXPECT_EQ(memory.stack, name);
    EXPECT_FALSE(memory.source.empty()) << name;
  }
  EXPECT_EQ(stack_memory(catalog, "megatron-bridge").stack, "nemo") << "by a framework of it";
  EXPECT_EQ(stack_memory(catalog, "").stack, "") << "no stack, no rules of one";
}

TEST(StackMemoryFile, ReadsItsFields) {
  const StackSpec stack = load_stack(
      read_yaml("schema: scalecalc-stack/1\nname: acme\ntitle: Acme\nmemory:\n  source: us\n  sharded_master: true\n"
                "  gradient_bytes: {bf16: 6}\n  logit_bytes: 4\n  selective: [attention]\n"
                "  fragmentation: {value: 5%, error: 50%}\n  reserve: {value: 1GiB, source: them}\n  error: 10%\n",
                "acme.yaml"));
  const StackMemory& m = stack.memory;
  EXPECT_TRUE(m.sharded_master);
  EXPECT_EQ(m.gradient_bytes.at("bf16"), 6);
  EXPECT_EQ(m.logit_bytes, 4);
  EXPECT_EQ(m.selective, std::vector<std::string>{"attention"});
  EXPECT_DOUBLE_EQ(m.fragmentation.value, 0.05);
  EXPECT_EQ(m.fragmentation.source, "us");
  EXPECT_EQ(m.reserve->source, "them");
  EXPECT_DOUBLE_EQ(m.error, 0.1);
}

TEST(StackMemoryFile, ReadsWhatOnlySomeKeep) {
  const StackSpec stack = load_stack(
      read_yaml("schema: scalecalc-stack/1\nname: acme\ntitle: Acme\nmemory:\n  source: us\n"
                "  gradient_buckets: {bf16: 2}\n  fused_projection: true\n  repeats_keys: true\n"
                "  norm_input_bytes: 4\n  norm_result_bytes: 3\n  adapter_dropout: true\n  pads_adapters: true\n"
                "  compiled_selective: [mlp norm]\n",
                "acme.yaml"));
  const StackMemory& m = stack.memory;
  EXPECT_EQ(m.gradient_buckets.at("bf16"), 2);
  EXPECT_TRUE(m.fused_projection && m.repeats_keys && m.adapter_dropout && m.pads_adapters);
  EXPECT_EQ(m.norm_input_bytes, 4);
  EXPECT_EQ(m.norm_result_bytes, 3);
  EXPECT_EQ(m.compiled_selective, std::vector<std::string>{"mlp norm"});
}

/// What a library changed holds for runs of its month: today's software has every change behind it.
TEST(StackMemoryFile, SettlesByTheMonthOfARun) {
  const auto settled = [](std::string_view month) {
    StackMemory rules;
    rules.norm_input_bytes = rules.norm_result_bytes = 4;
    rules.norms_widened_since = "2023-10";
    rules.packed_inputs_until = "2024-07";
    settle_memory(rules, month);
    return rules;
  };
  EXPECT_EQ(settled("2023-09").norm_input_bytes, 0);
  EXPECT_EQ(settled("2023-09").norm_result_bytes, 0);
  EXPECT_EQ(settled("2023-10").norm_input_bytes, 4);
  EXPECT_EQ(settled("").norm_result_bytes, 4);
  EXPECT_TRUE(settled("2024-06").packed_inputs);
  EXPECT_FALSE(settled("2024-07").packed_inputs);
  EXPECT_FALSE(settled("").packed_inputs);
  StackMemory always;
  always.norm_input_bytes = 4;
  settle_memory(always, "2019-01");
  EXPECT_EQ(always.norm_input_bytes, 4) << "no date: always";
  EXPECT_FALSE(always.packed_inputs) << "no date: never";
}

TEST(StackMemoryFile, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(problems_of("logit_byte: 4").find("logit_byte"), std::string::npos);
  EXPECT_NE(problems_of("gradient_bytes: {bf17: 4}").find("bf17"), std::string::npos);
  EXPECT_NE(problems_of("fragmentation: {value: 200%}"), "");
  EXPECT_NE(problems_of("logit_bytes: -1"), "");
  EXPECT_NE(problems_of("selective: [atention]").find("unknown operation"), std::string::npos);
  EXPECT_NE(problems_of("compiled_selective: [atention]").find("memory.compiled_selective"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc
