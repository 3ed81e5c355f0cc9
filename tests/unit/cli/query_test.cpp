// The query of every command's answer against its table of flags.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output_command.h"
#include "cli/run.h"
#include "support/every_answer.h"

namespace scalecalc::cli {
namespace {

using Keys = std::set<std::string>;

using Asked = test::AskedAnswer;
using test::every_answer;

const Command& command_of(const Asked& asked) { return *find_command(asked.words.front()); }

nlohmann::ordered_json document_of(const Asked& asked) {
  std::vector<std::string> words = asked.words;
  words.emplace_back("--json");
  std::ostringstream out;
  std::ostringstream err;
  Environment env{.out = out, .err = err};
  EXPECT_EQ(run(words, env), 0) << err.str();
  return nlohmann::ordered_json::parse(out.str());
}
nlohmann::ordered_json query_of(const Asked& asked) { return document_of(asked)["query"]; }

/// docs/schema of a document, what it says of the query; of `compare`, whose query has two forms, of the one asked for.
nlohmann::json query_schema(const nlohmann::ordered_json& document) {
  const std::string id = document["schema"];
  const std::string name = id.substr(id.find('/') + 1, id.rfind('/') - id.find('/') - 1);
  std::ifstream in(std::string(SCALECALC_SOURCE_DIR) + "/docs/schema/" + name + ".schema.json");
  nlohmann::json query = nlohmann::json::parse(in)["properties"]["query"];
  if (query.contains("oneOf")) query = query["oneOf"][document["query"]["task"] == "serve" ? 1 : 0];
  return query;
}

/// The members; of "serving", which is a group of flags, those inside it.
Keys keys_of(const nlohmann::ordered_json& query) {
  Keys out;
  for (const auto& [key, value] : query.items()) {
    if (key != "serving") {
      out.insert(key);
      continue;
    }
    for (const auto& [inner, unused] : value.items()) out.insert("serving." + inner);
  }
  return out;
}

/// Those of the flags that the mode uses, and of all flags that ask.
std::pair<Keys, Keys> table_keys(const Asked& asked) {
  const Command& command = command_of(asked);
  const auto mode = mode_of(parse_arguments({asked.words.begin() + 1, asked.words.end()}, command));
  std::pair<Keys, Keys> out;
  for (const Flag& flag : command.flags) {
    if (!flag.asks) continue;
    out.second.insert(query_key(flag));
    if (!mode || flag.is_of(*mode)) out.first.insert(query_key(flag));
  }
  return out;
}

/// Of another mode a flag may stand there too: the question has its member.
TEST(Query, HasTheFlagsOfTheTableAndNamedFacts) {
  for (const Asked& asked : every_answer()) {
    const std::string line = join(asked.words, " ");
    const Keys found = keys_of(query_of(asked));
    const auto [needed, allowed] = table_keys(asked);
    for (const std::string& key : needed) EXPECT_TRUE(found.contains(key)) << line << ": " << key;
    for (const std::string& key : asked.facts) {
      EXPECT_TRUE(found.contains(key)) << line << ": " << key;
      EXPECT_FALSE(needed.contains(key)) << line << ": a flag says " << key;
    }
    for (const std::string& key : found) {
      EXPECT_TRUE(allowed.contains(key) || asked.facts.contains(key)) << line << ": " << key;
    }
  }
}

/// A validator checks the values (binary_test.py).
TEST(Query, SchemasNameItsMembers) {
  for (const Asked& asked : every_answer()) {
    const nlohmann::ordered_json document = document_of(asked);
    const nlohmann::json schema = query_schema(document);
    for (const auto& [key, value] : document["query"].items()) {
      EXPECT_TRUE(schema["properties"].contains(key)) << join(asked.words, " ") << ": " << key;
    }
    for (const std::string key : schema["required"]) {
      EXPECT_TRUE(document["query"].contains(key)) << join(asked.words, " ") << ": " << key;
    }
  }
}

TEST(Query, EveryCommandAndModeWithAnAnswerIsAsked) {
  for (const Command& command : commands()) {
    if (command.name == "batch") continue;  // its answers are those of the commands it asks
    std::set<std::size_t> modes;
    bool any = false;
    for (const Asked& asked : every_answer()) {
      if (command_of(asked).name != command.name) continue;
      any = true;
      modes.insert(mode_of(parse_arguments({asked.words.begin() + 1, asked.words.end()}, command)).value_or(0));
    }
    EXPECT_TRUE(any) << command.name;
    for (std::size_t m = 0; m < command.modes.size(); ++m) {
      const bool alike = command.name == "collective" || !command.modes[m].has_outputs;
      EXPECT_TRUE(alike || modes.contains(m)) << command.modes[m].name;
    }
  }
}

/// A flag that says how the answer is given has no key, and no other flag is one of these.
TEST(Query, OnlyTheseFlagsAskNothing) {
  Keys silent;
  for (const Command& command : commands()) {
    for (const Flag& flag : command.flags) {
      if (!flag.asks) silent.insert(std::string(flag.name));
    }
  }
  EXPECT_EQ(silent, (Keys{"--explain", "--write", "--calibrate", "--dump-yaml", "--keys", "--output", "--fail-if",
                          "--expect", "--export", "--cluster"}));
}

TEST(Query, KeysSayTheUnit) {
  const auto key = [](std::string_view command, std::string_view flag) {
    return query_key(*find_flag(find_command(command)->flags, flag));
  };
  EXPECT_EQ(key("train", "--batch-tokens"), "batch_tokens");
  EXPECT_EQ(key("train", "--mtbf"), "mtbf_s");
  EXPECT_EQ(key("train", "--ep-overlap"), "fix");
  EXPECT_EQ(key("hw", "--min-memory"), "min_memory_bytes");
  EXPECT_EQ(key("hw", "--min-bandwidth"), "min_bandwidth_bytes_per_s");
  EXPECT_EQ(key("hw", "--load"), "load");
  EXPECT_EQ(key("bounds", "--slo-tpot"), "serving.slo_tpot_s");
}

/// In base units, defaults filled in: 4M tokens are 4e6; llama3-8b is trained on sequences of 8,192 tokens.
TEST(Query, ValuesAreThoseTheAnswerWasComputedWith) {
  const nlohmann::ordered_json train =
      query_of({{"train", "llama3-8b", "--hw=h100-sxm", "--chips=8", "--batch-seqs=512", "--fix=tp=2", "--remat=full",
                 "--mtbf=1h", "--tokens=1B"},
                {}});
  EXPECT_EQ(train["seq"], 8192);
  EXPECT_EQ(train["batch_tokens"], 512 * 8192);
  EXPECT_EQ(train["fix"].dump(), R"({"tp":2,"remat":"full"})");
  EXPECT_EQ(train["mtbf_s"], 3600.0);
  EXPECT_EQ(train["hardware"], "h100-sxm");
  const nlohmann::ordered_json model = query_of({{"model", "llama3-8b", "--batch-tokens=4M", "--kv=fp8"}, {}});
  EXPECT_EQ(model["batch_tokens"], 4'000'000);
  EXPECT_EQ(model["kv"], "fp8");
  EXPECT_EQ(model["attention"], "causal");
  EXPECT_TRUE(model["against"].is_null());
  const nlohmann::json permute =
      query_of({{"collective", "permute", "--hw=tpu-v5e", "--mesh=X=4", "--bytes=1MiB", "--wraparound=off"}, {}});
  EXPECT_EQ(permute["wraparound"], "off");
  EXPECT_EQ(permute["bytes"], nlohmann::ordered_json::array({1048576}));
}

}  // namespace
}  // namespace scalecalc::cli
