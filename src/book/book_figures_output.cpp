// Looks up figures in the JSON documents that commands print, for `scalecalc book`.
#include <algorithm>
#include <array>

#include "book/book_output.h"
#include "report/json_text.h"

namespace scalecalc {
namespace {

bool is_index(std::string_view token) {
  return !token.empty() && std::all_of(token.begin(), token.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> pointer_tokens(const std::string& pointer) {
  std::vector<std::string> out;
  for (std::size_t begin = 1; begin <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
    out.push_back(pointer.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

const Json* member_at(const Json& from, const std::string& token) {
  if (from.is_object()) return from.contains(token) ? &from.at(token) : nullptr;
  if (!from.is_array()) return nullptr;
  const std::size_t equals = token.find('=');
  if (equals == std::string::npos) {
    const std::size_t index = is_index(token) ? std::stoul(token) : from.size();
    return index < from.size() ? &from.at(index) : nullptr;
  }
  for (const Json& item : from) {
    const Json* member = item.is_object() ? member_at(item, token.substr(0, equals)) : nullptr;
    if (member != nullptr && *member == token.substr(equals + 1)) return &item;
  }
  return nullptr;
}

struct UnitSuffix {
  std::string_view suffix;
  Format format;
};
constexpr std::array<UnitSuffix, 9> kSuffixes{{{"_flops_per_byte", Format::kNumber},
                                               {"_flops_per_s", Format::kFlopsPerSecond},
                                               {"_bytes_per_s", Format::kBytesPerSecond},
                                               {"_per_s", Format::kNumber},
                                               {"_bytes", Format::kBytes},
                                               {"_flops", Format::kFlops},
                                               {"_usd", Format::kUsd},
                                               {"_hz", Format::kHertz},
                                               {"_s", Format::kSeconds}}};

std::string in_words(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

struct AnswerReader::Parsed {
  std::string text;
  Json document;
};

AnswerReader::AnswerReader() : last_(std::make_unique<Parsed>()) {}
AnswerReader::~AnswerReader() = default;

std::optional<FoundFigure> AnswerReader::find(const std::string& document, const std::string& pointer) {
  if (last_->text != document) *last_ = {document, Json::parse(document, nullptr, false)};
  const Json* at = &last_->document;
  const Json* around = nullptr;
  for (const std::string& token : pointer_tokens(pointer)) {
    around = at;
    at = member_at(*at, token);
    if (at == nullptr) return std::nullopt;
  }
  if (!at->is_number() && !at->is_boolean()) return std::nullopt;
  FoundFigure out{at->is_boolean() ? (at->get<bool>() ? 1.0 : 0.0) : at->get<double>(), at->is_boolean(), ""};
  if (around != nullptr && around->is_object() && around->contains("unit") && around->at("unit").is_string()) {
    out.unit = around->at("unit").get<std::string>();
  }
  return out;
}

FigureName name_of_figure(const std::string& pointer) {
  std::vector<std::string> tokens = pointer_tokens(pointer);
  // The first of the records that a command answers with needs no name.
  if (tokens.size() > 2 && tokens[1] == "0") tokens.erase(tokens.begin(), tokens.begin() + 2);
  FigureName out;
  for (const std::string& token : tokens) {
    std::string word = token;
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      word = word.substr(equals + 1);
      out.label.clear();  // the name says which list it is of
    } else if (word == "value" && !out.label.empty()) {
      continue;
    } else if (is_index(word)) {
      word = std::to_string(std::stoul(word) + 1);
    }
    for (const UnitSuffix& unit : kSuffixes) {
      if (!word.ends_with(unit.suffix) || word.size() == unit.suffix.size()) continue;
      word.resize(word.size() - unit.suffix.size());
      out.format = unit.format;
      break;
    }
    if (word == "bytes") out.format = Format::kBytes;
    if (word == "flops" || word == "flops_per_chip" || word == "flops_all_chips") out.format = Format::kFlops;
    out.label += (out.label.empty() ? "" : " ") + in_words(word);
  }
  return out;
}

}  // namespace scalecalc
