#include "batch/manifest.h"

#include <gtest/gtest.h>

#include "base/digest.h"
#include "config/catalog.h"
#include "config/embedded_digest.h"
#include "support/errors.h"
#include "support/scratch.h"
#include "support/studies.h"

namespace scalecalc {
namespace {

TEST(Sha256, IsTheStandardOne) {
  // FIPS 180-2, appendix B.1
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Manifest, TheCatalogsHashIsThatOfItsFiles) {
  std::string all;
  for (const EmbeddedFile& file : embedded_catalog()) {
    const std::string text = text_of(file);
    all += std::string(file.path) + " " + std::to_string(text.size()) + "\n" + text;
  }
  EXPECT_EQ(embedded_catalog_sha256(), sha256(all));
}

TEST(Manifest, ReadsBackAsWritten) {
  const test::Scratch scratch;
  Study study = test::small_study();
  study.where = "a > 2";
  study.all_records = true;
  const StudyManifest made = make_manifest(study, "test", 5);
  write_manifest(made, scratch.path("out"));
  const StudyManifest read = read_manifest(scratch.path("out"), "test");
  EXPECT_EQ(read.hash, made.hash);
  EXPECT_EQ(read.shards, 5U);
  EXPECT_EQ(read.cases, 12U);
  EXPECT_EQ(read.study.axes[0].columns[0].numbers, study.axes[0].columns[0].numbers);
}

TEST(Manifest, HashPinsEverything) {
  const Study study = test::small_study();
  const std::string hash = make_manifest(study, "test", 5).hash;
  EXPECT_EQ(make_manifest(study, "test", 5).hash, hash);
  EXPECT_NE(make_manifest(study, "test", 6).hash, hash);
  EXPECT_NE(make_manifest(study, "tesu", 5).hash, hash);
  Study other = study;
  other.axes[1].columns[0].values[2] += "x";
  EXPECT_NE(make_manifest(other, "test", 5).hash, hash);
  other = study;
  other.where = "a > 2";
  EXPECT_NE(make_manifest(other, "test", 5).hash, hash);
}

TEST(Manifest, NoticesWhatChanged) {
  const test::Scratch scratch;
  Study study = test::small_study();
  study.axes[0] = test::axis("a", {scratch.put("chip.yaml", "name: one\n")});
  write_manifest(make_manifest(study, "test", 1), scratch.path("out"));
  const auto refused = [&](std::string_view version) {
    return test::problems_of([&] { manifest_to_run(scratch.path("out"), version); });
  };
  EXPECT_EQ(refused("test"), "");
  EXPECT_NE(refused("other").find("planned by scalecalc test, and this is other"), std::string::npos);
  scratch.put("chip.yaml", "name: two\n");
  EXPECT_NE(refused("test").find("changed since the study was planned"), std::string::npos);
  scratch.put("chip.yaml", "name: one\n");
  EXPECT_EQ(refused("test"), "");
  std::string text = scratch.text("out/manifest.json");
  text.replace(text.find("w{a}"), 1, "v");
  scratch.put("out/manifest.json", text);
  EXPECT_NE(refused("test").find("the manifest is damaged"), std::string::npos);
  scratch.put("out/manifest.json", text.substr(0, 100));
  EXPECT_NE(refused("test").find("the manifest is damaged"), std::string::npos);
}

TEST(Manifest, OneOfANewerReleaseIsRefusedByName) {
  const test::Scratch scratch;
  write_manifest(make_manifest(test::small_study(), "2.0", 1), scratch.path("out"));
  std::string text = scratch.text("out/manifest.json");
  const std::string schema = "scalecalc/batch-manifest/1";
  text.replace(text.find(schema), schema.size(), "scalecalc/batch-manifest/2");
  scratch.put("out/manifest.json", text);
  const std::string said = test::problems_of([&] { read_manifest(scratch.path("out"), "1.0"); });
  EXPECT_NE(said.find("scalecalc/batch-manifest/2 of scalecalc 2.0, and scalecalc 1.0 reads"), std::string::npos)
      << said;
}

}  // namespace
}  // namespace scalecalc
