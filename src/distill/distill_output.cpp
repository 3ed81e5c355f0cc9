// Shows a distillation part by part: the student's step, the teacher's passes, the run and its cost.
#include "distill/distill_output.h"

#include <fmt/format.h>

#include "base/scalar.h"
#include "base/units.h"
#include "jobs/job_output.h"
#include "report/brief_blocks.h"
#include "report/plot_bars.h"
#include "serve/serve_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

std::string name_of_place(TeacherPlace place) {
  return std::string(kTeacherPlaceNames[static_cast<std::size_t>(place)]);
}

class DistillOutput {
 public:
  DistillOutput(const DistillAnswer& answer, bool explain) : a_(answer), q_(answer.question), explain_(explain) {}

  Output run() {
    out_.command = "distill";
    out_.title = fmt::format("{} taught by {} on {} x {}: {} tokens a step, {} in all", a_.student, a_.teacher,
                             group_thousands(q_.student.chips), a_.hardware_title, compact_count(a_.step_tokens),
                             compact_count(a_.tokens));
    out_.nothing_fits = a_.plans.empty();
    out_.query.figures = {datum("student", q_.student.model), datum("batch_tokens", a_.step_tokens),
                          datum("tokens", a_.tokens)};
    if (a_.plans.empty()) {
      out_.summary.push_back({"nothing fits", Role::kBad});
      for (const JobShortage& s : a_.shortages) out_.summary.push_back({shortage_text(s), Role::kBad});
    } else {
      summary(a_.plans.front());
    }
    plans();
    if (!a_.plans.empty()) best(a_.plans.front());
    if (!a_.plans.empty()) alone(a_.plans.front());
    if (a_.plans.empty()) out_.blocks.push_back(shortage_block(a_.shortages));
    out_.blocks.push_back(
        {.key = "search",
         .is_list = false,
         .records = {{{count_figure("splits", a_.splits), count_figure("left_out", a_.left_out)}, {}}}});
    out_.assumptions = a_.assumptions;
    out_.deciding = deciding_of_training();
    out_.deciding.emplace_back("--weights");
    out_.notes = a_.notes;
    return std::move(out_);
  }

 private:
  std::string way(const DistillPlan& p) const {
    switch (p.place) {
      case TeacherPlace::kSplit:
        return fmt::format("{} chips teach a batch ahead, {} train{}; {:.3g} % of the chips' time is idle",
                           p.teacher_chips, p.student_chips,
                           p.idle_chips > 0 ? fmt::format(", {} are left over", p.idle_chips) : "",
                           100 * p.idle_share.value());
      case TeacherPlace::kStored:
        return fmt::format(
            "the teacher {} beforehand in {}{}", q_.loss == DistillLoss::kSequence ? "writes" : "passes once",
            seconds_text(value_of(*p.stored_pass)),
            p.stored_bytes ? fmt::format(" and {} are stored", bytes_text(value_of(*p.stored_bytes))) : "");
      case TeacherPlace::kShared:
      case TeacherPlace::kAuto: break;
    }
    return p.offloaded ? "teacher and student take turns on all chips; the teacher's weights wait in the host's memory"
                       : "teacher and student take turns on all chips, both in memory";
  }

  void summary(const DistillPlan& p) {
    say(out_.summary, Role::kGood, "a step takes {}{}; the {} binds", seconds_text(value_of(p.step)),
        a_.over_alone ? fmt::format(", {:.3g} times the student alone", a_.over_alone->value()) : "", p.bound_by);
    out_.summary.push_back({way(p), Role::kPlain});
  }

  void plans() {
    Block block{.key = "plans", .title = a_.plans.empty() ? "" : "Ways to bring the teacher in"};
    for (const DistillPlan& p : a_.plans) {
      std::vector<Figure> f{text_figure("teacher_on", "teacher", name_of_place(p.place)),
                            count_figure("teacher_chips", p.teacher_chips, "teach"),
                            count_figure("student_chips", p.student_chips, "train"),
                            text_figure("teacher_layout", "teacher's layout", describe(p.teacher_layout), 2),
                            text_figure("student_layout", "student's layout", plan_words(*p.student), 3),
                            number_figure("step_time_s", "step", Format::kSeconds, value_of(p.step)),
                            number_figure("teacher_time_s", "forward", Format::kSeconds, value_of(p.teacher_time), 1),
                            number_figure("student_time_s", "student", Format::kSeconds, value_of(p.student_time), 1),
                            number_figure("transfer_time_s", "logits", Format::kSeconds, value_of(p.transfer_time), 1),
                            number_figure("idle_share", "idle", Format::kFraction, p.idle_share.value(), 2),
                            text_figure("bound_by", "bound by", p.bound_by, 1),
                            flag_figure("teacher_offloaded", p.offloaded)};
      block.records.push_back({std::move(f), {}});
    }
    if (a_.plans.size() > 1) {
      out_.plots.push_back(record_bars(block, "teacher_on", "step_time_s", "A step by where the teacher is"));
    }
    Block best = best_block(block);
    out_.blocks.push_back(std::move(block));
    out_.blocks.push_back(std::move(best));
  }

  void best(const DistillPlan& p) {
    std::vector<Figure> f;
    add_parts(f, p.parts, p.step);
    out_.plots.push_back(parts_plot(p.parts));
    if (a_.over_alone)
      f.push_back(figure("over_student_alone", "times the student alone", Format::kNumber, *a_.over_alone));
    f.push_back(figure("teacher_time_s", "teacher's time, hidden or not", Format::kSeconds, p.teacher_time));
    f.push_back(figure("transfer_time_s", "transfer, hidden or not", Format::kSeconds, p.transfer_time));
    f.push_back(figure("logit_bytes", "bytes of a step's targets", Format::kBytes, p.logit_bytes));
    f.push_back(maybe_figure("stored_pass_s", p.stored_pass ? "pass beforehand" : "", Format::kSeconds, p.stored_pass));
    f.push_back(maybe_figure("stored_bytes", p.stored_bytes ? "stored" : "", Format::kBytes, p.stored_bytes));
    f.push_back(figure("idle_share", p.place == TeacherPlace::kSplit ? "idle" : "", Format::kFraction, p.idle_share));
    out_.blocks.push_back(
        in_full({.key = "step", .title = "A step", .is_list = false, .records = {{std::move(f), {}}}}));
    out_.blocks.push_back(brief_parts_block(p.parts, p.step));
    out_.blocks.push_back(brief_trainer_block("student", *p.student, a_.capacity));
    out_.blocks.push_back(in_full(trainer_block("student", "The student's plan", *p.student, a_.capacity, explain_)));
    teacher(p);
    if (a_.run) out_.blocks.push_back(run_block(*a_.run, a_.tokens / a_.step_tokens));
  }

  /// What runs it, and the question that leaves this plan.
  void alone(const DistillPlan& p) {
    out_.software = fmt::format("{}; teacher on {}", software_text(p.student->resolved->software, q_.student),
                                a_.engine->systems.front().serving.engine.title());
    out_.blocks.push_back(
        next_block({next_line({.flags = {{"--teacher-on", name_of_place(p.place)},
                                         {"--teacher-fix", serve_fix(*a_.engine, p.teacher_layout).value},
                                         fix_flag(p.student->ranked.plan.layout)}})}));
  }

  void teacher(const DistillPlan& p) {
    std::vector<Figure> f{text_figure("layout", "layout", describe(p.teacher_layout))};
    if (p.pass) {
      const double batch = p.pass->seconds / p.pass->batches;
      f.push_back(number_figure("batches", "batches of a step", Format::kInteger, p.pass->batches));
      f.push_back(
          number_figure("batch_sequences", "sequences of a replica's batch", Format::kInteger, p.pass->at_once));
      f.push_back(explain_
                      ? figure("batch_time_s", "a batch", Format::kSeconds,
                               explain_pass(a_.engine->systems.front().serving, teacher_load(a_), *p.pass), "[FROZEN]")
                      : number_figure("batch_time_s", "a batch", Format::kSeconds, batch));
    }
    f.push_back(number_figure("memory_bytes", "of a chip", Format::kBytes, p.teacher_memory));
    out_.blocks.push_back(
        in_full({.key = "teacher", .title = "The teacher's pass", .is_list = false, .records = {{std::move(f), {}}}}));
  }

  const DistillAnswer& a_;
  const DistillQuestion& q_;
  bool explain_;
  Output out_;
};

}  // namespace

Output distill_output(const DistillAnswer& answer, bool explain) { return DistillOutput(answer, explain).run(); }

}  // namespace scalecalc
