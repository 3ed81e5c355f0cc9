// Writes the launch file of a plan from the rows of a framework's table.
#include "launch/writing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/diagnostic.h"
#include "base/quoting.h"
#include "base/text.h"
#include "launch/jax_file.h"

namespace scalecalc {
namespace {

/// Arguments that a framework reads as a share of something.
bool takes_fraction(std::string_view key) {
  return key.ends_with("per_device_batch_size") || key.ends_with("utilization") || key.ends_with("fraction") ||
         key.ends_with("fraction-static");
}

/// A decimal that times `below` is not less than `above`: the frameworks cut off what is behind the point.
std::string decimal(const LaunchFraction& value) {
  const auto below = static_cast<double>(value.below);
  double out = static_cast<double>(value.above) / below;
  if (out * below < static_cast<double>(value.above)) out = std::nextafter(out, 2 * out);
  return fmt::format("{}", out);
}

std::string whole(const LaunchFramework& framework, const LaunchRow& row, const std::optional<LaunchFraction>& value) {
  if (value && value->below == 1) return std::to_string(value->above);
  throw UserError(fmt::format("{} cannot say this plan: {} would be {}/{}", framework.title, row.key,
                              value ? value->above : 0, value ? value->below : 0),
                  fmt::format("it is {} ({})", row.value, framework.source));
}

LaunchArgument argument_of(const LaunchFramework& framework, const LaunchRow& row, const LaunchTerms& terms) {
  LaunchArgument out{.key = std::string(row.key), .values = {}};
  if (row.value.starts_with('@')) {
    out.values.push_back(terms.word(row.value.substr(1)).value_or(""));
  } else if (row.value.starts_with('[')) {
    out.kind = ValueKind::kList;
    std::string_view inside = row.value.substr(1, row.value.size() - 2);
    const std::string words = inside.starts_with('@') ? terms.word(inside.substr(1)).value_or("") : std::string(inside);
    inside = words;
    while (!inside.empty()) {
      const std::size_t end = std::min(inside.find(' '), inside.size());
      out.values.emplace_back(inside.substr(0, end));
      inside.remove_prefix(std::min(end + 1, inside.size()));
    }
  } else if (row.value.starts_with('\'')) {
    const std::string literal(row.value.substr(1, row.value.size() - 2));
    const bool truth = literal == "true" || literal == "false" || literal == "True" || literal == "False";
    const bool digits = !literal.empty() && literal.find_first_not_of("0123456789") == std::string::npos;
    out.kind = literal == "on"            ? ValueKind::kSwitch
               : literal.starts_with('$') ? ValueKind::kVariable
               : truth                    ? ValueKind::kTruth
               : digits                   ? ValueKind::kNumber
                                          : ValueKind::kText;
    if (const std::size_t times = literal.find('*'); out.kind == ValueKind::kVariable && times != std::string::npos) {
      const auto each = value_of(parse_product(std::string_view(literal).substr(times + 1)), terms);
      out.values.push_back(fmt::format("{}*{}", literal.substr(0, times), whole(framework, row, each)));
    } else if (literal != "on") {
      out.values.push_back(literal);
    }
  } else {
    out.kind = ValueKind::kNumber;
    const auto value = value_of(parse_product(row.value), terms);
    if (value && takes_fraction(row.key) && value->below != 1) {
      out.values.push_back(decimal(*value));
    } else if (value) {
      out.values.push_back(whole(framework, row, value));
    }
  }
  return out;
}

bool is_written(const LaunchRow& row, const LaunchTerms& terms) {
  if (row.key.empty() || row.value.empty() || row.use == RowUse::kRead) return false;
  if (holds(row.when, terms) != true) return false;
  for (const auto& [name, value] : said(row.says)) {
    const auto number = terms.number(name);
    if (number ? std::to_string(*number) != value : terms.word(name) != value) return false;
  }
  const bool product = row.value.find_first_of("'@[") != 0;
  if (row.value.starts_with("[@")) return terms.word(row.value.substr(2, row.value.size() - 3)).has_value();
  return product ? value_of(parse_product(row.value), terms).has_value()
                 : !row.value.starts_with('@') || terms.word(row.value.substr(1)).has_value();
}

enum class Place { kEnvironment, kLauncher, kScript, kFile };

Place place_of(std::string_view key) {
  if (key.starts_with("env:")) return Place::kEnvironment;
  if (key.starts_with("run:")) return Place::kLauncher;
  return key.starts_with('-') ? Place::kScript : Place::kFile;
}

std::string scalar(const LaunchArgument& argument, const std::string& value) {
  return argument.kind == ValueKind::kText || argument.kind == ValueKind::kList ? quoted_text(value) : value;
}

std::string value_text(const LaunchArgument& argument) {
  if (argument.kind != ValueKind::kList) return scalar(argument, argument.values.front());
  std::vector<std::string> items;
  for (const std::string& value : argument.values) items.push_back(scalar(argument, value));
  return fmt::format("[{}]", join(items, ", "));
}

/// Arguments whose paths start alike stand in one map, in the order in which the first of each stands.
class Nested {
 public:
  Nested(std::vector<const LaunchArgument*> arguments, LaunchFormat format)
      : all_(std::move(arguments)), format_(format) {}

  std::string text() {
    if (format_ == LaunchFormat::kJson) return "{\n" + level("", 1) + "\n}\n";
    if (format_ == LaunchFormat::kToml) return tables();
    return level("", 0);
  }

 private:
  std::string level(const std::string& prefix, std::size_t depth) {
    std::vector<std::string> seen, lines;
    const std::string indent(2 * depth, ' ');
    const bool json = format_ == LaunchFormat::kJson;
    for (const LaunchArgument* argument : all_) {
      if (!argument->key.starts_with(prefix)) continue;
      const std::string rest = argument->key.substr(prefix.size());
      const std::string name = rest.substr(0, rest.find('.'));
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      const std::string key = json ? quoted_text(name) : name;
      if (name == rest) {
        lines.push_back(fmt::format("{}{}: {}", indent, key, value_text(*argument)));
        continue;
      }
      const std::string inside = level(prefix + name + ".", depth + 1);
      lines.push_back(json ? fmt::format("{0}{1}: {{\n{2}\n{0}}}", indent, key, inside)
                           : fmt::format("{}{}:\n{}", indent, key, inside.substr(0, inside.size() - 1)));
    }
    return json ? join(lines, ",\n") : join(lines, "\n") + "\n";
  }

  std::string tables() {
    std::vector<std::string> sections;
    for (const LaunchArgument* argument : all_) {
      const std::string section = argument->key.substr(0, argument->key.rfind('.'));
      if (std::find(sections.begin(), sections.end(), section) == sections.end()) sections.push_back(section);
    }
    std::string out;
    for (const std::string& section : sections) {
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
      for (const LaunchArgument* argument : all_) {
        if (argument->key.substr(0, argument->key.rfind('.')) != section) continue;
        out += fmt::format("{} = {}\n", argument->key.substr(section.size() + 1), value_text(*argument));
      }
    }
    return out;
  }

  std::vector<const LaunchArgument*> all_;
  LaunchFormat format_;
};

std::vector<const LaunchArgument*> placed(const std::vector<LaunchArgument>& arguments, Place place) {
  std::vector<const LaunchArgument*> out;
  for (const LaunchArgument& argument : arguments) {
    if (place_of(argument.key) == place) out.push_back(&argument);
  }
  return out;
}

std::string stamp_lines(const LaunchStamp& stamp) {
  std::string out;
  for (const std::string& line : stamp) out += "# " + comment_line(line) + "\n";
  return out;
}

std::string file_text(const LaunchFramework& framework, const std::vector<LaunchArgument>& arguments,
                      const LaunchTerms& terms, const LaunchStamp& stamp) {
  const std::vector<const LaunchArgument*> inside = placed(arguments, Place::kFile);
  if (framework.format == LaunchFormat::kPython) {
    std::string constants;
    for (const LaunchArgument* argument : inside)
      constants += fmt::format("{} = {}\n", argument->key, value_text(*argument));
    return stamp_lines(stamp) + jax_file(constants, terms);
  }
  const std::string head = framework.format == LaunchFormat::kJson ? "" : stamp_lines(stamp);
  return head + Nested(inside, framework.format).text();
}

constexpr std::string_view kReplicas = "env:REPLICAS";

/// What the environment says of a node, in a run of one alone where it says nothing: "$HEAD_NODE:29500",
/// "$NODE_RANK*4".
std::string variable_text(const std::string& value) {
  constexpr std::string_view kHeadNode = "$HEAD_NODE";
  if (value.starts_with(kHeadNode))
    return fmt::format("\"${{HEAD_NODE:-localhost}}{}\"", value.substr(kHeadNode.size()));
  const std::size_t times = value.find('*');
  if (times == std::string::npos) return fmt::format("\"{}\"", kNodeRank);
  return fmt::format("\"$(({} * {}))\"", kNodeRank, value.substr(times + 1));
}

std::string shell_argument(const LaunchArgument& argument) {
  std::string_view key = argument.key;
  if (key.starts_with("run:")) key.remove_prefix(4);
  std::string out(key);
  for (const std::string& value : argument.values) {
    out += " " + (argument.kind == ValueKind::kVariable ? variable_text(value) : shell_quoted(value));
  }
  return out;
}

/// "@model" in a command is the model's name.
std::string command_words(std::string_view command, const LaunchTerms& terms) {
  std::string out(command);
  if (const std::size_t at = out.find("@model"); at != std::string::npos) {
    out.replace(at, 6, shell_quoted(terms.word("model").value_or("MODEL")));
  }
  return out;
}

std::string launcher(const LaunchFramework& framework, const LaunchTerms& terms) {
  std::string out(framework.command);
  const bool torchrun = out == "torchrun" && framework.format != LaunchFormat::kShell;
  if (!torchrun) return out;
  const std::int64_t nodes = terms.number("nodes").value_or(1);
  return fmt::format("{} --nnodes {} --nproc_per_node {}{}", out, nodes, terms.number("local").value_or(1),
                     nodes > 1 ? " --rdzv_backend c10d --rdzv_endpoint \"${HEAD_NODE:-localhost}:29500\"" : "");
}

LaunchScript parts_of(const LaunchFramework& framework, const std::vector<LaunchArgument>& arguments,
                      const LaunchTerms& terms, const LaunchStamp& stamp) {
  LaunchScript out{.head = "#!/usr/bin/env bash\n" + stamp_lines(stamp) + "set -euo pipefail\n"};
  for (const LaunchArgument* argument : placed(arguments, Place::kEnvironment)) {
    if (argument->key == kReplicas) {
      out.servers = std::strtoll(argument->values.front().c_str(), nullptr, 10);
      continue;
    }
    out.head += fmt::format("export {}={}\n", argument->key.substr(4), shell_quoted(argument->values.front()));
  }
  const bool has_file = !framework.file.empty();
  if (has_file) {
    out.file = framework.file;
    out.head += fmt::format("cat > {} <<'END_OF_FILE'\n{}END_OF_FILE\n", framework.file,
                            file_text(framework, arguments, terms, {}));
  }
  const bool several =
      std::any_of(arguments.begin(), arguments.end(), [](const auto& a) { return a.kind == ValueKind::kVariable; });
  std::vector<std::string> words{launcher(framework, terms)};
  if (framework.command.ends_with("--config_file")) words.back() += fmt::format(" {}", framework.file);
  for (const LaunchArgument* argument : placed(arguments, Place::kLauncher)) words.push_back(shell_argument(*argument));
  const std::string script = command_words(framework.script, terms);
  const bool names_file = has_file && !framework.command.ends_with("--config_file");
  if (!script.empty() || names_file) {
    words.push_back(script + (names_file ? (script.empty() ? "" : " ") + std::string(framework.file) : ""));
  }
  if (several && !framework.workers.empty()) {
    words.push_back(fmt::format("$([ \"{}\" = 0 ] || echo {})", kNodeRank, framework.workers));
  }
  for (const LaunchArgument* argument : placed(arguments, Place::kScript)) words.push_back(shell_argument(*argument));
  out.command = join(words, " \\\n  ") + "\n";
  out.starts_ranks = !framework.ranks.empty() && terms.number("nodes").value_or(1) > 1;
  if (out.starts_ranks) out.command = fmt::format("{} {}", framework.ranks, out.command);
  return out;
}

/// The script of a machine with no scheduler.
std::string script_text(const LaunchFramework& framework, const std::vector<LaunchArgument>& arguments,
                        const LaunchTerms& terms, const LaunchStamp& stamp) {
  const LaunchScript parts = parts_of(framework, arguments, terms, stamp);
  std::string out = parts.head;
  if (parts.servers > 1) {
    out += fmt::format("export REPLICAS={}\n# so many of these servers, each on chips of its own\n", parts.servers);
  }
  if (parts.starts_ranks) out += fmt::format("mpirun -n {} ", terms.number("server_chips").value_or(1));
  return out + parts.command;
}

}  // namespace

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view before = rest;
    const char32_t c = next_code_point(rest);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff || c == 0xfffd) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += before.substr(0, before.size() - rest.size());
    }
  }
  return out + "\"";
}

std::string comment_line(std::string_view text) { return printable(text); }

bool is_script(const LaunchFramework& framework) {
  return framework.format == LaunchFormat::kShell ||
         std::any_of(framework.rows.begin(), framework.rows.end(),
                     [](const LaunchRow& row) { return !row.key.empty() && place_of(row.key) != Place::kFile; });
}

std::vector<LaunchArgument> arguments_of(const LaunchFramework& framework, const LaunchTerms& terms) {
  std::vector<LaunchArgument> out;
  for (const LaunchRow& row : framework.rows) {
    if (!is_written(row, terms)) continue;
    if (std::any_of(out.begin(), out.end(), [&](const LaunchArgument& a) { return a.key == row.key; })) continue;
    out.push_back(argument_of(framework, row, terms));
  }
  return out;
}

std::vector<LaunchSetting> settings_of(const std::vector<LaunchArgument>& arguments) {
  std::vector<LaunchSetting> out;
  for (const LaunchArgument& argument : arguments) {
    std::string key = argument.key;
    if (key.starts_with("run:")) key = key.substr(4);
    out.push_back({.key = std::move(key), .values = argument.values, .where = {}, .open = {}});
  }
  return out;
}

std::string yaml_of(const std::vector<LaunchArgument>& arguments) {
  return Nested(placed(arguments, Place::kFile), LaunchFormat::kYaml).text();
}

std::string launch_file(const LaunchFramework& framework, const std::vector<LaunchArgument>& arguments,
                        const LaunchTerms& terms, const LaunchStamp& stamp) {
  return is_script(framework) ? script_text(framework, arguments, terms, stamp)
                              : file_text(framework, arguments, terms, stamp);
}

LaunchScript launch_script(const LaunchFramework& framework, const std::vector<LaunchArgument>& arguments,
                           const LaunchTerms& terms, const LaunchStamp& stamp) {
  return parts_of(framework, arguments, terms, stamp);
}

}  // namespace scalecalc
