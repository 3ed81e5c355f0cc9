// Reads scripts of bash as far as launch scripts go: words, quotes, variables that the script sets, arrays,
// arithmetic, branches, and documents written down in it. Nothing is run; what only the environment knows stays open.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "config/json_reader.h"
#include "config/source_text.h"
#include "launch/document.h"
#include "launch/reading.h"
#include "launch/shell_arithmetic.h"
#include "launch/shell_conditions.h"
#include "launch/shell_flags.h"
#include "launch/shell_words.h"
#include "launch/slurm.h"

namespace scalecalc {
namespace {

/// The word that ends a document of a script.
struct DocumentEnd {
  std::string word;
  bool literal = false;  ///< in quotes: nothing in the document is expanded
};

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& file) : text_(text), source_(text, file), file_(file) {}

  LaunchText read() {
    while (at_ < text_.size()) {
      if (conditions_.expects_pattern()) {
        pattern();
      } else {
        one_command();
      }
    }
    // What nothing in the script expands is for another one: a document that it hands to a scheduler.
    for (auto& [name, words] : variables_) {
      if (!used_.contains(name)) flags(words);
    }
    return {LaunchFormat::kShell, std::move(out_), slurm_.chips(), std::move(written_)};
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string message, std::string hint) const {
    throw UserError({Diagnostic{source_.span(std::min(at, text_.size() - 1)), std::move(message), std::move(hint)}});
  }

  /// Counts characters that a variable stands for.
  void expands(std::size_t at, std::size_t size) {
    if (!expanded_.makes(size + 1)) fail(at, "this script " + expanded_.message(), "write the values out");
  }

  std::size_t line_at(std::size_t at) const {
    return static_cast<std::size_t>(source_.span(std::min(at, text_.size() - 1)).line);
  }

  /// A command with the effects that it has where it is run: none in a branch that is not, open ones where that is not
  /// known. Or a word that begins or ends a branch.
  void one_command() {
    if (branch_word()) return;
    const std::size_t begin = at_, before = out_.size();
    std::vector<ShellWord> words = command();
    const std::string_view joined = joint();
    std::vector<TestWord> test;
    for (const ShellWord& word : words) test.push_back({word.text.chars, word.open.empty()});
    if (conditions_.asks()) {
      conditions_.condition(test_value(test), joined);
      return;
    }
    const Truth runs = conditions_.runs();
    if (runs != Truth::kNo) flags(words);
    if (runs == Truth::kNo) out_.resize(before);
    for (std::size_t i = before; i < out_.size() && runs == Truth::kMaybe; ++i) {
      if (out_[i].open.empty()) out_[i].open = conditions_.undecided();
    }
    conditions_.command_ends(test, joined, joined.empty() ? 0 : line_at(begin));
  }

  /// "if", "then", "case X in" and the like, as the first word of a command.
  bool branch_word() {
    while (at_ < text_.size() && (is_shell_blank(text_[at_]) || text_[at_] == '\n')) {
      if (text_[at_] == '\n' && !ends_.empty()) return false;
      ++at_;
    }
    std::size_t end = at_;
    while (end < text_.size() && (in_shell_name(text_[end]) || text_[end] == '{')) ++end;
    const bool whole =
        end == text_.size() || is_shell_blank(text_[end]) || ends_command(text_[end]) || text_[end] == '\r';
    const std::string_view word = text_.substr(at_, end - at_);
    if (word.empty() || !whole) return false;
    if (word == "case") {
      const std::size_t line = line_at(at_);
      at_ = end;
      while (at_ < text_.size() && is_shell_blank(text_[at_])) ++at_;
      const std::vector<ShellWord> subject = this->word();
      while (at_ < text_.size() && is_shell_blank(text_[at_])) ++at_;
      if (text_.substr(at_).starts_with("in")) at_ += 2;
      const bool known = subject.size() == 1 && subject[0].open.empty();
      conditions_.case_begins({known ? subject[0].text.chars : "", known}, line);
      return true;
    }
    if (!ShellConditions::is_keyword(word) || !conditions_.keyword(word, line_at(at_))) return false;
    if (conditions_.depth() > limits::kBranchLevels) {
      fail(at_, "branches are " + limits::too_deep(limits::kBranchLevels), "write the branch that runs alone");
    }
    at_ = end;
    return true;
  }

  /// "8b | 70b)" of a case, or its end.
  void pattern() {
    while (at_ < text_.size() && (is_shell_blank(text_[at_]) || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
    if (at_ < text_.size() && text_[at_] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return;
    }
    if (text_.substr(at_).starts_with("esac")) {
      at_ += 4;
      conditions_.keyword("esac", 0);
      return;
    }
    const std::size_t end = std::min(text_.find(')', at_), text_.size());
    conditions_.pattern(text_.substr(at_, end - at_));
    at_ = std::min(end + 1, text_.size());
  }

  /// What stands between a command that has ended and the next: "&&", "||"; the end of a branch of a case.
  std::string_view joint() {
    if (at_ == 0 || at_ >= text_.size() || text_[at_] != text_[at_ - 1]) return "";
    const char c = text_[at_];
    if (c != '&' && c != '|' && c != ';') return "";
    ++at_;
    if (c == ';') conditions_.pattern_ends();
    return c == '&' ? "&&" : c == '|' ? "||" : "";
  }

  bool ends_command(char c) const { return c == '\n' || c == ';' || c == '|' || c == '&'; }

  std::vector<ShellWord> command() {
    std::vector<ShellWord> words;
    bool first = true;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_shell_blank(c)) {
        ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        at_ += 2;
      } else if (c == '\\' && text_.substr(at_).starts_with("\\\r\n")) {
        at_ += 3;
      } else if (c == '#') {
        if (text_.substr(at_).starts_with("#SBATCH ")) {
          scheduler();
          return {};
        }
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (ends_command(c) || c == '(' || c == ')' || c == '\r') {
        const bool line = c == '\n';
        ++at_;
        if (line) documents();
        break;
      } else if (text_.substr(at_).starts_with("<<") && !text_.substr(at_).starts_with("<<<")) {
        document_opens();
      } else if (c == '<' || c == '>') {
        redirect(words);
      } else if (first && assigns()) {
        continue;
      } else {
        for (ShellWord& word : this->word()) words.push_back(std::move(word));
        const bool passes =
            words.size() == 1 && (words[0].text.chars == "export" || words[0].text.chars == "local" ||
                                  words[0].text.chars == "declare" || words[0].text.chars == "readonly");
        first = passes;
      }
    }
    return words;
  }

  /// "> FILE", "2>&1" are no words of the command.
  void redirect(std::vector<ShellWord>& words) {
    const bool writes = text_[at_] == '>';
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    if (at_ > 0 && is_digit(text_[at_ - 1]) && !words.empty()) {
      const std::string& stream = words.back().text.chars;
      if (std::all_of(stream.begin(), stream.end(), is_digit)) words.pop_back();
    }
    while (at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>')) ++at_;
    if (at_ < text_.size() && text_[at_] == '&') {
      ++at_;
      while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '-')) ++at_;
      return;
    }
    while (at_ < text_.size() && is_shell_blank(text_[at_])) ++at_;
    const std::vector<ShellWord> target = word();
    if (writes && target.size() == 1 && target[0].open.empty()) written_.push_back(target[0].text.chars);
  }

  /// "#SBATCH --nodes=8": Slurm's own flags, and the variables that it sets by them.
  void scheduler() {
    at_ += std::string_view("#SBATCH ").size();
    for (LaunchSetting& setting : slurm_.line(command(), source_)) out_.push_back(std::move(setting));
    for (const auto& [name, value] : slurm_.variables()) {
      ShellWord count;
      for (const char c : value) count.text.add(c, before_line());
      variables_[std::string(name)] = {count};
    }
  }

  std::size_t before_line() const { return at_ == 0 ? 0 : at_ - 1; }

  /// "NAME=value" or "NAME=(...)" at the beginning of a command.
  bool assigns() {
    std::size_t end = at_;
    while (end < text_.size() && in_shell_name(text_[end])) ++end;
    if (end == at_ || std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) return false;
    std::size_t equals = end;
    const bool appends = text_.substr(end).starts_with("+=");
    if (appends) ++equals;
    if (equals >= text_.size() || text_[equals] != '=') return false;
    const std::string name(text_.substr(at_, end - at_));
    const std::size_t begin = at_;
    at_ = equals + 1;
    std::vector<ShellWord> value;
    if (at_ < text_.size() && text_[at_] == '(') {
      ++at_;
      while (at_ < text_.size() && text_[at_] != ')') {
        const char c = text_[at_];
        if (is_shell_blank(c) || c == '\n' || c == '\r') {
          ++at_;
        } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
          at_ += 2;
        } else if (c == '#') {
          while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        } else {
          const std::size_t before = at_;
          for (ShellWord& word : this->word()) value.push_back(std::move(word));
          if (at_ == before) ++at_;
        }
      }
      if (at_ < text_.size()) ++at_;
    } else if (at_ < text_.size() && !is_shell_blank(text_[at_]) && !ends_command(text_[at_])) {
      quiet_ = true;  // an assignment is not split at blanks
      value = word();
      quiet_ = false;
      if (value.size() == 1) {
        LaunchSetting setting{.key = "env:" + name,
                              .values = {value[0].text.chars},
                              .where = source_.span(begin, equals),
                              .open = value[0].open};
        out_.push_back(std::move(setting));
      }
    }
    const Truth runs = conditions_.runs();
    if (runs == Truth::kNo) return true;
    for (ShellWord& word : value) {
      if (runs != Truth::kMaybe || !word.open.empty()) continue;
      word.open = conditions_.undecided();
      word.open_at = ShellWord::kWholly;
    }
    std::vector<ShellWord>& variable = variables_[name];
    if (!appends) variable.clear();
    variable.insert(variable.end(), value.begin(), value.end());
    return true;
  }

  /// One word as written: several where an unquoted variable holds several, none where it is empty.
  std::vector<ShellWord> word() {
    std::vector<ShellWord> out(1);
    out.back().begin = at_;
    bool any = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_shell_blank(c) || ends_command(c) || c == ')' || c == '(' || c == '<' || c == '>' || c == '\r') break;
      if (c == '\\') {
        if (at_ + 1 < text_.size() && text_[at_ + 1] == '\n') break;
        if (at_ + 1 < text_.size()) out.back().text.add(text_[at_ + 1], at_ + 1);
        at_ += 2;
        any = true;
      } else if (c == '\'') {
        const std::size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
        for (std::size_t i = at_ + 1; i < end; ++i) out.back().text.add(text_[i], i);
        at_ = std::min(end + 1, text_.size());
        out.back().quoted = any = true;
      } else if (c == '"') {
        ++at_;
        while (at_ < text_.size() && text_[at_] != '"') quoted_character(out);
        if (at_ < text_.size()) ++at_;
        out.back().quoted = any = true;
      } else if (c == '$' || c == '`') {
        any = expand(out, quiet_) || any;
      } else {
        out.back().text.add(c, at_++);
        any = true;
      }
    }
    if (!any) out.pop_back();
    return out;
  }

  void quoted_character(std::vector<ShellWord>& out) {
    const char c = text_[at_];
    if (c == '\\' && at_ + 1 < text_.size()) {
      if (text_[at_ + 1] != '\n') out.back().text.add(text_[at_ + 1], at_ + 1);
      at_ += 2;
    } else if (c == '$' || c == '`') {
      expand(out, true);
    } else {
      out.back().text.add(c, at_++);
    }
  }

  /// "$NAME", "${NAME:-value}", "$((...))", "$(...)": whether something was put there.
  bool expand(std::vector<ShellWord>& out, bool in_quotes) {
    const std::size_t begin = at_;
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("$((")) return arithmetic(out);
    if (rest.starts_with("$(") || rest.starts_with("`")) {
      skip_substitution();
      leave_open(out, std::string(text_.substr(begin, std::min<std::size_t>(at_ - begin, 40))));
      return true;
    }
    ++at_;
    std::string name, otherwise;
    bool braces = at_ < text_.size() && text_[at_] == '{';
    bool all = false, has_default = false;
    std::size_t default_at = at_;
    if (braces) ++at_;
    while (at_ < text_.size() && in_shell_name(text_[at_])) name += text_[at_++];
    if (name.empty() && !braces) {
      if (at_ < text_.size() && std::string_view("@*#?!$-").find(text_[at_]) != std::string_view::npos) ++at_;
      leave_open(out, std::string(text_.substr(begin, at_ - begin)));
      return true;
    }
    if (braces) {
      const std::size_t end = closing_brace();
      std::string_view more = text_.substr(at_, end - at_);
      all = more.starts_with("[@]") || more.starts_with("[*]");
      for (const std::string_view op : {":-", ":=", "-", "="}) {
        if (!more.starts_with(op)) continue;
        has_default = true;
        default_at = at_ + op.size();
        otherwise = std::string(more.substr(op.size()));
        break;
      }
      at_ = std::min(end + 1, text_.size());
    }
    const auto found = variables_.find(name);
    if (found == variables_.end() && has_default) return put_default(out, otherwise, default_at);
    if (found == variables_.end()) {
      leave_open(out, name.empty() || all ? std::string(text_.substr(begin, at_ - begin)) : "$" + name);
      return true;
    }
    used_.insert(name);
    return put(out, found->second, in_quotes && !all, in_quotes);
  }

  bool put_default(std::vector<ShellWord>& out, const std::string& value, std::size_t from) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i] == '$') {
        leave_open(out, value);
        return true;
      }
      if (value[i] != '"' && value[i] != '\'') out.back().text.add(value[i], from + i);
    }
    return !value.empty();
  }

  bool put(std::vector<ShellWord>& out, const std::vector<ShellWord>& value, bool joined, bool in_quotes) {
    bool any = false;
    for (const ShellWord& word : value) expands(at_, word.text.chars.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0 && joined) out.back().text.add(' ', value[i].begin);
      if (i > 0 && !joined) out.emplace_back();
      if (in_quotes) {
        append_word(out.back(), value[i]);
        any = true;
        continue;
      }
      any = append_split(out, value[i]) || any;
    }
    return any;
  }

  bool arithmetic(std::vector<ShellWord>& out) {
    const std::size_t begin = at_;
    const std::size_t end = arithmetic_end();
    if (end == text_.size()) {
      at_ = end;
      return false;
    }
    const std::string inside = operands(begin + 3, end);
    at_ = end + 2;
    const std::string_view written = text_.substr(begin, at_ - begin);
    const ShellNumber number = shell_number(inside);
    // Where bash may not come by, its errors are none.
    if (!number.problem.empty() && (conditions_.runs() == Truth::kYes || number.too_deep)) {
      constexpr std::size_t kShown = 40;
      fail(begin, fmt::format("{} in {}", number.problem, in_quotes(written.substr(0, kShown))),
           "write the number itself");
    }
    if (!number.value) {
      leave_open(out, std::string(written));
      return true;
    }
    for (const char c : std::to_string(*number.value)) out.back().text.add(c, begin);
    return true;
  }

  /// Where the "))" of the arithmetic at hand stands; the end of the text if nothing closes it.
  std::size_t arithmetic_end() const {
    std::size_t depth = 0;
    for (std::size_t i = at_ + 3; i < text_.size(); ++i) {
      if (text_[i] == '(') ++depth;
      if (text_[i] != ')') continue;
      if (depth == 0) return text_.substr(i).starts_with("))") ? i : text_.size();
      --depth;
    }
    return text_.size();
  }

  /// The expression with numbers for names: as it is written for $NAME, as a value of its own for NAME; '?' for what
  /// the script does not set.
  std::string operands(std::size_t begin, std::size_t end) {
    std::string out;
    for (std::size_t i = begin; i < end;) {
      const bool dollar = text_[i] == '$';
      const bool braces = dollar && i + 1 < end && text_[i + 1] == '{';
      const std::size_t start = i + (dollar ? 1U : 0U) + (braces ? 1U : 0U);
      const bool digit = start < end && std::isdigit(static_cast<unsigned char>(text_[start])) != 0;
      std::size_t stop = start;
      while (stop < end && in_shell_name(text_[stop])) ++stop;
      if (stop == start || (digit && !dollar)) {  // a sign, or a number as 0x1f and 2#101
        if (digit && stop < end && text_[stop] == '#') ++stop;
        while (digit && stop < end && in_shell_name(text_[stop])) ++stop;
        out += dollar ? "?" : std::string(text_.substr(i, std::max(stop, i + 1) - i));
        i = std::max(stop, i + 1);
        continue;
      }
      const auto found = variables_.find(std::string(text_.substr(start, stop - start)));
      const bool closed = !braces || (stop < end && text_[stop] == '}');
      const bool known =
          closed && found != variables_.end() && found->second.size() == 1 && found->second[0].open.empty();
      if (known) expands(i, found->second[0].text.chars.size());
      out += !known ? "?" : dollar ? found->second[0].text.chars : "(" + found->second[0].text.chars + ")";
      i = stop + (braces && closed ? 1U : 0U);
    }
    return out;
  }

  void leave_open(std::vector<ShellWord>& out, std::string why) {
    if (!out.back().open.empty()) return;
    out.back().open = std::move(why);
    out.back().open_at = out.back().text.chars.size();
  }

  std::size_t closing_brace() const {
    std::size_t depth = 1;
    for (std::size_t i = at_; i < text_.size(); ++i) {
      if (text_[i] == '{') ++depth;
      if (text_[i] == '}' && --depth == 0) return i;
    }
    return text_.size();
  }

  void skip_substitution() {
    if (text_[at_] == '`') {
      at_ = std::min(text_.find('`', at_ + 1), text_.size() - 1) + 1;
      return;
    }
    std::size_t depth = 0;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '(') ++depth;
      if (text_[at_] == ')' && --depth == 0) break;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  void document_opens() {
    at_ += 2;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && is_shell_blank(text_[at_])) ++at_;
    DocumentEnd end;
    while (at_ < text_.size() && !is_shell_blank(text_[at_]) && !ends_command(text_[at_]) && text_[at_] != '>') {
      const bool quote = text_[at_] == '\'' || text_[at_] == '"' || text_[at_] == '\\';
      if (!quote) end.word += text_[at_];
      end.literal = end.literal || quote;
      ++at_;
    }
    if (!end.word.empty()) ends_.push_back(std::move(end));
  }

  /// The documents that were opened on the line before.
  void documents() {
    for (const DocumentEnd& end : ends_) {
      const std::size_t begin = at_;
      std::size_t stop = text_.size();
      for (std::size_t line = begin; line < text_.size();) {
        const std::size_t next = std::min(text_.find('\n', line), text_.size());
        std::string_view here = text_.substr(line, next - line);
        while (!here.empty() && (is_shell_blank(here.front()))) here.remove_prefix(1);
        if (here == end.word) {
          stop = line;
          at_ = std::min(next + 1, text_.size());
          break;
        }
        line = next + 1;
      }
      if (stop == text_.size()) at_ = text_.size();
      const std::string_view content = text_.substr(begin, stop - begin);
      document(begin, end.literal ? std::string(content) : expanded(content));
    }
    ends_.clear();
  }

  /// With the variables that the script sets; others stay as they are written.
  std::string expanded(std::string_view content) {
    std::string out;
    for (std::size_t i = 0; i < content.size();) {
      if (content[i] != '$') {
        out += content[i++];
        continue;
      }
      const std::size_t begin = i++;
      const bool braces = i < content.size() && content[i] == '{';
      if (braces) ++i;
      std::string name;
      while (i < content.size() && in_shell_name(content[i])) name += content[i++];
      const auto found = variables_.find(name);
      const bool closed = !braces || (i < content.size() && content[i] == '}');
      if (closed && braces) ++i;
      const bool known =
          closed && found != variables_.end() && found->second.size() == 1 && found->second[0].open.empty();
      if (known) expands(at_, found->second[0].text.chars.size());
      out += known ? found->second[0].text.chars : std::string(content.substr(begin, i - begin));
    }
    return out;
  }

  /// Of a file that the script writes: JSON, or YAML that is a map of settings.
  void document(std::size_t begin, const std::string& content) {
    const bool json = looks_like_json(content);
    if (!json && !opens_yaml_map(content)) return;
    if (++documents_ > limits::kLaunchDocuments) {
      fail(begin, limits::too_many(limits::kLaunchDocuments, "documents in one script"), "is this a launch script?");
    }
    const std::string padded = std::string(line_at(begin) - 1, '\n') + content;
    for (LaunchSetting& setting : document_settings(padded, file_, json)) out_.push_back(std::move(setting));
  }

  void flags(std::vector<ShellWord>& words) {
    std::size_t first = 0;
    if (!words.empty() && words.front().text.chars == "srun") {
      for (LaunchSetting& setting : slurm_.step(words, first, source_)) out_.push_back(std::move(setting));
    }
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(first));
    for (LaunchSetting& setting : flag_settings(words, source_)) out_.push_back(std::move(setting));
  }

  std::string_view text_;
  SourceText source_;
  std::string file_;
  std::size_t at_ = 0;
  bool quiet_ = false;
  std::map<std::string, std::vector<ShellWord>> variables_;
  std::set<std::string> used_;
  limits::Expansion expanded_{limits::kScriptVariables};
  std::size_t documents_ = 0;
  std::vector<DocumentEnd> ends_;
  ShellConditions conditions_;
  SlurmJob slurm_;
  std::vector<std::string> written_;  ///< names of files
  std::vector<LaunchSetting> out_;
};

}  // namespace

LaunchText read_shell(std::string_view text, const std::string& file) { return ShellReader(text, file).read(); }

}  // namespace scalecalc
