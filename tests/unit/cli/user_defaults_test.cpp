// Defaults of the user's file and of the environment: which are taken, in which order, what is said of them.
#include "cli/user_defaults.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/diagnostic.h"
#include "cli/commands.h"

namespace scalecalc::cli {
namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

class UserDefaults : public testing::Test {
 protected:
  UserDefaults() : home_(fs::path(testing::TempDir()) / ("scalecalc_defaults_" + std::to_string(::getpid()))) {
    fs::create_directories(home_ / "scalecalc");
  }
  ~UserDefaults() override { fs::remove_all(home_); }

  std::string file() const { return (home_ / "scalecalc" / "config.yaml").string(); }
  void write(const std::string& text) const { std::ofstream(file()) << text; }

  Arguments taken(std::string_view command, const std::vector<std::string>& words, const Variables& more = {}) const {
    std::ostringstream out;
    Environment env{.out = out, .err = out};
    env.variable = [&](const std::string& name) -> std::optional<std::string> {
      if (name == "XDG_CONFIG_HOME") return home_.string();
      const auto found = more.find(name);
      return found == more.end() ? std::nullopt : std::optional(found->second);
    };
    Arguments arguments = parse_arguments(words, *find_command(command));
    take_user_defaults(arguments, Catalog(), env);
    return arguments;
  }

  Diagnostic complaint(const Variables& more = {}) const {
    try {
      taken("train", kOnH100, more);
    } catch (const UserError& error) {
      return error.diagnostics().front();
    }
    return {};
  }

  const std::vector<std::string> kOnH100{"llama3-8b", "--hw", "h100-sxm", "--chips", "8"};

 private:
  fs::path home_;
};

TEST_F(UserDefaults, NothingSaidTakesNothing) {
  const Arguments arguments = taken("train", kOnH100);
  EXPECT_FALSE(arguments.has("--stack"));
  EXPECT_TRUE(arguments.readings().empty());
}

TEST_F(UserDefaults, OfTheFileAreNotedWithTheirLine) {
  write("stack: {tpu: maxtext}\nprice:\n  h100: 2.10\n");
  const Arguments arguments = taken("train", kOnH100);
  EXPECT_FALSE(arguments.has("--stack"));  // of another family
  EXPECT_EQ(arguments.value("--price"), "2.1");
  EXPECT_FALSE(arguments.typed("--price"));
  ASSERT_EQ(arguments.readings().size(), 1U);
  EXPECT_EQ(arguments.readings().front().flag, "--price");
  EXPECT_EQ(arguments.readings().front().source, file() + ":3");
}

TEST_F(UserDefaults, SayWhoSaidThem) {
  write("stack: nemo\n");
  EXPECT_EQ(taken("train", kOnH100).readings().front().text, "stack nemo (your config.yaml)");
  EXPECT_EQ(taken("train", kOnH100, {{"SCALECALC_STACK", "megatron"}}).readings().front().text,
            "stack megatron (SCALECALC_STACK)");
}

TEST_F(UserDefaults, FlagsComeBeforeTheEnvironmentAndThatBeforeTheFile) {
  write("price: {h100-sxm: 2.10}\n");
  const Variables said{{"SCALECALC_PRICE", "h100-sxm=3.5"}};
  const Arguments arguments = taken("train", kOnH100, said);
  EXPECT_EQ(arguments.value("--price"), "3.5");
  EXPECT_EQ(arguments.readings().front().source, "SCALECALC_PRICE");
  EXPECT_EQ(taken("train", {"llama3-8b", "--hw", "h100-sxm", "--price", "4"}, said).value("--price"), "4");
}

TEST_F(UserDefaults, ACloudIsTheFilesFirstPriceThere) {
  write("cloud: GCP\n");
  EXPECT_EQ(taken("train", kOnH100).value("--price"), "10.8");  // configs/hardware/h100-sxm.yaml
}

TEST_F(UserDefaults, SystemsThatSayAPriceKeepIt) {
  write("price: {h100-sxm: 2.5}\n");
  const std::vector<std::string> given = taken("compare", {"llama3-8b", "--hw", "h100-sxm,h200@GCP"}).values("--price");
  EXPECT_EQ(given, std::vector<std::string>{"h100-sxm=2.5"});
  EXPECT_FALSE(taken("compare", {"llama3-8b", "--hw", "h100-sxm", "--cloud", "AWS"}).has("--price"));
}

TEST_F(UserDefaults, ContradictNothing) {
  write("stack: megatron\n");
  EXPECT_EQ(taken("train", kOnH100).value("--stack"), "megatron");
  EXPECT_FALSE(taken("train", {"llama3-8b", "--hw", "h100-sxm", "--efficiency", "ideal"}).has("--stack"));
  EXPECT_FALSE(taken("calibrate", {"--hw", "h100-sxm"}).has("--stack"));  // there it says what is fitted
}

TEST_F(UserDefaults, AnEngineIsTakenWhereOneServes) {
  const Variables said{{"SCALECALC_ENGINE", "trtllm"}};
  const Arguments serve = taken("serve", kOnH100, said);
  EXPECT_EQ(serve.value("--engine"), "trtllm");
  ASSERT_EQ(serve.readings().size(), 1U);
  EXPECT_EQ(serve.readings().front().text, "engine trtllm (SCALECALC_ENGINE)");
  EXPECT_EQ(serve.readings().front().flag, "--engine");
  EXPECT_EQ(taken("rl", kOnH100, said).value("--engine"), "trtllm");
  EXPECT_EQ(taken("distill", kOnH100, said).value("--engine"), "trtllm");
  EXPECT_EQ(taken("compare", {"llama3-8b", "--serve", "--hw", "h100-sxm:8,h200:8@GCP"}, said).value("--engine"),
            "trtllm");
  EXPECT_FALSE(taken("compare", {"llama3-8b", "--hw", "h100-sxm:8,h200:8"}, said).has("--engine"));
  EXPECT_FALSE(taken("train", kOnH100, said).has("--engine"));
  EXPECT_EQ(taken("serve", {"llama3-8b", "--hw", "h100-sxm", "--engine", "sglang"}, said).value("--engine"), "sglang");
}

TEST_F(UserDefaults, AnEngineOfAFamilyIsThatOfItsChips) {
  write("engine: {nvidia: trtllm@1.0, tpu: vllm}\n");
  EXPECT_EQ(taken("serve", kOnH100).value("--engine"), "trtllm@1.0");
  EXPECT_EQ(taken("serve", {"llama3-8b", "--hw", "tpu-v6e"}).value("--engine"), "vllm");
  EXPECT_EQ(taken("serve", {"llama3-8b", "--hw", "h100-sxm,h200"}).value("--engine"), "trtllm@1.0");
  // One flag cannot say two engines.
  EXPECT_FALSE(taken("serve", {"llama3-8b", "--hw", "h100-sxm,tpu-v6e"}).has("--engine"));
}

TEST_F(UserDefaults, ALaunchFileSaysItsSoftware) {
  const Variables said{{"SCALECALC_ENGINE", "trtllm"}, {"SCALECALC_STACK", "maxtext"}};
  EXPECT_FALSE(taken("serve", {"llama3-8b", "--hw", "h100-sxm", "--from", "vllm.sh"}, said).has("--engine"));
  EXPECT_FALSE(taken("serve", {"llama3-8b", "--hw", "h100-sxm", "--export", "vllm"}, said).has("--engine"));
  EXPECT_FALSE(taken("train", {"llama3-8b", "--hw", "h100-sxm", "--export", "megatron"}, said).has("--stack"));
  EXPECT_FALSE(taken("lint", {"run.sh", "--hw", "h100-sxm"}, said).has("--stack"));
}

TEST_F(UserDefaults, AMisspeltEngineIsAnErrorWithItsPlace) {
  const auto complaint_of = [&](const Variables& more) {
    try {
      taken("serve", kOnH100, more);
    } catch (const UserError& error) {
      return error.diagnostics().front();
    }
    return Diagnostic{};
  };
  const Diagnostic variable = complaint_of({{"SCALECALC_ENGINE", "vlm"}});
  EXPECT_EQ(variable.where.file.str(), "SCALECALC_ENGINE");
  EXPECT_NE(variable.hint.find("vllm"), std::string::npos);
  write("price: {h100-sxm: 2}\nengine: {nvidia: megatron}\n");
  const Diagnostic trainer = complaint_of({});
  EXPECT_EQ(trainer.where.line, 2);
  EXPECT_EQ(trainer.where.column, 18);
  EXPECT_NE(trainer.message.find("no serving engine"), std::string::npos);
}

TEST_F(UserDefaults, AMisspeltKeyIsAnErrorWithItsPlace) {
  write("cloud: GCP\nstak: megatron\n");
  const Diagnostic found = complaint();
  EXPECT_EQ(found.where.file.str(), file());
  EXPECT_EQ(found.where.line, 2);
  EXPECT_EQ(found.where.column, 1);
  EXPECT_NE(found.hint.find("stack"), std::string::npos);
}

TEST_F(UserDefaults, AMisspeltChipIsAnErrorWithItsPlace) {
  write("price: {h100-smx: 2}\n");
  const Diagnostic found = complaint();
  EXPECT_EQ(found.where.line, 1);
  EXPECT_NE(found.hint.find("h100-sxm"), std::string::npos);
  fs::remove(file());
  EXPECT_EQ(complaint({{"SCALECALC_PRICE", "h100-smx=2"}}).where.file.str(), "SCALECALC_PRICE");
}

}  // namespace
}  // namespace scalecalc::cli
