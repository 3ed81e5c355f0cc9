#include "support/studies.h"

#include <fmt/format.h>

#include "batch/merge.h"

namespace scalecalc::test {

StudyAxis axis(const std::string& name, std::vector<std::string> values) {
  std::vector<double> numbers = numbers_of(values);
  return {{StudyColumn{name, std::move(values), std::move(numbers), {}}}};
}

Study small_study(std::size_t a, std::size_t b) {
  Study out{.command = "ask", .arguments = {"w{a}"}, .flags = {{"--a", {"{a}"}}, {"--b", {"{b}"}}}};
  std::vector<std::string> numbers;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < a; ++i) numbers.push_back(std::to_string(i + 2));
  for (std::size_t i = 0; i < b; ++i) words.push_back(fmt::format("b{}", i));
  out.axes = {axis("a", numbers), axis("b", words)};
  return out;
}

std::vector<CommandForm> forms() {
  return {{"ask", {{"--a", true, false}, {"--b", true, false}, {"--set", true, true}, {"--loud", false, false}}}};
}

Ask FakeCommand::ask() {
  return [this](const StudyQuestion& question) -> StudyReply {
    if (asked++ >= stop_after) return {.exit = 130};
    const std::string& a = question.flags.at("--a").front();
    const std::string& b = question.flags.at("--b").front();
    if (a == "1") return {.exit = 3, .reason = "nothing fits \"at all\""};
    if (b == "wrong") return {.exit = 2, .reason = "no such thing"};
    std::string out;
    for (std::size_t i = 0; i < records; ++i) {
      out += fmt::format(R"({{"word":"{}","half":{},"nested_deep_n":{},"nested_list":[1,"two",{{"x":[3]}}],"odd":{}}})"
                         "\n",
                         b, std::stod(a) / 2, i, a == "2" ? "null" : "true");
    }
    return {.exit = 0, .records = out, .warnings = a == "3" ? "mind the gap" : ""};
  };
}

std::string rows_by(const Study& study, const std::string& directory, std::uint64_t shards, unsigned jobs,
                    FakeCommand& command) {
  const StudyManifest manifest = make_manifest(study, "test", shards);
  write_manifest(manifest, directory);
  const Ask ask = command.ask();
  for (std::uint64_t shard = 0; shard < shards; ++shard) run_shard(manifest, directory, shard, ask, {.jobs = jobs});
  std::string out;
  merge_shards(manifest, directory, [&](std::string_view line) {
    out += line;
    out += '\n';
  });
  return out;
}

}  // namespace scalecalc::test
