// Reads --export, --cluster and --from of a launch file, for train, serve, export and lint.
#include "launch/launch_files_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <tuple>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/output_command.h"
#include "config/json_reader.h"
#include "config/yaml_reader.h"
#include "launch/document.h"
#include "launch/launched_model.h"
#include "launch/serving.h"
#include "launch/stamp.h"
#include "plan/dimensions.h"
#include "spec/load.h"
#include "train/curve_options.h"
#include "train/resolve.h"
#include "train/train_options.h"
#include "train/train_words.h"

namespace scalecalc::cli {
namespace {

std::string place_text(const LaunchSetting& setting) {
  const SourceSpan& at = setting.where;
  std::string out = fmt::format("{}:{}:{}: {}", at.file.str(), at.line, at.column, setting.key);
  if (setting.open == kUnreadFile) return out + fmt::format(" {} is {}", setting.values.front(), setting.open);
  if (!setting.open.empty()) return out + fmt::format(" ({} is not in the file)", setting.open);
  return setting.values.empty() ? out : out + " " + setting.values.front();
}

std::string places_text(const std::vector<LaunchSetting>& settings) {
  constexpr std::size_t kMost = 12;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min(settings.size(), kMost); ++i) out.push_back(place_text(settings[i]));
  if (settings.size() > kMost) out.push_back(fmt::format("and {} more", settings.size() - kMost));
  return join(out, "; ");
}

std::shared_ptr<const StackRelease> release_of(const LaunchFramework& framework, const Catalog& catalog,
                                               const std::shared_ptr<const StackRelease>& asked) {
  if (framework.stack.empty()) return nullptr;
  const StackAsked stack = stack_asked(std::string(framework.stack));
  if (asked && asked->stack == stack.name && (stack.version.empty() || asked->version == stack.version)) return asked;
  return stack_release(catalog, stack.name, stack.version);
}

/// What another stack keeps in memory and how fast it runs says nothing of this one.
void refuse_other_stack(const LaunchFramework& framework, const Catalog& catalog, const StackRelease* planned) {
  if (framework.stack.empty() || planned == nullptr) return;
  const std::string own = stack_asked(std::string(framework.stack)).name;
  if (stack_spec(catalog, planned->stack)->name == stack_spec(catalog, own)->name) return;
  throw UserError(
      fmt::format("the plan is for {}, whose memory and times are not those of {}", planned->name(), framework.title),
      fmt::format("plan with --stack {}", framework.stack));
}

std::string release_text(const StackRelease* release) {
  if (release == nullptr) return "";
  return release->since.size() < 10 ? release->name() : fmt::format("{} ({})", release->name(), release->since);
}

LaunchStamp stamp_of(const LaunchFramework& framework, const std::string& release, const std::string& question,
                     std::string plan, std::string figures) {
  LaunchStamp out{fmt::format("scalecalc {}: a launch file of {}{}", tool_version(), framework.title,
                              release.empty() ? "" : fmt::format(", {}{}", kByWhatIsKnown, release)),
                  std::string(kStampAsked) + question, std::move(plan), std::move(figures),
                  fmt::format("arguments: {}", framework.source)};
  if (!is_script(framework)) {
    out.push_back(fmt::format("run: {}{}{} {}", framework.command, framework.script.empty() ? "" : " ",
                              framework.script, framework.file));
  }
  if (!framework.yours.empty()) out.push_back(fmt::format("yours to add: {}", framework.yours));
  return out;
}

/// In the framework's words, and in the stamp where they are left to the reader.
LaunchTerms named(const LaunchFramework& framework, const LaunchedModel& model, LaunchTerms terms, LaunchStamp& stamp) {
  if (std::string note = name_model(framework, model, terms); !note.empty()) stamp.push_back(std::move(note));
  return terms;
}

std::string text_of(const ExportAsked& asked, const std::vector<LaunchArgument>& arguments, const LaunchTerms& terms,
                    const LaunchStamp& stamp, const LaunchMachine& machine) {
  if (!asked.cluster) return launch_file(*asked.framework, arguments, terms, stamp);
  const bool above = *asked.cluster != LaunchCluster::kSlurm;  // the stamp stands there
  const LaunchScript script = launch_script(*asked.framework, arguments, terms, above ? LaunchStamp{} : stamp);
  return on_cluster(*asked.cluster, machine, script, stamp);
}

ServingLaunch serving_launch(const ServeAnswer& answer, const ServingSystem& system, const ServeLayout& layout,
                             double sequences) {
  return {.layout = layout,
          .model = *answer.model,
          .system = system,
          .sequences = sequences,
          .question = answer.question,
          .node_chips = std::max<std::int64_t>(1, system.hw->chips_per_host)};
}

/// One server of a pool, and how many.
LaunchPool pool_of(const LaunchFramework& framework, const ServeAnswer& answer, const LaunchedModel& model, bool pooled,
                   const ServingSystem& system, std::string role, ServeLayout layout, std::int64_t replicas,
                   double sequences) {
  layout.dp = 1;
  ServingLaunch subject =
      serving_launch(answer, system, layout, sequences / static_cast<double>(replicas * layout.attention_dp));
  const std::int64_t node_chips = subject.node_chips;
  subject.node_chips = layout.chips();  // what finds the other nodes is the deployment's to add
  subject.names = model;
  subject.pool = !pooled ? "both" : role == "prefill" ? "prefill" : "decode";
  const bool known = system.launcher && deploys(framework, system.launcher->stack);
  const LaunchFramework& engine = launch_framework(known ? system.launcher->stack : framework.stack);
  LaunchPool out{.role = std::move(role),
                 .arguments = serving_arguments(engine, subject),
                 .replicas = replicas,
                 .chips = layout.chips(),
                 .node_chips = node_chips,
                 .tensor = layout.tp * layout.cp,
                 .data = layout.attention_dp,
                 .engine = engine.name};
  // How many prompts wait is the queue's affair; a step of the pool takes those of its tokens.
  if (out.role == "prefill")
    std::erase_if(out.arguments, [](const LaunchArgument& a) {
      return a.key == "--max-num-seqs" || a.key == "--max-running-requests" || a.key == "max_batch_size";
    });
  return out;
}

std::vector<LaunchPool> pools_of(const LaunchFramework& framework, const ServeAnswer& answer,
                                 const LaunchedModel& model, const ServePoint& point) {
  const ServingSystem& decode = answer.systems.at(point.system).serving;
  if (!point.pools)
    return {pool_of(framework, answer, model, false, decode, "decode", point.layout, point.layout.dp, point.batch)};
  const ServingSystem& prefill = answer.systems.at(answer.prefill_system.value_or(point.system)).serving;
  return {pool_of(framework, answer, model, true, prefill, "prefill", point.pools->prefill_layout,
                  point.pools->prefill_replicas, static_cast<double>(point.pools->prefill_replicas)),
          pool_of(framework, answer, model, true, decode, "decode", point.layout, point.pools->decode_replicas,
                  point.batch)};
}

std::string layout_of(const ServePoint& point) {
  if (!point.pools) return describe(point.layout);
  return fmt::format("prefill {} x {}; decode {} x {}", point.pools->prefill_replicas,
                     describe(point.pools->prefill_layout), point.pools->decode_replicas, describe(point.layout));
}

void refuse_cluster_of_pools(const ExportAsked& asked) {
  if (!asked.cluster) return;
  throw UserError(fmt::format("--cluster {} says what {} says itself: where its servers run",
                              kLaunchClusterNames[static_cast<std::size_t>(*asked.cluster)], asked.framework->title),
                  "leave it out");
}

bool writes_to_standard_output(const Arguments& arguments) {
  if (arguments.has("--json") || arguments.has("--plot")) return true;
  const std::vector<std::string> outputs = arguments.values("--output");
  return std::any_of(outputs.begin(), outputs.end(), [](const std::string& value) {
    const std::size_t equals = value.find('=');
    return equals == std::string::npos || value.substr(equals + 1) == "-";
  });
}

std::optional<std::int64_t> count_typed(const Arguments& arguments, std::string_view flag) {
  const auto text = arguments.value(flag);
  if (!text) return std::nullopt;
  const auto parsed = parse_quantity(*text, UnitKind::kCount);
  const double* value = std::get_if<double>(&parsed);
  return value == nullptr ? std::nullopt : std::optional(static_cast<std::int64_t>(*value));
}

/// What the file says for a flag: taken where nobody says otherwise.
void suppose(Arguments& arguments, LaunchInput& input, std::string_view flag, const std::string& value) {
  if (!arguments.has(flag)) return arguments.suppose(flag, {value});
  const auto typed = arguments.value(flag);
  const auto number = count_typed(arguments, flag);
  if (typed && *typed != value && (!number || std::to_string(*number) != value)) {
    input.differences.push_back(fmt::format("{} {}, where {} says {}", flag, *typed, input.file, value));
  }
}

/// Adapters of a file, or none; a typed group of projections ("attention") says the same as their names.
void suppose_adapters(Arguments& arguments, LaunchInput& input, const std::optional<FineTune>& tune) {
  for (const char* flag : {"--lora", "--base"}) {
    const bool said = tune && (flag == std::string_view("--lora") || tune->base);
    if (!said && arguments.has(flag)) input.differences.push_back(fmt::format("{}, which {} lacks", flag, input.file));
  }
  if (!tune) return;
  suppose(arguments, input, "--lora", std::to_string(tune->rank));
  if (tune->base) {
    suppose(arguments, input, "--base", std::string(kBaseFormatNames.at(static_cast<std::size_t>(*tune->base))));
  }
  const auto typed = arguments.value("--lora-targets");
  const auto asked = typed ? lora_targets_of(*typed) : std::nullopt;
  if (asked && (*asked & (kLoraAttention | kLoraMlp)) == tune->targets) return;
  suppose(arguments, input, "--lora-targets", target_names(tune->targets));
}

/// "megatron 0.19" as a flag takes it, if that release is one of `stack` and known; else what is said of it.
std::string stamped_release(LaunchInput& input, const std::string& stack, const Catalog& catalog) {
  const std::size_t blank = input.release.find(' ');
  if (stack.empty() || blank == std::string::npos || input.release.substr(0, blank) != stack) return stack;
  const std::string version = input.release.substr(blank + 1);
  try {
    const bool serves = input.framework->job == LaunchJob::kServing;
    if (serves) static_cast<void>(engine_release(stack_spec(catalog, stack)->serving, version));
    if (serves || stack_release(catalog, stack, version) != nullptr) return stack + "@" + version;
  } catch (const UserError&) {
  }
  input.differences.push_back(fmt::format(
      "by the newest release of {}, where {} was written for {}, which is not known here", stack, input.file, version));
  return stack;
}

LaunchInput stamped(LaunchInput input, const std::string& text) {
  input.release = release_in(text);
  for (const std::string_view flag : {"--prompt", "--generate", "--context"}) {
    if (std::string value = asked_in(text, flag); !value.empty()) input.lengths.emplace_back(flag, std::move(value));
  }
  return input;
}

/// Whether a file's word is of something that it runs: it names a dispatcher where no expert is on another rank, a
/// recipe of fp8 where it trains in another format, and moments in fp32 whatever the optimizer.
bool decides(const Flag& flag, std::string_view word, const LaunchTerms& terms, const Arguments& arguments) {
  if (flag.term == "dispatch") return terms.number("ep").value_or(1) > 1;
  if (flag.term == "scaling") return arguments.value("--precision") == "fp8";
  return flag.term != "optimizer" || word != "adam";
}

TrainQuestion probe_of(const Arguments& arguments) {
  TrainQuestion q;
  q.model = arguments.positionals().front();
  q.assume = arguments.value("--assume").value_or("");
  q.hardware = *arguments.value("--hw");
  q.stack = arguments.value("--stack").value_or("");
  q.set = arguments.values("--set");
  q.chips = count_typed(arguments, "--chips").value_or(0);
  return q;
}

}  // namespace

std::span<const Flag> export_flags(Modes modes) {
  static std::mutex mutex;  // several threads of another program may ask
  const std::lock_guard lock(mutex);
  static std::map<Modes, std::vector<Flag>> all;
  std::vector<Flag>& out = all[modes];
  if (!out.empty()) return out;
  static const std::string kHelp = fmt::format(
      "write the plan shown in detail as a launch file: {}; of a server {} (without a FILE instead of the "
      "table)",
      launch_framework_names(LaunchJob::kTraining), launch_framework_names(LaunchJob::kServing));
  out = {text("--export", "FRAMEWORK[:FILE]", kHelp, "megatron:run.sh").in(modes).of_output().writing(),
         word("--cluster", kLaunchClusterNames, "and around it what starts it on a cluster")
             .like("slurm")
             .in(modes)
             .of_output()
             .needing("--export", "{} says where a launch file runs, and none is written",
                      "say which: --export megatron:run.sh")};
  return out;
}

std::shared_ptr<const LaunchFramework> known_framework(std::string_view name, const Catalog& catalog) {
  const std::shared_ptr<const LaunchFrameworks> known = launch_frameworks(catalog);
  return {known, &launch_framework(name, *known)};
}

ExportAsked read_export(FlagReader& reader, const std::string& text, const Arguments& arguments, LaunchJob job,
                        const Catalog& catalog) {
  ExportAsked out;
  const std::size_t colon = text.find(':');
  out.path = colon == std::string::npos ? "" : text.substr(colon + 1);
  try {
    out.framework = known_framework(text.substr(0, colon), catalog);
    if (out.framework->job != job) {
      reader.problem(fmt::format("{} {} this", out.framework->title,
                                 out.framework->job == LaunchJob::kTraining ? "trains and does not serve"
                                                                            : "serves and does not train"),
                     out.framework->job == LaunchJob::kTraining ? launch_framework_names(LaunchJob::kServing)
                                                                : launch_framework_names(LaunchJob::kTraining));
    }
  } catch (const UserError& error) {
    reader.problems(error.diagnostics());
  }
  if (const auto cluster = reader.word("--cluster")) out.cluster = static_cast<LaunchCluster>(*cluster);
  if (out.path.empty() && writes_to_standard_output(arguments)) {
    reader.problem("--export without a file and another format cannot both go to standard output",
                   fmt::format("name a file: --export {}:FILE", text.substr(0, colon)));
  }
  return out;
}

std::optional<ExportAsked> export_asked(const Arguments& arguments, LaunchJob job, const Catalog& catalog) {
  const auto text = arguments.value("--export");
  if (!text) return std::nullopt;
  FlagReader reader(arguments, arguments.command().flags);
  ExportAsked out = read_export(reader, *text, arguments, job, catalog);
  reader.finish();
  if (!out.path.empty()) out.file = std::make_shared<AtomicFile>(out.path);
  return out;
}

LaunchFile exported(const ExportAsked& asked, const Catalog& catalog, const TrainAnswer& answer, const RankedPlan& plan,
                    const std::string& question) {
  const LaunchFramework& framework = *asked.framework;
  const auto release = release_of(framework, catalog, answer.search.launcher);
  refuse_other_stack(framework, catalog, answer.search.launcher.get());
  const Plan& p = plan.plan;
  LaunchedModel model = launched_model(catalog, answer.question.model, answer.question.set);
  const LaunchedModel facts = facts_of_file(catalog, answer.question.model, answer.question.assume);
  std::tie(model.activation, model.model_type) = std::tie(facts.activation, facts.model_type);
  const auto tpu = names_of_tpu(catalog, answer.question.hardware);
  const TrainingLaunch subject{p.layout, answer.model, answer.workload, answer.hw,
                               p.slice,  p.placement,  model,           tpu ? tpu->devices : 1};
  const std::vector<LaunchArgument> arguments = training_arguments(framework, subject, release.get());
  LaunchFile out{.framework = asked.framework, .release = release_text(release.get()), .text = {}};
  LaunchStamp stamp = stamp_of(
      framework, out.release, question, "plan: " + layout_words(p.layout),
      fmt::format("predicted: step {}, MFU {:.1f}% (6N and causal attention, of the dense peak), {} of {} a chip, {} "
                  "sequences of {} tokens a step on {} x {}",
                  seconds_text(p.step_s), 100 * plan.figures.mfu, bytes_text(sum_of(plan.figures.memory_bytes)),
                  bytes_text(answer.hw.hbm_capacity.value()), p.batch_seqs, answer.workload.seq, p.layout.chips(),
                  answer.hw.title));
  const LaunchTerms terms = named(framework, model, training_terms(subject), stamp);
  out.text = text_of(asked, arguments, terms, stamp, {answer.hw, p.slice, p.layout.chips(), tpu});
  return out;
}

LaunchFile exported(const ExportAsked& asked, const Catalog& catalog, const ServeAnswer& answer,
                    const ServePoint& point, const std::string& question) {
  const LaunchFramework& framework = *asked.framework;
  const bool pooled = deploys_pools(framework) || (point.pools && starts_pools(framework));
  if (point.pools && !pooled) {
    throw UserError(
        fmt::format("a launch file of {} starts one pool, and prompts and generation have two here", framework.title),
        "dynamo, llm-d and trtllm start both");
  }
  const ServeSystem& system = answer.systems.at(point.system);
  const auto& launcher = system.serving.launcher;
  const bool deployed = deploys_pools(framework) && launcher && deploys(framework, launcher->stack);
  const auto release = deployed ? launcher : release_of(framework, catalog, launcher);
  if (deploys_pools(framework) && launcher) {
    if (const std::string why = undeployed(framework, launcher->stack); !why.empty()) {
      throw UserError(why, fmt::format("ask with --engine {}", framework.stack));
    }
  }
  if (!deployed) refuse_other_stack(framework, catalog, launcher.get());
  LaunchFile out{.framework = asked.framework, .release = release_text(release.get()), .text = {}};
  LaunchedModel model = launched_model(catalog, answer.question.model, answer.question.set);
  model.model_type = facts_of_file(catalog, answer.question.model, answer.question.assume).model_type;
  if (answer.question.speculation) model.draft = launched_draft(catalog, answer.question.speculation->draft);
  LaunchStamp stamp =
      stamp_of(framework, out.release, question, "layout: " + layout_of(point),
               fmt::format("predicted: {} sequences at once, first token after {}, each further {}, {:.5g} tokens/s "
                           "of a chip, {} of {} a chip, on {} x {}",
                           batch_text(point), seconds_text(point.ttft_s), seconds_text(point.tpot_s),
                           point.tokens_per_s_per_chip(), bytes_text(point.memory.total()), bytes_text(point.capacity),
                           point.chips, system.hw->title));
  if (pooled) {
    refuse_cluster_of_pools(asked);
    LaunchTerms terms;
    terms.words["model"] = answer.model->name;
    terms = named(framework, model, terms, stamp);
    out.text = pools_file(framework, *terms.word("model"), pools_of(framework, answer, model, point), stamp);
    return out;
  }
  const double ranks = static_cast<double>(point.layout.dp * point.layout.attention_dp);
  ServingLaunch subject = serving_launch(answer, system.serving, point.layout, point.batch / ranks);
  subject.names = model;
  const std::vector<LaunchArgument> arguments = serving_arguments(framework, subject);
  const LaunchTerms terms = named(framework, model, serving_terms(subject), stamp);
  out.text = text_of(asked, arguments, terms, stamp,
                     {*system.hw, point.slice, point.chips, names_of_tpu(catalog, system.hw->name)});
  return out;
}

std::string LaunchInput::name() const { return fmt::format("{} ({})", file, framework->title); }

void LaunchInput::note(std::vector<Assumption>& assumptions) const {
  assumptions.push_back(
      Assumption{fmt::format("the layout of {}, a launch file of {}: {} arguments, of which {} change no figure here",
                             file, framework->title, settings.size(), neutral),
                 "--from", std::string(framework->source), false}
          .as("launch_file")
          .is(file));
  if (!defaults.empty()) {
    assumptions.push_back(Assumption{
        fmt::format("{} by the defaults of {}, for the file says nothing of it", join_and(defaults), framework->title),
        "--from", std::string(framework->source), false}
                              .as("launch_defaults")
                              .is(file));
  }
  const auto warn = [&](std::string text, std::string_view key) {
    assumptions.push_back(Assumption{std::move(text), "--from", std::string(framework->source), true}.as(key).is(file));
  };
  if (!unread.empty()) warn("not read, and perhaps of weight: " + places_text(unread), "launch_unread");
  if (!open.empty()) warn("left open by the file: " + places_text(open), "launch_open");
  for (const std::string& each : differences) warn("asked otherwise than the file: " + each, "launch_differences");
}

std::optional<LaunchInput> launch_input(const std::string& path, const Catalog& catalog) {
  const std::string text = read_text_file(path);
  if (looks_like_json(text) && text.find("\"scalecalc/") != std::string::npos) return std::nullopt;
  if (const ReadPools pools = read_pools(text, path); !pools.pools.empty()) {
    LaunchInput out{.file = path,
                    .framework = known_framework(pools.framework, catalog),
                    .engine = pools.engine,
                    .pools = pools.pools};
    for (const ReadPool& pool : out.pools) {
      out.settings.insert(out.settings.end(), pool.settings.begin(), pool.settings.end());
    }
    return stamped(std::move(out), text);
  }
  LaunchText read = read_launch_text(text, path);
  const std::shared_ptr<const LaunchFrameworks> known = launch_frameworks(catalog);
  LaunchInput out{.file = path, .framework = {known, &framework_of(read, text, path, *known)}};
  read_named_files(read, *out.framework, path);
  out.settings = std::move(read.settings);
  out.chips = read.chips;
  out.served = served_in(text);
  return stamped(std::move(out), text);
}

ImportedLayout imported_layout(const LaunchInput& input, const TrainQuestion& question, const Catalog& catalog) {
  TrainQuestion probe = question;
  probe.chips = std::max<std::int64_t>(1, question.chips);
  const ResolvedQuestion job = resolve_job(probe, catalog);
  const auto tpu = names_of_tpu(catalog, question.hardware);
  return import_training(*input.framework, input.settings, &job.model, &job.workload.runtime,
                         question.chips > 0 ? std::optional(question.chips) : input.chips, tpu ? tpu->devices : 1,
                         facts_of_file(catalog, question.model, question.assume).model_type);
}

void plan_for_framework(const ExportAsked& asked, Arguments& arguments) {
  const LaunchFramework& framework = *asked.framework;
  const char* const flag = framework.job == LaunchJob::kServing ? "--engine" : "--stack";
  if (framework.stack.empty() || arguments.has(flag) || arguments.has("--efficiency")) return;
  arguments.suppose(flag, {std::string(framework.stack)});
}

std::optional<LaunchInput> take_launch_file(Arguments& arguments, const Catalog& catalog) {
  const auto from = arguments.value("--from");
  if (!from || from->find('#') != std::string::npos) return std::nullopt;
  if (!from->ends_with(".json") && from->find('=') != std::string::npos) return std::nullopt;
  std::optional<LaunchInput> input = launch_input(*from, catalog);
  if (!input) return std::nullopt;
  if (input->framework->job != LaunchJob::kTraining) {
    throw UserError(fmt::format("{} serves: it is a launch file of {}", *from, input->framework->title),
                    "scalecalc serve MODEL --from FILE");
  }
  if (arguments.positionals().size() != 1 || !arguments.value("--hw")) {
    arguments.replace("--from", {});  // what is missing is complained about
    return std::nullopt;
  }
  const std::string stack = stack_asked(std::string(input->framework->stack)).name;
  const HardwareSpec hw = hardware_asked_for(arguments, catalog);
  if (!stack.empty() && !arguments.has("--stack") && !arguments.has("--efficiency") &&
      coefficients_under(hw, stack) != nullptr) {
    arguments.suppose("--stack", {stamped_release(*input, stack, catalog)});
  }
  const ImportedLayout layout = imported_layout(*input, probe_of(arguments), catalog);
  const LaunchTerms& terms = layout.reading.terms;
  if (const auto chips = terms.number("chips")) suppose(arguments, *input, "--chips", std::to_string(*chips));
  if (const auto seq = terms.number("seq")) suppose(arguments, *input, "--seq", std::to_string(*seq));
  const auto batch = value_of(parse_product("mb*ga*replicas*shards"), terms);
  if (batch && !arguments.has("--batch-tokens")) {
    suppose(arguments, *input, "--batch-seqs", std::to_string(batch->above));
  }
  for (const Flag& flag : train_flags()) {
    const auto word = flag.term.empty() ? std::nullopt : terms.word(flag.term);
    if (word && decides(flag, *word, terms, arguments)) suppose(arguments, *input, flag.name, *word);
  }
  suppose_adapters(arguments, *input, layout.tune);
  if (terms.word("grad_overlap") == "off" &&
      value_of(parse_product("replicas*shards"), terms).value_or(LaunchFraction{}).above > 1) {
    suppose(arguments, *input, "--dp-overlap", "none");
  }
  input->neutral = layout.reading.neutral;
  input->defaults = layout.reading.defaults;
  input->unread = layout.reading.unread;
  input->open = layout.reading.open;
  const std::string pins = pins_text(layout.pins);
  if (pins.empty()) {
    throw UserError(fmt::format("{} says nothing of a layout", *from),
                    fmt::format("it was read as a launch file of {}", input->framework->title));
  }
  arguments.replace("--from", {pins});
  return input;
}

std::optional<LaunchInput> take_serving_file(Arguments& arguments, const Catalog& catalog) {
  const auto from = arguments.value("--from");
  if (!from) return std::nullopt;
  std::optional<LaunchInput> input = launch_input(*from, catalog);
  if (!input || input->framework->job != LaunchJob::kServing) {
    throw UserError(fmt::format("{} is no launch file of a server", in_quotes(*from)),
                    "a command of vLLM or SGLang, or a configuration of TensorRT-LLM");
  }
  arguments.replace("--from", {});
  if (arguments.positionals().size() != 1) return std::nullopt;
  const ConfigNode document =
      load_model_document(catalog, arguments.positionals().front(), arguments.value("--assume").value_or("")).document;
  const ModelSpec model = load_model(document);
  std::vector<std::string> pins;
  std::int64_t chips = 0;
  const auto take = [&](const LaunchFramework& framework, const std::vector<LaunchSetting>& settings,
                        const std::string& pool) {
    ImportedServing served = import_serving(framework, settings, &model);
    for (const ServeDimension& d : kServeDimensionTable) {
      if (const auto pin = served.pins.*d.pin) pins.push_back(fmt::format("{}{}={}", pool, d.name, *pin));
    }
    chips += served.reading.terms.number("chips").value_or(0);
    input->neutral += served.reading.neutral;
    for (LaunchSetting& setting : served.reading.unread) input->unread.push_back(std::move(setting));
    for (LaunchSetting& setting : served.reading.open) input->open.push_back(std::move(setting));
    return served.reading.terms;
  };
  // Limits of the file are those of its question's lengths.
  for (const auto& [flag, value] : input->lengths) {
    if (!arguments.has(flag)) arguments.suppose(flag, {value});
  }
  const bool pooled = !input->pools.empty();
  const LaunchFramework& engine = pooled ? launch_framework(input->engine) : *input->framework;
  LaunchTerms terms;
  if (!pooled) terms = take(engine, input->settings, "");
  for (const ReadPool& pool : input->pools) {  // the last is the one that generates, whose limits hold
    terms = take(engine, pool.settings, input->pools.size() > 1 ? pool.role + "." : "");
  }
  if (input->pools.size() > 1) suppose(arguments, *input, "--disaggregate", "on");
  if (!pins.empty() && !arguments.has("--fix")) arguments.suppose("--fix", {join(pins, ",")});
  if (!pins.empty() && arguments.typed("--fix")) input->differences.push_back("the layout is that of --fix");
  suppose(arguments, *input, "--engine", stamped_release(*input, std::string(engine.name), catalog));
  if (chips > 0) suppose(arguments, *input, "--chips", std::to_string(chips));
  const std::string own = engine.name == "vllm" ? "" : std::string(engine.name) + "=";
  const auto limit = [&](std::string_view term, std::string_view flag) {
    if (const auto value = terms.number(term)) suppose(arguments, *input, flag, own + std::to_string(*value));
  };
  limit("seqs", kSequencesFlag);
  limit("chunk", kTokensFlag);
  limit("longest", kLengthFlag);
  if (const auto share = terms.number("share")) {
    suppose(arguments, *input, kShareFlag, fmt::format("{}{}", own, static_cast<double>(*share) / 10'000));
  }
  if (const auto weights = terms.word("weights"); weights && *weights != "checkpoint") {
    suppose(arguments, *input, "--weights", *weights);
  }
  if (const auto kv = terms.word("kv"); kv && *kv != "bf16") suppose(arguments, *input, "--kv", *kv);
  return input;
}

}  // namespace scalecalc::cli
