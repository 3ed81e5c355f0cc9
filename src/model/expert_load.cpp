#include "model/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "base/check.h"
#include "base/divisors.h"
#include "base/io.h"
#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"
#include "config/json_reader.h"
#include "config/source_text.h"
#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

constexpr std::string_view kZipf = "zipf:";
constexpr double kMostAlpha = 10;
constexpr std::string_view kCsvHint = "a header expert,tokens (or expert,share) and a line for each expert, from 0 on";
constexpr std::string_view kListHint = "a list with a number for each expert, or a map with it under tokens or shares";

/// The fullest block's part of all, for each number of ranks.
void add_fullest(const std::vector<double>& loads, std::map<std::int64_t, double>& out, double weight) {
  const auto experts = static_cast<std::int64_t>(loads.size());
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  for (const std::int64_t ranks : divisors(experts)) {
    const auto block = static_cast<std::ptrdiff_t>(experts / ranks);
    double most = 0;
    for (auto at = loads.begin(); at != loads.end(); at += block) {
      most = std::max(most, std::accumulate(at, at + block, 0.0));
    }
    out[ranks] += weight * (ranks == 1 ? 1 : most / sum * static_cast<double>(ranks));
  }
}

std::string stripped(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \r");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \r") - first + 1));
}

/// A number of the file and where it stands.
struct Cell {
  std::string text;
  SourceSpan where;
};

/// Reads the numbers of a file, by expert.
class LoadReader {
 public:
  LoadReader(std::string file, const MoeSpec& moe) : file_(std::move(file)), moe_(moe) {}

  ExpertLoad read() {
    const std::string text = read_text_file(file_);
    if (file_.ends_with(".csv")) {
      csv(text);
    } else {
      document(file_.ends_with(".json") ? read_json(text, file_) : read_yaml(text, file_));
    }
    problems_.throw_if_any();
    const double sum = std::accumulate(loads_.begin(), loads_.end(), 0.0);
    if (sum <= 0) problems_.add({.file = file_}, "no expert has a token", "loads above zero");
    for (std::size_t e = 0; e < loads_.size(); ++e) {
      const double most = sum / static_cast<double>(moe_.top_k);
      if (loads_[e] > most * (1 + 1e-6)) {
        problems_.add(
            places_[e],
            fmt::format("expert {} has {:.3g} of {:.3g}: a token chooses {} experts and each once, so that no "
                        "expert has more than {:.3g}",
                        e, loads_[e], sum, moe_.top_k, most),
            "loads of all choices of a token, not of the first alone");
      }
    }
    problems_.throw_if_any();
    return ExpertLoad(loads_);
  }

 private:
  void document(const ConfigNode& root) {
    const ConfigNode* list = &root;
    if (root.kind == ConfigNode::Kind::kMap) {
      Fields fields(root, "expert load", problems_);
      const ConfigNode* tokens = fields.node("tokens");
      const ConfigNode* shares = fields.node("shares");
      fields.finish();
      list = tokens != nullptr ? tokens : shares;
      if (list == nullptr || (tokens != nullptr && shares != nullptr)) {
        return problems_.add(root.span, "the loads are not under one of tokens and shares", std::string(kListHint));
      }
    }
    if (list->kind != ConfigNode::Kind::kSequence) {
      return problems_.add(list->span, fmt::format("expected a list, found {}", kind_name(list->kind)),
                           std::string(kListHint));
    }
    for (const ConfigNode& item : list->items) {
      if (item.kind == ConfigNode::Kind::kScalar) {
        load({item.text, item.span});
      } else {
        problems_.add(item.span, fmt::format("expected a number, found {}", kind_name(item.kind)));
      }
    }
    complete(list->span);
  }

  void load(const Cell& cell) {
    const auto value = parse_quantity(cell.text, UnitKind::kNumber);
    const auto share = parse_quantity(cell.text, UnitKind::kFraction);  // 12.5%
    const double* number = std::get_if<double>(&value);
    if (number == nullptr) number = std::get_if<double>(&share);
    if (number == nullptr || *number < 0) {
      problems_.add(cell.where, fmt::format("{} is no load", in_quotes(cell.text)), "tokens or a share, zero or more");
    }
    loads_.push_back(number == nullptr ? 0 : *number);
    places_.push_back(cell.where);
  }

  void complete(const SourceSpan& where) {
    if (static_cast<std::int64_t>(loads_.size()) == moe_.experts) return;
    problems_.add(where, fmt::format("{} loads for the {} experts of the model", loads_.size(), moe_.experts),
                  "one for each expert, in the order of the router");
  }

  /// Lines in any order; each says its expert.
  void csv(const std::string& text) {
    const SourceText source(text, file_);
    std::map<std::int64_t, Cell> rows;
    bool header = true;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = stripped(std::string_view(text).substr(at, end - at));
      const std::size_t comma = line.find(',');
      const SourceSpan where = source.span(at, end);
      const std::string first = stripped(std::string_view(line).substr(0, comma));
      const std::string second = comma == std::string::npos ? "" : stripped(std::string_view(line).substr(comma + 1));
      const std::size_t value_at = comma == std::string::npos ? at : text.find_first_not_of(", ", at + comma);
      if (!line.empty() && std::exchange(header, false)) {
        const bool named = second == "tokens" || second == "share" || second == "shares";
        if (first != "expert" || !named) problems_.add(where, "no header expert,tokens", std::string(kCsvHint));
      } else if (!line.empty()) {
        row(rows, first, {second, source.span(std::min(value_at, end), end)}, where);
      }
      at = end + 1;
    }
    for (const auto& [expert, cell] : rows) load(cell);
    complete({.file = file_});
  }

  void row(std::map<std::int64_t, Cell>& rows, const std::string& expert, Cell cell, const SourceSpan& where) {
    const auto number = parse_quantity(expert, UnitKind::kCount);
    const double* index = std::get_if<double>(&number);
    if (index == nullptr || *index >= static_cast<double>(moe_.experts)) {
      return problems_.add(where, fmt::format("{} is no expert of the model", in_quotes(expert)),
                           fmt::format("0 to {}", moe_.experts - 1));
    }
    if (!rows.emplace(static_cast<std::int64_t>(*index), std::move(cell)).second) {
      problems_.add(where, fmt::format("expert {} stands twice", expert));
    }
  }

  std::string file_;
  const MoeSpec& moe_;
  Problems problems_;
  std::vector<double> loads_;
  std::vector<SourceSpan> places_;
};

}  // namespace

ExpertLoad::ExpertLoad(const std::vector<double>& loads) { add_fullest(loads, fullest_, 1); }

ExpertLoad ExpertLoad::zipf(const MoeSpec& moe, double alpha) {
  constexpr int kPlacements = 1024;
  std::vector<double> loads(static_cast<std::size_t>(moe.experts));
  for (std::size_t n = 0; n < loads.size(); ++n) loads[n] = std::pow(static_cast<double>(n + 1), -alpha);
  ExpertLoad out;
  std::mt19937_64 random(1);  // NOLINT: the same placements in every answer, on every platform
  for (int drawn = 0; drawn < kPlacements; ++drawn) {
    for (std::size_t n = loads.size(); n > 1; --n) std::swap(loads[n - 1], loads[random() % n]);
    add_fullest(loads, out.fullest_, 1.0 / kPlacements);
  }
  const auto chosen = static_cast<double>(moe.top_k);
  for (auto& [ranks, fullest] : out.fullest_) {
    const double block = static_cast<double>(moe.experts / ranks);
    fullest = std::clamp(fullest, 1.0, std::max(1.0, std::min(chosen, block) * static_cast<double>(ranks) / chosen));
  }
  return out;
}

double ExpertLoad::fullest(std::int64_t ranks) const {
  const auto at = fullest_.find(ranks);
  check(at != fullest_.end(), "expert ranks divide the experts");
  return at->second;
}

ExpertLoad load_expert_load(const std::string& said, const MoeSpec& moe) {
  if (!said.starts_with(kZipf)) return LoadReader(said, moe).read();
  const auto alpha = parse_quantity(std::string_view(said).substr(kZipf.size()), UnitKind::kNumber);
  const double* value = std::get_if<double>(&alpha);
  if (value == nullptr || *value < 0 || *value > kMostAlpha) {
    throw UserError(fmt::format("--expert-load {} is no power law", in_quotes(said)),
                    fmt::format("an exponent from 0 (even) to {}, such as zipf:1", kMostAlpha));
  }
  return ExpertLoad::zipf(moe, *value);
}

std::string expert_load_text(const ExpertLoad& load, const std::string& said, std::int64_t ranks) {
  const std::string_view placed = said.starts_with(kZipf) ? "experts drawn at random" : "neighbouring experts";
  return fmt::format(
      "the fullest of {} expert rank{} gets {:.3g} times the mean load, in every layer ({}, {} on a rank); limits of "
      "the router and copies of popular experts are not modelled",
      ranks, ranks == 1 ? "" : "s", load.fullest(ranks), said, placed);
}

}  // namespace scalecalc
