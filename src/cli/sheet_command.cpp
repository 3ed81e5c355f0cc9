#include "cli/sheet_command.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/session.h"

namespace scalecalc::cli {

std::string render_sheet(const Sheet& sheet, OutputFormat format, const TextOptions& text, bool explain) {
  switch (format) {
    case OutputFormat::kTable: return render_table(sheet_report(sheet, explain), text);
    case OutputFormat::kJson: return sheet_json(sheet, tool_version(), explain);
    case OutputFormat::kJsonl: return sheet_jsonl(sheet, tool_version());
    case OutputFormat::kCsv: return render_csv(sheet_report(sheet, explain));
    case OutputFormat::kMarkdown: return render_markdown(sheet_report(sheet, explain));
    case OutputFormat::kHtml: return render_html(sheet_report(sheet, explain));
  }
  return "";
}

void say_warnings(Log& log, const Sheet& sheet) {
  for (const Assumption& assumption : sheet.assumptions) {
    if (assumption.warning) log.warning(assumption.text);
  }
}

ExitCode answer_with_sheet(const Arguments& arguments, Environment& env,
                           const std::function<Sheet(const Catalog&)>& answer) {
  const Session session = read_session(arguments, env);
  Outputs outputs(arguments.values("--output"), arguments.has("--json"));
  const Catalog catalog(session.config_directories, session.remembered);
  const Sheet sheet = answer(catalog);
  const bool explain = arguments.has("--explain");
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  if (!for_people(outputs.standard_output())) say_warnings(log, sheet);
  const TextOptions text = text_options(env, session.color);
  outputs.write(env, [&](OutputFormat format, bool to_file) {
    return render_sheet(sheet, format, to_file ? TextOptions{} : text, explain);
  });
  return sheet.nothing_fits ? ExitCode::kNothingFits : ExitCode::kAnswered;
}

HardwareSpec hardware_asked_for(const Arguments& arguments, const Catalog& catalog, Unpublished unpublished) {
  const std::optional<std::string> name = arguments.value("--hw");
  if (!name) throw UserError("--hw is missing: on which hardware?", "a catalog name such as tpu-v5p, or a YAML file");
  const std::vector<std::string> sets = arguments.values("--set");
  const auto load = [&] {
    ConfigNode document = catalog.load(CatalogKind::kHardware, *name);
    apply_sets(sets, {{"hw", &document}});
    return load_hardware(document, catalog, unpublished);
  };
  if (catalog.remembered() == nullptr) return load();
  const std::string key =
      fmt::format("hardware\n{}\n{}\n{}", *name, unpublished == Unpublished::kAllowed, join(sets, "\n"));
  return *catalog.remembered()->get<HardwareSpec>(key, load);
}

void note_sets(const Arguments& arguments, std::vector<Assumption>& assumptions) {
  for (const std::string& set : arguments.values("--set")) {
    assumptions.push_back({"changed by --set " + set, "--set", "command line"});
  }
}

}  // namespace scalecalc::cli
