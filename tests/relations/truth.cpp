#include "relations/truth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <numeric>
#include <sstream>

#include "base/quoting.h"
#include "base/units.h"
#include "cli/run.h"
#include "golden/transcript.h"
#include "relations/json_shape.h"

namespace scalecalc::relations {
namespace {

using Json = nlohmann::json;

constexpr double kRounding = 1e-9;  // of sums of a few terms
constexpr int kStoppedEarly = 75;

bool near(double a, double b) { return std::abs(a - b) <= kRounding * std::max({1e-12, std::abs(a), std::abs(b)}); }
bool not_above(double a, double b) { return a <= b || near(a, b); }

double number(const Json& of, const char* key) {
  const auto found = of.find(key);
  return found != of.end() && found->is_number() ? found->get<double>() : std::nan("");
}

Words with(Words words, const std::string& more) {
  words.push_back(more);
  return words;
}

Json answer_of(const Reply& reply, const Words& words) {
  try {
    return Json::parse(reply.out);
  } catch (const Json::exception& error) {
    throw Untrue("the answer is no JSON (" + std::string(error.what()) + "): " + as_typed(words));
  }
}

/// The figure that a faster machine makes no larger; nothing if there is none.
double time_of(const Json& answer) {
  if (const auto plans = answer.find("plans"); plans != answer.end()) {
    return plans->is_array() && !plans->empty() ? number(plans->front(), "step_time_s") : std::nan("");
  }
  for (const char* rows : {"points", "strategies", "plans"}) {
    const auto found = answer.find(rows);
    if (found == answer.end() || !found->is_array() || found->empty()) continue;
    return number(found->front(), found->front().contains("decode_step_s") ? "decode_step_s" : "time_s");
  }
  if (const auto best = answer.find("best"); best != answer.end() && best->is_object()) return number(*best, "time_s");
  return number(answer, "time_s");
}

struct Rate {
  std::string key;
  double value;
};

/// Rates of the chip that a question names, as --set takes them.
const std::vector<Rate>& rates_of(const std::string& chip) {
  static std::map<std::string, std::vector<Rate>> known;
  const auto found = known.find(chip);
  if (found != known.end()) return found->second;
  std::vector<Rate>& out = known[chip];
  const Reply reply = ask({"hw", chip, "--keys", "--json"});
  if (reply.status != 0) return out;
  const Json answer = Json::parse(reply.out);
  for (const Json& key : answer.at("keys")) {
    const std::string name = key["key"];
    const bool is_rate = name.find(".matmul.") != std::string::npos || name.ends_with("bandwidth") ||
                         name.ends_with("bandwidth_per_chip") || name.find(".vector.") != std::string::npos;
    if (!is_rate || !key["value"].is_string()) continue;
    const bool compute = name.starts_with("hw.compute");
    const auto value = parse_quantity(key["value"].get<std::string>(),
                                      compute ? UnitKind::kFlopsPerSecond : UnitKind::kBytesPerSecond);
    if (const double* rate = std::get_if<double>(&value)) out.push_back({name, *rate});
  }
  return out;
}

std::string chip_of(const Words& words) {
  for (const std::string& word : words) {
    if (word.starts_with("--hw=")) return word.substr(5);
  }
  return "";
}

}  // namespace

std::string as_typed(const Words& words) {
  std::string out = "scalecalc";
  for (const std::string& word : words) out += ' ' + shell_quoted(word);
  return out;
}

Reply ask(const Words& words) {
  static const auto kept = std::make_shared<Remembered>();
  // Of the processor, not of the clock: beside other work an answer takes longer and is the same.
  const auto too_long = [start = std::clock()] { return std::clock() - start > 20 * CLOCKS_PER_SEC; };
  std::ostringstream out;
  std::ostringstream err;
  cli::Environment env{.out = out, .err = err};
  env.remembered = kept;
  env.interrupted = too_long;
  env.exit_status = [too_long](int own) { return too_long() ? kStoppedEarly : own; };
  Reply reply{env.exit_status_of(cli::run(words, env)), "", ""};
  reply.out = std::move(out).str();
  reply.err = std::move(err).str();
  return reply;
}

void Truths::holds(bool right, const char* name, const std::string& what, const Words& words) {
  ++counts_[name];
  if (!right) throw Untrue(fmt::format("{}: {}: {}", name, what, as_typed(words)));
}

void Truths::parts(const Json& times, double total, const char* sum, const Words& words) {
  double all = 0;
  for (const auto& [name, seconds] : times.items()) all += seconds.is_number() ? seconds.get<double>() : 0.0;
  holds(near(all, total), sum, fmt::format("{} and {}", all, total), words);
}

void Truths::memory(const Json& memory, const char* sum, const char* fits, const Words& words) {
  double bytes = 0;
  for (const auto& [name, part] : memory.items()) {
    if (name != "total" && name != "capacity" && part.is_number()) bytes += part.get<double>();
  }
  holds(near(bytes, number(memory, "total")), sum, fmt::format("{}", bytes), words);
  holds(not_above(number(memory, "total"), number(memory, "capacity")), fits, memory.dump(), words);
}

void Truths::plan(const Json& plan, const Words& words) {
  const double step = number(plan, "step_time_s");
  parts(plan.at("time_s"), step, "parts sum to the step", words);
  memory(plan.at("memory_bytes"), "parts sum to the memory", "a plan fits", words);
  holds(number(plan, "mfu") > 0 && number(plan, "mfu") <= 1, "0 < MFU <= 1", plan["mfu"].dump(), words);
  holds(number(plan, "step_time_low_s") <= step && step <= number(plan, "step_time_high_s"), "a step lies in its band",
        plan["step_time_low_s"].dump(), words);
  holds(near(number(plan, "batch_tokens") / step, number(plan, "tokens_per_s")), "tokens a second are tokens over time",
        plan["tokens_per_s"].dump(), words);
  const Json& layout = plan.at("layout");
  const double product = number(layout, "dp") * number(layout, "fsdp") * number(layout, "tp") * number(layout, "cp") *
                         number(layout, "pp");
  holds(near(product + number(plan, "idle_chips"), number(plan, "chips")) || near(product, number(plan, "chips")),
        "degrees multiply to the chips", layout.dump(), words);
}

void Truths::point(const Json& point, const Words& words) {
  const double step = number(point, "decode_step_s");
  parts(point.at("time_s"), step, "parts sum to the decode step", words);
  memory(point.at("memory_bytes"), "parts sum to the serving memory", "a point fits", words);
  holds(number(point, "decode_step_low_s") <= step && step <= number(point, "decode_step_high_s"),
        "a decode step lies in its band", point["decode_step_low_s"].dump(), words);
  holds(not_above(number(point, "floor_s"), step), "no decode step is below its floor", point["floor_s"].dump(), words);
  holds(not_above(number(point, "batch"), number(point, "max_batch")), "a batch is no larger than the largest",
        point["batch"].dump(), words);
}

void Truths::roof(const Json& point, const Words& words) {
  const double time = number(point, "time_s");
  const double most = number(point, "upper_time_s");
  for (const char* part : {"compute_time_s", "memory_time_s", "link_time_s"}) {
    const double seconds = number(point, part);
    holds(std::isnan(seconds) || not_above(seconds, time), "a roofline is its slowest part or more", part, words);
  }
  holds(std::isnan(most) || not_above(time, most), "a roofline is no more than its parts' sum", "", words);
  const double fraction = number(point, "fraction_of_peak");
  holds(std::isnan(fraction) || (fraction >= 0 && not_above(fraction, 1)), "no operation is above the peak",
        point["fraction_of_peak"].dump(), words);
}

/// Points of a sweep, each of more work than the one before.
void Truths::rising(const Json& points, const char* what, const Words& words) {
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (number(points[i], what) <= number(points[i - 1], what)) continue;
    holds(not_above(number(points[i - 1], "time_s"), number(points[i], "time_s")),
          "a sweep of more work takes no less time", points[i][what].dump(), words);
  }
}

/// Columns that have the name of a figure, also of one inside a map: "time_s_compute".
void Truths::table(const Json& rows, const Words& words) {
  const Reply reply = ask(with(words, "--output=csv"));
  if (reply.status != 0) return;
  std::istringstream lines(reply.out);
  std::string line;
  if (!std::getline(lines, line)) return;
  std::vector<std::string> columns;
  for (std::istringstream names(line); std::getline(names, line, ',');) columns.push_back(line);
  for (const Json& row : rows) {
    if (!std::getline(lines, line)) break;
    if (line.find('"') != std::string::npos) continue;  // a text with a comma in it: columns are counted no more
    std::vector<std::string> cells;
    for (std::istringstream parts(line); std::getline(parts, line, ',');) cells.push_back(line);
    for (std::size_t i = 0; i < std::min(cells.size(), columns.size()); ++i) {
      const auto found = row.find(columns[i]);
      if (found == row.end() || !found->is_number()) continue;
      holds(!cells[i].empty() && near(std::strtod(cells[i].c_str(), nullptr), found->get<double>()),
            "CSV says what JSON says", columns[i] + " " + cells[i], words);
    }
  }
}

void Truths::document(const Json& answer, const Words& words) {
  const std::string bad = misshapen(answer);
  holds(bad.empty(), "JSON has its schema's shape", bad, words);
  const std::string schema = answer["schema"];
  if (schema.starts_with("scalecalc/train/")) {
    double before = 0;
    for (const Json& one : answer["plans"]) {
      plan(one, words);
      const double rank = number(one, "rank");
      holds(rank > before, "ranks rise", one["rank"].dump(), words);
      before = rank;
    }
    table(answer["plans"], words);
  } else if (schema.starts_with("scalecalc/serve/")) {
    for (const Json& one : answer["points"]) point(one, words);
    table(answer["points"], words);
  } else if (schema.starts_with("scalecalc/roofline/")) {
    for (const Json& one : answer["points"]) roof(one, words);
    rising(answer["points"], "batch", words);
    table(answer["points"], words);
  } else if (schema.starts_with("scalecalc/collective/")) {
    rising(answer["points"], "bytes", words);
    table(answer["points"], words);
  }
}

void Truths::of_one(const Words& words) {
  const Reply text = ask(words);
  if (text.status == kStoppedEarly) return;
  holds(text.status >= 0 && text.status <= 3, "a documented exit status", fmt::format("{} {}", text.status, text.err),
        words);
  const auto said = [](const std::string& what) { return printable_lines(what) == what; };
  holds(said(text.err) && said(text.out), "nothing that a terminal obeys", text.err, words);
  if (text.status == 2) {
    holds(text.out.empty() && text.err.find("error: ") != std::string::npos, "a refusal says why", text.err, words);
    return;
  }
  holds(!text.out.empty(), "an answer says something", text.err, words);
  for (const char* lie : {" nan", " inf ", " -nan", " -inf", "infs", "nans"}) {
    holds(text.out.find(lie) == std::string::npos, "no table shows what is no number", lie, words);
  }
  const Words as_json = with(words, "--json");
  const Reply json = ask(as_json);
  if (json.status == 2 || json.status == kStoppedEarly) return;  // texts that have no JSON form
  holds(json.status == text.status, "one question has one exit status", fmt::format("{}", json.status), words);
  const Json answer = answer_of(json, words);
  document(answer, words);
  holds(ask(as_json).out == json.out, "the same question has the same answer", "", words);
  const auto question = answer.find("question");
  if (question == answer.end() || !question->is_string()) return;
  Words typed = shell_words(question->get<std::string>());
  typed.erase(typed.begin());
  Json again = Json::parse(ask(with(typed, "--json")).out, nullptr, false);
  holds(again == answer, "the question that an answer repeats has that answer", question->get<std::string>(), words);
}

void Truths::faster_machine(const Words& words, double before, fuzz::Choices& choose) {
  const std::vector<Rate>& rates = rates_of(chip_of(words));
  if (rates.empty()) return;
  const Rate& rate = choose.from(rates);
  const char* unit = rate.key.starts_with("hw.compute") ? "FLOP/s" : "B/s";
  const Words faster = with(words, fmt::format("--set={}={}{}", rate.key, 2 * rate.value, unit));
  const Reply reply = ask(with(faster, "--json"));
  if (reply.status != 0) return;
  const double after = time_of(answer_of(reply, faster));
  if (std::isnan(after)) return;
  holds(not_above(after, before), "a faster machine is not slower", fmt::format("{} before, {} after", before, after),
        faster);
}

void Truths::more_work(const Words& words, double before) {
  Words more = words;
  if (words[0] == "collective") {
    for (std::string& word : more) {
      if (!word.starts_with("--bytes=") || word.find("..") != std::string::npos) continue;
      std::size_t digits = 8;
      const double bytes = std::stod(word.substr(8), &digits);
      word = fmt::format("--bytes={}{}", 2 * bytes, word.substr(8 + digits));
    }
  } else if (words[0] == "roofline" && words[1] == "matmul" && !words.back().starts_with("--batch")) {
    more[2] = fmt::format("{}{}", 2 * std::stoll(words[2]), words[2].substr(words[2].find('x')));
  } else {
    return;
  }
  const Reply reply = ask(with(more, "--json"));
  if (reply.status != 0) return;
  const double after = time_of(answer_of(reply, more));
  if (std::isnan(after)) return;
  holds(not_above(before, after), "more work takes no less time", fmt::format("{} before, {} after", before, after),
        more);
}

void Truths::pinned(const Json& answer, const Words& words, fuzz::Choices& choose) {
  const Json& plans = answer.at("plans");
  const Json& free = plans.front();
  const Json& one = plans[choose.below(plans.size())];
  const Words fixed = with(words, "--fix=" + one.at("fix").get<std::string>());
  const Reply reply = ask(with(fixed, "--json"));
  holds(reply.status == 0, "a plan of an answer can be asked for", reply.err, fixed);
  const Json back = answer_of(reply, fixed);
  const Json& best = back.at("plans").front();
  // Of a token: plans may round the batch within its tolerance.
  const auto token_s = [](const Json& plan) { return number(plan, "step_time_s") / number(plan, "batch_tokens"); };
  holds(not_above(token_s(free), token_s(best)), "a pinned plan is not better than the free one",
        fmt::format("{} free, {} pinned", token_s(free), token_s(best)), fixed);
  holds(not_above(token_s(best), token_s(one)), "a pinned plan comes back",
        fmt::format("{} was {}", token_s(best), token_s(one)), fixed);
}

void Truths::of_several(const Words& words, fuzz::Choices& choose) {
  const Reply reply = ask(with(words, "--json"));
  if (reply.status != 0) return;
  const Json answer = answer_of(reply, words);
  const double before = time_of(answer);
  if (!std::isnan(before)) {
    for (int i = 0; i < 3; ++i) faster_machine(words, before, choose);
    more_work(words, before);
  }
  if (words[0] == "train" && answer.contains("plans") && !answer["plans"].empty()) pinned(answer, words, choose);
}

}  // namespace scalecalc::relations
