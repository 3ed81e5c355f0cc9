// Checks the launch file of a server against its own engine and chip, for `scalecalc lint`.
#include "launch/lint_serving_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/read_names.h"
#include "import/named_model.h"
#include "launch/serving.h"
#include "serve/engine_flags.h"
#include "serve/serve_options.h"
#include "spec/load.h"

namespace scalecalc::cli {
namespace {

/// A change to one argument: the dimension that is let go, and what must move with it.
struct ServeNeighbour {
  std::string_view dimension;
  std::string_view along;  ///< other dimensions, between blanks
};
constexpr std::array kServeNeighbours{
    ServeNeighbour{"tp", "dp attention_dp ep etp"}, ServeNeighbour{"pp", "dp"},
    ServeNeighbour{"attention_dp", "tp dp ep etp"}, ServeNeighbour{"cp", "tp dp"},
    ServeNeighbour{"ep", "etp ep_overlap"},         ServeNeighbour{"ep_overlap", ""},
};
constexpr double kGainWorthSaying = 0.01;

bool is_among(std::string_view words, std::string_view word) {
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

class ServingLinter {
 public:
  ServingLinter(const LaunchInput& input, Arguments asked, const Catalog& catalog, const Environment& env)
      : input_(input), asked_(std::move(asked)), catalog_(catalog), env_(env) {}

  LintReport run() {
    read_names(asked_, catalog_);
    const std::optional<LaunchInput> launched = take_serving_file(asked_, catalog_);
    shorten_load();
    pins_ = asked_.value("--fix").value_or("");
    places();
    try {
      const ServeAnswer found = answer(asked_);
      out_.chips = found.question.chips.value_or(0);
      out_.server = found.best;
      out_.assumptions = found.assumptions;
      if (!found.best) {
        add(LintKind::kDoesNotFit, "", shortage(found));
      } else {
        wasteful();
      }
    } catch (const UserError& error) {
      for (const Diagnostic& d : error.diagnostics()) {
        add(LintKind::kIllegal, about(d.message), d.hint.empty() ? d.message : d.message + "; " + d.hint);
      }
    }
    if (shortened_) out_.assumptions.push_back(*shortened_);
    if (launched) {
      launched->note(out_.assumptions);
      LaunchReading reading;
      reading.open = launched->open;
      reading.unread = launched->unread;
      add_unread(reading, out_.lint.findings);
    }
    std::stable_sort(out_.lint.findings.begin(), out_.lint.findings.end(),
                     [](const LintFinding& a, const LintFinding& b) { return a.kind < b.kind; });
    return std::move(out_);
  }

 private:
  /// The usual load where nobody says another, as far as the file lets requests be that long: the answer keeps its
  /// length up to half of what is left.
  void shorten_load() {
    if (asked_.has("--prompt") || asked_.has("--generate") || asked_.has("--context")) return;
    const std::string said = asked_.value(kLengthFlag).value_or("");
    const std::string_view number = std::string_view(said).substr(said.find('=') + 1);  // behind an engine's name
    std::int64_t longest = 0;
    std::from_chars(number.data(), number.data() + number.size(), longest);
    const ServeQuestion usual;
    if (longest < 2 || static_cast<double>(longest) >= usual.prompt + usual.generate) return;
    const std::int64_t generate = std::min(static_cast<std::int64_t>(usual.generate), longest / 2);
    const std::int64_t prompt = longest - generate;
    asked_.suppose("--prompt", {std::to_string(prompt)});
    asked_.suppose("--generate", {std::to_string(generate)});
    shortened_ = Assumption{fmt::format("prompts of {} tokens and answers of {}: the file allows {} together",
                                        group_thousands(prompt), group_thousands(generate), group_thousands(longest)),
                            "--from", std::string(input_.framework->source), false}
                     .as("load")
                     .is(static_cast<double>(longest));
  }

  ServeAnswer answer(const Arguments& asked) const {
    return serve_answer(serve_asked(asked).question, catalog_, env_.interrupted);
  }

  /// Where each dimension is said.
  void places() {
    out_.file = input_.file;
    out_.framework = input_.framework->title;
    out_.serving = true;
    if (!input_.pools.empty()) return;
    const ModelSpec model = load_model(
        load_model_document(catalog_, asked_.positionals().front(), asked_.value("--assume").value_or("")).document);
    places_ = import_serving(*input_.framework, input_.settings, &model).reading.places;
  }

  SourceSpan place_of(std::string_view dimension) const {
    const std::string_view term = dimension == "attention_dp" ? "adp" : dimension == "dp" ? "replicas" : dimension;
    const auto found = places_.find(term);
    return found == places_.end() ? SourceSpan{.file = input_.file, .line = 1, .column = 1} : found->second;
  }

  void add(LintKind kind, std::string_view about, std::string text, std::optional<double> gain = {}) {
    out_.lint.findings.push_back({kind, place_of(about), std::string(about), std::move(text), {}, gain});
  }

  /// The dimension that a message begins with.
  static std::string about(std::string_view message) {
    for (const ServeDimension& d : kServeDimensionTable) {
      const std::string name(d.name);
      if (message.starts_with(name + " ") || message.find("--fix " + name + "=") != std::string_view::npos) return name;
    }
    return "";
  }

  static std::string shortage(const ServeAnswer& found) {
    std::vector<std::string> out;
    for (const BindingLimit& limit : found.limits) {
      const bool memory = limit.name == "memory";
      const auto text = [&](double value) { return memory ? bytes_text(value) : seconds_text(value); };
      out.push_back(fmt::format("{} of {} at least, and {} allows {}", limit.name, text(limit.nearest),
                                memory ? "a chip" : "the limit", text(limit.asked)));
    }
    return out.empty() ? "no layout is legal on these chips" : join(out, "; ");
  }

  /// Without the dimension and those along.
  std::string pins_without(const ServeNeighbour& neighbour) const {
    std::vector<std::string> kept;
    for (std::size_t at = 0; at < pins_.size();) {
      const std::size_t end = std::min(pins_.find(',', at), pins_.size());
      const std::string pin = pins_.substr(at, end - at);
      const std::string_view name = std::string_view(pin).substr(0, pin.find('='));
      if (name != neighbour.dimension && !is_among(neighbour.along, name)) kept.push_back(pin);
      at = end + 1;
    }
    return join(kept, ",");
  }

  std::string changes(const ServeLayout& other, std::string_view but) const {
    std::vector<std::string> out;
    for (const ServeDimension& d : kServeDimensionTable) {
      if (d.name == but || d.value(other) == d.value(out_.server->layout)) continue;
      out.push_back(fmt::format("{} {}", d.name, d.value(other)));
    }
    return join_and(out);
  }

  std::optional<ServePoint> best_with(const std::string& pins) const {
    Arguments asked = asked_;
    asked.replace("--fix", pins.empty() ? std::vector<std::string>{} : std::vector<std::string>{pins});
    try {
      return answer(asked).best;
    } catch (const UserError&) {
      return std::nullopt;  // what that layout lacks is no fault of the file
    }
  }

  double gain_of(const ServePoint& point) const {
    return point.tokens_per_s_per_chip() / out_.server->tokens_per_s_per_chip() - 1;
  }

  void wasteful() {
    out_.best_server = best_with("");
    if (!input_.pools.empty()) return all_together();
    std::vector<LintFinding> found;
    for (const ServeNeighbour& neighbour : kServeNeighbours) {
      const ServeDimension* const d =
          std::find_if(kServeDimensionTable.begin(), kServeDimensionTable.end(),
                       [&](const ServeDimension& each) { return each.name == neighbour.dimension; });
      if (d == kServeDimensionTable.end() || (env_.interrupted && env_.interrupted())) continue;
      const auto point = best_with(pins_without(neighbour));
      const std::int64_t now = d->value(out_.server->layout);
      if (!point || d->value(point->layout) == now || gain_of(*point) <= kGainWorthSaying) continue;
      const std::string moved = changes(point->layout, d->name);
      found.push_back(
          {LintKind::kWasteful,
           place_of(d->name),
           std::string(d->name),
           fmt::format("{} {} instead of {}{}: {:.0f}% more tokens/s of a chip", d->name, d->value(point->layout), now,
                       moved.empty() ? "" : " (with " + moved + ")", 100 * gain_of(*point)),
           {},
           gain_of(*point)});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const LintFinding& a, const LintFinding& b) { return *a.gain > *b.gain; });
    for (LintFinding& finding : found) out_.lint.findings.push_back(std::move(finding));
    all_together();
  }

  void all_together() {
    if (!out_.best_server || gain_of(*out_.best_server) <= kGainWorthSaying) return;
    const double gain = gain_of(*out_.best_server);
    const std::string with = changes(out_.best_server->layout, "");
    add(LintKind::kWasteful, "",
        fmt::format("all together: {:.0f}% more tokens/s of a chip with {}", 100 * gain,
                    with.empty() ? describe(out_.best_server->layout) : with),
        gain);
  }

  const LaunchInput& input_;
  Arguments asked_;
  const Catalog& catalog_;
  const Environment& env_;
  std::string pins_;
  std::optional<Assumption> shortened_;  ///< the load, where the file's requests are shorter
  std::map<std::string, SourceSpan, std::less<>> places_;
  LintReport out_{.file = {}, .framework = {}, .lint = {}, .assumptions = {}};
};

}  // namespace

LintReport lint_serving(const LaunchInput& input, const std::string& model, const Arguments& arguments,
                        const Catalog& catalog, const Environment& env) {
  // As full as the file lets it run.
  Arguments::Values flags{{"--from", {input.file}}, {"--objective", {"throughput"}}};
  for (const std::string_view flag : {"--hw", "--chips", "--set"}) {
    if (arguments.has(flag)) flags[std::string(flag)] = arguments.values(flag);
  }
  if (arguments.has("--stack")) flags["--engine"] = arguments.values("--stack");
  return ServingLinter(input, Arguments::of(serve_command(), {model}, std::move(flags)), catalog, env).run();
}

}  // namespace scalecalc::cli
