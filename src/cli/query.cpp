// Adds the member "query" and the question to every answer, from the command's table of flags.
#include <algorithm>
#include <set>

#include "cli/commands.h"
#include "cli/output_command.h"

namespace scalecalc::cli {
namespace {

std::string_view suffix_of(UnitKind unit) {
  switch (unit) {
    case UnitKind::kSeconds: return "_s";
    case UnitKind::kBytes: return "_bytes";
    case UnitKind::kBytesPerSecond: return "_bytes_per_s";
    case UnitKind::kUsdPerHour: return "_usd_per_chip_hour";
    case UnitKind::kGramsPerKwh: return "_g_per_kwh";
    default: return "";
  }
}

/// It or parts of it.
bool has_key(const std::set<std::string>& keys, const std::string& key) {
  if (keys.contains(key)) return true;
  const auto part = keys.lower_bound(key + '.');
  return part != keys.end() && part->starts_with(key + '.');
}

bool by_function(const Flag& flag) { return flag.store != nullptr && flag.show == nullptr; }

Figure as_typed(const Flag& flag, const Arguments& arguments) {
  if (flag.kind == FlagKind::kSwitch) return flag_figure("", arguments.has(flag.name));
  if (flag.kind == FlagKind::kRepeatable) return detail::as_asked(flag, arguments.values(flag.name));
  if (by_function(flag) || flag.reading == Reading::kText || flag.reading == Reading::kWord) {
    return detail::as_asked(flag, arguments.value(flag.name));
  }
  FlagReader reader(arguments, {&flag, 1});
  if (flag.reading != Reading::kSweep) return detail::as_asked(flag, reader.get<double>(flag));
  return detail::as_asked(flag, reader.sweep(flag).value_or(std::vector<double>{}));
}

/// "--price" of "--price", "--mtbf, --straggler" and "--price h100-sxm=2.5".
const Flag* first_flag(const std::string& text, const Command& command) {
  return find_flag(command.flags, std::string_view(text).substr(0, text.find_first_of(" ,")));
}

/// Of "--set hw.power.tdp" the key that would be set; of a word of the question, "mask=causal", its name; of a flag
/// that this command does not take, the name that its key has elsewhere.
std::string key_of(const std::string& text, const Flag* flag) {
  constexpr std::string_view kSet = "--set ";
  if (text.starts_with(kSet)) return text.substr(kSet.size());
  if (flag != nullptr) return query_key(*flag);
  if (!text.starts_with("--")) return text.substr(0, text.find('='));
  std::string out = text.substr(2, text.find_first_of(" ,") - 2);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

const Figure* found_in(const Record& query, const std::string& key) {
  const auto found =
      std::find_if(query.figures.begin(), query.figures.end(), [&](const Figure& f) { return f.key == key; });
  return found == query.figures.end() ? nullptr : &*found;
}

/// What is assumed of a flag is what the question was answered with. A flag that the command would refuse is not named,
/// as where `rl` plans its training as `train` does.
void name_assumptions(Output& output, const Arguments& arguments) {
  const auto mode = mode_of(arguments);
  for (Assumption& assumption : output.assumptions) {
    const Flag* flag = first_flag(assumption.flag, arguments.command());
    if (assumption.key.empty()) assumption.key = key_of(assumption.flag, flag);
    const bool taken =
        flag != nullptr ? !mode || flag->is_of(*mode) : find_flag(common_flags(), assumption.flag) != nullptr;
    if (!taken && assumption.flag.starts_with("--")) {
      const auto decides = std::find(output.deciding.begin(), output.deciding.end(), assumption.flag);
      if (decides != output.deciding.end()) output.deciding.push_back(assumption.key);
      assumption.flag.clear();
    }
    if (!std::holds_alternative<std::monostate>(assumption.value)) continue;
    if (const Figure* asked = found_in(output.query, assumption.key); asked != nullptr && !asked->is_list) {
      assumption.value = asked->value;
    }
  }
}

/// The flag of that name that a mode of the command uses.
const Flag* flag_of(const Command& command, std::optional<std::size_t> mode, std::string_view name) {
  const auto found = std::find_if(command.flags.begin(), command.flags.end(),
                                  [&](const Flag& flag) { return flag.name == name && (!mode || flag.is_of(*mode)); });
  return found == command.flags.end() ? nullptr : &*found;
}

/// Whether a layout's pins leave the flag nothing to say: it chooses a layout too, bounds the search or ranks plans.
bool is_settled(const Flag& flag, const std::vector<FlagChange>& pins, const Command& to) {
  return std::any_of(pins.begin(), pins.end(), [&](const FlagChange& pin) {
    if (!pin.flag.ends_with("fix")) return false;
    const Flag* fix = find_flag(to.flags, pin.flag);
    const std::string bound = pin.flag.substr(0, pin.flag.size() - 3) + "max";
    return flag.of_several || flag.name == bound || (fix != nullptr && query_key(flag) == query_key(*fix));
  });
}

/// What was asked, with what both commands read alike.
std::string next_command(const Arguments& arguments, const StudyQuestion& asked, const NextQuestion& next) {
  const Command& from = arguments.command();
  const Command& to = next.command.empty() ? from : *find_command(next.command);
  StudyQuestion out{std::string(to.name), next.words.empty() ? asked.positionals : next.words, {}};
  const auto replaced = [&](std::string_view name) {
    return std::any_of(next.flags.begin(), next.flags.end(), [&](const FlagChange& f) { return f.flag == name; });
  };
  const auto mode = mode_of(arguments);
  for (const auto& [name, values] : asked.flags) {
    const Flag* here = flag_of(from, mode, name);
    const bool taken = here == nullptr || std::any_of(to.flags.begin(), to.flags.end(), [&](const Flag& there) {
                         return there.name == name && there.store == here->store;
                       });
    if (taken && !replaced(name) && (here == nullptr || !is_settled(*here, next.flags, to))) out.flags[name] = values;
  }
  std::vector<FlagChange> last = next.flags;
  std::erase_if(last, [](const FlagChange& change) { return change.value.empty(); });
  return command_line(out, last);
}

void complete_commands(Output& output, const Arguments& arguments, const StudyQuestion& asked) {
  for (Block& block : output.blocks) {
    for (std::vector<Line>* lines : {&block.lines, &block.brief_lines}) {
      for (Line& line : *lines) {
        if (line.next) line.text = next_command(arguments, asked, *line.next);
      }
    }
  }
}

}  // namespace

StudyQuestion question_asked(const Arguments& arguments) {
  const Command& command = arguments.command();
  StudyQuestion out{std::string(command.name), arguments.positionals(), {}};
  const auto mode = mode_of(arguments);
  // "hw X --keys" asks another thing than "hw X".
  const auto decides = [&](const Flag& flag) {
    Arguments without = arguments;
    without.replace(flag.name, {});
    return mode_of(without) != mode;
  };
  const auto add = [&](const Flag& flag) {
    if (!arguments.has(flag.name) || !(flag.asks || decides(flag))) return;
    out.flags[std::string(flag.name)] = arguments.values(flag.name);
  };
  for (const Flag& flag : command.flags) {
    if (!mode || flag.is_of(*mode)) add(flag);
  }
  for (const Flag& flag : common_flags()) {
    if (find_flag(command.flags, flag.name) == nullptr) add(flag);
  }
  return out;
}

std::string query_key(const Flag& flag) {
  std::string own(flag.query_key);
  if (own.empty()) {
    own = flag.name.substr(2);
    std::replace(own.begin(), own.end(), '-', '_');
    if (own.find("bytes") == std::string::npos && !by_function(flag)) own += suffix_of(flag.unit);
  }
  return std::string(flag.query_group) + own;
}

Output with_query(Output output, const Arguments& arguments, std::initializer_list<Answered> questions) {
  const auto mode = mode_of(arguments);
  std::set<std::string> keys;
  for (const Figure& known : output.query.figures) keys.insert(known.key);
  for (const Flag& flag : arguments.command().flags) {
    const Answered* one = std::find_if(questions.begin(), questions.end(),
                                       [&](const Answered& q) { return q.kind != nullptr && q.kind == flag.question; });
    const bool known = one != questions.end();
    const std::string key = query_key(flag);
    if (!flag.asks || (!known && mode && !flag.is_of(*mode)) || has_key(keys, key)) continue;
    Figure out;
    if (!known || flag.show == nullptr) {
      out = as_typed(flag, arguments);
    } else if (one->question != nullptr) {
      out = flag.show(flag, one->question);
    }
    out.key = key;
    keys.insert(key);
    output.query.figures.push_back(std::move(out));
  }
  for (const Assumption& reading : arguments.readings()) {
    output.assumptions.push_back(reading);
    if (!output.deciding.empty()) output.deciding.push_back(reading.flag);
  }
  name_assumptions(output, arguments);
  const StudyQuestion asked = question_asked(arguments);
  output.question = command_line(asked);
  complete_commands(output, arguments, asked);
  return output;
}

}  // namespace scalecalc::cli
