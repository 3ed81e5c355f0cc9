// Recipes of torchtitan: whatever a file says otherwise than by a literal is open or refused, and never read as less.
#include <gtest/gtest.h>

#include <algorithm>

#include "launch/reading.h"
#include "launch/training.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

const std::string kBaseRecipe = R"(def llama3_70b() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("70B", converters=[Float8LinearConverter.Config()]),
        training=TrainingConfig(local_batch_size=8, seq_len=8192),
        parallelism=ParallelismConfig(tensor_parallel_degree=8, pipeline_parallel_degree=2),
        activation_checkpoint=SelectiveAC.Config(),
    )

)";

/// A recipe that changes the one above by some lines, of which the first is line 11 of the file.
std::string changing(const std::string& lines) {
  return kBaseRecipe + "def tuned() -> Trainer.Config:\n    config = llama3_70b()\n" + lines + "    return config\n";
}

ImportedLayout recipe_in(const std::string& text) {
  const LaunchText read = read_launch_text(text, "config_registry.py");
  static const ModelSpec kModel = test::shipped_model("llama3.1-70b");
  static const StackRuntime kRuntime{};
  return import_training(framework_of(read, text, "config_registry.py"), read.settings, &kModel, &kRuntime, 64, 1);
}

/// Where a recipe that cannot be read is refused; 0: it is read.
std::size_t refused_line(const std::string& text) {
  try {
    read_launch_text(text, "config_registry.py");
  } catch (const UserError& error) {
    return static_cast<std::size_t>(error.diagnostics().front().where.line);
  }
  return 0;
}

bool has_key(const std::vector<LaunchSetting>& settings, std::string_view key) {
  return std::any_of(settings.begin(), settings.end(), [&](const LaunchSetting& s) { return s.key == key; });
}

// Float8LinearConverter.Config scales by rows unless it says otherwise (pytorch/torchtitan b5bcd76
// components/quantization/float8.py, mx.py).
TEST(LaunchRecipes, ConvertersSayTheirScales) {
  const auto scaling = [](const std::string& converter) {
    std::string text = kBaseRecipe;
    const std::string kDefault = "Float8LinearConverter.Config()";
    text.replace(text.find(kDefault), kDefault.size(), converter);
    const ImportedLayout read = recipe_in(text);
    EXPECT_EQ(read.reading.terms.word("precision"), "fp8") << converter;
    return read.reading.terms.word("scaling").value_or("open");
  };
  EXPECT_EQ(scaling("Float8LinearConverter.Config()"), "rowwise");
  EXPECT_EQ(scaling("Float8LinearConverter.Config(filter_fqns=[\"output\"], recipe_name = \"rowwise\")"), "rowwise");
  EXPECT_EQ(scaling("Float8LinearConverter.Config(recipe_name=\"rowwise_with_gw_hp\")"), "open");
  EXPECT_EQ(scaling("Float8LinearConverter.Config(recipe_name=RECIPE, filter_fqns=[])"), "open");
  EXPECT_EQ(scaling("MXFP8LinearConverter.Config(model_compile_enabled=True)"), "blockwise");
}

constexpr std::string_view kTensor = "parallelism.tensor_parallel_degree";

// What a line that changes the recipe says, however it is spelled, is what it says, or open: never what stood before.
TEST(LaunchRecipes, NoSpellingOfAChangeIsPassedOver) {
  for (const char* line :
       {"config.parallelism.tensor_parallel_degree=4", "config.parallelism.tensor_parallel_degree  =  (4)",
        "config.parallelism.tensor_parallel_degree: int = 4  # of a node",
        "x = 1; config.parallelism.tensor_parallel_degree = 4",
        "config.parallelism.tensor_parallel_degree = \\\n        4",
        "config.parallelism.tensor_parallel_degree =4\r"}) {
    const ImportedLayout read = recipe_in(changing(std::string("    ") + line + "\n"));
    EXPECT_EQ(read.pins.tp, 4) << line;
  }
  for (const char* line :
       {"config.parallelism.tensor_parallel_degree //= 2", "config.parallelism.tensor_parallel_degree = 2 * 2",
        "config.parallelism.tensor_parallel_degree = 8 if wide else 4",
        "if wide:\n        config.parallelism.tensor_parallel_degree = 4",
        "if wide: config.parallelism.tensor_parallel_degree = 4", "config.parallelism.tensor_parallel_degree, x = 4, 1",
        "x = config.parallelism.tensor_parallel_degree = 4",
        "setattr(config.parallelism, \"tensor_parallel_degree\", 4)",
        "config.parallelism.update(tensor_parallel_degree=4)", "config.parallelism = wide_parallelism(4)"}) {
    const ImportedLayout read = recipe_in(changing(std::string("    ") + line + "\n"));
    EXPECT_FALSE(read.pins.tp) << line;
    EXPECT_FALSE(read.reading.open.empty()) << line;
  }
  const ImportedLayout called = recipe_in(changing("    tune(config)\n"));
  EXPECT_TRUE(has_key(called.reading.unread, "tune(config)"));
  // One's own config is changed as another's is.
  std::string own = kBaseRecipe;
  own.replace(own.find("return"), 6, "config =");
  EXPECT_EQ(recipe_in(own + "    config.parallelism.tensor_parallel_degree = 4\n    return config\n").pins.tp, 4);
}

// The recipe that changes another is the one that is run: it is read or refused by its line, and never passed over.
TEST(LaunchRecipes, ARecipeThatChangesAnotherIsNeverPassedOver) {
  const std::string head = kBaseRecipe + "def tuned():\n";
  const std::string change = "    config.parallelism.tensor_parallel_degree = 4\n";
  for (const std::string& text :
       {head + "    config = llama3_70b()\n" + change + "    return config  # tuned\n",
        head + "    config  =  llama3_70b( )  # as it is\n" + change + "    return  config",
        head + "    config: Trainer.Config=llama3_70b()\n" + change + "\n    # done\n    return config;\n"}) {
    EXPECT_EQ(recipe_in(text).pins.tp, 4) << text;
    std::string carriage;
    for (const char c : text) carriage += c == '\n' ? std::string("\r\n") : std::string(1, c);
    EXPECT_EQ(recipe_in(carriage).pins.tp, 4) << text;
  }
  EXPECT_EQ(recipe_in(head + "    return llama3_70b()\n").pins.tp, 8);
  EXPECT_EQ(refused_line(head + "    config = llama3_70b(seq=4096)\n    return config\n"), 10U);
  EXPECT_EQ(refused_line(head + "    return replace(llama3_70b(), seed=1)\n"), 10U);
  EXPECT_EQ(refused_line(head + "    config = llama3_70b()\n    return widened(config)\n"), 10U);
  std::string own = kBaseRecipe;
  own.replace(own.find("return"), 6, "config =");
  EXPECT_EQ(refused_line(own + "    return widened(config)\n"), 9U);
  EXPECT_EQ(refused_line(head + "    config = llama3_70b()\n    config = widened(config)\n    return config\n"), 11U);
  // What gives nothing is no recipe.
  EXPECT_EQ(recipe_in(kBaseRecipe + "def main():\n    run(llama3_70b())\n").pins.tp, 8);
  EXPECT_EQ(recipe_in(kBaseRecipe + "def other():\n    tokens = count()\n    return tokens\n").pins.tp, 8);
}

TEST(LaunchRecipes, AnExpressionOfAVariableIsOpen) {
  const auto recipe = [](const std::string& before, const std::string& degree) {
    return "def r() -> Trainer.Config:\n" + before +
           "    return Trainer.Config(\n        training=TrainingConfig(local_batch_size=1, seq_len=4096),\n"
           "        parallelism=ParallelismConfig(tensor_parallel_degree=" +
           degree + ", pipeline_parallel_degree=1),\n    )\n";
  };
  EXPECT_EQ(recipe_in(recipe("    tp = 2\n", "tp")).pins.tp, 2);
  EXPECT_EQ(recipe_in(recipe("    tp=4\n    tp = 2  # now\n", "tp")).pins.tp, 2);
  for (const auto& [before, degree] :
       std::vector<std::pair<std::string, std::string>>{{"    tp = 2\n", "tp * 2"},
                                                        {"    tp = 2\n    tp *= 2\n", "tp"},
                                                        {"    tp = 2\n    tp, pp = 4, 1\n", "tp"},
                                                        {"    tp = 2\n    if wide:\n        tp = 4\n", "tp"},
                                                        {"    tp = 2\n", "max(tp, 4)"},
                                                        {"", "tp"}}) {
    const ImportedLayout read = recipe_in(recipe(before, degree));
    EXPECT_FALSE(read.pins.tp) << before << degree;
    EXPECT_TRUE(has_key(read.reading.open, kTensor)) << before << degree;
    EXPECT_EQ(read.pins.pp, 1);
  }
  EXPECT_FALSE(recipe_in(changing("    tp = 2\n    config.parallelism.tensor_parallel_degree = tp * 2\n")).pins.tp);
  // An object that is changed before it is handed on.
  const ImportedLayout object = recipe_in(
      "def r() -> Trainer.Config:\n    p = ParallelismConfig(tensor_parallel_degree=8)\n    p.tensor_parallel_degree = "
      "4\n"
      "    return Trainer.Config(parallelism=p, training=TrainingConfig(local_batch_size=1, seq_len=4096))\n");
  EXPECT_EQ(object.pins.tp, 4);
}

TEST(LaunchRecipes, AConfigOutsideOfAllFunctionsIsRead) {
  const std::string text =
      "SIZE = 4\nCONFIG = Trainer.Config(\n    training=TrainingConfig(local_batch_size=1, seq_len=4096),\n"
      "    parallelism=ParallelismConfig(tensor_parallel_degree=SIZE),\n)\n";
  const std::string function = "\ndef main():\n    print(\"Trainer.Config(\")  # Trainer.Config(\n    run(CONFIG)\n";
  EXPECT_EQ(recipe_in(text).pins.tp, 4);
  EXPECT_EQ(recipe_in(text + function).pins.tp, 4);
  EXPECT_EQ(recipe_in(function + text + "CONFIG.parallelism.tensor_parallel_degree = 2\n").pins.tp, 2);
}

// activation_checkpoint is `ActivationCheckpoint.Config | None` where FullAC and SelectiveAC are: None is none.
TEST(LaunchRecipes, AnObjectThatIsReplacedTakesItsMembersAlong) {
  const ImportedLayout base = recipe_in(changing(""));
  EXPECT_EQ(base.pins.pp, 2);
  EXPECT_EQ(base.pins.remat, Remat::kSelective);
  EXPECT_EQ(base.reading.terms.word("precision"), "fp8");
  const ImportedLayout parallelism =
      recipe_in(changing("    config.parallelism = ParallelismConfig(tensor_parallel_degree=4)\n"));
  EXPECT_EQ(parallelism.pins.tp, 4);
  EXPECT_EQ(parallelism.pins.pp, 1);
  const std::string spec = changing("    config.model_spec = model_registry(\"8B\")\n");
  EXPECT_NE(recipe_in(spec).reading.terms.word("precision"), "fp8");
  const LaunchText read = read_launch_text(spec, "config_registry.py");
  EXPECT_EQ(std::count_if(read.settings.begin(), read.settings.end(),
                          [](const LaunchSetting& s) { return s.key == "model.flavor" && s.values.front() == "8B"; }),
            1);
  EXPECT_EQ(std::count_if(read.settings.begin(), read.settings.end(),
                          [](const LaunchSetting& s) { return s.key == "model.flavor"; }),
            1);
  EXPECT_EQ(recipe_in(changing("    config.activation_checkpoint = None\n")).pins.remat, Remat::kNone);
  // Converters that do not stand in the model's own are left.
  const ImportedLayout apart = recipe_in(changing(
      "    config.model_converters = ModelConvertersContainer.Config(converters=[Float8LinearConverter.Config()])\n"
      "    config.model_spec = model_registry(\"70B\")\n"));
  EXPECT_EQ(apart.reading.terms.word("precision"), "fp8");
}

}  // namespace
}  // namespace scalecalc
