#include "relations/question.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "cli/commands.h"
#include "config/catalog.h"
#include "spec/load.h"

namespace scalecalc::relations {
namespace {

using fuzz::Choices;

const std::vector<std::string>& chips() {
  static const std::vector<std::string> kAll = Catalog().names(CatalogKind::kHardware);
  return kAll;
}

const std::vector<std::string>& models() {
  static const std::vector<std::string> kAll = Catalog().names(CatalogKind::kModel);
  return kAll;
}

std::string power_of_two(Choices& choose, unsigned most) { return std::to_string(1ULL << choose.below(most + 1)); }

/// Whole numbers of every size, powers of two and their neighbours more often than others.
std::string whole(Choices& choose) {
  const std::uint64_t power = 1ULL << choose.below(18);
  switch (choose.below(4)) {
    case 0: return std::to_string(power);
    case 1: return std::to_string(power + 1);
    case 2: return std::to_string(3 * power);
    default: return std::to_string(1 + choose.below(1U << 16U));
  }
}

const std::string& some_chip(Choices& choose) { return choose.from(chips()); }

std::string some_model(Choices& choose) {
  return choose.one_in(3) ? choose.from(models())
                          : std::string(choose.of({"llama3-8b", "llama3.2-1b", "mixtral-8x7b", "gemma-2b"}));
}

Words roofline(Choices& choose) {
  const std::string hw = "--hw=" + some_chip(choose);
  switch (choose.below(3)) {
    case 0: return {"roofline", "matmul", whole(choose) + "x" + whole(choose) + "x" + whole(choose), hw};
    case 1: return {"roofline", "add", whole(choose) + std::string(choose.of({"", "Ki", "Mi"})), hw};
    default: return {"roofline", "flops", whole(choose) + "e6", "bytes=" + whole(choose) + "e3", hw};
  }
}

Words collective(Choices& choose) {
  const std::string op(choose.of({"all-gather", "reduce-scatter", "all-reduce", "all-to-all", "gather", "scatter",
                                  "broadcast", "reduce", "permute"}));
  std::string bytes = "--bytes=" + whole(choose) + std::string(choose.of({"B", "KiB", "MiB"}));
  if (choose.one_in(2)) bytes = "--bytes=1KiB..1GiB";
  const std::string& chip = some_chip(choose);
  if (!chip_named(chip).is_torus())
    return {"collective", op, "--hw=" + chip, "--group=" + power_of_two(choose, 10), bytes};
  return {"collective",
          op,
          "--hw=" + chip,
          "--mesh=X=" + power_of_two(choose, 3) + ",Y=" + power_of_two(choose, 3),
          std::string("--axes=") + choose.of({"X", "Y", "X,Y"}),
          bytes};
}

Words matmul(Choices& choose) {
  const auto shard = [&] { return std::string(choose.of({"", "_X", "_Y"})); };
  const std::string j = shard();
  const std::string expression = "A[I" + shard() + ", J" + j + "] * B[J" + shard() + ", K" + shard() + "]";
  return {"matmul", expression, "--hw=" + some_chip(choose),
          "--mesh=X=" + power_of_two(choose, 2) + ",Y=" + power_of_two(choose, 2),
          "--dims=I=" + whole(choose) + ",J=" + whole(choose) + ",K=" + whole(choose)};
}

Words bounds(Choices& choose) {
  Words out{"bounds", choose.one_in(2) ? some_model(choose) : whole(choose) + "M", "--hw=" + some_chip(choose)};
  if (choose.one_in(2)) out.push_back("--chips=" + power_of_two(choose, 12));
  if (choose.one_in(2)) out.push_back(std::string("--for=") + choose.of({"training", "serving"}));
  return out;
}

Words train(Choices& choose) {
  Words out{"train", some_model(choose), "--hw=" + some_chip(choose), "--chips=" + power_of_two(choose, 4)};
  if (choose.one_in(2)) out.push_back("--batch-seqs=" + power_of_two(choose, 8));
  if (choose.one_in(2)) out.push_back("--seq=" + power_of_two(choose, 13));
  if (choose.one_in(3)) out.push_back("--efficiency=ideal");
  return out;
}

Words serve(Choices& choose) {
  Words out{"serve", some_model(choose), "--hw=" + some_chip(choose), "--chips=" + power_of_two(choose, 3)};
  if (choose.one_in(2)) out.push_back("--prompt=" + whole(choose));
  if (choose.one_in(2)) out.push_back("--generate=" + power_of_two(choose, 10));
  if (choose.one_in(3)) out.push_back("--efficiency=ideal");
  return out;
}

/// Quick ones mostly.
Words base_question(Choices& choose) {
  switch (choose.below(24)) {
    case 0: return train(choose);
    case 1: return serve(choose);
    case 2: return {"model", some_model(choose)};
    case 3: return {"hw", some_chip(choose)};
    case 4: return {"scaling-law", "--flops=" + whole(choose) + "e18"};
    case 5:
    case 6:
    case 7:
    case 8:
    case 9: return collective(choose);
    case 10:
    case 11:
    case 12: return matmul(choose);
    case 13:
    case 14:
    case 15: return bounds(choose);
    default: return roofline(choose);
  }
}

/// Files that are read or written, work without end, and what is no question.
bool is_asked(const cli::Flag& flag) {
  static const std::vector<std::string_view> kNever{
      "--explain", "--trace", "--simulate", "--rate",       "--concurrency",  "--from", "--watch", "--config-dir",
      "--output",  "--json",  "--verbose",  "--time-limit", "--memory-limit", "--help", "--plot",  "--requests"};
  const auto names_a_file = [&] {
    return std::ranges::any_of(std::initializer_list<std::string_view>{".csv", ".json", ".jsonl", ".sh", ".yaml"},
                               [&](std::string_view end) { return flag.example.ends_with(end); });
  };
  return !flag.writes && flag.asks && std::ranges::find(kNever, flag.name) == kNever.end() && !names_a_file();
}

std::string some_value(const cli::Flag& flag, Choices& choose) {
  static const std::vector<std::string> kOdd{
      "0", "-1", "1e308", "nan",  "inf",  "",    " ",    "9007199254740993", "1e-300", "100%", "0%",   "2",
      "3", "7",  "1..8",  "auto", "none", "X=4", "tp=2", "\x1b[31m",         "bf16",   "fp8",  "1GiB", "10us"};
  if (!flag.words.empty() && !choose.one_in(6)) return std::string(choose.from(flag.words));
  if (choose.below(3) > 0) return std::string(flag.example);
  return choose.one_in(2) ? whole(choose) : choose.from(kOdd);
}

}  // namespace

const HardwareSpec& chip_named(const std::string& name) {
  static std::map<std::string, HardwareSpec> known;
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  const Catalog catalog;
  return known[name] = load_hardware(catalog.load(CatalogKind::kHardware, name), catalog, Unpublished::kAllowed);
}

Words random_question(Choices& choose) {
  Words out = base_question(choose);
  const cli::Command& command = *cli::find_command(out.front());
  for (std::uint64_t more = choose.one_in(2) ? choose.below(4) : 0; more > 0; --more) {
    const cli::Flag& flag = choose.from(command.flags);
    if (!is_asked(flag)) continue;
    out.push_back(flag.kind == cli::FlagKind::kSwitch ? std::string(flag.name)
                                                      : std::string(flag.name) + '=' + some_value(flag, choose));
  }
  return out;
}

Words random_timing(Choices& choose) {
  switch (choose.below(16)) {
    case 0: return train(choose);
    case 1: return serve(choose);
    case 2:
    case 3:
    case 4:
    case 5: return collective(choose);
    case 6:
    case 7:
    case 8: return matmul(choose);
    default: return roofline(choose);
  }
}

}  // namespace scalecalc::relations
