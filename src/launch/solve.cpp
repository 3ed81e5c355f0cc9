// Solves the rows of a framework's table for the plan that a launch file describes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <sstream>

#include "base/text.h"
#include "launch/reading.h"
#include "launch/slurm.h"

namespace scalecalc {
namespace {

/// '*' stands for anything.
bool matches(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  text.remove_prefix(star);
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (matches(rest, text.substr(i))) return true;
  }
  return false;
}

std::string plain_key(std::string_view key) {
  for (const std::string_view prefix : {"run:", "env:"}) {
    if (key.starts_with(prefix)) key.remove_prefix(prefix.size());
  }
  // "--training.seq_len" is the field of a file on the command line.
  if (key.starts_with("--") && key.find('.') != std::string_view::npos) key.remove_prefix(2);
  std::string out(key);
  if (key.starts_with('-')) std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

/// What a letter behind a number multiplies it by, as vLLM reads counts of tokens: 16k is 16,000, 16K is 16,384
/// (vllm/engine/arg_utils.py, human_readable_int).
double multiple_of(char letter) {
  constexpr std::string_view kLetters = "kmgKMG";
  constexpr std::array<double, 6> kMultiples{1e3, 1e6, 1e9, 1024, 1024. * 1024, 1024. * 1024 * 1024};
  const std::size_t at = kLetters.find(letter);
  return at == std::string_view::npos ? 0 : kMultiples[at];
}

std::optional<double> written_number(std::string text, bool with_letters) {
  std::erase(text, '_');
  const double multiple = with_letters && !text.empty() ? multiple_of(text.back()) : 0;
  if (multiple > 0) text.pop_back();
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0) return std::nullopt;
  return multiple > 0 ? out * multiple : out;
}

/// Values by which frameworks say that they choose.
bool is_left_open(const LaunchSetting& setting) {
  constexpr std::array<std::string_view, 7> kOpen{"auto", "gpu", "null", "None", "-1", "~", "-1.0"};
  return setting.values.size() == 1 && std::find(kOpen.begin(), kOpen.end(), setting.values.front()) != kOpen.end();
}

bool is_any(std::initializer_list<std::string_view> words, std::string_view value) {
  return std::find(words.begin(), words.end(), lower_case(value)) != words.end();
}

bool is_on(std::string_view value) { return is_any({"true", "yes", "on", "1"}, value); }

/// Whether a setting has the value of a row that is a literal or a list.
bool has_value(const LaunchSetting& setting, std::string_view row_value) {
  if (row_value.starts_with("[~")) {
    std::istringstream sought(std::string(row_value.substr(2, row_value.size() - 3)));
    return std::all_of(std::istream_iterator<std::string>(sought), {}, [&](const std::string& item) {
      return std::find(setting.values.begin(), setting.values.end(), item) != setting.values.end();
    });
  }
  if (!row_value.starts_with('\'')) return false;
  const std::string_view literal = row_value.substr(1, row_value.size() - 2);
  // A switch of the command line, which a file would say with a truth value.
  if (setting.values.empty()) return literal == "on" || (literal == "true" && setting.key.starts_with('-'));
  const std::string& value = setting.values.front();
  if (literal == "on") return is_on(value) || value.find_first_of("./") != std::string::npos;
  if (literal == "true" || literal == "True") return is_on(value);
  if (literal == "false" || literal == "False") return is_off(value);
  const auto number = written_number(value, false);
  return value == literal || (number && number == written_number(std::string(literal), false));  // "0.0" is "0"
}

bool is_product(std::string_view value) { return !value.empty() && value.find_first_of("'@[") != 0; }

/// Whether a setting is a row's. An object that the file does not hold leaves all its members open.
bool is_of(const LaunchRow& row, const LaunchSetting& setting) {
  if (row.key.empty()) return false;
  if (is_key(row.key, setting.key)) return true;
  return !setting.open.empty() && !setting.key.empty() && row.key.size() > setting.key.size() &&
         row.key[setting.key.size()] == '.' && row.key.starts_with(setting.key);
}

/// Whether a file's setting is spelled as the row's framework would: "--bf16 True" is of scripts of Hugging Face.
bool is_spelled(const LaunchFramework& framework, const LaunchRow& row, const LaunchSetting& setting) {
  const bool is_switch = row.value == "'on'" && !setting.values.empty();
  return !is_switch || framework.peft || !(is_on(setting.values.front()) || is_off(setting.values.front()));
}

/// How much of a file is a framework's: nothing where all it has are arguments of a launcher, which starts any program.
std::size_t likeness(const LaunchFramework& framework, const LaunchText& file, std::string_view text) {
  constexpr std::size_t kNamed = 100;  // above all arguments that frameworks share
  std::size_t own = 0, of_launch = 0;
  bool named = false;
  for (const LaunchSetting& setting : file.settings) {
    if (setting.key.starts_with("env:") || is_of_launcher(setting.key)) continue;
    bool of_program = false, of_command = false;
    for (const LaunchRow& row : framework.rows) {
      if (row.key.empty() || !is_key(row.key, setting.key)) continue;
      (row.key.starts_with("run:") ? of_command : of_program) |= is_spelled(framework, row, setting);
    }
    own += of_program ? 1U : 0U;
    of_launch += of_command && !of_program ? 1U : 0U;
    named = named || (names_settings(framework, setting) && text.find(framework.program) != std::string_view::npos);
  }
  if (own == 0 && !named) return 0;
  std::size_t score = own + of_launch + (named ? kNamed : 0);
  const std::string_view command = framework.command;
  const bool any = command == "torchrun";  // which starts any program
  if (!any && text.find(command.substr(command.find_last_of(' ') + 1)) != std::string_view::npos) ++score;
  return score;
}

class Solver {
 public:
  Solver(const LaunchFramework& framework, const std::vector<LaunchSetting>& settings, const LaunchTerms& known)
      : framework_(framework),
        rows_(framework.rows.begin(), framework.rows.end()),
        settings_(settings),
        used_(settings.size()) {
    const auto launchers = launcher_rows(framework.job);
    rows_.insert(rows_.end(), launchers.begin(), launchers.end());
    applied_.resize(rows_.size());
    out_.terms = known;
    known_ = known;
    out_.names_unread_file = std::any_of(settings.begin(), settings.end(), [&](const LaunchSetting& setting) {
      return names_settings(framework, setting) && !setting.open.empty();
    });
  }

  LaunchReading run(const std::vector<std::pair<std::string, std::int64_t>>& otherwise) {
    say_unconditional();
    settle();
    for (const auto& [name, value] : otherwise) {
      if (out_.terms.knows(name)) continue;
      out_.terms.numbers[name] = value;
      settle();
    }
    sort_settings();
    if (!problems_.empty()) throw UserError(problems_);
    return std::move(out_);
  }

 private:
  const LaunchSetting* setting_of(const LaunchRow& row, std::size_t* at = nullptr) const {
    for (std::size_t i = settings_.size(); i-- > 0;) {  // the last one holds
      if (!is_of(row, settings_[i])) continue;
      if (at != nullptr) *at = i;
      return &settings_[i];
    }
    return nullptr;
  }

  void use(const LaunchRow& row) {
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      if (is_key(row.key, settings_[i].key)) used_[i] = true;
    }
  }

  void say(const LaunchRow& row, const LaunchSetting* setting) {
    for (const auto& [name, value] : said(row.says)) {
      if (known_.knows(name)) continue;
      out_.terms.numbers.erase(name);
      out_.terms.words.erase(name);
      out_.terms.set(name, value);
      if (setting != nullptr) out_.places[name] = setting->where;
    }
  }

  /// Literals that hold whatever else the file says; a later row of the table decides over an earlier one.
  void say_unconditional() {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const LaunchRow& row = rows_[r];
      const LaunchSetting* setting = row.key.empty() ? nullptr : setting_of(row);
      if (setting == nullptr || row.use == RowUse::kWritten || !setting->open.empty()) continue;
      if (row.value.starts_with("[@")) {
        const std::string name(row.value.substr(2, row.value.size() - 3));
        out_.terms.words[name] = join(setting->values, " ");
        out_.places[name] = setting->where;
        use(row);
      } else if (row.value.starts_with('@')) {
        if (setting->values.empty() || is_left_open(*setting)) continue;
        out_.terms.words[std::string(row.value.substr(1))] = setting->values.front();
        out_.places[std::string(row.value.substr(1))] = setting->where;
        use(row);
      } else if ((row.when.empty() || holds(row.when, known_) == true) &&
                 (has_value(*setting, row.value) || is_product(row.value))) {
        say(row, setting);
        if (!is_product(row.value)) use(row);
      }
    }
    if (const auto layout = out_.terms.word("layout")) {
      out_.terms.numbers["chunks"] = 1 + std::count(layout->begin(), layout->end(), '|');
    }
  }

  /// Until nothing more follows.
  void settle() {
    for (bool moved = true; moved;) {
      while (follow()) {
      }
      moved = suppose();
    }
  }

  bool follow() {
    bool moved = false;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (!applied_[r] && apply(r)) moved = true;
    }
    const auto relations = launch_relations(framework_.job);
    related_.resize(relations.size());
    for (std::size_t i = 0; i < relations.size(); ++i) {
      if (related_[i] || holds(relations[i].when, out_.terms) != true) continue;
      if (equate(relations[i].product, 1, nullptr, related_[i])) moved = true;
    }
    return moved;
  }

  bool apply(std::size_t r) {
    const LaunchRow& row = rows_[r];
    if (row.use == RowUse::kWritten || row.value.empty() || holds(row.when, out_.terms) != true) return false;
    if (row.key.empty()) return equate(row.value, 1, nullptr, applied_[r]);
    const LaunchSetting* setting = setting_of(row);
    if (setting == nullptr || !setting->open.empty()) return false;
    if (!is_product(row.value)) {
      if (row.when.empty() || !has_value(*setting, row.value)) return false;
      applied_[r] = true;
      use(row);
      const auto pairs = said(row.says);
      const bool news =
          std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return !out_.terms.knows(pair.first); });
      if (news) say(row, setting);
      return news;
    }
    if (is_left_open(*setting)) {
      use(row);
      return false;
    }
    const bool with_letters = framework_.name == "vllm";
    const auto value = setting->values.empty() ? std::nullopt : written_number(setting->values.front(), with_letters);
    if (!value) {
      applied_[r] = true;
      problem(*setting, fmt::format("{} {} is no number", setting->key, in_quotes(first_value(*setting))),
              "write the number itself");
      return false;
    }
    use(row);
    return equate(row.value, *value, setting, applied_[r]);
  }

  static std::string first_value(const LaunchSetting& s) { return s.values.empty() ? "" : s.values.front(); }

  /// Solves product = value for its one unknown term, or holds it against what is known.
  bool equate(std::string_view product_text, double value, const LaunchSetting* setting,
              std::vector<bool>::reference done) {
    const LaunchProduct product = parse_product(product_text);
    double known = 1;
    const LaunchFactor* open = nullptr;
    for (const LaunchFactor& factor : product) {
      const auto number = factor.name.empty() ? std::optional(factor.number) : out_.terms.number(factor.name);
      if (!number) {
        if (open != nullptr) return false;
        open = &factor;
      } else {
        known *= factor.divides ? 1 / static_cast<double>(*number) : static_cast<double>(*number);
      }
    }
    done = true;
    if (open == nullptr) {
      if (std::abs(known - value) > 1e-6 * std::max(1.0, value)) contradict(product, value, setting);
      return false;
    }
    const double exact = open->divides ? known / value : value / known;
    const double whole = std::round(exact);
    const bool counts = open->name == "zero" || open->name.ends_with("_layers") ? whole >= 0 : whole >= 1;
    if (!std::isfinite(exact) || !counts || whole > kMostNumber ||
        std::abs(exact - whole) > 1e-6 * std::max(1.0, exact)) {
      contradict(product, value, setting);
      return false;
    }
    out_.terms.numbers[open->name] = static_cast<std::int64_t>(whole);
    if (setting != nullptr) out_.places[open->name] = setting->where;
    return true;
  }

  static constexpr double kMostNumber = 1e9;  ///< of sequences, tokens and chips

  void contradict(const LaunchProduct& product, double value, const LaunchSetting* setting) {
    std::vector<std::string> has;
    const SourceSpan* place = setting == nullptr ? nullptr : &setting->where;
    for (const LaunchFactor& factor : product) {
      const auto number = out_.terms.number(factor.name);
      if (factor.name.empty() || !number) continue;
      has.push_back(fmt::format("{}{} {}", factor.divides ? "over " : "", factor.name, *number));
      if (const auto at = out_.places.find(factor.name); place == nullptr && at != out_.places.end())
        place = &at->second;
    }
    const std::string what =
        setting == nullptr ? fmt::format("{} is not {}", joined_factors(product, false), joined_factors(product, true))
                           : fmt::format("{} {} does not go with {}", setting->key, value, join(has, ", "));
    problems_.push_back({place == nullptr ? SourceSpan{} : *place, what,
                         "degrees of the file, its batch and the chips and model of the question must agree"});
  }

  /// "tp 8 x pp 16": those that multiply, or those that divide.
  std::string joined_factors(const LaunchProduct& product, bool dividing) const {
    std::vector<std::string> out;
    for (const LaunchFactor& factor : product) {
      const auto number = out_.terms.number(factor.name);
      if (factor.divides == dividing && number) out.push_back(fmt::format("{} {}", factor.name, *number));
    }
    return out.empty() ? "1" : join(out, " x ");
  }

  void problem(const LaunchSetting& setting, std::string message, std::string hint) {
    problems_.push_back({setting.where, std::move(message), std::move(hint)});
  }

  /// The first default that says something: of a key that is absent, or a conclusion.
  bool suppose() {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const LaunchRow& row = rows_[r];
      if (applied_[r] || row.use == RowUse::kWritten || holds(row.when, out_.terms) != true) continue;
      const bool absent = row.key.empty() || setting_of(row) == nullptr;
      if (!absent || (out_.names_unread_file && is_of_file(row))) continue;
      if (row.value.empty()) {
        applied_[r] = true;
        const auto pairs = said(row.says);
        if (std::any_of(pairs.begin(), pairs.end(), [&](const auto& p) { return out_.terms.knows(p.first); })) continue;
        if (earlier_may_say(r, pairs.front().first)) {
          applied_[r] = false;
          continue;
        }
        say(row, nullptr);
        return true;
      }
      const bool has_default = !row.key.empty() && !row.absent.empty() && is_product(row.value);
      // Another spelling may have said it.
      if (has_default && !value_of(parse_product(row.value), out_.terms)) {
        std::string both(row.value);
        for (const LaunchFactor& f : parse_product(row.absent)) {
          both += fmt::format("{}{}", f.divides ? "*" : "/", f.name.empty() ? std::to_string(f.number) : f.name);
        }
        if (equate(both, 1, nullptr, applied_[r])) {
          note_default(row);
          return true;
        }
      }
    }
    return false;
  }

  /// Whether a default is of what a file of its own may say.
  bool is_of_file(const LaunchRow& row) const {
    const auto is_field = [](const LaunchRow& r) {
      return !r.key.empty() && !r.key.starts_with('-') && !r.key.starts_with('#') && r.key.find(':') == r.key.npos &&
             r.key.find(' ') == r.key.npos;
    };
    if (!row.key.empty()) return is_field(row);
    if (!row.value.empty() || !row.when.empty()) return false;
    const std::string name = said(row.says).front().first;
    return std::any_of(rows_.begin(), rows_.end(), [&](const LaunchRow& other) {
      const auto pairs = said(other.says);
      return is_field(other) &&
             std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == name; });
    });
  }

  /// Of a number that a row of one term alone says by its absence.
  void note_default(const LaunchRow& row) {
    const LaunchProduct product = parse_product(row.value);
    const auto value = product.size() == 1 ? out_.terms.number(product.front().name) : std::nullopt;
    if (value && *value > 1) out_.defaults.push_back(fmt::format("{} {}", product.front().name, *value));
  }

  /// Whether a conclusion above, not decided yet, would say it.
  bool earlier_may_say(std::size_t r, const std::string& name) const {
    for (std::size_t e = 0; e < r; ++e) {
      const LaunchRow& row = rows_[e];
      if (!row.key.empty() || !row.value.empty() || holds(row.when, out_.terms)) continue;
      const auto pairs = said(row.says);
      if (std::any_of(pairs.begin(), pairs.end(), [&](const auto& p) { return p.first == name; })) return true;
    }
    return false;
  }

  /// What was read, what changes nothing, what was not read.
  void sort_settings() {
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      const LaunchSetting& setting = settings_[i];
      const auto is_its = [&](const LaunchRow& row) { return is_of(row, setting); };
      const bool ours = std::any_of(rows_.begin(), rows_.end(), is_its);
      const bool written = std::any_of(rows_.begin(), rows_.end(), [&](const LaunchRow& row) {
        const bool off = (row.value == "'true'" || (row.value == "'on'" && !setting.values.empty())) &&
                         has_value(setting, "'false'");
        // A product is the file's own to say; a literal that differs from what would be written says something else.
        const bool any = row.use == RowUse::kWritten && !row.value.starts_with('\'');
        return is_its(row) && (off || any || has_value(setting, row.value));
      });
      const std::string key = plain_key(setting.key);
      const bool neutral =
          std::any_of(framework_.neutral.begin(), framework_.neutral.end(), [&](std::string_view pattern) {
            return matches(plain_key(pattern), key) || plain_key(pattern) == key + ".*";  // an object as a whole
          });
      if (used_[i]) continue;
      const bool only_written = std::all_of(rows_.begin(), rows_.end(), [&](const LaunchRow& row) {
        return !is_its(row) || row.use == RowUse::kWritten;
      });
      const bool named = names_settings(framework_, setting);  // whose own settings are among these, unless it is open
      const bool read_open = (ours && !only_written) || named;
      const bool around = std::any_of(kAround.begin(), kAround.end(),
                                      [&](std::string_view prefix) { return setting.key.starts_with(prefix); });
      if (setting.key == kFurtherArguments || (read_open && !setting.open.empty())) {
        out_.open.push_back(setting);
      } else if (written || neutral || around || named) {
        ++out_.neutral;
      } else {
        out_.unread.push_back(setting);
      }
    }
  }

  static constexpr std::array<std::string_view, 3> kAround{"env:", kOfSbatch, kOfSrun};

  const LaunchFramework& framework_;
  std::vector<LaunchRow> rows_;  ///< the framework's and those of launchers
  const std::vector<LaunchSetting>& settings_;
  LaunchTerms known_;
  LaunchReading out_;
  std::vector<bool> used_, applied_, related_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

bool is_off(std::string_view value) { return is_any({"false", "no", "off", "0"}, value); }

bool is_key(std::string_view row_key, std::string_view key) {
  if (row_key.starts_with("env:") != key.starts_with("env:")) return false;
  return plain_key(row_key) == plain_key(key);
}

bool names_settings(const LaunchFramework& framework, const LaunchSetting& setting) {
  std::istringstream configs{std::string(framework.configs)};
  return !setting.values.empty() && std::any_of(std::istream_iterator<std::string>(configs), {},
                                                [&](const std::string& key) { return is_key(key, setting.key); });
}

LaunchReading solve(const LaunchFramework& framework, const std::vector<LaunchSetting>& settings,
                    const LaunchTerms& known, const std::vector<std::pair<std::string, std::int64_t>>& otherwise) {
  return Solver(framework, settings, known).run(otherwise);
}

const LaunchFramework& framework_of(const LaunchText& file, std::string_view text, const std::string& name,
                                    const LaunchFrameworks& known) {
  const LaunchFramework* best = nullptr;
  std::size_t most = 0;
  for (const LaunchFramework& framework : known) {
    const std::size_t score = likeness(framework, file, text);
    if (score <= most) continue;
    most = score;
    best = &framework;
  }
  if (best != nullptr) return *best;
  std::vector<std::string> titles;
  for (const LaunchFramework& framework : known) titles.emplace_back(framework.title);
  throw UserError({Diagnostic{{.file = name, .line = 1, .column = 1},
                              "no argument of a launch file is known in it",
                              fmt::format("files are read of {}", join(titles, ", "))}});
}

}  // namespace scalecalc
