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
  for (const char* name : {"composer", "deepspeed", "hai-llm", "maxtext", "megatron", "nanotron", "nemo", "oneflow",
                           "primus", "torchtitan"}) {
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

TEST(StackMemoryFile, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(problems_of("logit_byte: 4").find("logit_byte"), std::string::npos);
  EXPECT_NE(problems_of("gradient_bytes: {bf17: 4}").find("bf17"), std::string::npos);
  EXPECT_NE(problems_of("fragmentation: {value: 200%}"), "");
  EXPECT_NE(problems_of("logit_bytes: -1"), "");
  EXPECT_NE(problems_of("selective: [atention]").find("unknown operation"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc
