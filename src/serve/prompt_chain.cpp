// Computes the waiting and prefilling of prompts under continuous batching as a Markov chain.
#include "serve/prompt_chain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace scalecalc {
namespace {

constexpr int kRepresentatives = 32;

/// The stationary distribution of a chain by elimination of its states, the last first: Grassmann, Taksar and Heyman,
/// Operations Research 33 (1985) 1107-1116.
std::vector<double> stationary(std::vector<std::vector<double>> p) {
  const std::size_t size = p.size();
  for (std::size_t k = size - 1; k > 0; --k) {
    double below = 0;
    for (std::size_t j = 0; j < k; ++j) below += p[k][j];
    for (std::size_t i = 0; i < k; ++i) {
      if (p[i][k] == 0) continue;
      p[i][k] /= below;
      for (std::size_t j = 0; j < k; ++j) p[i][j] += p[i][k] * p[k][j];
    }
  }
  std::vector<double> out(size, 0.0);
  double sum = out[0] = 1;
  for (std::size_t k = 1; k < size; ++k) {
    for (std::size_t i = 0; i < k; ++i) out[k] += out[i] * p[i][k];
    sum += out[k];
  }
  for (double& x : out) x /= sum;
  return out;
}

}  // namespace

SteadyEngine::SteadyEngine(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix)
    : seconds_(seconds), rules_(rules), context_(mix.decode_context()) {
  const int parts = mix.prompt.is_fixed() ? 1 : kRepresentatives;
  for (int i = 0; i < parts; ++i) {
    const std::int64_t prompt = mix.prompt.quantile((i + 0.5) / parts);
    const auto cached = static_cast<double>(cached_tokens(rules, prompt));
    const double computed = static_cast<double>(prompt) - cached;
    prompts_.push_back({computed, cached});
    computed_ += computed / parts;
    keys_ += computed * (cached + (computed + 1) / 2) / parts;
  }
}

double SteadyEngine::chunk(double batch) const {
  const auto budget = static_cast<double>(rules_.token_budget);
  return std::max(mixes() ? budget - batch : budget, 1.0);
}

double SteadyEngine::chunk_of_one(double batch) const {
  return std::min(chunk(batch), static_cast<double>(rules_.prompt_chunk));
}

std::pair<double, double> SteadyEngine::steps_of_one(double batch) const {
  double mean = 0, square = 0;
  for (const Prompt& p : prompts_) {
    const double steps = std::ceil(p.computed / chunk_of_one(batch));
    mean += steps / static_cast<double>(prompts_.size());
    square += steps * steps / static_cast<double>(prompts_.size());
  }
  return {mean, std::max(square - mean * mean, 0.0)};
}

std::vector<std::pair<double, double>> SteadyEngine::chunks(double batch) const {
  const double most = chunk_of_one(batch);
  std::map<double, double> count;
  double all = 0;
  for (const Prompt& p : prompts_) {
    const double whole = std::ceil(p.computed / most) - 1;
    if (whole > 0) count[most] += whole;
    count[p.computed - whole * most] += 1;
    all += whole + 1;
  }
  std::vector<std::pair<double, double>> out(count.begin(), count.end());
  for (auto& [tokens, share] : out) share /= all;
  return out;
}

double SteadyEngine::prefill_step(double batch, double prompts, double tokens, double largest) const {
  StepLoad load = mixes() ? decoding(batch) : StepLoad{};
  load.prompts = prompts;
  load.prefill_tokens = tokens;
  load.largest_chunk = largest;
  load.prefill_context = keys_ / computed_;
  return seconds_(load);
}

double SteadyEngine::step_in_line(double batch, double head, double tokens) const {
  StepLoad load = mixes() ? decoding(batch) : StepLoad{};
  const double prompt = computed_;
  double keys = 0;
  for (double left = tokens, chunk = std::min(head, tokens), before = prompt - head; left > 1e-6;
       left -= chunk, chunk = std::min(prompt, left), before = 0) {
    keys += chunk * (prompts_.front().cached + before + (chunk + 1) / 2);
    load.prompts += 1;
    load.largest_chunk = std::max(load.largest_chunk, chunk);
  }
  load.prefill_tokens = tokens;
  load.prefill_context = keys / tokens;
  return seconds_(load);
}

double SteadyEngine::full_step(double batch, double prompts) const {
  const double whole = std::max(std::floor(prompts), 1.0);
  const double time = prefill_step(batch, whole, chunk(batch));
  if (prompts <= whole) return time;
  return time + (prefill_step(batch, whole + 1, chunk(batch)) - time) * (prompts - whole);
}

double SteadyEngine::packed_cost(double batch) const {
  const double tokens = chunk(batch);
  const double time = full_step(batch, tokens / (computed_ / steps_of_one(batch).first));
  return computed_ / tokens * (mixes() ? time - decode_step(batch) : time);
}

PromptChain::PromptChain(const SteadyEngine& engine, double batch, double rate, double decodes)
    : engine_(engine), batch_(batch), rate_(rate), decodes_(decodes) {
  std::tie(steps_, steps_variance_) = engine.steps_of_one(batch);
  each_ = engine.computed_tokens() / steps_;
  at_once_ = std::max(engine.chunk(batch) / each_, 1.0);
  decode_ = engine.decode_step(batch);
  // A step with nobody to decode does not pass: the next prompt is waited for.
  looks_ = batch > 0 ? static_cast<double>(engine.rules().receive_interval) : 1;
  chunks_ = engine.chunks(batch);
  for (const auto& [tokens, share] : chunks_) chunk_variance_ += share * (tokens - each_) * (tokens - each_);
}

PromptQueue PromptChain::solve() const {
  constexpr double kMostPrompts = 240;
  const double offered = rate_ * engine_.full_step(batch_, at_once_) * steps_ + 1;
  const double usual = std::min(offered, at_once_) + 8 * std::sqrt(offered) + 4 * offered / at_once_ + 40;
  if (usual > kMostPrompts && engine_.mixes()) {
    const PromptQueue many = crowd();
    if (many.in_service > kMostPrompts / 2) return many;
  }
  const auto size = static_cast<std::size_t>(std::min(kMostPrompts, std::ceil(usual))) + 1;
  std::vector<Chances> to(size, Chances(size, 0.0));
  std::vector<double> time(size);
  for (std::size_t n = 0; n < size; ++n) {
    time[n] = duration(static_cast<double>(n));
    if (n == 0 && batch_ <= 0) {
      to[0][1] = 1;
      continue;
    }
    const Chances left = leaving(static_cast<double>(n));
    for (std::size_t d = 0; d < left.size(); ++d) add_arrivals(rate_ * time[n], left[d], n - d, to[n]);
  }
  const Chances share = stationary(to);
  PromptQueue out = figures(share, time);
  out.step_s = out.gap_s;
  if (batch_ > 0 && decodes_ > 0) decoding(to, time, share, out);
  return out;
}

/// So many prompts to a step that their number hardly varies: those that come during their own steps.
PromptQueue PromptChain::crowd() const {
  double prompts = 0, step = 0;
  for (int i = 0; i < 1000; ++i) {
    step = duration(std::max(prompts, 1.0));
    const double next = rate_ * step * steps_;
    if (std::abs(next - prompts) <= 1e-9 * next) break;
    prompts = next;
  }
  return {.prompts = prompts + rate_ * step / 2,
          .in_service = std::min(prompts, at_once_),
          .gap_s = step,
          .step_share = 1,
          .step_s = step};
}

double PromptChain::duration(double prompts) const {
  if (prompts <= 0) return batch_ > 0 ? looks_ * decode_ : 1 / rate_;
  if (prompts > at_once_) return engine_.full_step(batch_, at_once_);
  return engine_.prefill_step(batch_, prompts, prompts * each_, largest_of(prompts));
}

/// The largest of n chunks that are drawn at random, on average.
double PromptChain::largest_of(double prompts) const {
  double out = 0, share = 0, below = 0;
  for (const auto& [tokens, each] : chunks_) {
    share += each;
    const double up_to = std::pow(std::min(share, 1.0), prompts);
    out += tokens * (up_to - below);
    below = up_to;
  }
  return out;
}

/// Of n prompts at a step so many have their last chunk in it. In a step that is full a chunk may be cut.
PromptChain::Chances PromptChain::leaving(double prompts) const {
  const double served = std::min(prompts, at_once_);
  const double whole = std::floor(served);
  const auto count = static_cast<std::size_t>(std::ceil(served));
  Chances out(count + 1, 0.0);
  if (steps_ <= 1) {
    out[static_cast<std::size_t>(whole)] += 1 - (served - whole);
    if (served > whole) out[count] += served - whole;
    return out;
  }
  const double chance = std::min(served / (static_cast<double>(count) * steps_), 1.0);
  out[0] = 1;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t d = i + 1; d > 0; --d) out[d] = out[d] * (1 - chance) + out[d - 1] * chance;
    out[0] *= 1 - chance;
  }
  return out;
}

void PromptChain::add_arrivals(double mean, double weight, std::size_t from, Chances& to) {
  if (weight <= 0) return;
  const std::size_t last = to.size() - 1;
  double left = weight;
  double chance = weight * std::exp(-mean);
  for (std::size_t k = 0; from + k < last && left > 1e-13; ++k) {
    to[from + k] += chance;
    left -= chance;
    chance *= mean / static_cast<double>(k + 1);
  }
  to[last] += std::max(left, 0.0);
}

/// Of a sequence, while a step with so many prompts lasts.
double PromptChain::decode_steps(std::size_t prompts) const {
  if (prompts == 0) return looks_;
  return engine_.mixes() ? 1 : 0;
}

/// Prompts that are there when one has got its first token.
PromptChain::Chances PromptChain::beside_a_new_one(const Chances& share, const std::vector<double>& time) const {
  Chances out(share.size(), 0.0);
  double all = 0;
  for (std::size_t n = 1; n < share.size(); ++n) {
    const Chances left = leaving(static_cast<double>(n));
    for (std::size_t d = 1; d < left.size(); ++d) {
      const double weight = share[n] * left[d] * static_cast<double>(d);
      add_arrivals(rate_ * time[n], weight, n - d, out);
      all += weight;
    }
  }
  for (double& x : out) x /= all;
  return out;
}

/// Of all decode steps of a sequence. It begins beside the prompts that came during its own, which are more than there
/// are at other times.
void PromptChain::decoding(const std::vector<Chances>& to, const std::vector<double>& time, const Chances& share,
                           PromptQueue& out) const {
  constexpr int kMostSteps = 2000;
  Chances ends(share.size(), 0.0);  // prompts, on average
  double come = 0, beside = 0;
  for (std::size_t n = 1; n < share.size(); ++n) {
    const Chances left = leaving(static_cast<double>(n));
    for (std::size_t d = 1; d < left.size(); ++d) {
      const auto ended = static_cast<double>(d);
      ends[n] += left[d] * ended;
      beside += share[n] * left[d] * ended * (ended - 1);
    }
    come += share[n] * ends[n];
  }
  out.dispersion = 1 + beside / come - come;
  Chances now = beside_a_new_one(share, time);
  double seconds = 0, done = 0;
  for (int i = 0;; ++i) {
    double apart = 0, taken = 0, steps = 0, ended = 0;
    for (std::size_t n = 0; n < now.size(); ++n) {
      apart += std::abs(now[n] - share[n]);
      taken += now[n] * time[n];
      steps += now[n] * decode_steps(n);
      ended += now[n] * ends[n];
    }
    const bool last = done + steps >= decodes_;
    if (apart < 1e-3 || last || i == kMostSteps) {
      out.gap_s = (seconds + (decodes_ - done) * (last ? taken / steps : out.step_s)) / decodes_;
      return;
    }
    seconds += taken;
    done += steps;
    out.dispersion += 2 * (1 - done / decodes_) * (ended - come);
    Chances next(now.size(), 0.0);
    for (std::size_t n = 0; n < now.size(); ++n) {
      if (now[n] < 1e-12) continue;
      for (std::size_t k = 0; k < now.size(); ++k) next[k] += now[n] * to[n][k];
    }
    now = std::move(next);
  }
}

PromptQueue PromptChain::figures(const Chances& share, const std::vector<double>& time) const {
  // The chain lets prompts leave by chance: where they wait in line, that is longer than with their own numbers of
  // steps by the ratio of the squared variations (Lee and Longton, Operational Research Quarterly 10 (1959) 56-73).
  const double chance = steps_ > 1 ? 1 - 1 / steps_ : 0;
  const double line = (1 + steps_variance_ / (steps_ * steps_)) / (1 + chance);
  PromptQueue out;
  double mean = 0, decoding = 0;
  for (std::size_t n = 0; n < share.size(); ++n) {
    const auto prompts = static_cast<double>(n);
    const double served = std::min(prompts, at_once_);
    mean += share[n] * time[n];
    if (batch_ > 0) decoding += share[n] * decode_steps(n);
    out.in_service += share[n] * served * time[n];
    out.prompts += share[n] * (served + (prompts - served) * line) * time[n];
    if (n > 0) out.step_share += share[n] * time[n];
    if (n == 0 && batch_ <= 0) continue;  // who comes is there at the next step's start
    double square = time[n] * time[n];
    if (n > 0) square += std::pow((time[n] - decode_) / (served * each_), 2) * served * chunk_variance_;
    out.prompts += share[n] * rate_ * square / 2;  // who came during the step
  }
  for (double* x : {&out.prompts, &out.in_service, &out.step_share}) *x /= mean;
  out.gap_s = decoding > 0 ? mean / decoding : 0;
  return out;
}

}  // namespace scalecalc
