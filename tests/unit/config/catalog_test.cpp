#include "config/catalog.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "support/errors.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

class UserCatalog : public testing::Test {
 protected:
  UserCatalog() : place_(fs::temp_directory_path() / ("scalecalc_catalog_" + std::to_string(::getpid()))) {
    put("hardware/my-chip.yaml", "name: my-chip\naliases: [mine, 'My Own']  # two\ntitle: first\n");
    put("hardware/lab/renamed.yaml", "name: lab/proto-9\n");
    put("hardware/broken.yaml", "name: broken\na: [1\n");
    put("models/tiny/config.json", "{\"hidden_size\": 64}\n");
  }
  ~UserCatalog() override { fs::remove_all(place_); }

  void put(const std::string& name, const std::string& content) const {
    fs::create_directories((place_ / name).parent_path());
    std::ofstream(place_ / name) << content;
  }
  std::string at(const std::string& name) const { return (place_ / name).string(); }

  fs::path place_;
};

std::string error_of(const Catalog& catalog, CatalogKind kind, const std::string& name) {
  return test::problems_of([&] { catalog.load(kind, name); });
}

TEST_F(UserCatalog, FindsFilesByNameAliasAndPath) {
  const Catalog catalog({place_.string()});
  EXPECT_EQ(catalog.load(CatalogKind::kHardware, "my-chip").find("title")->text, "first");
  EXPECT_EQ(catalog.load(CatalogKind::kHardware, "MINE").find("title")->text, "first");
  EXPECT_EQ(catalog.load(CatalogKind::kHardware, "my own").find("title")->text, "first");
  EXPECT_EQ(catalog.load(CatalogKind::kHardware, "lab/proto-9").find("name")->text, "lab/proto-9");
  const ConfigNode by_path = catalog.load(CatalogKind::kHardware, at("hardware/my-chip.yaml"));
  EXPECT_EQ(by_path.span.file.str(), at("hardware/my-chip.yaml"));
  EXPECT_EQ(catalog.load(CatalogKind::kModel, at("models/tiny")).find("hidden_size")->text, "64");
}

TEST_F(UserCatalog, ListsNamesOnceAndSorted) {
  const std::vector<std::string> names = Catalog({place_.string(), place_.string()}).names(CatalogKind::kHardware);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::count(names.begin(), names.end(), "my-chip"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "lab/proto-9"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "mine"), 0) << "an alias is no name";
}

TEST_F(UserCatalog, ADirectoryComesBeforeTheBuiltIn) {
  put("hardware/tpu-v5p.yaml", "name: tpu-v5p\ntitle: changed\n");
  EXPECT_EQ(Catalog({place_.string()}).load(CatalogKind::kHardware, "tpu-v5p").find("title")->text, "changed");
}

TEST_F(UserCatalog, ReportsAFileThatDoesNotParse) {
  EXPECT_EQ(error_of(Catalog({place_.string()}), CatalogKind::kHardware, "broken"),
            at("hardware/broken.yaml") +
                ":2:4: error: the '[' opened here is never closed\n"
                "   2 | a: [1\n"
                "     |    ^\n");
}

TEST_F(UserCatalog, DoesNotLeaveItsDirectory) {
  put("secret.yaml", "name: secret\n");
  EXPECT_NE(error_of(Catalog({place_.string()}), CatalogKind::kHardware, "lab/../../secret"), "");
}

TEST_F(UserCatalog, RefusesADirectoryThatIsNotThere) {
  try {
    Catalog catalog({at("none")});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(render(error.diagnostics().at(0)),
              "error: '" + at("none") + "' is not a directory\n" +
                  "hint: a config directory holds hardware/, models/, efficiency/, stacks/ or laws/\n");
  }
}

TEST_F(UserCatalog, SaysThatAPathIsMissing) {
  EXPECT_EQ(error_of(Catalog(), CatalogKind::kHardware, at("none.yaml")),
            at("none.yaml") + ": error: cannot read the file: No such file or directory\n");
}

TEST(BuiltInCatalog, FindsNamesAndAliasesWhateverTheirCase) {
  const Catalog catalog;
  const ConfigNode chip = catalog.load(CatalogKind::kHardware, "tpu-v5p");
  EXPECT_EQ(chip.find("name")->text, "tpu-v5p");
  EXPECT_EQ(chip.span.file.str(), "built-in:hardware/tpu-v5p.yaml");
  EXPECT_EQ(catalog.load(CatalogKind::kHardware, "V5P").find("name")->text, "tpu-v5p");
  EXPECT_EQ(catalog.load(CatalogKind::kModel, "meta-llama/Meta-Llama-3-70B").find("name")->text, "llama3-70b");
}

TEST(BuiltInCatalog, NamesAreForgiving) {
  const Catalog catalog;
  for (const char* spelling : {"H100 SXM", "h100_sxm", "H100SXM", "h100-sxm-80GB", "NVIDIA/H100-SXM", "H100 DGX"}) {
    EXPECT_EQ(catalog.load(CatalogKind::kHardware, spelling).find("name")->text, "h100-sxm") << spelling;
  }
  for (const char* spelling : {"tpu-v7", "tpu7x", "TPU v7x", "Ironwood", "TPU-v7x-Ironwood"}) {
    EXPECT_EQ(catalog.load(CatalogKind::kHardware, spelling).find("name")->text, "tpu-v7") << spelling;
  }
  for (const char* spelling : {"llama3-70b", "llama-3-70b", "Llama 3 70B", "meta-llama/Meta-Llama-3-70B"}) {
    EXPECT_EQ(catalog.load(CatalogKind::kModel, spelling).find("name")->text, "llama3-70b") << spelling;
  }
  EXPECT_NE(error_of(catalog, CatalogKind::kHardware, "h100-sx"), "");
  EXPECT_NE(error_of(catalog, CatalogKind::kHardware, "-"), "") << "a dash is standard input, not the empty name";
  EXPECT_NE(error_of(catalog, CatalogKind::kHardware, "_"), "");
}

TEST(BuiltInCatalog, SuggestsTheNameAndSaysWhereTheOthersAre) {
  const Catalog catalog;
  EXPECT_EQ(
      error_of(catalog, CatalogKind::kHardware, "tpu-v5pp"),
      "error: unknown hardware 'tpu-v5pp'\nhint: did you mean 'tpu-v5p'? 'scalecalc hw list' shows what is known\n");
  const std::string by_alias = error_of(catalog, CatalogKind::kModel, "meta-llama/Meta-Llama-3-70");
  EXPECT_NE(by_alias.find("did you mean 'llama3-70b'?"), std::string::npos) << by_alias;
  EXPECT_NE(error_of(catalog, CatalogKind::kModel, "tpu-v5p"), "") << "kinds do not mix";
}

TEST(BuiltInCatalog, ALabelIsItsNameWithoutCaseAndSeparators) {
  EXPECT_EQ(folded("H100 SXM"), "h100sxm");
  EXPECT_EQ(folded("meta-llama/Meta_Llama-3-70B"), "metallama/metallama370b");
  EXPECT_EQ(folded("-_ "), "");
  const EmbeddedLabels all = embedded_labels();
  for (std::size_t i = 1; i < all.labels.size(); ++i) {
    const auto text = [&](std::size_t at) { return all.text.substr(all.labels[at].begin, all.labels[at].size); };
    EXPECT_LT(text(i - 1), text(i)) << "a label is that of one file";
  }
}

TEST(BuiltInCatalog, EveryFileParsesAndAnswersToItsLabels) {
  for (const EmbeddedFile& file : embedded_catalog()) {
    const std::string folder(file.path.substr(0, file.path.find('/')));
    if (folder != "hardware" && folder != "models" && folder != "efficiency") continue;
    const CatalogKind kind = folder == "hardware" ? CatalogKind::kHardware
                             : folder == "models" ? CatalogKind::kModel
                                                  : CatalogKind::kEfficiency;
    const ConfigNode node = Catalog().load(kind, std::string(file.name));
    EXPECT_EQ(node.span.file.str(), "built-in:" + std::string(file.path)) << "two files share a name or alias";
    EXPECT_EQ(node.find("name")->text, file.name);
  }
}

std::string value_at(const ConfigNode& document, std::initializer_list<const char*> path) {
  const ConfigNode* node = &document;
  for (const char* key : path) node = node->find(key);
  return node->text;
}

TEST_F(UserCatalog, AVariantIsTheLinesThatDiffer) {
  put("hardware/ours.yaml",
      "name: ours\nextends: h200\nhbm: {bandwidth: 4TB/s}\n"
      "network:\n  - {tier: leaf, oversubscription: 4}\n  - {tier: campus, bandwidth_per_chip: 1GB/s}\n");
  const Catalog catalog({place_.string()});
  const ConfigNode base = catalog.load(CatalogKind::kHardware, "h200");
  const ConfigNode ours = catalog.load(CatalogKind::kHardware, "ours");
  EXPECT_EQ(value_at(ours, {"name"}), "ours");
  EXPECT_EQ(value_at(ours, {"title"}), value_at(base, {"title"}) + " (ours)");
  EXPECT_EQ(ours.find("aliases"), nullptr);
  EXPECT_EQ(ours.find("extends"), nullptr);
  EXPECT_EQ(value_at(ours, {"hbm", "bandwidth"}), "4TB/s");
  EXPECT_EQ(ours.find("hbm")->find("bandwidth")->span.file.str(), at("hardware/ours.yaml"));
  EXPECT_EQ(value_at(ours, {"hbm", "capacity"}), value_at(base, {"hbm", "capacity"}));
  EXPECT_EQ(ours.find("hbm")->find("capacity")->span.file.str(), "built-in:hardware/h200.yaml");
  const std::vector<ConfigNode>& tiers = ours.find("network")->items;
  ASSERT_EQ(tiers.size(), base.find("network")->items.size() + 1);
  EXPECT_EQ(value_at(tiers[1], {"oversubscription"}), "4");
  EXPECT_EQ(value_at(tiers[1], {"chips"}), value_at(base.find("network")->items[1], {"chips"}));
  EXPECT_EQ(value_at(tiers.back(), {"tier"}), "campus");
  EXPECT_EQ(ours.find("prices")->items.size(), base.find("prices")->items.size());
}

TEST_F(UserCatalog, AVariantOfAVariantOfAFileBesideIt) {
  put("models/base.yaml", "name: base\ntitle: Base\nvocab: 10\nd_model: 64\n");
  put("models/middle.yaml", "name: middle\nextends: ./base.yaml\nvocab: 20\n");
  put("models/top.yaml", "name: top\nextends: middle\nd_model: 128\n");
  const ConfigNode top = Catalog({place_.string()}).load(CatalogKind::kModel, "top");
  EXPECT_EQ(value_at(top, {"vocab"}), "20");
  EXPECT_EQ(value_at(top, {"d_model"}), "128");
  EXPECT_EQ(value_at(top, {"title"}), "Base (middle) (top)");
}

TEST_F(UserCatalog, ByItsOwnNameAFileExtendsTheOneItStandsBefore) {
  put("hardware/h200.yaml", "name: h200\nextends: h200\nhbm: {bandwidth: 4TB/s}\n");
  const ConfigNode ours = Catalog({place_.string()}).load(CatalogKind::kHardware, "h200");
  EXPECT_EQ(value_at(ours, {"hbm", "bandwidth"}), "4TB/s");
  EXPECT_EQ(value_at(ours, {"vendor"}), "NVIDIA");
}

TEST_F(UserCatalog, WhatCannotBeExtendedIsShownWhereItStands) {
  put("hardware/a.yaml", "name: a\nextends: b\n");
  put("hardware/b.yaml", "name: b\nextends: a\n");
  put("hardware/list.yaml", "name: list\nextends: [h200]\n");
  put("hardware/lost.yaml", "name: lost\nextends: h2000\n");
  const Catalog catalog({place_.string()});
  const std::string lost = error_of(catalog, CatalogKind::kHardware, "lost");
  EXPECT_TRUE(lost.starts_with(at("hardware/lost.yaml") + ":2:10: error: unknown hardware 'h2000'")) << lost;
  EXPECT_NE(lost.find("did you mean 'h200'"), std::string::npos) << lost;
  const std::string round = error_of(catalog, CatalogKind::kHardware, "a");
  EXPECT_TRUE(round.starts_with(at("hardware/b.yaml") + ":2:10: error: 'a' extends itself: ")) << round;
  EXPECT_NE(error_of(catalog, CatalogKind::kHardware, "list").find(":2:10: error: 'extends' is a list"),
            std::string::npos)
      << error_of(catalog, CatalogKind::kHardware, "list");
}

}  // namespace
}  // namespace scalecalc
