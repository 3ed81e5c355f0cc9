// Reads --fix and --max, the pins and bounds on the dimensions of a layout, for all commands that plan.
#include "plan/layout_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/comma_list.h"
#include "plan/dimensions.h"
#include "train/train_plan_output.h"

namespace scalecalc::cli {
namespace {

constexpr std::int64_t kMostWords = 16;  // switches and numbers with more values are flags of no words

/// Bounds are numbers; words have no order.
bool takes_words(std::string_view flag) { return flag != "--max"; }

bool takes_number(const LayoutDimension& d) { return d.kind == DimensionKind::kWord && d.last_word < d.most; }

/// "auto", which is no pin, and then what may be pinned; words without their number.
std::vector<std::string> choices(const LayoutDimension& dimension) {
  std::vector<std::string> out{"auto"};
  const std::int64_t last = dimension.kind == DimensionKind::kWord ? dimension.last_word : dimension.most;
  for (std::int64_t value = dimension.least; value <= last; ++value) {
    const bool of_switch = dimension.kind == DimensionKind::kSwitch;
    out.push_back(of_switch ? (value == 0 ? "off" : "on") : value_text(dimension, value));
  }
  return out;
}

std::optional<std::int64_t> choice(const LayoutDimension& dimension, std::size_t position) {
  if (position == 0) return std::nullopt;
  return dimension.least + static_cast<std::int64_t>(position) - 1;
}

/// The value that `text` pins, of a dimension of words: nothing for "auto", and nothing with a problem where it is
/// none.
std::optional<std::int64_t> word_at(FlagReader& reader, const LayoutDimension& dimension, const std::string& place,
                                    std::string_view text) {
  const auto value = value_of_word(dimension, text);
  if (value && *value >= dimension.least) return value;
  if (dimension.name == "split") {
    if (text != "auto") {
      reader.problem(fmt::format("{}: {} is no split of the layers", place, in_quotes(text)),
                     "default (as the stack deals), or the layers of the first and the last chunk, such as 8:6");
    }
    return std::nullopt;
  }
  const std::size_t colon = takes_number(dimension) ? text.find(':') : std::string_view::npos;
  const std::vector<std::string> words = choices(dimension);
  const std::vector<std::string_view> views(words.begin(), words.end());
  const auto at = reader.word_of(place, text.substr(0, colon), views);
  if (at && colon == std::string_view::npos) return choice(dimension, *at);
  if (at) {
    const std::string_view word = dimension.name == "remat" ? "full" : "activations";
    reader.problem(
        fmt::format("{}: {} is no number of layers", place, in_quotes(text)),
        fmt::format("{0} (all layers), {0}:8 (the first 8 of each stage) or {0}:auto (as many as must be)", word));
  }
  return std::nullopt;
}

/// remat_layers counts the layers of a bare policy: remat=full,remat_layers=8 is remat=full:8.
void pin_word(FlagReader& reader, const LayoutDimension& dimension, const std::string& place, std::int64_t value,
              LayoutFilter& filter) {
  const auto number = filter.remat ? std::nullopt : filter.remat_layers;
  dimension.set_pin(filter, value);
  if (&dimension != find_dimension("remat") || !number) return;
  if (filter.remat_layers != 0 && filter.remat_layers != number) {
    reader.problem(
        fmt::format("{} {} and remat_layers={} say different things", place, value_text(dimension, value), *number),
        "give one of them");
  }
  filter.remat_layers = number;
}

void unknown_key(FlagReader& reader, std::string_view flag, std::string_view name) {
  std::vector<std::string> known;
  for (const bool words : {false, true}) {
    if (words && !takes_words(flag)) continue;
    for (const LayoutDimension& d : takes_words(flag) ? layout_dimensions() : pin_dimensions()) {
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
    } else if (const auto count = reader_.count_of(place, value, {dimension->least, dimension->most})) {
      if (dimension == find_dimension("remat_layers")) return layers(*count);
      dimension->set_pin(filter_, count);
    }
  }

 private:
  void word(const LayoutDimension& dimension, const std::string& place, std::string_view value) {
    if (!takes_words(flag_)) {
      reader_.problem(fmt::format("{} cannot bound {}, which has no order", flag_, dimension.name),
                      fmt::format("pin it: --fix {}={}", dimension.name, value));
      return;
    }
    if (const auto pinned = word_at(reader_, dimension, place, value)) {
      pin_word(reader_, dimension, place, *pinned, filter_);
    }
  }

  /// Behind its policy or before it.
  void layers(std::int64_t count) {
    const auto policy = find_dimension("remat")->pin(filter_);
    filter_.remat_layers = count;
    if (policy) {
      LayoutFilter with;
      with.remat_layers = count;
      pin_word(reader_, *find_dimension("remat"), fmt::format("{} remat", flag_), *policy, with);
    }
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
    std::string value;  ///< what help calls it, where a number may follow
  };
  static const std::map<std::string_view, Named> kNamed = [] {
    std::map<std::string_view, Named> out;
    for (const LayoutDimension& d : layout_dimensions()) {
      if (d.kind != DimensionKind::kWord && d.most - d.least > kMostWords) continue;
      Named& named = out[d.name];
      named.flag = flag_of(d);
      named.words = choices(d);
      named.views.assign(named.words.begin(), named.words.end());
      if (takes_number(d)) named.value = join(named.words, "|") + "[:N]";
    }
    return out;
  }();
  const Named& named = kNamed.at(dimension);
  if (!named.value.empty()) {
    return text(named.flag, named.value, help, named.words.back()).shown<&TrainQuestion::fix>().key("fix");
  }
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
  for (const char* name : {"remat", "schedule", "zero", "cp_comm", "offload", "loss", "ep_overlap"}) {
    const LayoutDimension& dimension = *find_dimension(name);
    const std::string flag = flag_of(dimension);
    if (reader.query_key(flag) != "fix") continue;  // --loss of distill
    std::optional<std::int64_t> given;
    if (takes_number(dimension)) {
      if (const std::string text = reader.text(flag); !text.empty()) given = word_at(reader, dimension, flag, text);
    } else if (const auto word = reader.word(flag)) {
      given = choice(dimension, *word);
    }
    if (!given) continue;
    const auto fixed = dimension.pin(fix);
    if (fixed && *fixed != *given) {
      reader.problem(fmt::format("{} and --fix {}= say different things", flag, name), "give one of them");
    }
    pin_word(reader, dimension, flag, *given, fix);
  }
}

}  // namespace scalecalc::cli
