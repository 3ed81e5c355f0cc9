// `scalecalc distill`: a student that learns from a teacher, as one budget. On logits (Hinton et al. 2015,
// arXiv:1503.02531) the teacher passes forward over every token the student trains on: in turn on the same chips, on a
// pool of its own a batch ahead, or once beforehand with its logits stored. On sequences (Kim and Rush 2016,
// arXiv:1606.07947, section 3.2) it writes the text that the student then trains on.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/catalog.h"
#include "jobs/job_part.h"
#include "serve/serve_question.h"
#include "train/question.h"

namespace scalecalc {

enum class DistillLoss : std::uint8_t { kLogits, kSequence };
inline constexpr std::array<std::string_view, 2> kDistillLossNames{"logits", "sequence"};

/// Where and when the teacher works.
enum class TeacherPlace : std::uint8_t { kAuto, kShared, kSplit, kStored };
inline constexpr std::array<std::string_view, 4> kTeacherPlaceNames{"auto", "shared", "split", "stored"};

struct DistillQuestion {
  TrainQuestion student;  ///< with hardware and chips of the job
  ServeQuestion teacher;  ///< formats, engine, pins; lengths of what it writes under the sequence loss
  DistillLoss loss = DistillLoss::kLogits;
  TeacherPlace place = TeacherPlace::kAuto;
  std::optional<std::int64_t> top_k;  ///< logits kept of each token; absent: all online, kStoredTopK stored
  double epochs = 1;                  ///< times that the student sees what was stored
  std::optional<double> storage;      ///< bytes a second, of all hosts together; absent: the hardware file's
};
inline constexpr std::int64_t kStoredTopK = 64;

/// One way to bring the teacher in.
struct DistillPlan {
  TeacherPlace place = TeacherPlace::kShared;
  bool offloaded = false;  ///< the teacher's weights wait in the host's memory
  std::int64_t student_chips = 0, teacher_chips = 0, idle_chips = 0;
  std::shared_ptr<const TrainedPlan> student{};
  ServeLayout teacher_layout{};
  std::optional<ForwardPass> pass{};  ///< the teacher's; absent where it writes
  double teacher_memory = 0;          ///< bytes of a chip that the teacher takes while it works
  std::vector<JobPart> parts{};       ///< sum to the step
  SecondsOf<Traced> step{};
  SecondsOf<Traced> teacher_time{}, student_time{}, transfer_time{};  ///< of a step's tokens, hidden or not
  BytesOf<Traced> logit_bytes{};                                      ///< of a step, over all chips
  std::optional<SecondsOf<Traced>> stored_pass{};                     ///< the teacher's, before training starts
  std::optional<BytesOf<Traced>> stored_bytes{};
  Traced idle_share{};
  std::string bound_by{};  ///< "teacher", "student", "transfer", "storage"
};

struct DistillAnswer {
  DistillQuestion question;
  std::shared_ptr<const ServeAnswer> engine;  ///< of the teacher, resolved
  std::string student, teacher, hardware_title;
  double step_tokens = 0, tokens = 0, seq = 0;
  std::vector<DistillPlan> plans;            ///< the best of each place, fastest first
  std::shared_ptr<const TrainedPlan> alone;  ///< the student without a teacher
  std::optional<Traced> over_alone;          ///< the best plan's time over it
  std::optional<JobRun> run;
  double capacity = 0;
  std::vector<JobShortage> shortages;
  std::size_t splits = 0, left_out = 0;
  std::vector<Assumption> assumptions;
  std::vector<std::string> notes;
};

/// Sequences of a step as the teacher sees them.
ForwardLoad teacher_load(const DistillAnswer& answer);

/// Bytes of one token's logits as they are sent or stored: all of them in bf16, or the k largest with the words they
/// belong to in int32.
double logit_bytes_per_token(std::int64_t vocab, std::optional<std::int64_t> top_k);

/// UserError for a wrong question: one is that the vocabularies differ. Nothing that fits is an answer.
/// Asked to end, it has the best plans found until then.
DistillAnswer distill_answer(const DistillQuestion& question, const Catalog& catalog, const Stop& stop = {});

}  // namespace scalecalc
