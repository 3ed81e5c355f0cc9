// Replaces other tools' names of models and chips by those of the catalog, before a command is asked.
#include "cli/read_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/diagnostic.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/foreign_words.h"
#include "cli/shared_flags.h"
#include "spec/kept.h"

namespace scalecalc::cli {
namespace {

/// Hosts of eight by their maker's word; the vendor of a file is understood too.
constexpr std::array<std::string_view, 2> kHostWords{"dgx", "hgx"};
/// Of models: what a checkpoint was trained for changes nothing that is computed here.
constexpr std::array<std::string_view, 6> kTunedWords{"-instruct", "-chat", "-base", "-hf", "-it", "-pt"};

std::optional<std::int64_t> whole_number(std::string_view text) {
  const auto parsed = parse_quantity(text, UnitKind::kCount);
  const double* value = std::get_if<double>(&parsed);
  if (value == nullptr || *value < 1 || *value > static_cast<double>(kMostChips)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

bool digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string scalar_of(const ConfigNode& document, std::string_view block, std::string_view key) {
  const ConfigNode* node = document.find(block);
  if (node != nullptr && !key.empty()) node = node->find(key);
  return node == nullptr ? "" : node->text;
}

/// A chip by its name, or behind its vendor or the word for its host.
std::optional<std::string> chip_named(const std::string& text, const Catalog& catalog) {
  if (auto known = catalog.name_of(CatalogKind::kHardware, text)) return known;
  const std::size_t end = text.find_first_of("-_ /");
  if (end == std::string::npos) return std::nullopt;
  const std::string before = lower_case(text.substr(0, end));
  auto known = catalog.name_of(CatalogKind::kHardware, text.substr(end + 1));
  if (!known) return std::nullopt;
  if (std::find(kHostWords.begin(), kHostWords.end(), before) != kHostWords.end()) return known;
  const ConfigNode document = catalog.load(CatalogKind::kHardware, *known);
  return lower_case(scalar_of(document, "vendor", "")) == before ? known : std::nullopt;
}

/// "8xh100", "8 x h100", "h100x8", "h100:8" as chip and number.
std::optional<NameMeant> counted(const std::string& text, const Catalog& catalog) {
  const auto trimmed = [](std::string part) {
    const auto skip = [](char c) { return c == ' ' || c == '-' || c == '_'; };
    while (!part.empty() && skip(part.front())) part.erase(part.begin());
    while (!part.empty() && skip(part.back())) part.pop_back();
    return part;
  };
  const auto found = [&](const std::string& chip, const std::string& number) -> std::optional<NameMeant> {
    const auto chips = digits(number) ? whole_number(number) : std::nullopt;
    const auto name = chips ? chip_named(chip, catalog) : std::nullopt;
    if (!name) return std::nullopt;
    return NameMeant{*name, *chips, fmt::format("{} is read as {} of {}", text, *chips, *name)};
  };
  for (const char sign : {'x', 'X', '*', ':'}) {
    const std::size_t first = text.find(sign);
    if (first == std::string::npos) continue;
    if (auto out = found(trimmed(text.substr(first + 1)), trimmed(text.substr(0, first)))) return out;
    const std::size_t last = text.rfind(sign);
    if (auto out = found(trimmed(text.substr(0, last)), trimmed(text.substr(last + 1)))) return out;
  }
  return std::nullopt;
}

/// "v5p-128": Google numbers slices by TensorCores, of which newer chips have two.
std::optional<NameMeant> tpu_slice(const std::string& text, const Catalog& catalog) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string::npos || !digits(std::string_view(text).substr(dash + 1))) return std::nullopt;
  auto name = catalog.name_of(CatalogKind::kHardware, text.substr(0, dash));
  if (!name) name = catalog.name_of(CatalogKind::kHardware, "tpu-" + text.substr(0, dash));
  if (!name) return std::nullopt;
  const ConfigNode document = catalog.load(CatalogKind::kHardware, *name);
  const auto cores = whole_number(scalar_of(document, "units", "cores"));
  const auto number = whole_number(text.substr(dash + 1));
  if (scalar_of(document, "family", "") != "tpu" || !cores || !number || *number % *cores != 0) return std::nullopt;
  const std::int64_t chips = *number / *cores;
  const std::string each = *cores == 1 ? "one on each chip" : fmt::format("{} on each chip", *cores);
  return NameMeant{*name, chips,
                   fmt::format("{} is a slice of {} TensorCores, {}: {} of {}", text, *number, each,
                               chips == 1 ? "one chip" : fmt::format("{} chips", chips), *name)};
}

std::optional<std::string> plain_model(std::string text, const Catalog& catalog) {
  std::replace(text.begin(), text.end(), ':', '-');  // llama3:70b
  for (bool shorter = true; shorter;) {
    if (auto known = catalog.name_of(CatalogKind::kModel, text)) return known;
    shorter = false;
    for (const std::string_view tuned : kTunedWords) {
      if (!lower_case(text).ends_with(tuned)) continue;
      text.resize(text.size() - tuned.size());
      shorter = true;
      break;
    }
  }
  return std::nullopt;
}

/// The number of chips that a word says, unless another flag says another.
void set_chips(Arguments& arguments, std::int64_t chips, const std::string& said_by) {
  if (const auto slices = whole_number(arguments.value("--slices").value_or("1"))) chips *= *slices;
  const auto given = arguments.value("--chips");
  if (given && whole_number(*given) != chips) {
    throw UserError(fmt::format("{} says {} chips, and --chips {}", said_by, group_thousands(chips), *given),
                    "give one of them");
  }
  arguments.replace("--chips", {std::to_string(chips)});
}

class NameReader {
 public:
  NameReader(Arguments& arguments, const Catalog& catalog)
      : arguments_(arguments), catalog_(catalog), command_(arguments.command()) {}

  void read() {
    for (const Flag& flag : command_.flags) {
      if (!arguments_.has(flag.name) || find_flag(command_.flags, flag.name) != &flag) continue;
      if (flag.value == "HW") one(flag.name, CatalogKind::kHardware);
      if (flag.value == "MODEL") one(flag.name, CatalogKind::kModel);
      if (flag.value == "SYSTEMS") systems(flag.name);
    }
    words();
    hosts();
  }

 private:
  /// The questions of a study share what their names mean.
  std::optional<NameMeant> meant(const std::string& text, CatalogKind kind) const {
    const auto read = [&] {
      return kind == CatalogKind::kModel ? model_meant(text, catalog_) : hardware_meant(text, catalog_);
    };
    return *kept<std::optional<NameMeant>>(catalog_, fmt::format("meant\n{}\n{}", static_cast<int>(kind), text), read);
  }
  bool takes_chips() const { return find_flag(command_.flags, "--chips") != nullptr; }

  void one(std::string_view flag, CatalogKind kind) {
    const std::string typed = arguments_.value(flag).value_or("");
    if (typed.find(',') != std::string::npos) return several(flag, kind, typed);
    const auto name = meant(typed, kind);
    const bool sized = name && name->chips;
    if (!name || (sized && (flag != "--hw" || !takes_chips()))) return;
    if (sized) set_chips(arguments_, *name->chips, fmt::format("--hw {}", typed));
    arguments_.replace(flag, {name->name});
    note(*name, flag);
  }

  void several(std::string_view flag, CatalogKind kind, const std::string& typed) {
    std::vector<std::string> out;
    for (const std::string& item : comma_parts(typed)) {
      const auto name = meant(item, kind);
      const bool plain = name && !name->chips;
      out.push_back(plain ? name->name : item);
      if (plain) note(*name, flag);
    }
    arguments_.replace(flag, {join(out, ",")});
  }

  /// "8xh100,tpu-v5p@GCP": NAME:CHIPS is how a system says its size.
  void systems(std::string_view flag) {
    std::vector<std::string> out;
    for (const std::string& item : comma_parts(arguments_.value(flag).value_or(""))) {
      const std::size_t price = std::min(item.find('@'), item.size());
      const std::string typed = item.substr(0, price);
      const auto name = typed.find(':') == std::string::npos ? meant(typed, CatalogKind::kHardware) : std::nullopt;
      const std::string size = name && name->chips ? fmt::format(":{}", *name->chips) : "";
      out.push_back(name ? name->name + size + item.substr(price) : item);
      if (name) note(*name, flag);
    }
    arguments_.replace(flag, {join(out, ",")});
  }

  void words() {
    if (!command_.names) return;
    const std::vector<std::string> typed = arguments_.positionals();
    if (!typed.empty() && typed.front() == "list") return;  // words behind it are parts of names
    const bool chips = *command_.names == CatalogKind::kHardware;
    for (std::size_t i = 0; i < (chips ? typed.size() : std::min<std::size_t>(typed.size(), 1)); ++i) {
      const auto name = meant(typed[i], *command_.names);
      if (!name || (name->chips && typed.size() > 1)) continue;
      if (name->chips) set_chips(arguments_, *name->chips, typed[i]);
      arguments_.replace_word(i, name->name);
      note(*name, "");
    }
  }

  /// --nodes N is as many chips as N hosts have.
  void hosts() {
    const auto asked = arguments_.value(kHostsFlag);
    const auto each = arguments_.value(kChipsOfHostFlag);
    if (!asked && !each) return;
    if (!asked) {
      throw UserError(fmt::format("{} has no meaning without {}: how many hosts?", kChipsOfHostFlag, kHostsFlag),
                      "or all chips together: --chips 128");
    }
    const Flag* hw = find_flag(command_.flags, "--hw");
    if (hw == nullptr || hw->value != "HW" || !arguments_.has("--hw")) {
      throw UserError(fmt::format("{} {}: hosts of which chip?", kHostsFlag, *asked),
                      "say how many chips there are: --chips N, or NAME:N where several systems are compared");
    }
    const std::string name = *arguments_.value("--hw");
    ConfigNode document = catalog_.load(CatalogKind::kHardware, name);
    for (const std::string& set : arguments_.values("--set")) {
      if (set.starts_with("hw.host.chips=")) apply_sets({set}, {{"hw", &document}});
    }
    const auto has = whole_number(scalar_of(document, "host", "chips"));
    const auto count = whole_number(*asked);
    if (!has || !count) {
      throw UserError(count ? fmt::format("{} does not say how many chips a host has", name)
                            : fmt::format("{} {} is no number of hosts", kHostsFlag, in_quotes(*asked)),
                      "say how many chips there are: --chips N");
    }
    if (each && whole_number(*each) != has) {
      throw UserError(fmt::format("{} {}: a host of {} has {}", kChipsOfHostFlag, *each, name, *has),
                      fmt::format("--set hw.host.chips={} changes that; or say all chips: --chips N", *each));
    }
    const std::int64_t chips = *count * *has;
    arguments_.replace(kHostsFlag, {});
    arguments_.replace(kChipsOfHostFlag, {});
    set_chips(arguments_, chips, fmt::format("{} {}", kHostsFlag, *count));
    arguments_.note(
        {fmt::format("{} hosts of {} chips are read as --chips {}", *count, *has, *arguments_.value("--chips")),
         "--chips", "hardware file"});
  }

  void note(const NameMeant& name, std::string_view flag) {
    Assumption reading{name.why, std::string(flag), "command line"};
    if (flag.empty()) reading.as(*command_.names == CatalogKind::kModel ? "model" : "hardware");
    arguments_.note(std::move(reading).is(name.name));
  }

  Arguments& arguments_;
  const Catalog& catalog_;
  const Command& command_;
};

}  // namespace

std::optional<NameMeant> hardware_meant(const std::string& text, const Catalog& catalog) {
  if (is_catalog_path(text) || catalog.name_of(CatalogKind::kHardware, text)) return std::nullopt;
  if (const auto chip = chip_named(text, catalog)) {
    return NameMeant{*chip, std::nullopt, fmt::format("{} is read as {}", text, *chip)};
  }
  if (auto out = counted(text, catalog)) return out;
  return tpu_slice(text, catalog);
}

std::optional<NameMeant> model_meant(const std::string& text, const Catalog& catalog) {
  if (is_catalog_path(text) || catalog.name_of(CatalogKind::kModel, text)) return std::nullopt;
  auto known = plain_model(text, catalog);
  const std::size_t slash = text.find('/');
  if (!known && slash != std::string::npos) known = plain_model(text.substr(slash + 1), catalog);
  if (!known) return std::nullopt;
  return NameMeant{*known, std::nullopt, fmt::format("{} is read as {}", text, *known)};
}

void read_names(Arguments& arguments, const Catalog& catalog) { NameReader(arguments, catalog).read(); }

}  // namespace scalecalc::cli
