// Texts of flags to values, as the command's table of flags says. Problems are collected, so that one run shows all of
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "cli/flag.h"
#include "cli/options.h"
#include "report/output.h"

namespace scalecalc::cli {

class FlagReader {
 public:
  /// Problems of the table are found at once: flags of another mode of the command, flags that need another or
  /// contradict it, and those that must be given and are not.
  explicit FlagReader(const Arguments& arguments);
  /// For flags that another table of the same arguments describes, such as the common ones.
  FlagReader(const Arguments& arguments, std::span<const Flag> flags) : arguments_(arguments), flags_(flags) {}

  /// Every flag that goes into such a question (Flag::to, when, by), in the order of the table.
  template <class Question>
  void read(Question& question) {
    for (const Flag& flag : flags_) {
      if (flag.question != &kTag<Question> || flag.store == nullptr || !is_ours(flag)) continue;
      arguments_.has(flag.name) ? flag.store(*this, flag, &question) : missing(flag);
    }
  }

  void problem(std::string message, std::string hint = "");
  /// Problems found elsewhere, with their places.
  void problems(std::vector<Diagnostic> found);
  /// Throws what was found.
  void finish();
  /// "for example: scalecalc train llama3-70b ...": the first of the command's examples.
  std::string example() const;

  /// The one positional; nothing, and a problem, if there is none or more: "MODEL is missing: which model?".
  std::string only_word(std::string_view name, std::string_view ask);

  // One flag of the table, for what is read by hand. Nothing if it was not given, or with a problem if it is wrong.
  std::string text(std::string_view flag);  ///< with a problem too if it must be given
  std::optional<std::int64_t> count(std::string_view flag) { return count(of(flag)); }
  std::optional<double> quantity(std::string_view flag) { return quantity(of(flag)); }
  std::optional<std::size_t> word(std::string_view flag) { return word(of(flag)); }
  std::optional<std::vector<double>> sweep(std::string_view flag) { return sweep(of(flag)); }

  std::optional<std::int64_t> count(const Flag& flag);
  std::optional<double> quantity(const Flag& flag);  ///< or a share
  std::optional<std::size_t> word(const Flag& flag);
  std::optional<std::vector<double>> sweep(const Flag& flag);
  std::optional<std::string> text(const Flag& flag) const { return arguments_.value(flag.name); }
  std::vector<std::string> texts(const Flag& flag) const { return arguments_.values(flag.name); }

  std::string_view query_key(std::string_view flag) const { return of(flag).query_key; }

  // The same for a text from elsewhere; `name` says in messages where it stands.
  std::optional<std::int64_t> count_of(std::string_view name, std::string_view text, CountRange range);
  std::optional<double> quantity_of(std::string_view name, std::string_view text, UnitKind kind);
  std::optional<std::size_t> word_of(std::string_view name, std::string_view text, LegalWords words);

  /// Stands for a kind of question.
  template <class Question>
  static constexpr char kTag = 0;

  /// Of what `flag` gives, as the type asks.
  template <class Value>
  std::optional<Value> get(const Flag& flag);

 private:
  const Flag& of(std::string_view name) const;
  /// Of the mode asked for; of any if that is not clear.
  bool is_ours(const Flag& flag) const { return !mode_ || flag.is_of(*mode_); }
  void refuse_other_modes();
  void refuse_lonely();
  void refuse_both();
  void refuse_picture();
  void missing(const Flag& flag);

  const Arguments& arguments_;
  std::span<const Flag> flags_;
  std::optional<std::size_t> mode_;
  std::vector<Diagnostic> problems_;
};

namespace detail {

template <class Member>
struct MemberOf;
template <class Owner, class Type>
struct MemberOf<Type Owner::*> {
  using Question = Owner;
  using Value = Type;
};
template <auto kFirst, auto... kRest>
struct FirstOf {
  using Question = typename MemberOf<decltype(kFirst)>::Question;
};

template <class Question, class At, class... Rest>
auto& member(Question& question, At at, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return question.*at;
  } else {
    return member(question.*at, rest...);
  }
}

template <class T>
struct Unwrapped {
  using Value = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using Value = T;
};

/// A value as a member of an answer's query, in base units. Null for what is absent, empty text included.
template <class T>
Figure as_asked(const Flag& flag, const T& value) {
  if constexpr (std::is_same_v<T, std::optional<bool>>) {  // the hardware's own way, on or off
    return datum("", std::string(flag.words[value ? 2U - *value : 0U]));
  } else if constexpr (!std::is_same_v<T, typename Unwrapped<T>::Value>) {
    return value ? as_asked(flag, *value) : Figure{};
  } else if constexpr (std::is_same_v<T, bool>) {
    return flag_figure("", value);
  } else if constexpr (std::is_enum_v<T>) {
    return datum("", std::string(flag.words[static_cast<std::size_t>(value)]));
  } else if constexpr (std::is_arithmetic_v<T>) {
    const bool counts = std::is_integral_v<T> || flag.unit == UnitKind::kCount;
    return number_figure("", "", counts ? Format::kInteger : Format::kNumber, static_cast<double>(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return datum("", value.empty() ? Cell{} : Cell(value));
  } else if constexpr (requires { filter_record(value); }) {
    return object_figure("", filter_record(value));
  } else if constexpr (requires { value.begin(); }) {
    return list_figure("", "", {value.begin(), value.end()});
  } else {
    return as_asked(flag, value.value());  // a quantity
  }
}

/// What as_asked makes of a value of this type. One that a hardware may decide, optional<bool>, is a word.
template <class T>
constexpr QueryForm form_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return QueryForm::kFlag;
  } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, std::optional<bool>>) {
    return QueryForm::kWord;
  } else if constexpr (!std::is_same_v<T, typename Unwrapped<T>::Value>) {
    return form_of<typename Unwrapped<T>::Value>();
  } else if constexpr (std::is_arithmetic_v<T>) {
    return std::is_integral_v<T> ? QueryForm::kInteger : QueryForm::kNumber;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return QueryForm::kText;
  } else if constexpr (requires(T value) { filter_record(value); }) {
    return QueryForm::kLayout;
  } else if constexpr (requires(T value) { value.begin(); }) {
    return std::is_arithmetic_v<typename T::value_type> ? QueryForm::kNumbers : QueryForm::kTexts;
  } else {
    return QueryForm::kNumber;  // a quantity
  }
}

template <class T>
constexpr bool may_be_null() {
  const bool is_optional = !std::is_same_v<T, typename Unwrapped<T>::Value>;
  return std::is_same_v<T, std::string> || (is_optional && !std::is_same_v<T, std::optional<bool>>);
}

/// The type of a member of a member.
template <auto... kMembers>
using MemberType =
    std::remove_cvref_t<decltype(member(std::declval<typename FirstOf<kMembers...>::Question&>(), kMembers...))>;

template <class T>
void assign(FlagReader& reader, const Flag& flag, T& target) {
  if (auto value = reader.get<typename Unwrapped<T>::Value>(flag)) target = std::move(*value);
}

template <auto... kMembers>
void store_member(FlagReader& reader, const Flag& flag, void* question) {
  assign(reader, flag, member(*static_cast<typename FirstOf<kMembers...>::Question*>(question), kMembers...));
}

template <auto... kMembers>
Figure show_member(const Flag& flag, const void* question) {
  return as_asked(flag, member(*static_cast<const typename FirstOf<kMembers...>::Question*>(question), kMembers...));
}

template <std::size_t kWord, auto... kMembers>
void store_when(FlagReader& reader, const Flag& flag, void* question) {
  const auto at = reader.word(flag);
  if (at) member(*static_cast<typename FirstOf<kMembers...>::Question*>(question), kMembers...) = *at == kWord;
}

/// Of two words.
template <std::size_t kWord, auto... kMembers>
Figure show_when(const Flag& flag, const void* question) {
  const std::optional<bool> is(
      member(*static_cast<const typename FirstOf<kMembers...>::Question*>(question), kMembers...));
  return is ? datum("", std::string(flag.words[*is ? kWord : 1 - kWord])) : Figure{};
}

template <class Function>
struct ReaderOf;
template <class Asked>
struct ReaderOf<void (*)(FlagReader&, const Flag&, const std::string&, Asked&)> {
  using Question = Asked;
};

template <auto kRead>
void store_by(FlagReader& reader, const Flag& flag, void* question) {
  auto& asked = *static_cast<typename ReaderOf<decltype(kRead)>::Question*>(question);
  for (const std::string& text : reader.texts(flag)) kRead(reader, flag, text, asked);
}

}  // namespace detail

template <auto... kMembers>
constexpr Flag Flag::shown() const {
  Flag out = *this;
  out.question = &FlagReader::kTag<typename detail::FirstOf<kMembers...>::Question>;
  out.show = &detail::show_member<kMembers...>;
  using Value = detail::MemberType<kMembers...>;
  out.form = detail::form_of<Value>();
  out.may_be_null = detail::may_be_null<Value>();
  return out;
}

template <auto... kMembers>
constexpr Flag Flag::to() const {
  Flag out = shown<kMembers...>();
  out.store = &detail::store_member<kMembers...>;
  return out;
}

template <std::size_t kWord, auto... kMembers>
constexpr Flag Flag::when() const {
  Flag out = *this;
  out.question = &FlagReader::kTag<typename detail::FirstOf<kMembers...>::Question>;
  out.store = &detail::store_when<kWord, kMembers...>;
  out.show = &detail::show_when<kWord, kMembers...>;
  out.form = QueryForm::kWord;
  out.may_be_null = std::is_same_v<detail::MemberType<kMembers...>, std::optional<bool>>;
  return out;
}

template <auto kRead>
constexpr Flag Flag::by() const {
  Flag out = *this;
  out.question = &FlagReader::kTag<typename detail::ReaderOf<decltype(kRead)>::Question>;
  out.store = &detail::store_by<kRead>;
  return out;
}

template <class Value>
std::optional<Value> FlagReader::get(const Flag& flag) {
  if constexpr (std::is_same_v<Value, bool>) {
    if (flag.reading != Reading::kWord) return true;  // a switch that is given
    const auto at = word(flag);                       // auto, on or off
    return at && *at > 0 ? std::optional(*at == 1) : std::nullopt;
  } else if constexpr (std::is_enum_v<Value>) {
    const auto at = word(flag);
    return at ? std::optional(static_cast<Value>(*at)) : std::nullopt;
  } else if constexpr (std::is_integral_v<Value>) {
    const auto n = count(flag);
    return n ? std::optional(static_cast<Value>(*n)) : std::nullopt;
  } else if constexpr (std::is_same_v<Value, std::string>) {
    if (flag.words.empty()) return text(flag);
    const auto at = word(flag);
    return at ? std::optional<std::string>(flag.words[*at]) : std::nullopt;
  } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    return texts(flag);
  } else if constexpr (std::is_same_v<Value, std::vector<double>>) {
    return sweep(flag);
  } else {
    const auto number = flag.reading == Reading::kCount ? std::optional<double>(count(flag)) : quantity(flag);
    return number ? std::optional(Value(*number)) : std::nullopt;
  }
}

}  // namespace scalecalc::cli
