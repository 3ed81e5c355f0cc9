// Reads recipes of torchtitan in Python: a function that gives a Trainer.Config, of which the arguments are read as
// the keys of the TOML that they replaced, and lines that change it. Nothing is run.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/limits.h"
#include "base/text.h"
#include "config/source_text.h"
#include "launch/document.h"
#include "launch/python_lines.h"
#include "launch/reading.h"

namespace scalecalc {
namespace {

constexpr std::string_view kConfig = "Trainer.Config(";
constexpr std::size_t kNone = std::string_view::npos;

/// A config of its own, or another's with changes.
struct Recipe {
  std::string name;
  const PythonFunction* in = nullptr;
  std::size_t origin = 0;       ///< its line of the function: what it begins with
  std::size_t config = kNone;   ///< behind "Trainer.Config("
  std::string_view variable{};  ///< that holds it, and is changed
  std::string_view of{};        ///< another that it changes
  std::size_t of_at = 0;
  bool arguments = false;  ///< handed to that other
};

bool is_number(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  double out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return error == std::errc() && end == digits.data() + digits.size() &&
         (std::isdigit(static_cast<unsigned char>(digits.back())) != 0 || digits.back() == '.');
}

/// Whether a line reads what it names, and changes nothing.
bool only_reads(std::string_view line) {
  constexpr std::array<std::string_view, 7> kReading{"if", "elif", "while", "assert", "print", "raise", "return"};
  const std::string_view first = python_name(line, 0);
  return std::find(kReading.begin(), kReading.end(), first) != kReading.end();
}

std::string shortened(std::string_view text) {
  return std::string(text.substr(0, std::min<std::size_t>(40, text.find('\n'))));
}

class RecipeReader {
 public:
  RecipeReader(std::string_view text, const std::string& file)
      : text_(text), source_(text, file), code_(python_code(text)), functions_(python_functions(code_)) {}

  LaunchText read() {
    find_recipes();
    if (recipes_.empty()) fail(0, "no function of this file gives a Trainer.Config", "return Trainer.Config(...)");
    take(the_recipe());
    for (LaunchSetting& setting : out_) setting.key = toml_key(setting.key);
    return {LaunchFormat::kPython, std::move(out_)};
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string message, std::string hint) const {
    throw UserError({Diagnostic{source_.span(std::min(at, text_.size() - 1)), std::move(message), std::move(hint)}});
  }

  std::string_view code(const PythonLine& line) const {
    return std::string_view(code_).substr(line.begin, line.end - line.begin);
  }

  /// Where it stood in the TOML.
  static std::string toml_key(const std::string& key) {
    for (const std::string_view object : {"model_spec.", "model_converters."}) {
      if (key.starts_with(object)) return "model." + key.substr(object.size());
    }
    return key;
  }

  /// All of them; what takes one of them in a way that is not read would pass for the one that it takes.
  void find_recipes() {
    std::vector<Recipe> others;
    std::vector<const PythonFunction*> rest;
    for (const PythonFunction& function : functions_) {
      if (find_own(function)) continue;
      const std::size_t before = others.size();
      find_changing(function, others);
      if (others.size() == before) rest.push_back(&function);
    }
    for (bool found = true; found;) {
      found = false;
      for (std::size_t i = 0; i < others.size(); ++i) {
        if (!is_known(others[i].of) && !others[i].in->header.ends_with("-> Trainer.Config:")) continue;
        recipes_.push_back(others[i]);
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
        found = true;
        break;
      }
    }
    for (const Recipe& recipe : recipes_) {
      if (recipe.arguments) {
        fail(recipe.of_at, "what " + std::string(recipe.of) + " is handed here is not followed",
             "change its config by lines of VARIABLE.KEY = VALUE");
      }
    }
    for (const Recipe& other : others) rest.push_back(other.in);
    for (const PythonFunction* function : rest) refuse_unreadable(*function);
    std::sort(recipes_.begin(), recipes_.end(), [](const Recipe& a, const Recipe& b) {
      return a.in->lines[a.origin].begin < b.in->lines[b.origin].begin;
    });
  }

  bool is_known(std::string_view name) const {
    return std::any_of(recipes_.begin(), recipes_.end(), [&](const Recipe& r) { return r.name == name; });
  }

  /// "return Trainer.Config(...)", "config = Trainer.Config(...)".
  bool find_own(const PythonFunction& function) {
    bool found = false;
    for (std::size_t i = 0; i < function.lines.size(); ++i) {
      const PythonLine& line = function.lines[i];
      const std::size_t config = code(line).find(kConfig);
      if (config == kNone) continue;
      if ((found && !function.name.empty()) || code(line).find(kConfig, config + 1) != kNone) {
        fail(line.begin + config, "a second Trainer.Config in one function", "one for each recipe");
      }
      Recipe recipe{.name = std::string(function.name), .in = &function, .origin = i};
      recipe.config = line.begin + config + kConfig.size();
      if (const auto set = python_assignment(code_, line); set && set->plain && set->value == line.begin + config) {
        recipe.variable = set->target;
      }
      if (function.name.empty()) recipe.name = recipe.variable;
      recipes_.push_back(std::move(recipe));
      found = true;
    }
    return found;
  }

  /// "config = llama3_8b()" of what is returned, or "return llama3_8b()".
  void find_changing(const PythonFunction& function, std::vector<Recipe>& out) const {
    for (std::size_t i = 0; i < function.lines.size(); ++i) {
      const PythonLine& line = function.lines[i];
      const auto set = python_assignment(code_, line);
      const bool returns = python_name(code(line), 0) == "return";
      if (!returns && (!set || !set->plain)) continue;
      const std::size_t at = returns ? after_blanks(line.begin + 6, line.end) : set->value;
      Recipe recipe{.name = std::string(function.name), .in = &function, .origin = i, .of_at = at};
      recipe.of = python_name(code_, at);
      const std::size_t opens = after_blanks(at + recipe.of.size(), line.end);
      if (recipe.of.empty() || opens >= line.end || code_[opens] != '(') continue;
      if (python_closing(code_, opens) + 1 != line.end) continue;
      recipe.arguments = after_blanks(opens + 1, line.end) + 1 != line.end;
      if (!returns) recipe.variable = set->target;
      if (!returns && !function.name.empty() && !gives(function, set->target)) continue;
      if (function.name.empty()) recipe.name = recipe.variable;
      out.push_back(std::move(recipe));
      if (!function.name.empty()) return;
    }
  }

  std::size_t after_blanks(std::size_t at, std::size_t end) const {
    while (at < end && std::isspace(static_cast<unsigned char>(code_[at])) != 0) ++at;
    return at;
  }

  bool gives(const PythonFunction& function, std::string_view variable) const {
    return std::any_of(function.lines.begin(), function.lines.end(),
                       [&](const PythonLine& line) { return is_return_of(line, variable); });
  }

  bool is_return_of(const PythonLine& line, std::string_view variable) const {
    if (python_name(code(line), 0) != "return") return false;
    const std::size_t at = after_blanks(line.begin + 6, line.end);
    return std::string_view(code_).substr(at, line.end - at) == variable;
  }

  /// A function that gives what it makes of a recipe in some other way.
  void refuse_unreadable(const PythonFunction& function) const {
    if (function.name.empty()) return;
    const bool says = function.header.ends_with("-> Trainer.Config:");
    const bool returns = std::any_of(function.lines.begin(), function.lines.end(), [&](const PythonLine& line) {
      return python_name(code(line), 0) == "return" && line.end > line.begin + 6;
    });
    if (!returns && !says) return;
    for (const PythonLine& line : function.lines) {
      for (const Recipe& recipe : recipes_) {
        const std::size_t at = recipe.name.empty() ? kNone : python_word(code(line), recipe.name, 0);
        if (at == kNone) continue;
        const std::size_t behind = after_blanks(line.begin + at + recipe.name.size(), line.end);
        if (behind >= line.end || code_[behind] != '(') continue;
        fail(line.begin + at, "what is made of " + recipe.name + " here is not read",
             "config = " + recipe.name + "(), lines of config.KEY = VALUE, return config");
      }
    }
    if (says && !function.lines.empty()) {
      fail(function.lines.front().begin, "how " + std::string(function.name) + " makes its config is not read",
           "return Trainer.Config(...), or another's of the file and lines of VARIABLE.KEY = VALUE");
    }
  }

  /// The one that no other changes; of several it is for the reader to say which is meant.
  const Recipe& the_recipe() const {
    std::vector<const Recipe*> found;
    std::vector<std::string> names;
    for (const Recipe& recipe : recipes_) {
      const bool changed = std::any_of(recipes_.begin(), recipes_.end(), [&](const Recipe& r) {
        return &r != &recipe && !r.of.empty() && r.of == recipe.name;
      });
      if (changed) continue;
      found.push_back(&recipe);
      names.emplace_back(recipe.name);
    }
    if (found.size() == 1) return *found.front();
    const Recipe& at = found.empty() ? recipes_.front() : *found[1];
    fail(at.in->name.empty() ? at.in->lines[at.origin].begin : at.in->name_at,
         found.empty() ? "these recipes change each other in a circle"
                       : "several recipes are in this file: " + join_and(names),
         "keep the one that is run in a file of its own, with those that it changes");
  }

  /// Its own arguments or another's, and then the changes, of which the last holds.
  void take(const Recipe& recipe) {
    if (recipe.config != kNone) {
      in_ = recipe.in;
      arguments("", recipe.config - 1);
    } else {
      const auto base =
          std::find_if(recipes_.begin(), recipes_.end(), [&](const Recipe& r) { return r.name == recipe.of; });
      if (base == recipes_.end()) {
        fail(recipe.of_at, "this recipe changes " + std::string(recipe.of) + ", which is not in the file",
             "put " + std::string(recipe.of) + " into the same file");
      }
      if (++depth_ > limits::kRecipeLevels) fail(recipe.of_at, "these recipes change each other in a circle", "");
      take(*base);
      --depth_;
      in_ = recipe.in;
    }
    if (!recipe.variable.empty()) change(recipe.variable, "", recipe.origin);
  }

  /// Lines behind `from` that change what a variable holds there; an empty prefix is the config itself.
  void change(std::string_view variable, const std::string& prefix, std::size_t from) {
    const PythonFunction& function = *in_;
    const std::string members = std::string(variable) + ".";
    for (std::size_t i = from + 1; i < function.lines.size(); ++i) {
      const PythonLine& line = function.lines[i];
      const auto set = python_assignment(code_, line);
      if (set && set->target == variable) {
        if (!prefix.empty()) return;
        fail(line.begin, std::string(variable) + " is set again here, which is not followed",
             "lines of " + members + "KEY = VALUE");
      }
      if (set && set->target.starts_with(members) && is_path(set->target)) {
        const std::string key = prefix + std::string(set->target.substr(members.size()));
        const SourceSpan where = source_.span(line.begin, line.begin + set->target.size());
        drop(key);
        const bool branch = line.indent > function.lines[from].indent;
        if (branch || !set->plain) {
          put(key, {}, where, branch ? "a branch" : "an expression");
        } else {
          value(key, where, set->value, line.end);
        }
      } else {
        mention(variable, prefix, line, set);
      }
    }
  }

  static bool is_path(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return is_python_name(c) || c == '.'; });
  }

  /// A line that does something else with a variable: what it may change is open, or the line is not read.
  void mention(std::string_view variable, const std::string& prefix, const PythonLine& line,
               const std::optional<PythonAssignment>& set) {
    const std::string_view text = code(line);
    if (prefix.empty() && python_name(text, 0) == "return" && python_word(text, variable, 0) != kNone &&
        !is_return_of(line, variable)) {
      fail(line.begin, "what this recipe returns is not read", "return " + std::string(variable));
    }
    if (only_reads(text)) return;
    const auto is_name = [](char c) { return is_python_name(c); };
    if (set && std::all_of(set->target.begin(), set->target.end(), is_name) &&
        !is_path(std::string_view(code_).substr(set->value, line.end - set->value))) {
      return;  // another variable, computed from this one
    }
    for (std::size_t at = python_word(text, variable, 0); at != kNone; at = python_word(text, variable, at + 1)) {
      std::size_t end = at + variable.size();
      while (end < text.size() && (is_python_name(text[end]) || text[end] == '.')) ++end;
      std::string path(text.substr(at + variable.size(), end - at - variable.size()));
      if (end < text.size() && text[end] == '(') path.resize(path.rfind('.') == kNone ? 0 : path.rfind('.'));
      const SourceSpan where = source_.span(line.begin + at, line.begin + end);
      if (path.size() > 1) {
        put(prefix + path.substr(1), {}, where, "an expression");
      } else if (prefix.empty() && !in_->name.empty()) {
        put(shortened(text_.substr(line.begin, line.end - line.begin)), {}, where, "");
      }
    }
  }

  void put(std::string key, std::vector<std::string> values, const SourceSpan& where, std::string open) {
    out_.push_back({.key = std::move(key), .values = std::move(values), .where = where, .open = std::move(open)});
  }

  /// What was said of an object that is replaced.
  void drop(const std::string& key) {
    std::erase_if(out_, [&](const LaunchSetting& s) { return s.key == key || s.key.starts_with(key + "."); });
  }

  /// "key=value, ..." between parentheses.
  void arguments(const std::string& prefix, std::size_t opens) {
    const std::size_t close = python_closing(code_, opens);
    if (close == kNone) fail(text_.size(), "Trainer.Config( has no closing parenthesis", "");
    for (std::size_t at = opens + 1; at < close;) {
      const std::size_t end = python_comma(code_, at, close);
      at = after_blanks(at, end);
      if (at < end) {
        const std::string_view key = python_name(code_, at);
        const std::size_t equals = after_blanks(at + key.size(), end);
        if (key.empty() || equals >= end || code_[equals] != '=' || code_[equals + 1] == '=') {
          fail(at, "an argument here has no name",
               "KEY=VALUE, as in parallelism=ParallelismConfig(tensor_parallel_degree=8)");
        }
        value(prefix + std::string(key), source_.span(at, at + key.size()), equals + 1, end);
      }
      at = end + 1;
    }
  }

  /// An expression as far as it is a literal, an object of literals or a variable that holds one.
  void value(const std::string& key, const SourceSpan& where, std::size_t begin, std::size_t end) {
    if (++depth_ > limits::kRecipeLevels) fail(begin, "this recipe nests too deep", "arguments of Trainer.Config");
    begin = after_blanks(begin, end);
    while (end > begin && std::isspace(static_cast<unsigned char>(code_[end - 1])) != 0) --end;
    const std::string_view all = std::string_view(code_).substr(begin, end - begin);
    const char first = all.empty() ? ' ' : all.front();
    const std::size_t opens = all.find_first_of("([{");
    const bool whole = opens != kNone && python_closing(code_, begin + opens) + 1 == end;
    if (is_one_text(all)) {
      const std::size_t quotes = text_.substr(begin, 3) == std::string(3, first) && end - begin > 5 ? 3 : 1;
      put(key, {std::string(text_.substr(begin + quotes, end - begin - 2 * quotes))}, where, "");
    } else if (all == "None") {
      nothing(key, where);
    } else if (all == "True" || all == "False" || (!all.empty() && is_number(all))) {
      put(key, {std::string(all)}, where, "");
    } else if (whole && opens == 0 && first == '(' && python_comma(code_, begin + 1, end - 1) == end - 1) {
      value(key, where, begin + 1, end - 1);
    } else if (whole && opens == 0) {
      list(key, where, begin, end);
    } else if (whole && is_path(all.substr(0, opens)) && code_[begin + opens] == '(') {
      called(key, where, begin, opens, end);
    } else if (!all.empty() && is_path(all)) {
      held(key, where, all, begin);
    } else {
      put(key, {}, where, "an expression");
    }
    --depth_;
  }

  /// Quotes at both ends and none between.
  static bool is_one_text(std::string_view code) {
    return code.size() > 1 && (code[0] == '"' || code[0] == '\'') && code.find(code[0], 1) == code.size() - 1;
  }

  /// None says that there is none, where that is not what its absence says.
  void nothing(const std::string& key, const SourceSpan& where) {
    if (key == "activation_checkpoint") return put(key + ".mode", {"none"}, where, "");
    if (key == "model_converters") return put(key + ".converters", {}, where, "");
    put(key, {"None"}, where, "");
  }

  void list(const std::string& key, const SourceSpan& where, std::size_t begin, std::size_t end) {
    const std::string_view inside = std::string_view(code_).substr(begin, end - begin);
    if (inside.find("Float8LinearConverter") != kNone) {
      std::vector<std::string> converters{"quantize.linear.float8"};
      if (inside.find("Float8GroupedMMConverter") != kNone) converters.emplace_back("quantize.grouped_mm.float8");
      put(key, std::move(converters), where, "");
      return float8_recipe(where, begin, end);
    }
    if (inside.find("MXFP8LinearConverter") != kNone) return put(key, {"quantize.linear.mx"}, where, "");
    const bool empty = after_blanks(begin + 1, end) + 1 == end;
    put(key, {}, where, empty ? "" : shortened(text_.substr(begin, end - begin)));
  }

  /// Rows have a scale where nothing is said: pytorch/torchtitan b5bcd76 components/quantization/float8.py.
  void float8_recipe(const SourceSpan& where, std::size_t begin, std::size_t end) {
    constexpr std::string_view kKey = "quantize.linear.float8.recipe_name";
    constexpr std::string_view kName = "recipe_name";
    const std::size_t opens = code_.find('(', code_.find("Float8LinearConverter", begin));
    const std::size_t close = std::min(opens == kNone ? kNone : python_closing(code_, opens), end);
    const std::size_t name = python_word(std::string_view(code_).substr(0, close), kName, begin);
    if (name == kNone) return put(std::string(kKey), {"rowwise"}, where, "");
    const std::size_t equals = after_blanks(name + kName.size(), close);
    if (equals >= close || code_[equals] != '=') return;
    value(std::string(kKey), where, equals + 1, python_comma(code_, equals + 1, close));
  }

  /// As it was set last before; what changed since then is changed in it too.
  void held(const std::string& key, const SourceSpan& where, std::string_view name, std::size_t before) {
    const PythonFunction& function = *in_;
    for (std::size_t i = function.lines.size(); i-- > 0;) {
      const PythonLine& line = function.lines[i];
      if (line.end > before) continue;
      const auto set = python_assignment(code_, line);
      const std::string_view binds = set                                   ? set->target
                                     : python_name(code(line), 0) == "for" ? code(line)
                                                                           : std::string_view();
      if (python_word(binds, name, 0) == kNone || (binds != name && is_path(binds))) continue;
      if (line.indent > function.lines.front().indent) return put(key, {}, where, "a branch");
      if (!set || !set->plain || set->target != name) return put(key, {}, where, "an expression");
      value(key, where, set->value, line.end);
      return change(name, key + ".", i);
    }
    put(key, {}, where, std::string(name));
  }

  /// "parallelism=ParallelismConfig(...)", "model_spec=model_registry("8B")", "activation_checkpoint=FullAC.Config()".
  void called(const std::string& key, const SourceSpan& where, std::size_t begin, std::size_t length, std::size_t end) {
    const std::string_view name = std::string_view(code_).substr(begin, length);
    const std::string_view last = name.substr(name.rfind('.') + 1);
    const std::size_t opens = begin + length;
    if (last == "model_registry") return registry(key, where, opens, end - 1);
    if (last.empty() || std::isupper(static_cast<unsigned char>(last[0])) == 0) {  // a function, which is not run
      return put(key, {}, where, shortened(text_.substr(begin, end - begin)));
    }
    constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kPolicies{
        {{"FullAC.Config", "full"}, {"SelectiveAC.Config", "selective"}}};
    for (const auto& [policy, mode] : kPolicies) {
      if (name == policy) put(key + ".mode", {std::string(mode)}, where, "");
    }
    arguments(key + ".", opens);
  }

  /// The flavor, and converters where they stand there.
  void registry(const std::string& key, const SourceSpan& where, std::size_t opens, std::size_t close) {
    for (std::size_t at = opens + 1; at < close;) {
      const std::size_t end = python_comma(code_, at, close);
      const std::size_t word = after_blanks(at, end);
      const std::string_view name = python_name(code_, word);
      const std::size_t equals = after_blanks(word + name.size(), end);
      const bool named = !name.empty() && equals < end && code_[equals] == '=' && code_[equals + 1] != '=';
      if (named && name == "converters") value(key + ".converters", where, equals + 1, end);
      if ((named && name == "flavor") || (!named && at == opens + 1 && word < end)) {
        value(key + ".flavor", where, named ? equals + 1 : word, end);
      }
      at = end + 1;
    }
  }

  std::string_view text_;
  SourceText source_;
  std::string code_;  ///< the text with blanks for comments and what texts hold
  std::vector<PythonFunction> functions_;
  const PythonFunction* in_ = nullptr;  ///< that is read
  std::size_t depth_ = 0;
  std::vector<Recipe> recipes_;
  std::vector<LaunchSetting> out_;
};

}  // namespace

bool is_recipe(std::string_view text) {
  return text.find(kConfig) != kNone || text.find("-> Trainer.Config:") != kNone;
}

LaunchText read_recipe(std::string_view text, const std::string& file) { return RecipeReader(text, file).read(); }

}  // namespace scalecalc
