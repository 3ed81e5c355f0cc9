#include "cli/output_command.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/plot_svg.h"
#include "report/plot_text.h"

namespace scalecalc::cli {

std::string render_output(const Output& output, OutputFormat format, TextOptions text, bool explain, Depth depth) {
  constexpr std::size_t kBriefWidth = 100;
  if (depth == Depth::kBrief && !output.deciding.empty() && text.width == 0) text.width = kBriefWidth;
  switch (format) {
    case OutputFormat::kTable: return render_table(output_report(output, explain, depth), text);
    case OutputFormat::kJson: return output_json(output, tool_version(), explain);
    case OutputFormat::kJsonl: return output_jsonl(output, tool_version());
    case OutputFormat::kCsv: return render_csv(output_report(output, explain));
    case OutputFormat::kMarkdown: return render_markdown(output_report(output, explain));
    case OutputFormat::kHtml: return render_html(output_report(output, explain));
    case OutputFormat::kPlot: return render_plots(output, text);
    case OutputFormat::kSvg: return render_svg(output);
  }
  return "";
}

void say_warnings(Log& log, const Output& output) {
  for (const Assumption& assumption : output.assumptions) {
    if (assumption.warning) log.warning(assumption.text);
  }
  for (const std::string& warning : output.warnings) log.warning(warning);
  if (!output.nothing_fits) return;
  for (const Line& line : output.summary) log.warning(line.text);
}

ExitCode write_output(const Output& output, const Session& session, OutputTargets& outputs, bool explain, Log& log,
                      Environment& env) {
  if (!for_people(outputs.standard_output())) say_warnings(log, output);
  const TextOptions text = text_options(env, session.color);
  const Depth depth = explain || session.verbosity == Verbosity::kVerbose ? Depth::kFull : Depth::kBrief;
  outputs.write(env, [&](OutputFormat format, bool to_file) {
    return render_output(output, format, to_file ? TextOptions{} : text, explain, depth);
  });
  if (!output.complete) return ExitCode::kInterrupted;
  return output.nothing_fits ? ExitCode::kNothingFits : ExitCode::kAnswered;
}

ExitCode answer_with_output(const Arguments& arguments, Environment& env,
                            const std::function<Output(const Catalog&)>& answer) {
  const Session session = read_session(arguments, env);
  OutputTargets outputs(arguments);
  const Catalog catalog(session.config_directories, session.remembered);
  const Output output = answer(catalog);
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  return write_output(output, session, outputs, arguments.has("--explain"), log, env);
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
