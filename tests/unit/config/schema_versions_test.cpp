// Documents of other releases are refused by the version they name, whatever else is in them.
#include <gtest/gtest.h>

#include "batch/diff.h"
#include "config/catalog.h"
#include "spec/load.h"
#include "support/errors.h"
#include "support/scratch.h"
#include "train/reference.h"

namespace scalecalc {
namespace {

void expect_refused(const std::string& said, const std::string& found, const std::string& known) {
  EXPECT_NE(said.find("this is " + found + ", and this release reads " + known), std::string::npos) << said;
  EXPECT_EQ(said.find("has no"), std::string::npos) << said;
}

TEST(SchemaVersions, ANewerDocumentIsRefusedByItsVersionAlone) {
  const test::Scratch scratch;
  const Catalog catalog;
  for (const std::string kind : {"model", "hardware"}) {
    const std::string file = scratch.put(kind + ".yaml", "schema: scalecalc-" + kind + "/2\nname: x\nnew_key: 1\n");
    expect_refused(test::problems_of([&] {
                     if (kind == "model") {
                       load_model(catalog.load(CatalogKind::kModel, file));
                     } else {
                       load_hardware(catalog.load(CatalogKind::kHardware, file), catalog);
                     }
                   }),
                   "scalecalc-" + kind + "/2", "scalecalc-" + kind + "/1");
  }
  const std::string answer = scratch.put("answer.json", R"({"schema": "scalecalc/train/2", "best": {}})");
  expect_refused(test::problems_of([&] { read_reference({.pins = {}, .file = answer}); }), "scalecalc/train/2",
                 "scalecalc/train/1");
  const std::string rows =
      scratch.put("rows.jsonl", R"({"schema":"scalecalc/batch-row/2","command":"train","status":"ok"})"
                                "\n");
  expect_refused(test::problems_of([&] { diff_results(rows, rows, {}); }), "scalecalc/batch-row/2",
                 "scalecalc/batch-row/1");
}

}  // namespace
}  // namespace scalecalc
