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

class RecipeReader {
 public:
  RecipeReader(std::string_view text, const std::string& file) : text_(text), source_(text, file) {}

  LaunchText read() {
    at_ = only_config() + kConfig.size();
    arguments("");
    return {LaunchFormat::kPython, std::move(out_)};
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string message, std::string hint) const {
    throw UserError({Diagnostic{source_.span(std::min(at, text_.size() - 1)), std::move(message), std::move(hint)}});
  }

  /// Where it begins; of several it is for the reader to say which is meant.
  std::size_t only_config() const {
    std::vector<std::size_t> found;
    std::vector<std::string> names;
    for (std::size_t at = text_.find(kConfig); at != std::string_view::npos; at = text_.find(kConfig, at + 1)) {
      found.push_back(at);
      const std::size_t function = text_.rfind("\ndef ", at);
      const std::size_t begin =
          function == std::string_view::npos ? (text_.starts_with("def ") ? 4 : at) : function + 5;
      names.emplace_back(text_.substr(begin, text_.find('(', begin) - begin));
    }
    if (found.size() > 1) {
      fail(found[1], "several recipes are in this file: " + join_and(names),
           "keep the one that is run in a file of its own");
    }
    return found.front();
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
      const bool literal = !name.empty() && (std::isdigit(static_cast<unsigned char>(name[0])) != 0 || name[0] == '-');
      if (!literal && name != "True" && name != "False" && name != "None")
        setting.open = name.empty() ? "an expression" : name;
      skip_space();
      if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')') {  // an expression
        setting.open = "an expression";
        while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')' && text_[at_] != '\n') ++at_;
      }
    }
    out_.push_back(std::move(setting));
  }

  /// "parallelism=ParallelismConfig(...)", "model_spec=model_registry("8B")", "activation_checkpoint=FullAC.Config()".
  void called(const std::string& name, LaunchSetting setting) {
    if (name == "model_registry") {
      ++at_;
      skip_space();
      setting.key = "model.flavor";
      value(setting.key, setting.where);
      skip_space();
      while (at_ < text_.size() && text_[at_] != ')') ++at_;
      at_ = std::min(at_ + 1, text_.size());
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
  std::vector<LaunchSetting> out_;
};

}  // namespace

bool is_recipe(std::string_view text) { return text.find(kConfig) != std::string_view::npos; }

LaunchText read_recipe(std::string_view text, const std::string& file) { return RecipeReader(text, file).read(); }

}  // namespace scalecalc
