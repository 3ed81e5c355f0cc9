// Reads the user's config.yaml and environment variables, and fills in the flags that were not typed.
#include "cli/user_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "base/diagnostic.h"
#include "base/io.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/shared_flags.h"
#include "compare/compared.h"
#include "config/fields.h"
#include "config/yaml_reader.h"
#include "spec/load.h"
#include "spec/load_stack.h"
#include "train/resolve.h"

namespace scalecalc::cli {
namespace {

struct DefaultKey {
  std::string_view key;       ///< in config.yaml
  std::string_view variable;  ///< in the environment
  bool by_chip = false;       ///< may be a map by chip or family
};
constexpr std::array kDefaultKeys{DefaultKey{"stack", "SCALECALC_STACK", true},
                                  DefaultKey{"engine", "SCALECALC_ENGINE", true},
                                  DefaultKey{"price", "SCALECALC_PRICE", true}, DefaultKey{"cloud", "SCALECALC_CLOUD"},
                                  DefaultKey{"price-kind", "SCALECALC_PRICE_KIND"}};

/// One place where defaults are said.
struct DefaultSource {
  ConfigNode document;
  bool is_file = false;

  /// Who says so, for the answer: a path stands in the assumption's source.
  std::string_view who(std::string_view variable) const { return is_file ? "your config.yaml" : variable; }
  std::string origin(const ConfigNode& value) const {
    return is_file ? fmt::format("{}:{}", value.span.file.str(), value.span.line) : value.span.file.str();
  }
};

std::string config_file(const Environment& env) {
  const std::string own = user_directory(env);
  std::error_code ignored;
  return !own.empty() && std::filesystem::is_regular_file(own + "/config.yaml", ignored) ? own + "/config.yaml" : "";
}

[[noreturn]] void wrong_default(const SourceSpan& where, std::string message, std::string hint) {
  throw UserError({Diagnostic{where, std::move(message), std::move(hint)}});
}

void require_text(Problems& problems, std::string_view what, const ConfigNode& value) {
  if (value.kind == ConfigNode::Kind::kScalar && !value.text.empty()) return;
  problems.add(value.span, fmt::format("{} is {}, and one text is expected", what, kind_name(value.kind)));
}

std::optional<DefaultSource> file_source(const Environment& env) {
  const std::string path = config_file(env);
  if (path.empty()) return std::nullopt;
  DefaultSource out{read_yaml(read_text_file(path), path), true};
  if (out.document.is_null()) return std::nullopt;
  Problems problems;
  Fields fields(out.document, "user defaults", problems);
  for (const DefaultKey& known : kDefaultKeys) {
    const ConfigNode* value = fields.node(known.key);
    if (value == nullptr) continue;
    if (!known.by_chip || value->kind != ConfigNode::Kind::kMap) {
      require_text(problems, known.key, *value);
      continue;
    }
    for (const ConfigNode::Entry& entry : value->entries) require_text(problems, entry.key, entry.value);
  }
  fields.text_list("config-dir");
  fields.finish();
  problems.throw_if_any();
  std::erase_if(out.document.entries, [](const ConfigNode::Entry& entry) { return entry.value.is_null(); });
  return out;
}

/// "megatron", or "nvidia=megatron,tpu=maxtext" as the map that a file would have.
ConfigNode variable_node(const DefaultKey& known, const std::string& text) {
  const auto at = [&](std::size_t column) {
    return SourceSpan{std::string(known.variable), 1, static_cast<int>(column) + 1, 1, text};
  };
  ConfigNode out;
  out.text = text;
  out.span = at(0);
  if (!known.by_chip || text.find('=') == std::string::npos) return out;
  out.kind = ConfigNode::Kind::kMap;
  std::size_t column = 0;
  for (const std::string& part : parts_between(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == part.size()) {
      wrong_default(at(column), fmt::format("{} is no NAME=VALUE", in_quotes(part)),
                    fmt::format("one value, or {}=nvidia=...,tpu=...", known.variable));
    }
    ConfigNode value;
    value.text = part.substr(equals + 1);
    value.span = at(column + equals + 1);
    out.entries.push_back({part.substr(0, equals), at(column), std::move(value)});
    column += part.size() + 1;
  }
  return out;
}

/// In the order of precedence.
std::vector<DefaultSource> default_sources(const Environment& env) {
  std::vector<DefaultSource> out;
  DefaultSource variables;
  variables.document.kind = ConfigNode::Kind::kMap;
  for (const DefaultKey& known : kDefaultKeys) {
    const std::string text = env.get(std::string(known.variable)).value_or("");
    if (text.empty()) continue;
    ConfigNode value = variable_node(known, text);
    const SourceSpan where = value.span;
    variables.document.entries.push_back({std::string(known.key), where, std::move(value)});
  }
  if (!variables.document.entries.empty()) out.push_back(std::move(variables));
  if (auto file = file_source(env)) out.push_back(std::move(*file));
  return out;
}

double price_of(const ConfigNode& value) {
  const auto parsed = parse_quantity(value.text, UnitKind::kUsdPerHour, true);
  if (const auto* error = std::get_if<UnitError>(&parsed)) wrong_default(value.span, error->message, error->hint);
  const double out = std::get<double>(parsed);
  if (out <= 0) {
    wrong_default(value.span, fmt::format("{} is not above zero", in_quotes(value.text)),
                  std::string(accepted_forms(UnitKind::kUsdPerHour)));
  }
  return out;
}

/// Names that no catalog has, wherever they stand: of chips, and for all but prices of families.
void check_names(const std::vector<DefaultSource>& sources, const Catalog& catalog) {
  const std::vector<std::string> families = catalog.names(CatalogKind::kEfficiency);
  std::vector<Diagnostic> wrong;
  for (const DefaultSource& source : sources) {
    for (const DefaultKey& known : kDefaultKeys) {
      const ConfigNode* value = source.document.find(known.key);
      if (value == nullptr || value->kind != ConfigNode::Kind::kMap) continue;
      const bool family_too = known.key != "price";
      for (const ConfigNode::Entry& entry : value->entries) {
        const bool family = std::find(families.begin(), families.end(), entry.key) != families.end();
        if ((family_too && family) || catalog.name_of(CatalogKind::kHardware, entry.key)) continue;
        std::vector<std::string> names = catalog.names(CatalogKind::kHardware);
        if (family_too) names.insert(names.end(), families.begin(), families.end());
        const std::string hint = did_you_mean(nearest(entry.key, names));
        wrong.push_back({entry.key_span,
                         fmt::format("{} is no chip{}", in_quotes(entry.key), family_too ? " and no family" : ""),
                         hint.empty() ? "scalecalc hw list names them" : hint});
      }
    }
  }
  if (!wrong.empty()) throw UserError(std::move(wrong));
}

class DefaultTaker {
 public:
  DefaultTaker(Arguments& arguments, const Catalog& catalog, const std::vector<DefaultSource>& sources)
      : arguments_(arguments), catalog_(catalog), sources_(sources), mode_(mode_of(arguments)) {}

  void take() {
    const Flag* hw = find_flag(arguments_.command().flags, "--hw");
    const std::string typed = arguments_.value("--hw").value_or("");
    if (hw == nullptr || typed.empty()) return;
    const bool systems = hw->value == "SYSTEMS";
    if (!systems && hw->value != "HW") return;
    std::vector<HardwareSpec> chips;
    for (const std::string& item : comma_parts(typed)) {
      // Standard input can be read once, and the command will.
      if (item == "-") return;
      auto chip = hardware(systems ? name_of_system(item) : item);
      if (!chip) return;
      chips.push_back(std::move(*chip));
    }
    stack(chips);
    engine(chips);
    if (systems) return prices_of_systems(typed);
    if (chips.size() != 1 || !takes("--price", kPriceFlag.value)) return;
    if (const auto found = price(chips.front())) {
      arguments_.suppose("--price", {fmt::format("{}", found->usd)});
      arguments_.note({found->text, "--price", found->origin});
    }
  }

 private:
  struct FoundPrice {
    double usd = 0;
    std::string text, origin;
  };

  /// Of "NAME:CHIPS@CLOUD".
  static std::string name_of_system(const std::string& item) { return item.substr(0, item.find_first_of(":@")); }

  /// What does not load is for the command to say.
  std::optional<HardwareSpec> hardware(const std::string& name) const {
    try {
      ConfigNode document = catalog_.load(CatalogKind::kHardware, name);
      std::vector<std::string> sets = arguments_.values("--set");
      std::erase_if(sets, [](const std::string& set) { return !set.starts_with("hw."); });
      apply_sets(sets, {{"hw", &document}});
      return load_hardware(document, catalog_, Unpublished::kAllowed);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  /// Whether the question has such a flag, leaves it out, and says nothing that contradicts it. Flags of one name whose
  /// values are called otherwise mean something else.
  bool takes(std::string_view name, std::string_view value) const {
    const std::span<const Flag> flags = arguments_.command().flags;
    if (arguments_.has(name)) return false;
    return std::any_of(flags.begin(), flags.end(), [&](const Flag& flag) {
      if (flag.name != name || flag.value != value || !flag.words.empty()) return false;
      if (mode_ && !flag.is_of(*mode_)) return false;
      for (const Flag& other : flags) {
        if (!arguments_.has(other.name)) continue;
        if (!flag.says.empty() && other.says == flag.says) return false;
        const std::vector<std::string> excluded = parts_between(other.excludes, ' ');
        if (std::find(excluded.begin(), excluded.end(), name) != excluded.end()) return false;
      }
      return !arguments_.has_one_of(flag.excludes) &&
             std::all_of(flag.needs.begin(), flag.needs.end(),
                         [&](const FlagNeed& need) { return need.flags.empty() || arguments_.has_one_of(need.flags); });
    });
  }

  bool is_ideal() const { return arguments_.value("--efficiency") == "ideal"; }

  /// Of the chip by its name, else of its family, else of all.
  const ConfigNode* value_for(const DefaultSource& source, std::string_view key, const HardwareSpec& chip) const {
    const ConfigNode* value = source.document.find(key);
    if (value == nullptr || value->kind != ConfigNode::Kind::kMap) return value;
    for (const ConfigNode::Entry& entry : value->entries) {
      if (catalog_.name_of(CatalogKind::kHardware, entry.key) == chip.name) return &entry.value;
    }
    return value->find(chip.family);
  }
  /// What all the chips have; nullptr where one has none or another than the first.
  const ConfigNode* value_for(const DefaultSource& source, std::string_view key,
                              const std::vector<HardwareSpec>& chips) const {
    const ConfigNode* out = value_for(source, key, chips.front());
    for (const HardwareSpec& chip : chips) {
      const ConfigNode* value = value_for(source, key, chip);
      if (out == nullptr || value == nullptr || value->text != out->text) return nullptr;
    }
    return out;
  }
  static bool is_of_all(const DefaultSource& source, std::string_view key) {
    return source.document.find(key)->kind != ConfigNode::Kind::kMap;
  }

  /// A launch file, read or written, says which software it is of. --from of train may be a saved plan.
  bool launch_file_says() const {
    const std::string_view command = arguments_.command().name;
    return command == "lint" || arguments_.has("--export") || (command == "serve" && arguments_.has("--from"));
  }

  void stack(const std::vector<HardwareSpec>& chips) {
    if (is_ideal() || launch_file_says() || !takes(kStackFlag.name, kStackFlag.value)) return;
    for (const DefaultSource& source : sources_) {
      const ConfigNode* value = value_for(source, "stack", chips);
      if (value == nullptr) continue;
      try {
        const StackAsked asked = stack_asked(value->text);
        for (const HardwareSpec& chip : chips) {
          if (!asked.any) efficiency_under(chip, asked.name);
        }
      } catch (const UserError& error) {
        // One stack for all chips is meant where it runs.
        if (is_of_all(source, "stack") && stack_of_framework(catalog_, stack_asked(value->text).name)) continue;
        wrong_default(value->span, error.diagnostics().front().message, error.diagnostics().front().hint);
      }
      arguments_.suppose("--stack", {value->text});
      return arguments_.note(
          {fmt::format("stack {} ({})", value->text, source.who("SCALECALC_STACK")), "--stack", source.origin(*value)});
    }
  }

  void engine(const std::vector<HardwareSpec>& chips) {
    if (is_ideal() || launch_file_says() || !takes(kEngineFlag.name, kEngineFlag.value)) return;
    for (const DefaultSource& source : sources_) {
      const ConfigNode* value = value_for(source, "engine", chips);
      if (value == nullptr) continue;
      try {
        serving_stack(catalog_, value->text);
      } catch (const UserError& error) {
        wrong_default(value->span, error.diagnostics().front().message, error.diagnostics().front().hint);
      }
      arguments_.suppose("--engine", {value->text});
      return arguments_.note({fmt::format("engine {} ({})", value->text, source.who("SCALECALC_ENGINE")), "--engine",
                              source.origin(*value)});
    }
  }

  /// A price said, else the first of the file in the cloud and of the kind said, source by source.
  std::optional<FoundPrice> price(const HardwareSpec& chip) {
    for (const DefaultSource& source : sources_) {
      if (const ConfigNode* value = value_for(source, "price", chip)) {
        const double usd = price_of(*value);
        return FoundPrice{
            usd, fmt::format("price of {}: {:g} USD per chip-hour ({})", chip.name, usd, source.who("SCALECALC_PRICE")),
            source.origin(*value)};
      }
      const ConfigNode* cloud = source.document.find("cloud");
      const ConfigNode* kind = source.document.find("price-kind");
      if (cloud == nullptr && kind == nullptr) continue;
      return price_in(chip, cloud != nullptr ? cloud : said("cloud"), kind != nullptr ? kind : said("price-kind"),
                      source.origin(cloud != nullptr ? *cloud : *kind));
    }
    return std::nullopt;
  }

  const ConfigNode* said(std::string_view key) const {
    for (const DefaultSource& source : sources_) {
      if (const ConfigNode* value = source.document.find(key)) return value;
    }
    return nullptr;
  }

  std::optional<FoundPrice> price_in(const HardwareSpec& chip, const ConfigNode* cloud, const ConfigNode* kind,
                                     const std::string& origin) {
    if (chip.prices.empty()) return std::nullopt;
    PriceFilter filter;
    if (cloud != nullptr) filter.clouds = {cloud->text};
    if (kind != nullptr) filter.kinds = {kind->text};
    const std::vector<Price> chosen = chosen_prices(chip.prices, filter);
    if (!chosen.empty()) {
      const Price& first = chosen.front();
      return FoundPrice{first.usd_per_chip_hour,
                        fmt::format("price of {}: {:g} USD per chip-hour, {} {}, {}", chip.name,
                                    first.usd_per_chip_hour, first.cloud, first.terms, first.date),
                        origin};
    }
    check_words(filter, cloud, kind);
    arguments_.note({fmt::format("{} has no price of {}{}{}: the hardware file's first counts", chip.name,
                                 cloud == nullptr ? "" : cloud->text, cloud != nullptr && kind != nullptr ? ", " : "",
                                 kind == nullptr ? "" : kind->text),
                     "--price", origin});
    return std::nullopt;
  }

  /// UserError with the place of the word that no chip's prices have.
  void check_words(const PriceFilter& filter, const ConfigNode* cloud, const ConfigNode* kind) const {
    std::vector<Price> all;
    for (const std::string& name : catalog_.names(CatalogKind::kHardware)) {
      if (const auto chip = loaded(name)) all.insert(all.end(), chip->prices.begin(), chip->prices.end());
    }
    const auto require = [&](const PriceFilter& of_one, const ConfigNode* value) {
      if (value == nullptr) return;
      try {
        require_known(of_one, all);
      } catch (const UserError& error) {
        wrong_default(value->span, error.diagnostics().front().message, error.diagnostics().front().hint);
      }
    };
    require({.clouds = filter.clouds}, cloud);
    require({.kinds = filter.kinds}, kind);
  }
  std::optional<HardwareSpec> loaded(const std::string& name) const {
    try {
      return load_hardware(catalog_.load(CatalogKind::kHardware, name), catalog_, Unpublished::kAllowed);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  /// Systems that say no price of their own; whoever says one for all, or which to take, has said it.
  void prices_of_systems(const std::string& typed) {
    if (!takes("--price", "[NAME=]USD")) return;
    for (const std::string_view flag : {"--cloud", "--price-kind", "--price-date"}) {
      if (arguments_.has(flag)) return;
    }
    std::vector<std::string> values;
    std::set<std::string> seen;
    for (const std::string& item : comma_parts(typed)) {
      const std::string name = name_of_system(item);
      if (item.find('@') != std::string::npos || !seen.insert(name).second) continue;
      const auto chip = hardware(name);
      const auto found = chip ? price(*chip) : std::nullopt;
      if (!found) continue;
      values.push_back(fmt::format("{}={}", name, found->usd));
      arguments_.note({found->text, "--price", found->origin});
    }
    if (!values.empty()) arguments_.suppose("--price", std::move(values));
  }

  Arguments& arguments_;
  const Catalog& catalog_;
  const std::vector<DefaultSource>& sources_;
  std::optional<std::size_t> mode_;
};

}  // namespace

std::string user_directory(const Environment& env) {
  const std::string home = env.get("HOME").value_or("");
  std::string base = env.get("XDG_CONFIG_HOME").value_or("");
  if (base.empty() && !home.empty()) base = home + "/.config";
  std::error_code ignored;
  const std::string own = base + "/scalecalc";
  return base.starts_with('/') && std::filesystem::is_directory(own, ignored) ? own : "";
}

std::vector<std::string> user_config_directories(const Environment& env) {
  std::vector<std::string> out;
  const auto file = file_source(env);
  const ConfigNode* said = file ? file->document.find("config-dir") : nullptr;
  if (said == nullptr) return out;
  const std::vector<ConfigNode> one{*said};
  for (const ConfigNode& item : said->kind == ConfigNode::Kind::kSequence ? said->items : one) {
    const std::filesystem::path path = std::filesystem::path(user_directory(env)) / item.text;
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
      wrong_default(item.span, fmt::format("config-dir {} does not exist", in_quotes(path.string())),
                    "a relative one lies beside this file");
    }
    out.push_back(path.string());
  }
  return out;
}

void take_user_defaults(Arguments& arguments, const Catalog& catalog, const Environment& env) {
  const std::vector<DefaultSource> sources = default_sources(env);
  if (sources.empty()) return;
  check_names(sources, catalog);
  DefaultTaker(arguments, catalog, sources).take();
}

}  // namespace scalecalc::cli
