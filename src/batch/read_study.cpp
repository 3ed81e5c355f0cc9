// Reads a study file into the columns, conditions and command of `scalecalc batch`.
#include <fmt/format.h>

#include <fnmatch.h>
#include <glob.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/io.h"
#include "base/quoting.h"
#include "base/sweep.h"
#include "base/text.h"
#include "batch/condition.h"
#include "batch/study.h"
#include "config/catalog.h"
#include "config/fields.h"
#include "config/yaml_reader.h"

namespace scalecalc {

std::string command_line(const StudyQuestion& question, const std::vector<FlagChange>& last) {
  // A dash makes a flag of a word, unless the word stands behind "--" or its flag's "=".
  const auto dashed = [](const std::string& word) { return word.size() > 1 && word.front() == '-'; };
  std::string words;
  bool behind = false;
  for (const std::string& word : question.positionals) {
    words += ' ' + shell_quoted(word);
    behind = behind || dashed(word);
  }
  std::string flags;
  const auto say = [&](const std::string& flag, const std::string& value) {
    flags += fmt::format(" {}{}{}", flag, dashed(value) ? "=" : " ", shell_quoted(value));
  };
  for (const auto& [flag, values] : question.flags) {
    if (values.empty()) flags += ' ' + flag;
    for (const std::string& value : values) say(flag, value);
  }
  for (const FlagChange& change : last) say(change.flag, change.value);
  return fmt::format("scalecalc {}{}", question.command, behind ? flags + " --" + words : words + flags);
}

std::vector<TextPart> split_placeholders(std::string_view text) {
  std::vector<TextPart> out;
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if ((c == '{' || c == '}') && at + 1 < text.size() && text[at + 1] == c) {
      plain += c;
      ++at;
      continue;
    }
    const std::size_t end = c == '{' ? text.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos) {
      plain += c;
      continue;
    }
    if (!plain.empty()) out.push_back({std::move(plain), false});
    plain.clear();
    out.push_back({std::string(text.substr(at + 1, end - at - 1)), true});
    at = end;
  }
  if (!plain.empty()) out.push_back({std::move(plain), false});
  return out;
}

namespace {

struct Suffix {
  UnitKind kind;
  std::string_view unit;  ///< behind a number in the base unit
};
/// Units a range may have; the first that reads its start wins.
constexpr std::array kRangeUnits{Suffix{UnitKind::kCount, ""},
                                 Suffix{UnitKind::kNumber, ""},
                                 Suffix{UnitKind::kFraction, ""},
                                 Suffix{UnitKind::kBytes, "B"},
                                 Suffix{UnitKind::kSeconds, "s"},
                                 Suffix{UnitKind::kBytesPerSecond, "B/s"},
                                 Suffix{UnitKind::kFlopsPerSecond, "FLOP/s"}};

/// The unit whose grammar reads both ends of a range; a range of wrong texts is read as counts, to be told why.
const Suffix& unit_of_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  const std::string_view rest = text.substr(dots + 2);
  const std::string_view last = rest.substr(0, rest.find_first_of("*+"));
  for (const Suffix& suffix : kRangeUnits) {
    if (std::holds_alternative<double>(parse_quantity(text.substr(0, dots), suffix.kind)) &&
        std::holds_alternative<double>(parse_quantity(last, suffix.kind))) {
      return suffix;
    }
  }
  return kRangeUnits.front();
}

class ColumnReader {
 public:
  ColumnReader(const std::string& name, const Catalog& catalog, Problems& problems)
      : catalog_(catalog), problems_(problems) {
    out_.name = name;
  }

  StudyColumn read(const ConfigNode& node) {
    switch (node.kind) {
      case ConfigNode::Kind::kScalar: scalar(node); break;
      case ConfigNode::Kind::kSequence:
        for (const ConfigNode& item : node.items) list_item(item);
        break;
      case ConfigNode::Kind::kMap: patterns(node); break;
    }
    if (out_.values.empty() && problems_.empty()) {
      problems_.add(node.span, fmt::format("axis {} has no values", in_quotes(out_.name)));
    }
    out_.numbers = numbers_of(out_.values);
    return std::move(out_);
  }

 private:
  void add(std::string value, const SourceSpan& where) {
    if (out_.values.size() == limits::kAxisValues) {
      problems_.add(where,
                    fmt::format("axis {} has more than {} values", in_quotes(out_.name),
                                group_thousands(static_cast<long long>(limits::kAxisValues))),
                    "make two axes of it");
    }
    if (out_.values.size() >= limits::kAxisValues) return;
    out_.values.push_back(std::move(value));
    out_.places.push_back(where);
  }

  void list_item(const ConfigNode& item) {
    if (item.kind == ConfigNode::Kind::kScalar) return scalar(item);
    problems_.add(item.span, fmt::format("a value of axis {} must be a text or a number, not {}", in_quotes(out_.name),
                                         kind_name(item.kind)));
  }

  void scalar(const ConfigNode& node) {
    if (node.text == "-") {
      problems_.add(node.span, "a study cannot read standard input", "name a file");
    } else if (node.is_null() || node.text.empty()) {
      problems_.add(node.span, fmt::format("a value of axis {} is empty", in_quotes(out_.name)));
    } else if (node.quoted || node.text.find("..") == std::string::npos || is_catalog_path(node.text)) {
      add(node.text, node.span);
    } else {
      range(node);
    }
  }

  void range(const ConfigNode& node) {
    const Suffix& unit = unit_of_range(node.text);
    const auto parsed = parse_sweep(node.text, unit.kind, false, limits::kStudyRangeValues);
    if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
      problems_.add(node.span, error->message, error->hint + "; in quotes the text itself is the value");
      return;
    }
    for (const double value : std::get<std::vector<double>>(parsed)) {
      add(fmt::format("{}{}", value, unit.unit), node.span);
    }
  }

  void patterns(const ConfigNode& node) {
    Fields fields(node, fmt::format("axis {}", in_quotes(out_.name)), problems_);
    names(fields, "models", CatalogKind::kModel);
    names(fields, "hardware", CatalogKind::kHardware);
    if (const ConfigNode* files = fields.node("files")) each_text(*files, [&](const ConfigNode& n) { match_files(n); });
    fields.finish();
  }

  template <class Use>
  void each_text(const ConfigNode& node, Use use) {
    if (node.kind == ConfigNode::Kind::kScalar) return use(node);
    for (const ConfigNode& item : node.items) use(item);
  }

  void names(Fields& fields, std::string_view key, CatalogKind kind) {
    const ConfigNode* node = fields.node(key);
    if (node == nullptr) return;
    const std::vector<std::string> known = catalog_.names(kind);
    each_text(*node, [&](const ConfigNode& pattern) {
      bool found = false;
      for (const std::string& name : known) {
        if (::fnmatch(pattern.text.c_str(), name.c_str(), FNM_PATHNAME) != 0) continue;
        found = true;
        if (std::find(out_.values.begin(), out_.values.end(), name) == out_.values.end()) add(name, pattern.span);
      }
      if (found) return;
      const std::string hint = did_you_mean(nearest(pattern.text, known));
      problems_.add(pattern.span, fmt::format("no {} of the catalog is called {}", key, in_quotes(pattern.text)),
                    hint.empty() ? "a pattern such as llama3-* or tpu-v?e; a slash is matched by a slash only" : hint);
    });
  }

  void match_files(const ConfigNode& pattern) {
    glob_t found{};
    const int failed = ::glob(pattern.text.c_str(), GLOB_TILDE, nullptr, &found);
    for (std::size_t i = 0; failed == 0 && i < found.gl_pathc; ++i) {
      const std::string path = found.gl_pathv[i];
      // A bare name would be looked up in the catalog.
      add(path.find('/') == std::string::npos ? "./" + path : path, pattern.span);
    }
    ::globfree(&found);
    if (failed != 0) {
      problems_.add(pattern.span, fmt::format("no file matches {}", in_quotes(pattern.text)),
                    "paths start at the directory the program runs in");
    }
  }

  const Catalog& catalog_;
  Problems& problems_;
  StudyColumn out_;
};

/// What stands under the name of an axis; problems go to `problems`, and then the column may be empty.
StudyColumn read_column(const std::string& name, const ConfigNode& node, const Catalog& catalog, Problems& problems) {
  return ColumnReader(name, catalog, problems).read(node);
}

/// Flags about the output of one command: a study has its own.
constexpr std::array<std::string_view, 11> kNotForStudies{"--output",     "--json",       "--plot",        "--color",
                                                          "--quiet",      "--verbose",    "--version",     "--help",
                                                          "--config-dir", "--time-limit", "--memory-limit"};

class StudyReader {
 public:
  StudyReader(const std::string& path, const std::vector<CommandForm>& forms,
              std::vector<std::string> config_directories)
      : document_(read_yaml(read_text_file(path), path, limits::kTableNodes)),
        forms_(forms),
        catalog_(config_directories),
        fields_(document_, "study", problems_) {
    out_.config_directories = std::move(config_directories);
  }

  Study read() {
    fields_.schema("scalecalc-study/1", false);
    read_command();
    if (const ConfigNode* node = fields_.node("arguments")) read_arguments(*node);
    if (const ConfigNode* node = fields_.node("flags")) read_flags(*node);
    read_axes(fields_.required_node("axes"));
    out_.where = fields_.optional_text("where").value_or("");
    out_.all_records = fields_.optional_word("records", {"first", "all"}).value_or(0) == 1;
    fields_.finish();
    problems_.throw_if_any();
    place_axes();
    problems_.throw_if_any();
    if (!out_.where.empty()) Condition(out_.where, column_names(out_), fields_.node("where")->span);
    return std::move(out_);
  }

 private:
  void read_command() {
    out_.command = fields_.text("command");
    const auto same = [&](const CommandForm& form) { return form.name == out_.command; };
    const auto found = std::find_if(forms_.begin(), forms_.end(), same);
    if (found != forms_.end()) form_ = &*found;
    if (form_ != nullptr || out_.command.empty()) return;
    std::vector<std::string> known;
    for (const CommandForm& form : forms_) known.push_back(form.name);
    const std::string hint = did_you_mean(nearest(out_.command, known));
    problems_.add(fields_.node("command")->span, fmt::format("a study cannot ask {}", in_quotes(out_.command)),
                  fmt::format("{}{}commands: {}", hint, hint.empty() ? "" : " ", join(known, ", ")));
  }

  void read_arguments(const ConfigNode& node) {
    each_scalar(node, "an argument", [&](const ConfigNode& item) {
      note_placeholders(item);
      out_.arguments.push_back(item.text);
    });
  }

  template <class Use>
  void each_scalar(const ConfigNode& node, std::string_view what, Use use) {
    if (node.kind == ConfigNode::Kind::kMap) {
      problems_.add(node.span, fmt::format("{} must be a text or a list of texts, not a map", what));
    } else if (node.kind == ConfigNode::Kind::kSequence) {
      for (const ConfigNode& item : node.items) {
        if (item.kind == ConfigNode::Kind::kScalar && !item.text.empty()) {
          use(item);
        } else {
          problems_.add(item.span, fmt::format("{} must be a text that is not empty", what));
        }
      }
    } else {
      use(node);
    }
  }

  void note_placeholders(const ConfigNode& node) {
    if (node.text == "-") problems_.add(node.span, "a study cannot read standard input", "name a file");
    for (const TextPart& part : split_placeholders(node.text)) {
      if (part.is_name) placeholders_.push_back({part.text, node.span});
    }
  }

  const CommandForm::Option* option(const std::string& name) const {
    if (form_ == nullptr) return nullptr;
    const auto same = [&](const CommandForm::Option& o) { return o.flag == "--" + name; };
    const auto found = std::find_if(form_->options.begin(), form_->options.end(), same);
    return found == form_->options.end() ? nullptr : &*found;
  }

  /// The flag of a name; a problem if the command has none, or if a study has it in another way.
  const CommandForm::Option* known_flag(const std::string& name, const SourceSpan& where, std::string_view otherwise) {
    const CommandForm::Option* found = option(name);
    if (form_ == nullptr) return nullptr;
    if (std::find(kNotForStudies.begin(), kNotForStudies.end(), "--" + name) != kNotForStudies.end()) {
      problems_.add(where, fmt::format("--{} is no part of a question", name), "give it to scalecalc batch");
      return nullptr;
    }
    if (found != nullptr && found->writes) {
      problems_.add(where, fmt::format("--{} writes a file, and a study writes nothing but its results", name),
                    "ask the command itself for the file");
      return nullptr;
    }
    if (found != nullptr) return found;
    std::vector<std::string> known;
    for (const CommandForm::Option& o : form_->options) known.push_back(o.flag.substr(2));
    std::string hint = form_->meaning ? form_->meaning("--" + name) : "";
    if (hint.empty()) hint = did_you_mean(nearest(name, known));
    if (!hint.empty()) hint += "; ";
    problems_.add(where, fmt::format("{} has no flag --{}", form_->name, name), hint + std::string(otherwise));
    return nullptr;
  }

  void read_flags(const ConfigNode& node) {
    if (node.kind != ConfigNode::Kind::kMap) {
      problems_.add(node.span, "flags must be a map, such as {hw: tpu-v5p, seq: 8192}");
      return;
    }
    for (const ConfigNode::Entry& entry : node.entries) {
      const CommandForm::Option* found =
          known_flag(entry.key, entry.key_span, fmt::format("scalecalc {} --help lists them", out_.command));
      if (found != nullptr) read_flag(*found, entry.value);
    }
  }

  void read_flag(const CommandForm::Option& option, const ConfigNode& value) {
    const bool is_scalar = value.kind == ConfigNode::Kind::kScalar;
    if (!option.takes_value) {
      if (!is_scalar || (value.text != "true" && value.text != "false")) {
        problems_.add(value.span, fmt::format("{} is a switch: true or false", option.flag));
      } else if (value.text == "true") {
        out_.flags.push_back({option.flag, {}});
      }
      return;
    }
    if (!option.repeatable && !is_scalar) {
      problems_.add(value.span, fmt::format("{} takes one value, not {}", option.flag, kind_name(value.kind)),
                    "several values are an axis");
      return;
    }
    StudyFlag flag{option.flag, {}};
    each_scalar(value, option.flag, [&](const ConfigNode& item) {
      if (item.text.empty()) problems_.add(item.span, fmt::format("{} needs a value", option.flag));
      note_placeholders(item);
      flag.values.push_back(item.text);
    });
    if (!flag.values.empty()) out_.flags.push_back(std::move(flag));
  }

  void read_axes(const ConfigNode& node) {
    if (node.kind != ConfigNode::Kind::kMap || node.entries.empty()) {
      if (!node.span.file.empty()) problems_.add(node.span, "axes must be a map, such as {chips: 64..1024*2}");
      return;
    }
    for (const ConfigNode::Entry& entry : node.entries) {
      const ConfigNode* zip = entry.value.kind == ConfigNode::Kind::kMap ? entry.value.find("zip") : nullptr;
      if (zip == nullptr) {
        add_axis({{read_column(entry.key, entry.value, catalog_, problems_)}}, entry.key_span);
      } else {
        read_zip(entry, *zip);
      }
    }
  }

  void read_zip(const ConfigNode::Entry& entry, const ConfigNode& zip) {
    Fields only(entry.value, fmt::format("axis {}", in_quotes(entry.key)), problems_);
    only.node("zip");
    only.finish();
    if (zip.kind != ConfigNode::Kind::kMap || zip.entries.empty()) {
      problems_.add(zip.span, "zip must be a map of columns, such as {seq: [8k, 128k], batch-tokens: [4M, 16M]}");
      return;
    }
    StudyAxis axis;
    for (const ConfigNode::Entry& column : zip.entries) {
      axis.columns.push_back(read_column(column.key, column.value, catalog_, problems_));
      const std::size_t first = axis.size();
      const std::size_t own = axis.columns.back().values.size();
      if (own != first) {
        problems_.add(column.key_span, fmt::format("{} has {} values and {} has {}: zipped columns are equally long",
                                                   in_quotes(column.key), own, in_quotes(axis.columns[0].name), first));
      }
    }
    add_axis(std::move(axis), entry.key_span);
  }

  void add_axis(StudyAxis axis, const SourceSpan& where) {
    for (const StudyColumn& column : axis.columns) {
      if (!names_.insert(row_name(column.name)).second) {
        problems_.add(where, fmt::format("the name {} stands on two axes", in_quotes(column.name)));
      }
      names_at_.push_back({column.name, where});
    }
    out_.axes.push_back(std::move(axis));
  }

  struct Named {
    std::string name;
    SourceSpan where;
  };

  /// Every placeholder has an axis; every other axis is a flag.
  void place_axes() {
    for (const Named& asked : placeholders_) {
      const auto same = [&](const Named& axis) { return axis.name == asked.name; };
      if (std::any_of(names_at_.begin(), names_at_.end(), same)) continue;
      std::vector<std::string> known;
      for (const Named& axis : names_at_) known.push_back(axis.name);
      const std::string hint = did_you_mean(nearest(asked.name, known));
      problems_.add(asked.where, fmt::format("{{{}}} is no axis", asked.name),
                    hint.empty() ? fmt::format("axes: {}", join(known, ", ")) : hint);
    }
    for (const Named& axis : names_at_) {
      const auto same = [&](const Named& asked) { return asked.name == axis.name; };
      if (std::any_of(placeholders_.begin(), placeholders_.end(), same)) continue;
      const auto* found =
          known_flag(axis.name, axis.where, fmt::format("or write {{{}}} where its value belongs", axis.name));
      if (found == nullptr) continue;
      const auto given = [&](const StudyFlag& flag) { return flag.flag == found->flag; };
      if (!found->takes_value) {
        problems_.add(axis.where, fmt::format("{} is a switch and takes no values", found->flag));
      } else if (!found->repeatable && std::any_of(out_.flags.begin(), out_.flags.end(), given)) {
        problems_.add(axis.where, fmt::format("{} is an axis and stands under flags too", found->flag));
      } else {
        out_.flags.push_back({found->flag, {"{" + axis.name + "}"}});
      }
    }
  }

  ConfigNode document_;
  const std::vector<CommandForm>& forms_;
  Catalog catalog_;
  Problems problems_;
  Fields fields_;
  const CommandForm* form_ = nullptr;
  Study out_;
  std::set<std::string> names_;
  std::vector<Named> names_at_;
  std::vector<Named> placeholders_;
};

}  // namespace

std::vector<double> numbers_of(const std::vector<std::string>& values) {
  std::vector<double> out;
  for (const std::string& value : values) {
    if (value.ends_with('B')) return {};  // bytes or billions: only the command knows
    auto parsed = parse_quantity(value, UnitKind::kCount);
    if (std::holds_alternative<UnitError>(parsed)) parsed = parse_quantity(value, UnitKind::kNumber);
    const double* number = std::get_if<double>(&parsed);
    if (number == nullptr) return {};
    out.push_back(*number);
  }
  return out;
}

std::string row_name(std::string_view column) {
  std::string out(column);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

std::vector<std::string> column_names(const Study& study) {
  std::vector<std::string> out;
  for (const StudyAxis& axis : study.axes) {
    for (const StudyColumn& column : axis.columns) out.push_back(row_name(column.name));
  }
  return out;
}

Study read_study(const std::string& path, const std::vector<CommandForm>& forms,
                 std::vector<std::string> config_directories) {
  return StudyReader(path, forms, std::move(config_directories)).read();
}

}  // namespace scalecalc
