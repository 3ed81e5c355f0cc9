// The launch: block of stack files: what is wrong with one, and where.
#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <utility>

#include "config/yaml_reader.h"
#include "launch/framework.h"

namespace scalecalc {
namespace {

constexpr const char* kHead =
    "name: ours\nlaunch:\n  ours:\n    title: Ours\n    source: ours\n    command: torchrun\n";

LaunchFrameworks frameworks_in(const std::string& text) {
  return load_frameworks({std::make_shared<const ConfigNode>(read_yaml(text, "ours.yaml"))});
}

/// "line:column message; hint".
std::string complaint(const std::string& block) {
  try {
    frameworks_in(kHead + block);
  } catch (const UserError& error) {
    const Diagnostic& first = error.diagnostics().front();
    return std::to_string(first.where.line) + ":" + std::to_string(first.where.column) + " " + first.message + "; " +
           first.hint;
  }
  return "";
}

TEST(LoadFrameworks, WordsOfARow) {
  const LaunchFrameworks read = frameworks_in(std::string(kHead) +
                                              "    rows:\n"
                                              "      - --modules [~a b] says remat=full,zero=1 when pp>1,tp!2 read\n"
                                              "      - --batch mb*ga/2 default 8\n"
                                              "      - --sp absent says sp=off\n"
                                              "      - one tp/etp when moe=on\n"
                                              "      - says vpp=1\n");
  const std::vector<LaunchRow>& rows = read.begin()->rows;
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].key, "--modules");
  EXPECT_EQ(rows[0].value, "[~a b]");
  EXPECT_EQ(rows[0].says, "remat=full,zero=1");
  EXPECT_EQ(rows[0].when, "pp>1,tp!2");
  EXPECT_EQ(rows[0].use, RowUse::kRead);
  EXPECT_EQ(rows[1].value, "mb*ga/2");
  EXPECT_EQ(rows[1].absent, "8");
  EXPECT_EQ(rows[2].value, "");
  EXPECT_EQ(rows[2].says, "sp=off");
  EXPECT_EQ(rows[3].key, "");
  EXPECT_EQ(rows[3].value, "tp/etp");
  EXPECT_EQ(rows[4].says, "vpp=1");
}

TEST(LoadFrameworks, WhatIsWrongHasItsPlaceItsValueAndWhatIsAccepted) {
  EXPECT_EQ(complaint("    rows:\n      - --tp tp wenn pp>1\n"),
            "8:17 unknown word 'wenn' in a row; says, when, default, read or written");
  EXPECT_EQ(complaint("    rows:\n      - --tp tp when pp\n"),
            "8:22 'pp' is not read here; expected conditions with commas between: pp>1,zero<3,remat!full");
  EXPECT_EQ(
      complaint("    rows:\n      - --tp tp**2\n"),
      "8:14 'tp**2' is not read here; expected a product of terms (mb*ga), a literal ('full'), @word, a list ([a b]) "
      "or absent");
  EXPECT_EQ(complaint("    rows:\n      - --tp tp default\n"),
            "8:9 the row ends where something is to follow; expected a product of terms and numbers: mb*ga/pp");
  EXPECT_EQ(complaint("    rows:\n      - --sp absent when tp>1\n"),
            "8:9 this row says nothing; absent says TERM=VALUE");
  EXPECT_EQ(complaint("    rows:\n      - shared megatron.rows\n"),
            "8:9 no list is called 'megatron.rows'; FRAMEWORK.NAME, of which the framework has shared: {NAME: [...]}");
  EXPECT_EQ(complaint("    limits:\n      - {when: \"pp\", says: x, source: y}\n"),
            "8:16 'pp' is no condition; conditions with commas between: pp>1,zero<3,remat!full");
  EXPECT_EQ(complaint("    adapters: {linear: [q, w]}\n"),
            "7:28 'w' is no projection that carries adapters; q, k, v, o, gate, up, down, recurrent");
  EXPECT_EQ(complaint("    format: xml\n").substr(0, 5), "7:13 ");
  EXPECT_EQ(complaint("    extends: nemo\n"), "7:14 no launch files are known of 'nemo'; frameworks: ");
  EXPECT_EQ(complaint("    titel: Ours\n").substr(0, 4), "7:5 ");
}

/// A row is read without a word where nothing gives a term or asks for it.
TEST(LoadFrameworks, ATermThatIsNotThereIsNamedWithTheNearest) {
  const auto listed = [](const std::string& term) {
    return "; a term that only these rows know is listed under terms: [" + term + "]";
  };
  const auto refused = [&](const std::string& place, const std::string& term, const std::string& nearest) {
    return place + " there is no term '" + term + "'; did you mean '" + nearest + "'?" + listed(term).substr(1);
  };
  EXPECT_EQ(complaint("    rows:\n      - --pp pp/vppp\n"), refused("8:17", "vppp", "vpp"));
  EXPECT_EQ(complaint("    rows:\n      - --tp tp when pp>1,remta=full\n"), refused("8:27", "remta", "remat"));
  EXPECT_EQ(complaint("    rows:\n      - --sp 'on' says tp=2,zreo=1\n"), refused("8:29", "zreo", "zero"));
  EXPECT_EQ(complaint("    rows:\n      - --tp tp default etpp*2\n"), refused("8:25", "etpp", "etp"));
  EXPECT_EQ(complaint("    rows:\n      - one d_modle*2\n"), refused("8:13", "d_modle", "d_model"));
  EXPECT_EQ(complaint("    rows:\n      - --name @modle\n"), refused("8:17", "modle", "model"));
  EXPECT_EQ(complaint("    rows:\n      - --modules [@lora_module]\n"), refused("8:21", "lora_module", "lora_modules"));
  EXPECT_EQ(complaint("    limits:\n      - {when: zeroo=1, says: x, source: y}\n"), refused("8:16", "zeroo", "zero"));
  EXPECT_EQ(complaint("    rows:\n      - --tp qqqqqqqqqqqq\n"),
            "8:14 there is no term 'qqqqqqqqqqqq'; " + listed("qqqqqqqqqqqq").substr(2));
}

TEST(LoadFrameworks, TermsAreOfTheJobOrListed) {
  EXPECT_EQ(complaint("    rows:\n      - --experts experts\n"), "");
  EXPECT_EQ(complaint("    job: serving\n    rows:\n      - --experts experts\n").substr(0, 32),
            "9:19 there is no term 'experts';");
  EXPECT_EQ(complaint("    terms: [fused]\n    rows:\n      - --fused 'on' says fused=on\n      - says loss=fused when "
                      "fused=on\n"),
            "");
}

/// What rows of frameworks that ship never name would be a term for nobody.
TEST(LoadFrameworks, EveryTermIsNamedByAFramework) {
  for (const LaunchJob job : {LaunchJob::kTraining, LaunchJob::kServing}) {
    std::string rows;
    const auto add = [&](std::string_view text) { rows += ' ' + std::string(text); };
    for (const LaunchRelation& relation : launch_relations(job)) add(relation.product);
    for (const LaunchFramework& framework : launch_frameworks()) {
      if (framework.job != job) continue;
      for (const LaunchRow& row : framework.rows) {
        for (const std::string_view text : {row.value, row.says, row.when, row.absent}) add(text);
      }
      for (const LaunchLimit& limit : framework.limits) add(limit.when);
    }
    std::set<std::string> named;
    std::string word;
    for (const char c : rows + ' ') {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
        word += c;
      } else {
        named.insert(std::exchange(word, ""));
      }
    }
    for (const std::string_view term : launch_term_names(job == LaunchJob::kServing)) {
      EXPECT_TRUE(named.contains(std::string(term))) << term;
    }
  }
}

}  // namespace
}  // namespace scalecalc
