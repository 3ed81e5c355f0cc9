// Reads how unevenly tokens choose experts and computes the load of the fullest expert rank.
#include "model/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
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
constexpr std::string_view kUniform = "uniform";
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
    return ExpertLoad(loads_, static_cast<double>(moe_.top_k));
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

double experts_touched(double experts, double top_k, double tokens) {
  return -experts * std::expm1(tokens * std::log1p(-std::min(top_k / experts, 1 - 1e-12)));
}

ExpertChances::ExpertChances(std::vector<double> chances) : chances_(std::move(chances)) {
  for (const double p : chances_) log_missed_.push_back(std::log1p(-std::min(p, 1 - 1e-12)));
}

ExpertChances::ExpertChances(std::vector<double> loads, double top_k) {
  double left = std::min(top_k, static_cast<double>(loads.size()));
  double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  std::vector<std::size_t> order(loads.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });
  for (const std::size_t e : order) {
    const double load = std::exchange(loads[e], sum > 0 ? std::min(1.0, left * loads[e] / sum) : 0);
    left -= loads[e] >= 1 ? 1 : 0;
    sum -= loads[e] >= 1 ? load : 0;
  }
  *this = ExpertChances(std::move(loads));
}

namespace {

std::vector<double> zipf_loads(const MoeSpec& moe, double alpha) {
  std::vector<double> out(static_cast<std::size_t>(moe.experts));
  for (std::size_t n = 0; n < out.size(); ++n) out[n] = std::pow(static_cast<double>(n + 1), -alpha);
  return out;
}

}  // namespace

ExpertChances ExpertChances::zipf(const MoeSpec& moe, double alpha) {
  return {zipf_loads(moe, alpha), static_cast<double>(moe.top_k)};
}

double ExpertChances::touched(double tokens) const {
  double out = 0;
  constexpr double kCertain = -40;  // beyond, e^x - 1 is -1 to the last bit
  for (const double log_missed : log_missed_) {
    const double missed = tokens * log_missed;
    out -= missed < kCertain ? -1 : std::expm1(missed);
  }
  return out;
}

ExpertChances ExpertChances::copied(std::int64_t copies) const {
  std::vector<double> of(chances_.size(), 1);
  const auto each = [&](std::size_t e) { return chances_[e] / of[e]; };
  std::vector<std::size_t> order(chances_.size());
  std::iota(order.begin(), order.end(), 0U);
  for (std::int64_t n = 0; n < copies; ++n) {
    ++of[*std::max_element(order.begin(), order.end(),
                           [&](std::size_t a, std::size_t b) { return each(a) < each(b); })];
  }
  std::vector<double> out;
  for (const std::size_t e : order) out.insert(out.end(), static_cast<std::size_t>(of[e]), each(e));
  return ExpertChances(std::move(out));
}

ExpertLoad::ExpertLoad(const std::vector<double>& loads, double top_k) : chances_(loads, top_k) {
  add_fullest(loads, fullest_, 1);
}

ExpertLoad ExpertLoad::copied(std::int64_t copies) const {
  ExpertLoad out;
  out.chances_ = chances_.copied(copies);
  std::vector<double> loads = out.chances_.chances();
  std::sort(loads.begin(), loads.end(), std::greater<>());
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  for (const std::int64_t ranks : divisors(static_cast<std::int64_t>(loads.size()))) {
    const std::size_t room = loads.size() / static_cast<std::size_t>(ranks);
    std::vector<std::pair<double, std::size_t>> dealt(static_cast<std::size_t>(ranks));  // load, experts
    for (const double load : loads) {
      auto& least = *std::min_element(dealt.begin(), dealt.end(), [&](const auto& a, const auto& b) {
        return std::pair(a.second >= room, a.first) < std::pair(b.second >= room, b.first);
      });
      least.first += load;
      ++least.second;
    }
    out.fullest_[ranks] = std::max_element(dealt.begin(), dealt.end())->first / sum * static_cast<double>(ranks);
  }
  return out;
}

ExpertLoad ExpertLoad::zipf(const MoeSpec& moe, double alpha) {
  constexpr int kPlacements = 1024;
  std::vector<double> loads = zipf_loads(moe, alpha);
  ExpertLoad out;
  out.chances_ = ExpertChances(loads, static_cast<double>(moe.top_k));
  std::mt19937_64 random(1);  // NOLINT: the same placements in every answer, on every platform
  for (int drawn = 0; drawn < kPlacements; ++drawn) {
    for (std::size_t n = loads.size(); n > 1; --n) std::swap(loads[n - 1], loads[random() % n]);
    add_fullest(loads, out.fullest_, 1.0 / kPlacements);
  }
  const auto chosen = static_cast<double>(moe.top_k);
  for (auto& [ranks, fullest] : out.fullest_) {
    const double block = static_cast<double>(moe.experts) / static_cast<double>(ranks);
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
  if (said == kUniform) return ExpertLoad::zipf(moe, 0);
  if (!said.starts_with(kZipf)) return LoadReader(said, moe).read();
  const auto alpha = parse_quantity(std::string_view(said).substr(kZipf.size()), UnitKind::kNumber);
  const double* value = std::get_if<double>(&alpha);
  if (value == nullptr || *value < 0 || *value > kMostAlpha) {
    throw UserError(fmt::format("--expert-load {} is no power law", in_quotes(said)),
                    fmt::format("an exponent from 0 (even) to {}, such as zipf:1", kMostAlpha));
  }
  return ExpertLoad::zipf(moe, *value);
}

std::string expert_load_text(const ExpertLoad& load, const std::string& said, std::int64_t ranks, std::int64_t copies) {
  const bool law = said.starts_with(kZipf) || said == kUniform || said == kNaturalLoad;
  const std::string placed =
      copies > 0 ? fmt::format("{} copies of the most loaded, the largest first to the emptiest", copies)
      : law      ? "experts drawn at random"
                 : "neighbouring experts";
  return fmt::format(
      "the fullest of {} expert rank{} gets {:.3g} times the mean load, in every layer ({}, {} on a rank); limits of "
      "the router {} not modelled",
      ranks, ranks == 1 ? "" : "s", load.fullest(ranks), said, placed,
      copies > 0 ? "are" : "and copies of popular experts are");
}

}  // namespace scalecalc
