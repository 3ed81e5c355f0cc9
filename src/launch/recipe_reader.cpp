// Recipes of torchtitan in Python: a function that gives a Trainer.Config, of which the arguments are read as the keys
// of the TOML that they replaced. Nothing is run.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "config/source_text.h"
#include "launch/document.h"
#include "launch/reading.h"

namespace scalecalc {
namespace {

constexpr std::string_view kConfig = "Trainer.Config(";
constexpr std::size_t kMostNested = 50;
constexpr std::size_t kNone = std::string_view::npos;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// A function of the file, from its name to the next one's.
struct Recipe {
  std::string_view name;
  std::size_t begin = 0, end = 0;
  std::size_t config = kNone;   ///< behind "Trainer.Config("
  std::string_view variable{};  ///< that holds another's config, which it changes
  std::string_view of{};        ///< that other
  std::size_t of_at = 0;
};

class RecipeReader {
 public:
  RecipeReader(std::string_view text, const std::string& file) : text_(text), source_(text, file) {}

  LaunchText read() {
    find_recipes();
    if (recipes_.empty()) fail(0, "no function of this file gives a Trainer.Config", "return Trainer.Config(...)");
    take(the_recipe());
    return {LaunchFormat::kPython, std::move(out_)};
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string message, std::string hint) const {
    throw UserError({Diagnostic{source_.span(std::min(at, text_.size() - 1)), std::move(message), std::move(hint)}});
  }

  /// Functions that give a Trainer.Config, their own or another's that they change.
  void find_recipes() {
    std::vector<std::size_t> starts;
    for (std::size_t at = text_.starts_with("def ") ? 0 : text_.find("\ndef "); at != kNone;
         at = text_.find("\ndef ", at + 1)) {
      starts.push_back(at + (text_[at] == '\n' ? 5 : 4));
    }
    if (starts.empty()) starts.push_back(0);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      Recipe recipe{
          .name = name_at(starts[i]), .begin = starts[i], .end = i + 1 < starts.size() ? starts[i + 1] : text_.size()};
      const std::size_t config = text_.find(kConfig, recipe.begin);
      if (config < recipe.end) {
        const std::size_t second = text_.find(kConfig, config + 1);
        if (second < recipe.end) fail(second, "a second Trainer.Config in one function", "one for each recipe");
        recipe.config = config + kConfig.size();
        recipes_.push_back(recipe);
      } else if (changes_another(recipe)) {
        recipes_.push_back(recipe);
      }
    }
  }

  std::string_view name_at(std::size_t at) const {
    const std::size_t begin = at;
    while (at < text_.size() && is_name(text_[at])) ++at;
    return text_.substr(begin, at - begin);
  }

  /// "config = llama3_8b()" is a recipe of another if that is returned.
  bool changes_another(Recipe& recipe) const {
    const std::string_view body = text_.substr(recipe.begin, recipe.end - recipe.begin);
    for (std::size_t at = body.find(" = "); at != kNone; at = body.find(" = ", at + 1)) {
      const std::size_t line = body.rfind('\n', at) + 1;
      const std::string_view variable = trimmed_name(body.substr(line, at - line));
      const std::string_view of = name_at(recipe.begin + at + 3);
      const std::size_t behind = at + 3 + of.size();
      if (variable.empty() || of.empty() || body.substr(behind, 2) != "()") continue;
      if (body.find("return " + std::string(variable) + "\n", behind) == kNone &&
          !body.ends_with("return " + std::string(variable))) {
        continue;
      }
      recipe.variable = variable;
      recipe.of = of;
      recipe.of_at = recipe.begin + at + 3;
      return true;
    }
    return false;
  }

  /// A name with blanks before it, and nothing else.
  static std::string_view trimmed_name(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    return std::all_of(text.begin(), text.end(), is_name) ? text : std::string_view();
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
    fail(found.empty() ? recipes_.front().begin : found[1]->begin,
         found.empty() ? "these recipes change each other in a circle"
                       : "several recipes are in this file: " + join_and(names),
         "keep the one that is run in a file of its own, with those that it changes");
  }

  /// Its own arguments, or another's and then the changes, of which the last holds.
  void take(const Recipe& recipe) {
    body_ = recipe.begin;
    if (recipe.config != kNone) {
      at_ = recipe.config;
      return arguments("");
    }
    const auto base =
        std::find_if(recipes_.begin(), recipes_.end(), [&](const Recipe& r) { return r.name == recipe.of; });
    if (base == recipes_.end()) {
      fail(recipe.of_at, "this recipe changes " + std::string(recipe.of) + ", which is not in the file",
           "put " + std::string(recipe.of) + " into the same file");
    }
    if (++depth_ > kMostNested) fail(recipe.of_at, "these recipes change each other in a circle", "");
    take(*base);
    body_ = recipe.begin;
    const std::string prefix = std::string(recipe.variable) + ".";
    for (std::size_t at = recipe.of_at; at < recipe.end; at = std::min(text_.find('\n', at), recipe.end - 1) + 1) {
      std::size_t begin = at;
      while (begin < recipe.end && text_[begin] == ' ') ++begin;
      const std::size_t line_end = std::min(text_.find('\n', begin), recipe.end);
      const std::string_view line = text_.substr(begin, line_end - begin);
      const std::size_t equals = line.find(" = ");
      if (!line.starts_with(prefix) || equals == kNone) continue;
      const std::string key(line.substr(prefix.size(), equals - prefix.size()));
      at_ = begin + equals + 3;
      statement_ = true;
      value(key, source_.span(begin, begin + equals));
      at = std::max(at, std::min(at_, recipe.end - 1));
    }
    --depth_;
  }

  void skip_space() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_' ||
                                  text_[at_] == '.' || text_[at_] == '-' || text_[at_] == '+')) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  /// "key=value, ..." up to the closing parenthesis.
  void arguments(const std::string& prefix) {
    const bool statement = statement_;
    statement_ = false;
    if (++depth_ > kMostNested) fail(at_, "this recipe nests too deep", "arguments of Trainer.Config");
    for (;;) {
      skip_space();
      if (at_ >= text_.size()) fail(at_, "Trainer.Config( has no closing parenthesis", "");
      if (text_[at_] == ')') break;
      if (text_[at_] == ',') {
        ++at_;
        continue;
      }
      const std::size_t key_at = at_;
      const std::string key(word());
      skip_space();
      if (key.empty() || at_ >= text_.size() || text_[at_] != '=') {
        fail(key_at, "an argument here has no name",
             "KEY=VALUE, as in parallelism=ParallelismConfig(tensor_parallel_degree=8)");
      }
      ++at_;
      skip_space();
      value(prefix + key, source_.span(key_at, key_at + key.size()));
    }
    ++at_;
    --depth_;
    statement_ = statement;
  }

  void value(const std::string& key, SourceSpan where) {
    LaunchSetting setting{.key = key, .values = {}, .where = std::move(where), .open = {}};
    if (at_ >= text_.size()) return;
    const char c = text_[at_];
    if (c == '"' || c == '\'') {
      const std::size_t end = std::min(text_.find(c, at_ + 1), text_.size());
      setting.values.emplace_back(text_.substr(at_ + 1, end - at_ - 1));
      at_ = std::min(end + 1, text_.size());
    } else if (c == '[' || c == '{' || c == '(') {
      const std::size_t begin = at_;
      skip_brackets();
      setting.open = std::string(text_.substr(begin, std::min<std::size_t>(at_ - begin, 40)));
      if (text_.substr(begin, at_ - begin).find("Float8LinearConverter") != std::string_view::npos) {
        setting = {.key = "model.converters", .values = {"quantize.linear.float8"}, .where = setting.where, .open = {}};
      }
    } else {
      const std::string name(word());
      if (at_ < text_.size() && text_[at_] == '(') return called(name, std::move(setting));
      setting.values.push_back(name);
      if (take_local(name, setting)) return;
      const bool literal = !name.empty() && (std::isdigit(static_cast<unsigned char>(name[0])) != 0 || name[0] == '-');
      if (!literal && name != "True" && name != "False" && name != "None")
        setting.open = name.empty() ? "an expression" : name;
      if (statement_) {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
      } else {
        skip_space();
      }
      const std::string_view ends = statement_ ? "\n#" : ",)";
      if (at_ < text_.size() && ends.find(text_[at_]) == kNone) {  // an expression
        setting.open = "an expression";
        while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')' && text_[at_] != '\n') ++at_;
      }
    }
    out_.push_back(std::move(setting));
  }

  /// A variable of the function, where it is set before: "model_spec = model_registry("8B")".
  bool take_local(const std::string& name, const LaunchSetting& setting) {
    const std::size_t set = text_.find("\n    " + name + " = ", body_);
    if (name.empty() || set == kNone || set >= at_ || depth_ + 1 > kMostNested) return false;
    const std::size_t here = at_;
    at_ = set + 8 + name.size();
    const bool statement = statement_;
    statement_ = true;
    ++depth_;
    value(setting.key, setting.where);
    --depth_;
    statement_ = statement;
    at_ = here;
    return true;
  }

  /// "parallelism=ParallelismConfig(...)", "model_spec=model_registry("8B")", "activation_checkpoint=FullAC.Config()".
  void called(const std::string& name, LaunchSetting setting) {
    if (name == "model_registry") {
      const std::size_t opens = at_++;
      skip_space();
      setting.key = "model.flavor";
      value(setting.key, setting.where);
      at_ = opens;
      skip_brackets();
      const std::string_view inside = text_.substr(opens, at_ - opens);
      if (inside.find("Float8LinearConverter") != kNone) {
        out_.push_back(
            {.key = "model.converters", .values = {"quantize.linear.float8"}, .where = setting.where, .open = {}});
      } else if (inside.find("converters") != kNone) {
        out_.push_back({.key = "model.converters", .values = {}, .where = setting.where, .open = "converters"});
      }
      return;
    }
    constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kPolicies{
        {{"FullAC.Config", "full"}, {"SelectiveAC.Config", "selective"}}};
    for (const auto& [policy, mode] : kPolicies) {
      if (name != policy) continue;
      out_.push_back({.key = setting.key + ".mode", .values = {std::string(mode)}, .where = setting.where, .open = {}});
    }
    ++at_;
    arguments(setting.key == "model_converters" ? "" : setting.key + ".");
  }

  void skip_brackets() {
    std::size_t depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '[' || c == '{' || c == '(') ++depth;
      if ((c == ']' || c == '}' || c == ')') && --depth == 0) break;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  std::string_view text_;
  SourceText source_;
  std::size_t at_ = 0, depth_ = 0;
  std::size_t body_ = 0;    ///< of the function that is read
  bool statement_ = false;  ///< a value ends with its line, not at a comma
  std::vector<Recipe> recipes_;
  std::vector<LaunchSetting> out_;
};

}  // namespace

bool is_recipe(std::string_view text) {
  return text.find(kConfig) != kNone || text.find("-> Trainer.Config:") != kNone;
}

LaunchText read_recipe(std::string_view text, const std::string& file) { return RecipeReader(text, file).read(); }

}  // namespace scalecalc
