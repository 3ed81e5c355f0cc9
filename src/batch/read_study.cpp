#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/io.h"
#include "base/text.h"
#include "batch/axis_values.h"
#include "batch/condition.h"
#include "batch/placeholders.h"
#include "batch/study.h"
#include "config/fields.h"
#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

/// Flags about the output of one command: a study has its own.
constexpr std::array<std::string_view, 8> kNotForStudies{"--output",  "--json",    "--color", "--quiet",
                                                         "--verbose", "--version", "--help",  "--config-dir"};

class StudyReader {
 public:
  StudyReader(const std::string& path, const std::vector<CommandForm>& forms,
              std::vector<std::string> config_directories)
      : document_(read_yaml(read_text_file(path), path, kMostTableNodes)),
        forms_(forms),
        catalog_(config_directories),
        fields_(document_, "study", problems_) {
    out_.config_directories = std::move(config_directories);
  }

  Study read() {
    fields_.optional_word("schema", {"scalecalc-study/1"});
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
    if (found != nullptr) return found;
    std::vector<std::string> known;
    for (const CommandForm::Option& o : form_->options) known.push_back(o.flag.substr(2));
    std::string hint = did_you_mean(nearest(name, known));
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
