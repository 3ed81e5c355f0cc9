// Runs `scalecalc profile`: compares recordings with the chip's roofline and with the prediction of a saved plan.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/io.h"
#include "base/quoting.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/name_pairs.h"
#include "cli/output_command.h"
#include "cli/read_names.h"
#include "cli/shared_flags.h"
#include "config/json_reader.h"
#include "profile/byte_source.h"
#include "profile/hlo_output.h"
#include "profile/hlo_program.h"
#include "profile/kernel_rows.h"
#include "profile/profile_output.h"
#include "train/measured.h"
#include "train/reference.h"
#include "train/train_options.h"

namespace scalecalc::cli {
namespace {

struct ProfileFlags {
  ProfileQuestion profile;
  std::string model;   ///< may be empty
  std::string layout;  ///< as ReferenceLayout::file; empty: nothing is predicted
  std::size_t rank = 0;
  std::vector<std::pair<std::string, std::int64_t>> mesh;  ///< of a program's devices; empty: as its text has it
};

void read_layout_file(FlagReader& reader, const Flag& flag, const std::string& text, ProfileFlags& out) {
  const std::size_t hash = text.rfind('#');
  out.layout = text.substr(0, hash);
  if (hash == std::string::npos) return;
  if (const auto rank = reader.count_of(fmt::format("{} FILE#RANK", flag.name), text.substr(hash + 1), kTopRange)) {
    out.rank = static_cast<std::size_t>(*rank);
  }
}

void read_program_mesh(FlagReader& reader, const Flag& flag, const std::string& text, ProfileFlags& out) {
  each_pair(reader, flag, text, [&](const std::string& name, std::string_view value) {
    const auto size = reader.count_of(fmt::format("{} {}", flag.name, name), value, kChipRange);
    const auto same = [&](const auto& axis) { return axis.first == name; };
    if (std::any_of(out.mesh.begin(), out.mesh.end(), same)) {
      reader.problem(fmt::format("--mesh gives axis {} twice", in_quotes(name)));
    } else if (size) {
      out.mesh.emplace_back(name, *size);
    }
  });
}

constexpr std::array kProfileFlags{
    kHwFlag,
    text(
        "--layout", "FILE.json",
        "predict the same step by a plan of train --json (FILE.json#2: its plan 2) and set it beside the recorded one, "
        "term by term",
        "answer.json")
        .by<read_layout_file>(),
    text<&ProfileFlags::model>("--model", "MODEL", "the model of --layout; another one there is an error", "llama3-8b")
        .needing("--layout", "{} predicts nothing alone: in which layout?",
                 "save one: train MODEL ... -o json=answer.json"),
    text("--calibrate", "FILE.yaml", "write the kernels whose shapes are known as rows for calibrate", "kernels.yaml")
        .of_output()
        .writing(),
    text("--mesh", "X=N,Y=N",
         "of HLO text: the axes of its devices as the program made them, the last the innermost (default: the text's, "
         "or those that its annotations and groups show)",
         "data=2,model=8")
        .by<read_program_mesh>(),
    count<&ProfileFlags::profile, &ProfileQuestion::top>("--top", kTopRange, "N", "kernels to show (default 12)", "30"),
    kSetFlag.explained("replace one field of the hardware (hw.), such as hw.hbm.bandwidth=5TB/s"),
};

constexpr std::array kProfileCommon{FlagGroup{"the step", "--hw --layout --model --calibrate --mesh --top --set"}};

ProfileFlags profile_flags(const Arguments& arguments) {
  FlagReader reader(arguments);
  ProfileFlags out;
  reader.read(out);
  out.profile.files = arguments.positionals();
  if (out.profile.files.empty()) {
    reader.problem("no TRACE: which recording?", "such as trace.json.gz; several for several ranks");
  }
  reader.finish();
  return out;
}

/// The question that a saved answer of train repeats.
TrainQuestion saved_question(const std::string& file, const Catalog& catalog) {
  const ConfigNode document = read_json(read_text_file(file), file);
  const ConfigNode* question = document.find("question");
  std::vector<std::string> words = question == nullptr ? std::vector<std::string>() : shell_words(question->text);
  if (words.size() < 3 || words[0] != "scalecalc" || words[1] != "train") {
    throw UserError({Diagnostic{question == nullptr ? document.span : question->span,
                                "this is no answer of train: it does not repeat its question",
                                "the document that scalecalc train --json writes"}});
  }
  words.erase(words.begin(), words.begin() + 2);
  Arguments asked = parse_arguments(words, train_command());
  read_names(asked, catalog);
  return train_question(asked);
}

/// The one plan of the file on its own question, everything about its layout pinned.
GapAnswer predicted(const ProfileFlags& flags, const std::vector<std::string>& sets, const ProfileAnswer& recorded,
                    const Catalog& catalog, const Stop& stop) {
  const KnownReference plan = read_reference({.file = flags.layout, .rank = flags.rank});
  TrainQuestion question = saved_question(flags.layout, catalog);
  if (!flags.model.empty() && catalog.name_of(CatalogKind::kModel, flags.model).value_or(flags.model) !=
                                  catalog.name_of(CatalogKind::kModel, question.model).value_or(question.model)) {
    throw UserError(
        fmt::format("--model {}: the plan in {} is of {}", in_quotes(flags.model), flags.layout, question.model),
        "leave --model out, or name another answer");
  }
  const std::string chip = catalog.name_of(CatalogKind::kHardware, question.hardware).value_or(question.hardware);
  if (chip != recorded.hw.name && question.hardware != recorded.hw.name) {
    throw UserError(fmt::format("--hw {}: the plan in {} is of {}", recorded.hw.name, flags.layout, chip),
                    "name the chip that the recording is of, and ask train of it");
  }
  const auto of_chip = [](std::vector<std::string> all) {
    std::erase_if(all, [](const std::string& set) { return !set.starts_with("hw."); });
    std::sort(all.begin(), all.end());
    return all;
  };
  if (of_chip(question.set) != of_chip(sets)) {
    const std::vector<std::string> theirs = of_chip(question.set);
    throw UserError(fmt::format("--set: the plan in {} is of a chip {}", flags.layout,
                                theirs.empty() ? "that nothing changes" : "changed by " + join_and(theirs)),
                    "both sides are of one chip: give the same to train and to profile");
  }
  question.fix = plan.pins;
  question.max = {};
  question.why_not.clear();
  question.from.reset();
  question.plan = 1;
  question.top = 1;
  question.variants = true;
  const TrainAnswer job = answer(question, catalog, stop);
  if (job.plans.empty()) {
    if (should_stop(stop)) throw Stopped();
    throw UserError(fmt::format("--layout {}: this layout does not fit any more", plan.name),
                    "ask train again: files of the model or the chip have changed");
  }
  GapAnswer out = explain_gap(recorded, job, job.plans.front());
  refuse_above_peak(out.verdict, "--layout " + plan.name,
                    "the recording is not of this model, batch and number of chips");
  out.layout = plan.name;
  return out;
}

/// The program's text that the question is of; nothing for recordings.
std::optional<std::string> hlo_asked_of(ProfileFlags& flags, const Arguments& arguments, const Stop& stop) {
  constexpr std::size_t kEnough = 4096;
  const auto is_hlo = [](const std::string& file) { return is_hlo_text(first_bytes(file, kEnough)); };
  std::vector<std::string>& files = flags.profile.recordings;
  files = recordings_in(flags.profile.files, flags.profile.notes, stop);
  const auto hlo = std::find_if(files.begin(), files.end(), is_hlo);
  if (hlo == files.end()) {
    if (arguments.has("--mesh")) {
      throw UserError("--mesh has no meaning: recordings do not number devices by axes", "leave it out");
    }
    return std::nullopt;
  }
  if (files.size() > 1) throw UserError(fmt::format("{} is a program, not a recording", *hlo), "ask of it alone");
  for (const char* flag : {"--layout", "--calibrate"}) {
    if (arguments.has(flag)) {
      throw UserError(fmt::format("{} has no meaning: {} is a program, which says no times", flag, *hlo),
                      "leave it out");
    }
  }
  return *hlo;
}

ExitCode run_profile(const Arguments& arguments, Environment& env) {
  ProfileFlags flags = profile_flags(arguments);
  std::optional<AtomicFile> rows;  // opened before the work starts, as outputs are
  if (const auto path = arguments.value("--calibrate")) rows.emplace(*path);
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    const HardwareSpec hw = hardware_asked_for(arguments, catalog, Unpublished::kAllowed);
    if (const auto hlo = hlo_asked_of(flags, arguments, env.interrupted)) {
      require_published(hw, {"hbm"});  // every instruction is held against its bandwidth, the peak against its capacity
      Output out = hlo_output(hlo_program(read_hlo(*hlo), hw, flags.mesh), *hlo, flags.profile.top);
      note_sets(arguments, out.assumptions);
      return with_query(std::move(out), arguments, {answered(flags)});
    }
    const ProfileAnswer found = answer(flags.profile, hw, env.interrupted);
    std::optional<GapAnswer> gap;
    if (!flags.layout.empty()) gap = predicted(flags, arguments.values("--set"), found, catalog, env.interrupted);
    Output out = profile_output(flags.profile, found, gap);
    if (rows) {
      const KernelRows made = kernel_rows(found);
      rows->commit(made.yaml);
      out.notes.push_back(
          fmt::format("{} rows of kernels for calibrate: {}", made.count, *arguments.value("--calibrate")));
    }
    note_sets(arguments, out.assumptions);
    return with_query(std::move(out), arguments, {answered(flags)});
  });
}

}  // namespace

const Command& profile_command() {
  static const Command kProfile{
      .name = "profile",
      .summary = "A recorded step beside the chip's roofline: where its time went.",
      .usage = "TRACE... --hw HW [flags]",
      .examples =
          "  scalecalc profile trace.json.gz --hw h100-sxm\n"
          "  scalecalc profile rank0.json.gz rank1.json.gz --hw mi300x --layout answer.json#2\n",
      .notes =
          "A TRACE is a Chrome trace of PyTorch's profiler or of JAX (gzipped or not), an XPlane\n"
          "(.xplane.pb), an SQLite export of Nsight Systems, JSON or CSV of rocprofv3, or the JSON of\n"
          "`scalecalc trace`; also a tar archive of such (ARCHIVE#MEMBER: one of them).\n"
          "Several are ranks of one step. HLO text of XLA is a program: what it costs, and the step it makes.\n",
      .flags = kProfileFlags,
      .run = run_profile,
      .interruptible = true,
      .figures = "what time_s share fraction_of_roofline bound_by",
      .common = kProfileCommon};
  return kProfile;
}

}  // namespace scalecalc::cli
