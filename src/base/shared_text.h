// A text that copies share: for records that are copied often and carry where they come from.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace scalecalc {

class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text)  // NOLINT(google-explicit-constructor): stands where a string stood
      : text_(text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text))) {}
  SharedText(const char* text) : SharedText(std::string(text)) {}  // NOLINT(google-explicit-constructor)
  explicit SharedText(std::string_view text) : SharedText(std::string(text)) {}

  const std::string& str() const {
    static const std::string kEmpty;
    return text_ ? *text_ : kEmpty;
  }
  operator const std::string&() const { return str(); }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return str(); }    // NOLINT(google-explicit-constructor)
  bool empty() const { return !text_; }
  friend bool operator==(const SharedText& a, std::string_view b) { return a.str() == b; }

 private:
  std::shared_ptr<const std::string> text_;  ///< null: empty
};

}  // namespace scalecalc
