#include "batch/flat_record.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"

namespace scalecalc {
namespace {

constexpr std::array<std::string_view, 4> kNotAnswers{"schema", "tool_version", "command", "query"};
constexpr std::array<std::string_view, 6> kRowMembers{"case", "record", "status", "reason", "warnings", "question"};

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 127 && c != '"' && c != '\\'; });
}

class Flattener : public SilentSax {
 public:
  explicit Flattener(std::string& out) : out_(out) {}

  bool null() override { return value("null"); }
  bool boolean(bool flag) override { return value(flag ? "true" : "false"); }
  bool number_integer(number_integer_t number) override { return value(std::to_string(number)); }
  bool number_unsigned(number_unsigned_t number) override { return value(std::to_string(number)); }
  bool number_float(number_float_t, const string_t& text) override { return value(text); }
  bool string(string_t& text) override { return value(json_string(text)); }

  bool key(string_t& name) override {
    if (in_list_ > 0) {
      if (skipped_ == 0) out_ += (first_ ? "" : ",") + json_string(name) + ':';
      first_ = true;
      return true;
    }
    const std::size_t kept = prefixes_.empty() ? 0 : prefixes_.back();
    name_.resize(kept);
    name_ += name;
    return true;
  }

  bool start_object(std::size_t) override {
    if (in_list_ > 0) return open('{');
    if (!started_) {
      started_ = true;
      return true;
    }
    if (skipped_ > 0 || (prefixes_.empty() && listed(kNotAnswers))) {
      ++skipped_;
    }
    name_ += '_';
    prefixes_.push_back(name_.size());
    return true;
  }
  bool end_object() override {
    if (in_list_ > 0) return close('}');
    if (skipped_ > 0) --skipped_;
    if (!prefixes_.empty()) prefixes_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    if (in_list_ == 0 && skipped_ == 0) member();
    return open('[');
  }
  bool end_array() override { return close(']'); }

 private:
  template <std::size_t N>
  bool listed(const std::array<std::string_view, N>& names) const {
    return std::find(names.begin(), names.end(), name_) != names.end();
  }

  void member() {
    out_ += ',' + json_string(prefixes_.empty() && listed(kRowMembers) ? "out_" + name_ : name_) + ':';
    first_ = true;
  }

  bool value(std::string_view text) {
    if (skipped_ > 0) return true;
    if (in_list_ == 0) {
      if (prefixes_.empty() && listed(kNotAnswers)) return true;
      member();
    } else if (!first_) {
      out_ += ',';
    }
    out_ += text;
    first_ = false;
    return true;
  }

  bool open(char bracket) {
    if (skipped_ == 0) {
      if (in_list_ > 0 && !first_) out_ += ',';
      out_ += bracket;
    }
    ++in_list_;
    first_ = true;
    return true;
  }
  bool close(char bracket) {
    if (skipped_ == 0) out_ += bracket;
    --in_list_;
    first_ = false;
    return true;
  }

  std::string& out_;
  std::string name_;                   ///< of the member that comes
  std::vector<std::size_t> prefixes_;  ///< how much of it the objects around give
  bool started_ = false;
  int skipped_ = 0;
  int in_list_ = 0;
  bool first_ = true;  ///< no comma is due
};

}  // namespace

std::string json_string(std::string_view text) {
  if (is_plain(text)) return '"' + std::string(text) + '"';
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write_flat_record(std::string_view record, std::string& out) {
  Flattener flattener(out);
  check(Json::sax_parse(record, &flattener), "a command's record is a JSON object");
}

}  // namespace scalecalc
