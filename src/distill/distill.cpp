// Answers `scalecalc distill`: the time, the memory and the cost of training a student from its teacher.
#include "distill/distill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/diagnostic.h"
#include "base/progress.h"
#include "base/scalar.h"
#include "base/units.h"
#include "jobs/job_part.h"
#include "serve/requests.h"

namespace scalecalc {
namespace {

constexpr double kValueBytes = 2, kIndexBytes = 4;

double seconds_of(const SecondsOf<Traced>& time) { return value_of(time); }

/// Every full vocabulary of a whole run would fill a data center, so what is stored is cut.
std::optional<std::int64_t> kept_logits(const DistillQuestion& q, TeacherPlace place) {
  if (q.top_k || place != TeacherPlace::kStored) return q.top_k;
  return kStoredTopK;
}

class DistillSearch {
 public:
  DistillSearch(const DistillQuestion& question, const Catalog& catalog, const Stop& stop)
      : catalog_(catalog),
        stop_(stop),
        engine_(std::make_shared<const ServeAnswer>(resolve_serving(question.teacher, catalog))),
        students_(question.student, catalog, stop),
        basis_(Reader<double>{}, engine_->systems.front().serving) {
    out_.question = question;
    out_.engine = engine_;
    if (!continues_prompts(*engine_)) {
      throw UserError(fmt::format("{} continues no prompt, so it teaches no language model", engine_->model->name),
                      "--teacher names a language model");
    }
  }

  DistillAnswer run() {
    describe_job();
    same_words();
    out_.alone = students_.on(q_.student.chips);
    if (q_.loss == DistillLoss::kSequence) {
      written();
    } else {
      if (asked(TeacherPlace::kShared)) shared();
      if (asked(TeacherPlace::kSplit)) split();
      if (asked(TeacherPlace::kStored)) stored();
    }
    std::stable_sort(out_.plans.begin(), out_.plans.end(),
                     [](const DistillPlan& a, const DistillPlan& b) { return a.step < b.step; });
    if (out_.plans.empty()) {
      shortages();
    } else {
      whole_run();
    }
    return std::move(out_);
  }

 private:
  bool asked(TeacherPlace place) const { return q_.place == TeacherPlace::kAuto || q_.place == place; }
  const ResolvedQuestion& job() const { return students_.job(); }
  const HardwareSpec& hw() const { return job().hw; }

  Assumption& assume(std::string text, std::string flag, std::string source, bool warning = false) {
    return out_.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source), warning});
  }

  void describe_job() {
    out_.student = job().model.title;
    out_.teacher = engine_->model->title;
    out_.hardware_title = hw().title;
    out_.step_tokens = students_.step_tokens();
    out_.seq = to_double(job().workload.seq);
    out_.capacity = hw().hbm_capacity.value();
    if (!job().workload.tokens) {
      throw UserError("the length of the run is not known", "give --tokens: what the student trains on");
    }
    out_.tokens = *job().workload.tokens;
    out_.assumptions = job().assumptions;
    for (const Assumption& a : engine_->assumptions) {
      // The teacher keeps no cache, and pays with the student.
      const bool about_cache = a.flag == "--kv" || a.flag == "--context" || a.flag == "--prompt" || a.flag == "--price";
      if (about_cache && q_.loss == DistillLoss::kLogits) continue;
      const bool known = std::any_of(out_.assumptions.begin(), out_.assumptions.end(),
                                     [&](const Assumption& other) { return other.text == a.text; });
      if (known) continue;
      out_.assumptions.push_back(a);
      out_.assumptions.back().text.insert(0, "teacher: ");
      out_.assumptions.back().of = "teacher";
    }
  }

  void same_words() const {
    const std::int64_t student = job().model.vocab, teacher = engine_->model->vocab;
    if (student == teacher || q_.loss == DistillLoss::kSequence) return;
    throw UserError(
        fmt::format("{} has {} words in its vocabulary, its teacher {} has {}: their logits are not of the "
                    "same words",
                    job().model.name, group_thousands(student), engine_->model->name, group_thousands(teacher)),
        "--loss sequence trains on text that the teacher writes");
  }

  BytesOf<Traced> logits(TeacherPlace place, double tokens) const {
    const double each = logit_bytes_per_token(engine_->model->vocab, kept_logits(q_, place));
    return named(
        searched_bytes(each, "bytes of a token's logits", kept_logits(q_, place) ? "k x (bf16 + int32)" : "bf16") *
            Traced::leaf(tokens, "tokens", "a step's, or all that are stored", {}),
        "logits", "bytes of a token x tokens");
  }

  std::vector<ForwardPass> passes(std::int64_t chips) const {
    return forward_passes(basis_, chips, teacher_load(out_), hw().hbm_capacity.value(), q_.teacher.fix, q_.teacher.max);
  }

  static SecondsOf<Traced> teacher_time(const ForwardPass& pass) {
    return searched_seconds(pass.seconds, "teacher's forward pass",
                            "prefill of a step's sequences with every logit (docs/model.md [DISTILL])");
  }
  static SecondsOf<Traced> student_time(const TrainedPlan& plan) {
    return searched_seconds(plan.step_s, "student's step", "the plan that `scalecalc train` ranks first");
  }

  /// Teacher and student on all chips, in turn, with the teacher's weights beside the student's or in the host's
  /// memory. Every teacher layout that is worth its memory is tried.
  void shared() {
    const std::int64_t chips = q_.student.chips;
    std::optional<DistillPlan> best;
    const std::vector<ForwardPass> all = passes(chips);
    Progress teachers("layouts of the teacher", all.size());
    for (const ForwardPass& pass : all) {
      if (should_stop(stop_)) break;
      teachers.add();
      for (const bool offloaded : {false, true}) {
        auto plan = in_turn(pass, offloaded);
        if (plan && (!best || plan->step < best->step)) best = std::move(plan);
      }
    }
    if (best) out_.plans.push_back(std::move(*best));
  }

  std::optional<DistillPlan> in_turn(const ForwardPass& pass, bool offloaded) {
    const std::int64_t chips = q_.student.chips;
    const auto link = host_link(hw());
    if (offloaded && (!link || pass.weight_bytes > hw().host_memory().value())) return std::nullopt;
    // The teacher works while the student holds its state but no activations; its weights stay, or go.
    const auto student = students_.on(chips, offloaded ? 0 : pass.weight_bytes);
    if (!student || student->state_bytes() + pass.memory_bytes > hw().hbm_capacity.value()) return std::nullopt;
    DistillPlan plan{
        .place = TeacherPlace::kShared, .offloaded = offloaded, .student_chips = chips, .teacher_chips = chips};
    describe_halves(plan, pass, student, false);
    plan.parts.push_back({"teacher_forward", "teacher's forward pass", plan.teacher_time});
    if (offloaded) {
      plan.parts.push_back(
          {"teacher_weights", "teacher weights in",
           named(searched_bytes(pass.weight_bytes, "teacher weights of a chip", "layout of the teacher") / *link,
                 "teacher weights in", "over the link to the host, once a step")});
    }
    plan.parts.push_back({"logits", "logits to the student", plan.transfer_time});
    plan.parts.push_back({"student_step", "student's step", plan.student_time});
    plan.step = named(sum_of_parts(plan.parts), "step", "its parts, one after another");
    plan.bound_by = plan.student_time < plan.teacher_time ? "teacher" : "student";
    return plan;
  }

  void describe_halves(DistillPlan& plan, const ForwardPass& pass, std::shared_ptr<const TrainedPlan> student,
                       bool apart) const {
    plan.teacher_layout = pass.layout;
    plan.pass = pass;
    plan.teacher_memory = pass.memory_bytes;
    plan.teacher_time = teacher_time(pass);
    plan.student_time = student_time(*student);
    plan.student = std::move(student);
    plan.logit_bytes = logits(plan.place, out_.step_tokens);
    plan.transfer_time = SecondsOf<Traced>(Traced(0.0));
    if (q_.student.chips == 1) return;
    const std::int64_t narrow = apart ? std::min(plan.student_chips, plan.teacher_chips) : plan.student_chips;
    const BytesPerSecondOf<Traced> rate =
        chip_ingress(hw(), job().efficiency, q_.student.chips, apart) *
        Traced::leaf(to_double(narrow), "chips that send or receive", "the smaller pool", {});
    plan.transfer_time = named(plan.logit_bytes / rate, "logits to the student", "bytes over the smaller pool's links");
  }

  /// Pools of their own, the teacher a batch ahead: every split whose halves are built, exactly.
  void split() {
    const ChipSplits all = chip_splits(hw(), q_.student.chips);
    out_.splits = all.splits.size();
    out_.left_out = all.left_out;
    std::optional<DistillPlan> best;
    Progress splits("splits of the chips", all.splits.size());
    for (const ChipSplit& s : all.splits) {
      if (should_stop(stop_)) break;
      splits.add();
      const std::vector<ForwardPass> found = passes(s.first);
      if (found.empty()) continue;
      const double least = std::max(found.front().seconds, students_.bound(s.second));
      if (best && least >= seconds_of(best->step)) continue;
      const auto student = students_.on(s.second);
      if (!student) continue;
      DistillPlan plan{.place = TeacherPlace::kSplit,
                       .student_chips = s.second,
                       .teacher_chips = s.first,
                       .idle_chips = q_.student.chips - s.first - s.second};
      describe_halves(plan, found.front(), student, true);
      overlap(plan);
      if (!best || plan.step < best->step) best = std::move(plan);
    }
    if (best) out_.plans.push_back(std::move(*best));
    if (all.left_out > 0) {
      out_.notes.push_back(fmt::format("{} of {} splits were searched, evenly spaced", all.splits.size(),
                                       all.splits.size() + all.left_out));
    }
  }

  void overlap(DistillPlan& plan) const {
    const SecondsOf<Traced> slowest = max(max(plan.student_time, plan.teacher_time), plan.transfer_time);
    plan.parts.push_back({"student_step", "student's step", plan.student_time});
    plan.parts.push_back({"waiting", "waiting for the teacher",
                          named(slowest - plan.student_time, "waiting for the teacher",
                                "what the pass or the transfer takes beyond the student's step")});
    plan.step = named(sum_of_parts(plan.parts), "step", "its parts");
    plan.bound_by = seconds_of(plan.transfer_time) >= seconds_of(slowest)  ? "transfer"
                    : seconds_of(plan.teacher_time) >= seconds_of(slowest) ? "teacher"
                                                                           : "student";
    const Traced all = Traced::leaf(to_double(q_.student.chips), "chips", "asked", {});
    const SecondsOf<Traced> busy =
        plan.student_time *
            Traced::leaf(to_double(plan.student->ranked.plan.layout.chips()), "student chips at work", "its plan", {}) +
        plan.teacher_time * Traced::leaf(to_double(plan.teacher_chips), "teacher chips", "split", {});
    plan.idle_share =
        named(Traced(1.0) - busy / (plan.step * all), "idle share", "chips of one half wait for the other");
  }

  std::optional<BytesPerSecondOf<Traced>> storage() const {
    if (q_.storage) {
      return BytesPerSecondOf<Traced>(
          Traced::leaf(*q_.storage, "storage bandwidth", "--storage-bandwidth", BytesPerSecondOf<Traced>::dim));
    }
    if (!hw().storage_bandwidth) return std::nullopt;
    const double hosts = std::ceil(to_double(q_.student.chips) / to_double(hw().chips_per_host));
    return read(Reader<Traced>{}, *hw().storage_bandwidth, "hw.host.storage_bandwidth", hw().host_source) *
           Traced::leaf(hosts, "hosts", "chips over chips of a host", {});
  }

  /// One pass of the teacher over every different token, its logits written, then the student alone that reads them.
  void stored() {
    const auto disk = storage();
    if (!disk) {
      if (q_.place == TeacherPlace::kStored) {
        throw UserError(fmt::format("{} publishes no storage bandwidth", hw().name),
                        "give --storage-bandwidth: of all hosts together, such as 200GB/s");
      }
      out_.notes.emplace_back("stored logits left out: no storage bandwidth is known (--storage-bandwidth gives one)");
      return;
    }
    const std::vector<ForwardPass> found = passes(q_.student.chips);
    if (found.empty() || !out_.alone) return;
    const double unique = out_.tokens / q_.epochs;
    DistillPlan plan = beforehand(found.front().layout);
    plan.teacher_memory = found.front().memory_bytes;
    plan.pass = found.front();
    plan.teacher_time = teacher_time(found.front());
    plan.logit_bytes = logits(TeacherPlace::kStored, out_.step_tokens);
    plan.stored_bytes = logits(TeacherPlace::kStored, unique);
    const SecondsOf<Traced> compute =
        plan.teacher_time * Traced::leaf(unique / out_.step_tokens, "steps' worth of different tokens",
                                         "tokens / epochs / tokens of a step", {});
    plan.stored_pass = named(max(compute, *plan.stored_bytes / *disk), "teacher's pass beforehand",
                             "the forward passes, or writing what they give");
    plan.transfer_time = named(plan.logit_bytes / *disk, "reading a step's logits", "bytes / storage bandwidth");
    amortise(plan);
    out_.plans.push_back(std::move(plan));
  }

  DistillPlan beforehand(const ServeLayout& layout) const {
    DistillPlan plan{
        .place = TeacherPlace::kStored, .student_chips = q_.student.chips, .teacher_chips = q_.student.chips};
    plan.student = out_.alone;
    plan.student_time = student_time(*out_.alone);
    plan.teacher_layout = layout;
    return plan;
  }

  /// The pass beforehand falls on every step alike.
  void amortise(DistillPlan& plan) const {
    const Traced steps = Traced::leaf(out_.tokens / out_.step_tokens, "steps", "tokens / tokens of a step", {});
    plan.parts.push_back(
        {"teacher_forward", "teacher's pass, a step's part",
         named(*plan.stored_pass / steps, "teacher's pass, a step's part", "pass beforehand / steps")});
    plan.parts.push_back({"student_step", "student's step", plan.student_time});
    plan.parts.push_back({"waiting", "waiting for storage",
                          named(max(plan.transfer_time, plan.student_time) - plan.student_time, "waiting for storage",
                                "what reading takes beyond the student's step")});
    plan.step = named(sum_of_parts(plan.parts), "step", "its parts");
    plan.bound_by = plan.student_time < plan.transfer_time        ? "storage"
                    : plan.student_time < plan.parts.front().time ? "teacher"
                                                                  : "student";
  }

  /// The teacher writes the text, at a server's full rate; what it writes is a few bytes a token.
  void written() {
    ServeQuestion question = q_.teacher;
    question.chips = q_.student.chips;
    question.suggest = false;
    const ServeAnswer server = serve_answer(question, catalog_, stop_);
    if (!server.best) {
      for (const BindingLimit& l : server.limits) out_.shortages.push_back({"teacher", l.nearest, l.asked, l.how});
      return;
    }
    if (!out_.alone) return;
    DistillPlan plan = beforehand(server.best->layout);
    plan.teacher_memory = server.best->memory.total();
    const double rate = server.best->requests_per_s * (question.prompt + question.generate);
    plan.logit_bytes = named(searched_bytes(kIndexBytes, "bytes of a token", "int32") *
                                 Traced::leaf(out_.step_tokens, "tokens", "of a step", {}),
                             "text of a step", "no logits are kept");
    plan.transfer_time = SecondsOf<Traced>(Traced(0.0));
    const double unique = out_.tokens / q_.epochs;
    plan.teacher_time = searched_seconds(out_.step_tokens / rate, "writing a step's text",
                                         "`scalecalc serve` at its best throughput, prompts counted");
    plan.stored_pass =
        named(plan.teacher_time * Traced::leaf(unique / out_.step_tokens, "steps' worth of different text",
                                               "tokens / epochs / tokens of a step", {}),
              "teacher writes beforehand", "arXiv:1606.07947, section 3.2");
    amortise(plan);
    out_.plans.push_back(std::move(plan));
  }

  void whole_run() {
    const DistillPlan& best = out_.plans.front();
    const Traced steps = Traced::leaf(out_.tokens / out_.step_tokens, "steps", "tokens / tokens of a step", {});
    out_.run = job_run(job(), q_.student.chips, named(best.step * steps, "the whole run", "steps x step"));
    if (!out_.alone) return;
    out_.over_alone = named(best.step / student_time(*out_.alone), "times the student alone",
                            "the step over the student's own on all chips");
  }

  void shortages() {
    if (students_.nearest_miss()) {
      out_.shortages.push_back({"student", students_.nearest_miss()->memory.total().value(), out_.capacity,
                                "the nearest layout beside the teacher"});
    }
    if (!passes(q_.student.chips).empty() || q_.loss == DistillLoss::kSequence) return;
    const std::vector<ForwardPass> any =
        forward_passes(basis_, q_.student.chips, teacher_load(out_), 1e18, q_.teacher.fix, q_.teacher.max);
    if (any.empty()) {
      out_.shortages.push_back({"teacher", 0, out_.capacity, "no layout is legal on these chips"});
    } else {
      out_.shortages.push_back({"teacher", any.back().memory_bytes, out_.capacity, describe(any.back().layout)});
    }
  }

  const Catalog& catalog_;
  const Stop& stop_;
  std::shared_ptr<const ServeAnswer> engine_;
  JobTrainer students_;
  ServeBasis<double> basis_;
  DistillAnswer out_;
  const DistillQuestion& q_ = out_.question;
};

}  // namespace

ForwardLoad teacher_load(const DistillAnswer& answer) {
  return {.sequences = answer.step_tokens / answer.seq, .tokens = answer.seq, .all_logits = true};
}

double logit_bytes_per_token(std::int64_t vocab, std::optional<std::int64_t> top_k) {
  return top_k ? to_double(*top_k) * (kValueBytes + kIndexBytes) : to_double(vocab) * kValueBytes;
}

DistillAnswer distill_answer(const DistillQuestion& question, const Catalog& catalog, const Stop& stop) {
  return DistillSearch(question, catalog, stop).run();
}

}  // namespace scalecalc
