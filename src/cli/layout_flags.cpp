#include "cli/layout_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/comma_list.h"
#include "plan/dimensions.h"
#include "report/train_plan.h"

namespace scalecalc::cli {
namespace {

constexpr std::int64_t kMostWords = 16;  // dimensions with more values are numbers

/// Bounds are numbers; words have no order.
bool takes_words(std::string_view flag) { return flag != "--max"; }

/// "auto", which is no pin, and then what may be pinned.
std::vector<std::string> choices(const LayoutDimension& dimension) {
  std::vector<std::string> out{"auto"};
  for (std::int64_t value = dimension.least; value <= dimension.most; ++value) {
    const bool of_switch = dimension.kind == DimensionKind::kSwitch;
    out.push_back(of_switch ? (value == 0 ? "off" : "on") : value_text(dimension, value));
  }
  return out;
}

std::optional<std::int64_t> choice(const LayoutDimension& dimension, std::size_t position) {
  if (position == 0) return std::nullopt;
  return dimension.least + static_cast<std::int64_t>(position) - 1;
}

void unknown_key(FlagReader& reader, std::string_view flag, std::string_view name) {
  std::vector<std::string> known;
  for (const bool words : {false, true}) {
    if (words && !takes_words(flag)) continue;
    for (const LayoutDimension& d : layout_dimensions()) {
      if ((d.kind == DimensionKind::kWord) == words) known.emplace_back(d.name);
    }
  }
  std::string hint = did_you_mean(nearest(name, known));
  if (!hint.empty()) hint += ' ';
  reader.problem(fmt::format("{} has no dimension {}", flag, in_quotes(name)),
                 fmt::format("{}dimensions: {}", hint, join(known, ", ")));
}

class FilterReader {
 public:
  FilterReader(FlagReader& reader, std::string_view flag, LayoutFilter& filter)
      : reader_(reader), flag_(flag), filter_(filter) {}

  void item(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
      reader_.problem(fmt::format("{}: {} is not KEY=VALUE", flag_, in_quotes(text)),
                      fmt::format("for example {} tp=8,pp=16", flag_));
      return;
    }
    const std::string_view name = text.substr(0, equals);
    const std::string_view value = text.substr(equals + 1);
    if (std::find(seen_.begin(), seen_.end(), name) != seen_.end()) {
      reader_.problem(fmt::format("{} gives {} twice", flag_, in_quotes(name)));
      return;
    }
    seen_.emplace_back(name);
    const LayoutDimension* dimension = find_dimension(name);
    if (dimension == nullptr) return unknown_key(reader_, flag_, name);
    const std::string place = fmt::format("{} {}", flag_, name);
    if (dimension->kind == DimensionKind::kWord) {
      word(*dimension, place, value);
    } else {
      dimension->set_pin(filter_, reader_.count_of(place, value, {dimension->least, dimension->most}));
    }
  }

 private:
  void word(const LayoutDimension& dimension, const std::string& place, std::string_view value) {
    if (!takes_words(flag_)) {
      reader_.problem(fmt::format("{} cannot bound {}, which has no order", flag_, dimension.name),
                      fmt::format("pin it: --fix {}={}", dimension.name, value));
      return;
    }
    const std::vector<std::string> words = choices(dimension);
    const std::vector<std::string_view> views(words.begin(), words.end());
    if (const auto at = reader_.word_of(place, value, views)) dimension.set_pin(filter_, choice(dimension, *at));
  }

  FlagReader& reader_;
  std::string_view flag_;
  LayoutFilter& filter_;
  std::vector<std::string> seen_;
};

/// "cp_comm" is pinned by --cp-comm.
std::string flag_of(const LayoutDimension& dimension) {
  std::string out = fmt::format("--{}", dimension.name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

}  // namespace

Flag layout_flag(std::string_view dimension, std::string_view help) {
  struct Named {
    std::string flag;
    std::vector<std::string> words;
    std::vector<std::string_view> views;
  };
  static std::map<std::string_view, Named> kNamed = [] {
    std::map<std::string_view, Named> out;
    for (const LayoutDimension& d : layout_dimensions()) {
      if (d.most - d.least > kMostWords) continue;
      Named& named = out[d.name];
      named.flag = flag_of(d);
      named.words = choices(d);
      named.views.assign(named.words.begin(), named.words.end());
    }
    return out;
  }();
  const Named& named = kNamed.at(dimension);
  return word(named.flag, named.views, help).shown<&TrainQuestion::fix>().key("fix");
}

void read_layout_pins(FlagReader& reader, std::string_view flag, const std::vector<std::string>& texts,
                      LayoutFilter& filter) {
  FilterReader items(reader, flag, filter);
  for (const std::string& text : texts) {
    for (const std::string& part : comma_parts(text)) items.item(part);
  }
}

void read_layout_filter(FlagReader& reader, const Arguments& arguments, std::string_view flag, LayoutFilter& filter) {
  read_layout_pins(reader, flag, arguments.values(flag), filter);
}

void read_layout_flags(FlagReader& reader, LayoutFilter& fix) {
  for (const char* name : {"remat", "schedule", "zero", "cp_comm", "offload", "ep_overlap"}) {
    const LayoutDimension& dimension = *find_dimension(name);
    const std::string flag = flag_of(dimension);
    const auto word = reader.word(flag);
    const auto given = word ? choice(dimension, *word) : std::nullopt;
    if (!given) continue;
    const auto fixed = dimension.pin(fix);
    if (fixed && *fixed != *given) {
      reader.problem(fmt::format("{} and --fix {}= say different things", flag, name), "give one of them");
    }
    dimension.set_pin(fix, given);
  }
}

}  // namespace scalecalc::cli
