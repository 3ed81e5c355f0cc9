// `scalecalc profile`: recordings of profilers beside the chip's roofline.
#include <array>

#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/output_command.h"
#include "profile/profile.h"
#include "report/profile_output.h"

namespace scalecalc::cli {
namespace {

constexpr std::array kProfileFlags{
    kHwFlag,
    count<&ProfileQuestion::top>("--top", kTopRange, "N", "kernels to show (default 12)", "30"),
    kSetFlag.explained("replace one field of the hardware (hw.), such as hw.hbm.bandwidth=5TB/s"),
};

constexpr std::array kProfileCommon{FlagGroup{"the step", "--hw --top --set"}};

ProfileQuestion profile_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  ProfileQuestion out{.files = arguments.positionals()};
  reader.read(out);
  if (out.files.empty())
    reader.problem("no TRACE: which recording?", "such as trace.json.gz; several for several ranks");
  reader.finish();
  return out;
}

ExitCode run_profile(const Arguments& arguments, Environment& env) {
  const ProfileQuestion question = profile_question(arguments);
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    const HardwareSpec hw = hardware_asked_for(arguments, catalog, Unpublished::kAllowed);
    Output out = profile_output(question, answer(question, hw, env.interrupted));
    note_sets(arguments, out.assumptions);
    return with_query(std::move(out), arguments, {answered(question)});
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
          "  scalecalc profile rank0.json.gz rank1.json.gz --hw mi300x -o json=profile.json\n",
      .notes =
          "A TRACE is a Chrome trace of PyTorch's profiler or of JAX (gzipped or not), an XPlane\n"
          "(.xplane.pb), an SQLite export of Nsight Systems, or the JSON of `scalecalc trace`.\n"
          "Several are ranks of one step.\n",
      .flags = kProfileFlags,
      .run = run_profile,
      .interruptible = true,
      .figures = "what time_s share fraction_of_roofline bound_by",
      .common = kProfileCommon};
  return kProfile;
}

}  // namespace scalecalc::cli
