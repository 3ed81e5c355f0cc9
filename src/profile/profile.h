// A measured step beside its roofline: where its time went, what each kernel reached, what would win most back.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/explained.h"
#include "base/stop.h"
#include "profile/recording.h"
#include "profile/shapes.h"
#include "profile/steps.h"
#include "profile/time_parts.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

struct ProfileQuestion {
  std::vector<std::string> files;              ///< one for each rank
  std::size_t top = 12;                        ///< kernels that are listed
  std::vector<std::string> recordings, notes;  ///< of the files, as recordings_in finds them; empty: still to be found
};

/// What a device did: one stage of a drawn step, one GPU or core of a recording.
struct ProfiledRank {
  std::string file;
  std::string device;
  std::optional<std::int64_t> rank;
  std::vector<StepWindow> steps;         ///< all that were found
  std::size_t first_counted = 0;         ///< those before it are warm-up
  TimeParts parts;                       ///< of the steps that count, together
  std::map<std::string, Ticks> exposed;  ///< of a drawn step: what of kExposed is tensor, expert ... ranks'

  std::size_t counted() const { return steps.size() - first_counted; }
  double per_step(Ticks ticks) const { return seconds_of(ticks) / static_cast<double>(counted()); }
  double step_s() const { return per_step(parts.total()); }
  double compute_s() const;
  double exposed_s() const;  ///< communication that nothing hides
  double idle_s() const;
};

/// Kernels alike: of one operation on operands of one shape, or of one name.
struct ProfiledKernel {
  DeviceWork work = DeviceWork::kUnknown;
  std::string what;
  std::string kernel;  ///< name of the longest of them
  double calls = 0;    ///< of a step, and what follows too
  double seconds = 0;
  std::optional<double> flops, bytes;
  std::optional<double> roofline_s;  ///< the chip's least
  std::string bound_by;              ///< compute, memory or link
  std::optional<double> of_roofline, of_peak;
  std::optional<double> useful;      ///< of what is computed in whole tiles
  std::optional<ShapedWork> shaped;  ///< of one call
};

/// Communication of one group, of a step and rank on average.
struct ProfiledGroup {
  CommunicationGroup group;
  double exposed_s = 0;  ///< of several at once the first counts
  double running_s = 0;
};

/// Time that could be won, and how.
struct LostTime {
  std::string_view cause;
  double seconds = 0;
  std::string remedy;
};

struct ProfileAnswer {
  HardwareSpec hw;
  RecordingFormat format = RecordingFormat::kKineto;
  std::string recorded_chip;
  std::string steps_how;
  std::uint64_t events_read = 0, device_events = 0;
  std::vector<ProfiledRank> ranks;
  std::vector<ProfiledKernel> kernels;       ///< the longest first
  std::vector<ProfiledKernel> unrecognised;  ///< likewise
  double step_s = 0;                         ///< mean over ranks, and so is what follows
  std::array<double, kDeviceWorks> work_s{};
  std::array<double, kIdleCauses> idle_s{};
  double recognised = 1;  ///< share of the step whose time is of a kind we know, idle time too
  double communication_s = 0, hidden_s = 0;
  std::vector<ProfiledGroup> groups;     ///< in the order of TimeParts::groups
  std::optional<double> matmul_of_peak;  ///< of those whose shapes are known
  double matmul_known = 0;               ///< share of the matmuls' time
  std::optional<double> flops;           ///< of a step, as far as known
  std::optional<double> vector_of_hbm;
  std::vector<LostTime> lost;  ///< the largest first
  std::vector<Assumption> assumptions;
};

/// The files, archives among them as the recordings in them ("a.tgz#rank0.json"); `notes` says which were read.
/// UserError for an archive that has none.
std::vector<std::string> recordings_in(const std::vector<std::string>& files, std::vector<std::string>& notes,
                                       const Stop& stop);

/// UserError for files that are no recordings, or whose device did nothing; Stopped if asked to end.
ProfileAnswer answer(const ProfileQuestion& question, const HardwareSpec& hw, const Stop& stop = {});

}  // namespace scalecalc
