// Computes the queue of prompts that are prefilled one after another as a Markov chain.
#include "serve/prompt_line.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace scalecalc {
namespace {

constexpr double kRounding = 1e-9;
constexpr double kNearlyAll = 0.9;  // of steps: that few others hardly change the mean
constexpr double kNoChance = 1e-11;
/// Chances that are moved, for one number of sequences: a few thousandths of a second. What is longer is near its
/// largest rate, where runs hardly end.
constexpr double kMostWork = 1e6;

}  // namespace

bool PromptLine::holds(const SteadyEngine& engine) {
  constexpr double kMostInStep = 300;  // beyond, there are too many to follow
  const QueueRules& rules = engine.rules();
  const double prompt = engine.computed_tokens();
  return engine.one_length() && static_cast<double>(rules.token_budget) <= kMostInStep * prompt &&
         (rules.lanes == 1 || prompt <= static_cast<double>(rules.prompt_chunk));
}

bool PromptLine::proven(const SteadyEngine& engine) {
  constexpr double kSmall = 0.25;  // of what one rank takes in a step
  return holds(engine) && (engine.rules().lanes == 1 ||
                           engine.computed_tokens() <= kSmall * static_cast<double>(engine.rules().prompt_chunk));
}

PromptLine::PromptLine(const SteadyEngine& engine, double batch, double rate, double decodes)
    : engine_(engine),
      batch_(batch),
      rate_(rate),
      decodes_(decodes),
      prompt_(engine.computed_tokens()),
      chunk_(engine.chunk(batch)) {
  constexpr double kMostParts = 12, kMostPrompts = 60;
  const double looks = batch > 0 ? static_cast<double>(engine.rules().receive_interval) : 0;
  empty_s_ = batch > 0 ? looks * engine.decode_step(batch) : 1 / rate_;
  empty_steps_ = looks;
  const double steps = prompt_ / chunk_;
  parts_ = steps < 0.1 ? 1 : std::clamp(std::ceil(2 * steps), 4.0, kMostParts);
  // Of equal services the number in line falls by exp(-2 (1 - load) / load) and faster.
  full_s_ = engine.full_step(batch, std::ceil(steps) / steps);
  const double load = std::min(rate_ * full_s_ * steps, 0.95);
  most_ = static_cast<std::size_t>(3 / steps + std::min(8 + 8 * load / (1 - load), kMostPrompts));
}

PromptQueue PromptLine::solve() {
  if (decodes_ <= 0 && batch_ > 0 && engine_.mixes() && full_share() > kNearlyAll)
    return {.gap_s = mean_step(), .step_s = mean_step()};
  PromptQueue out;
  const BusyPeriod run = settled_run(out);
  // Beside each run, the empty steps after it.
  const double empty = run.next[0] * (batch_ > 0 ? 1 / -std::expm1(-rate_ * empty_s_) : 1);
  const double seconds = run.seconds + empty * empty_s_;
  const double steps = (engine_.mixes() && batch_ > 0 ? run.steps : 0) + empty * empty_steps_;
  out.prompts = run.prompt_s / seconds;
  if (batch_ > 0) out.prompts += empty * rate_ * empty_s_ * empty_s_ / 2 / seconds;
  out.in_service = run.served_s / seconds;
  out.step_share = run.seconds / seconds;
  out.gap_s = steps > 0 ? seconds / steps : 0;
  out.step_s = out.gap_s;
  if (batch_ > 0 && decodes_ > 0) {
    begin_alone();
    const double come = rate_ * seconds / (run.steps + empty);
    out.dispersion = 1 + run.beside / run.completed - come;
    decoding(come, out);
  }
  return out;
}

/// A run whose first step has the prompts that the last step of such a run leaves.
PromptLine::BusyPeriod PromptLine::settled_run(PromptQueue& out) {
  constexpr double kSame = 1e-5, kNear = 1e-3;
  const bool begins = decodes_ > 0;
  Chances first = first_prompts({1});
  for (;;) {
    BusyPeriod run = run_from(first, false);
    work_ += static_cast<double>(first.size());  // so that it ends
    Chances next = first_prompts(run.next);
    double apart = 0;
    for (std::size_t n = 0; n < first.size(); ++n) apart += std::abs(next[n] - first[n]);
    first = std::move(next);
    if (apart > kSame && work_ < kMostWork) continue;
    out.settled = apart < kNear && run.left_over < kNear;
    return begins ? run_from(first, true) : run;
  }
}

/// The first sequence has all of a step's tokens while it is a prompt.
void PromptLine::begin_alone() {
  if (batch_ > 1 || !engine_.mixes()) return;
  PromptLine alone(engine_, 0, rate_, decodes_);
  alone.solve();
  alone.begins_.resize(begins_.size(), 0.0);
  begins_ = std::move(alone.begins_);
}

/// Of a step, where all with prompts are full.
double PromptLine::mean_step() {
  const double more = full_s_ - empty_s_;
  return empty_s_ / (1 - std::min(rate_ * more * prompt_ / chunk_, 1 - empty_s_ / full_s_));
}

/// Of steps, these; one where there is no steady state.
double PromptLine::full_share() { return std::min(rate_ * mean_step() * prompt_ / chunk_, 1.0); }

double PromptLine::prompts_in(double tokens) const { return tokens > 0 ? std::ceil(tokens / prompt_ - kRounding) : 0; }

/// By what is left of all prompts: of the first one and of all, as far as the step takes them.
double PromptLine::step_seconds(double left) {
  constexpr double kTold = 128;
  const double head = left - (prompts_in(left) - 1) * prompt_;
  const double tokens = std::min(left, chunk_);
  const auto rounded = [&](double x) { return std::lround(kTold * x / prompt_); };
  const auto [at, is_new] = seconds_.try_emplace({rounded(head), rounded(tokens)}, 0.0);
  if (is_new) at->second = engine_.step_in_line(batch_, head, tokens);
  return at->second;
}

void PromptLine::poisson(double mean, Chances& out) {
  double chance = std::exp(-mean), rest = 1;
  out.clear();
  while (rest > 1e-12 && (chance > 0 || out.empty())) {
    out.push_back(chance);
    rest -= chance;
    chance *= mean / static_cast<double>(out.size());
  }
  out.back() += std::max(rest, 0.0);
}

void PromptLine::add_step(BusyPeriod& run, double weight, double prompts, double left, double seconds) const {
  const double head = left - (prompts - 1) * prompt_;
  const double served = left > chunk_ ? 1 + std::ceil(std::max(chunk_ - head, 0.0) / prompt_ - kRounding) : prompts;
  run.seconds += weight * seconds;
  run.steps += weight;
  run.prompt_s += weight * (prompts * seconds + rate_ * seconds * seconds / 2);
  run.served_s += weight * served * seconds;
}

/// `begins`: what sequences find when they begin to decode is wanted.
PromptLine::BusyPeriod PromptLine::run_from(const Chances& first, bool begins) {
  constexpr int kMostSteps = 1500;
  BusyPeriod run;
  run.next.assign(most_ + 1, 0.0);
  if (begins) begins_.assign(static_cast<std::size_t>(static_cast<double>(most_) * parts_) + 1, 0.0);
  const auto last = static_cast<double>(most_);
  Chances now = first, later(most_ + 1), came;
  const double most_work = work_ + kMostWork / 2;
  double head = prompt_;
  // With nobody else, the first of a run's prompts has a step's tokens to itself, and decodes beside the next ones.
  const double beside = engine_.mixes() && batch_ <= 0 && decodes_ > 0 ? 1 : 0;
  for (int step = 0; step < kMostSteps; ++step) {
    const double chunk = step * chunk_ < prompt_ ? chunk_ : chunk_ - beside;
    std::fill(later.begin(), later.end(), 0.0);
    double full = 0, left_over = 0;  // seconds of a full step; chances that stay
    Chances of_full;
    for (std::size_t n = 1; n <= most_; ++n) {
      if (now[n] < kNoChance) continue;
      const auto prompts = static_cast<double>(n);
      const double left = (prompts - 1) * prompt_ + head;
      const bool ends = left <= chunk * (1 + kRounding);
      if (ends || full == 0) {
        const double seconds = step_seconds(left);
        poisson(rate_ * seconds, came);
        if (!ends) {
          full = seconds;
          of_full = came;
        }
      }
      if (ends) {
        add_step(run, now[n], prompts, left, step_seconds(left));
        run.completed += now[n] * prompts;
        run.beside += now[n] * prompts * (prompts - 1);
        if (begins) begin_decoding(0, now[n] * prompts, came);
        for (std::size_t a = 0; a < came.size(); ++a) run.next[std::min(a, most_)] += now[n] * came[a];
        continue;
      }
      add_step(run, now[n], prompts, left, full);
      const double after = prompts_in(left - chunk);
      if (begins && prompts > after) begin_decoding(left - chunk, now[n] * (prompts - after), of_full);
      run.completed += now[n] * (prompts - after);
      run.beside += now[n] * (prompts - after) * (prompts - after - 1);
      for (std::size_t a = 0; a < of_full.size(); ++a) {
        later[static_cast<std::size_t>(std::min(after + static_cast<double>(a), last))] += now[n] * of_full[a];
      }
      left_over += now[n];
      work_ += static_cast<double>(of_full.size());
    }
    std::swap(now, later);
    run.left_over = left_over;
    if (left_over < 1e-7 || work_ > most_work) return run;
    const double rest = head - chunk;
    head = rest - prompt_ * (std::ceil(rest / prompt_ - kRounding) - 1);
  }
  return run;
}

/// Prompts of a run's first step: those that came during the last of another, or during the first step without any
/// that somebody comes in.
PromptLine::Chances PromptLine::first_prompts(const Chances& at_end) const {
  Chances out(most_ + 1, 0.0), came{0, 1};
  double some = 1;
  if (batch_ > 0) {
    poisson(rate_ * empty_s_, came);
    some = -std::expm1(-rate_ * empty_s_);
  }
  for (std::size_t n = 1; n < at_end.size(); ++n) out[n] += at_end[n];
  for (std::size_t n = 1; n < came.size(); ++n) out[std::min(n, most_)] += at_end[0] * came[n] / some;
  const double sum = std::accumulate(out.begin(), out.end(), 0.0);
  for (double& x : out) x /= sum;
  return out;
}

void PromptLine::begin_decoding(double left, double weight, const Chances& came) {
  const double at = left / prompt_ * parts_;
  const auto below = static_cast<std::size_t>(at);
  const double above = at - static_cast<double>(below);
  const std::size_t last = begins_.size() - 1;
  for (std::size_t a = 0; a < came.size(); ++a) {
    const std::size_t to = below + a * static_cast<std::size_t>(parts_);
    begins_[std::min(to, last)] += weight * came[a] * (1 - above);
    begins_[std::min(to + 1, last)] += weight * came[a] * above;
  }
}

/// Of all decode steps of a sequence, which begins with what is left when its own prompt has ended. What is left is
/// rounded to parts of a prompt up or down by chance, so that its mean stays.
void PromptLine::decoding(double come, PromptQueue& out) {
  const std::size_t size = begins_.size();
  struct Move {
    double seconds = 0, steps = 0, above = 0, completed = 0;
    std::size_t below = 0;
    Chances came;
  };
  std::vector<Move> moves(size);
  for (std::size_t i = 0; i < size; ++i) {
    Move& m = moves[i];
    const double left = static_cast<double>(i) * prompt_ / parts_;
    m.seconds = i == 0 ? empty_s_ : step_seconds(left);
    m.steps = i == 0 ? empty_steps_ : engine_.mixes() ? 1 : 0;
    const double at = std::max(left - chunk_, 0.0) / prompt_ * parts_;
    m.below = static_cast<std::size_t>(at);
    m.above = at - static_cast<double>(m.below);
    const double whole = static_cast<double>(m.below) * prompt_ / parts_;
    m.completed =
        prompts_in(left) - (prompts_in(whole) * (1 - m.above) + prompts_in(whole + prompt_ / parts_) * m.above);
    poisson(rate_ * m.seconds, m.came);
  }
  Chances now = begins_, next(size);
  const double all = std::accumulate(now.begin(), now.end(), 0.0);
  for (double& x : now) x /= all;
  const auto parts = static_cast<std::size_t>(parts_);
  double seconds = 0, done = 0, before = 0, work = 0;
  for (int step = 0;; ++step) {
    double taken = 0, steps = 0, completed = 0;
    std::fill(next.begin(), next.end(), 0.0);
    for (std::size_t i = 0; i < size; ++i) {
      if (now[i] < kNoChance) continue;
      const Move& m = moves[i];
      completed += now[i] * m.completed;
      taken += now[i] * m.seconds;
      steps += now[i] * m.steps;
      work += static_cast<double>(m.came.size());
      for (std::size_t a = 0; a < m.came.size(); ++a) {
        const std::size_t to = m.below + a * parts;
        next[std::min(to, size - 1)] += now[i] * m.came[a] * (1 - m.above);
        next[std::min(to + 1, size - 1)] += now[i] * m.came[a] * m.above;
      }
    }
    const bool settled = step > 0 && std::abs(taken - before) < 2e-5 * taken;
    const bool last = done + steps >= decodes_;
    const bool enough = work > 8 * kMostWork;
    if (settled || last || enough) {
      out.settled = out.settled && (settled || last);
      seconds += (decodes_ - done) * (last ? taken / steps : out.step_s);
      out.gap_s = seconds / decodes_;
      return;
    }
    seconds += taken;
    done += steps;
    out.dispersion += 2 * (1 - done / decodes_) * (completed - come);
    before = taken;
    std::swap(now, next);
  }
}

PromptQueue prompt_queue(const SteadyEngine& engine, double batch, double rate, double decodes) {
  if (PromptLine::holds(engine)) return PromptLine(engine, batch, rate, decodes).solve();
  return PromptChain(engine, batch, rate, decodes).solve();
}

}  // namespace scalecalc
