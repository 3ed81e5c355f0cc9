// TOML files of settings (torchtitan's) as keys with dots, each with its place. toml++ parses; its tree is sorted, so
// the settings are put into the order of the file again.
#include <fmt/format.h>

// toml++ 3.3 asserts what no damaged file may break and some do ("[[:"); with NDEBUG the compiler would rely on it.
namespace scalecalc {
struct TomlMisread {};
}  // namespace scalecalc
#pragma GCC diagnostic push
#ifndef __clang__  // which has no such warning
#pragma GCC diagnostic ignored "-Wterminate"
#endif
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? void() : throw scalecalc::TomlMisread())
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
#pragma GCC diagnostic pop

#include <algorithm>
#include <tuple>

#include "base/limits.h"
#include "config/source_text.h"
#include "launch/reading.h"

namespace scalecalc {
namespace {

constexpr std::size_t kDottedNames = 1'000;  ///< of one key; each is a table, which the parser leaves by recursion

class TomlSettings {
 public:
  TomlSettings(std::string_view text, const std::string& file) : source_(text, file) {}

  std::vector<LaunchSetting> read() {
    check_size();
    try {
      table(toml::parse(source_.text()), "");
    } catch (const toml::parse_error& error) {
      std::string_view what = error.description();
      constexpr std::string_view kPrefix = "Error while ";
      if (what.starts_with(kPrefix)) what.remove_prefix(kPrefix.size());
      fail(span(error.source()), fmt::format("not TOML: {}", what));
    } catch (const TomlMisread&) {
      fail(source_.span(0), "not TOML");
    }
    std::sort(out_.begin(), out_.end(), [](const LaunchSetting& a, const LaunchSetting& b) {
      return std::tie(a.where.line, a.where.column) < std::tie(b.where.line, b.where.column);
    });
    return std::move(out_);
  }

 private:
  [[noreturn]] static void fail(const SourceSpan& where, std::string message) {
    throw UserError(
        {Diagnostic{where, std::move(message),
                    "a value is a number, true, false, a text in quotes, a date, a list or a table in braces"}});
  }

  /// Of values and of names in a key there is no limit in toml++ 3.3.
  void check_size() const {
    std::size_t values = 0, names = 0;
    const std::string_view text = source_.text();
    for (std::size_t at = 0; at < text.size(); ++at) {
      const bool separates = std::string_view(",=[{\n").find(text[at]) != std::string_view::npos;
      if (separates) ++values, names = 0;
      if (text[at] == '.' && ++names > kDottedNames)
        fail(source_.span(at), limits::too_many(kDottedNames, "names in one key"));
      if (values > limits::kDocumentNodes) fail(source_.span(at), limits::too_many(limits::kDocumentNodes, "values"));
    }
  }

  void table(const toml::table& from, const std::string& prefix) {
    for (const auto& [key, value] : from) node(value, prefix + std::string(key.str()), key.source());
  }

  void node(const toml::node& value, const std::string& key, const toml::source_region& where) {
    if (const toml::table* inside = value.as_table()) return table(*inside, key + ".");
    const toml::array* list = value.as_array();
    if (list != nullptr && list->is_array_of_tables()) {
      for (const toml::node& item : *list) table(*item.as_table(), key + ".");
      return;
    }
    LaunchSetting out{.key = key, .values = {}, .where = span(where), .open = {}};
    if (list == nullptr) {
      out.values.push_back(text_of(value));
    } else {
      for (const toml::node& item : *list) {
        if (!item.is_value()) out.open = "a list of lists";
        out.values.push_back(text_of(item));
      }
    }
    out_.push_back(std::move(out));
  }

  SourceSpan span(const toml::source_region& where) const {
    const bool one_line = where.begin.line == where.end.line && where.end.column > where.begin.column;
    return source_.counted_span(where.begin.line, where.begin.column,
                                one_line ? where.end.column - where.begin.column : 1);
  }

  /// A number as its decimal digits, whatever its base. No setting that is read is a date.
  static std::string text_of(const toml::node& value) {
    if (const auto* text = value.as_string()) return text->get();
    if (const auto* number = value.as_integer()) return fmt::format("{}", number->get());
    if (const auto* number = value.as_floating_point()) return fmt::format("{}", number->get());
    if (const auto* truth = value.as_boolean()) return truth->get() ? "true" : "false";
    return "a date";
  }

  SourceText source_;
  std::vector<LaunchSetting> out_;
};

}  // namespace

LaunchText read_toml(std::string_view text, const std::string& file) {
  return {LaunchFormat::kToml, TomlSettings(text, file).read()};
}

}  // namespace scalecalc
