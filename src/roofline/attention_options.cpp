// Reads the words of an attention for `scalecalc roofline`:
// attention heads=32 kv_heads=8 head_dim=128 query=4096 kv=4096 mask=causal pass=backward
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/operation_options.h"

namespace scalecalc::cli {
namespace {

using Values = std::vector<double>;

class AttentionReader {
 public:
  AttentionReader(const SpokenWords& words, const std::optional<Values>& batch, std::vector<Diagnostic>& problems)
      : words_(words), problems_(problems), keys_(words, 1, problems), sequences_(batch.value_or(Values{1})) {
    if (!batch) note("one sequence", "--batch");
  }

  SpokenOperation read() {
    const std::size_t problems_before = problems_.size();
    heads();
    positions();
    choices();
    keys_.finish();
    if (problems_.size() == problems_before) points();
    return std::move(out_);
  }

 private:
  void heads() {
    const auto heads = keys_.size("heads");
    if (!heads) keys_.missing("heads", "32");
    const auto kv_heads = keys_.size("kv_heads");
    const auto head_dim = keys_.size("head_dim");
    if (!head_dim) keys_.missing("head_dim", "128");
    if (!kv_heads) note("as many KV heads as query heads (multi-head attention)", "kv_heads=");
    shape_.heads = heads.value_or(1);
    shape_.kv_heads = kv_heads.value_or(shape_.heads);
    shape_.head_dim = head_dim.value_or(1);
    if (!heads || std::fmod(shape_.heads, shape_.kv_heads) == 0) return;
    problem("kv_heads", fmt::format("{} query heads cannot share {} KV heads evenly", shape_.heads, shape_.kv_heads),
            "kv_heads divides heads");
  }

  void positions() {
    const auto query = keys_.sizes("query");
    if (!query) keys_.missing("query", "4096");
    queries_ = query.value_or(Values{1});
    kv_ = keys_.sizes("kv");
    if (!kv_) note("as many keys as queries: a whole prompt", "kv=");
  }

  void choices() {
    constexpr std::array<std::string_view, 2> kMasks{"full", "causal"};
    constexpr std::array<std::string_view, 2> kPasses{"forward", "backward"};
    const auto mask = keys_.word("mask", kMasks);
    const auto pass = keys_.word("pass", kPasses);
    if (mask) mask_ = *mask == 1U;
    if (!mask) note_masks();
    if (!pass) note("the forward pass", "pass=backward");
    shape_.backward = pass == 1U;
  }

  /// By default a decoder's, where it has something to hide: several queries, and a key for each of them. One query
  /// sees all keys.
  bool masked(double query, double kv) const { return mask_.value_or(query > 1 && kv >= query); }

  void note_masks() {
    bool all = true, any = false, possible = true;
    for (const double query : queries_) {
      for (const double kv : kv_.value_or(Values{query})) {
        all = all && masked(query, kv);
        any = any || masked(query, kv);
        possible = possible && kv >= query;
      }
    }
    if (any) {
      note(all ? "a causal mask, as model and train count: half of the square of a prompt"
               : "a causal mask where there are several queries and a key for each of them, as model and train count",
           "mask=full, as book ch. 4 counts");
    } else {
      note("every query looks at every key", possible ? "mask=causal" : "mask=", "book ch. 4");
    }
  }

  void points() {
    const Values keys_seen = kv_.value_or(queries_);
    const std::array<std::size_t, 3> counts{queries_.size(), kv_ ? keys_seen.size() : 1, sequences_.size()};
    constexpr std::array<std::string_view, 3> kNames{"query", "kv", "batch"};
    if (std::count_if(counts.begin(), counts.end(), [](std::size_t n) { return n > 1; }) > 1) {
      problems_.push_back({words_.span(0), "two sizes are swept at once", "sweep one of query=, kv= and --batch"});
      return;
    }
    const auto* const most = std::max_element(counts.begin(), counts.end());
    if (*most > 1) out_.swept = kNames.at(static_cast<std::size_t>(most - counts.begin()));
    const auto at = [](const Values& values, std::size_t i) { return values[values.size() == 1 ? 0 : i]; };
    for (std::size_t i = 0; i < *most; ++i) {
      Attention point = shape_;
      point.query = at(queries_, i);
      point.kv = at(keys_seen, i);
      point.sequences = at(sequences_, i);
      point.causal = masked(point.query, point.kv);
      if (point.causal && point.query > point.kv) {
        return problem("kv", fmt::format("mask=causal: {} queries have only {} keys", point.query, point.kv),
                       "kv= at least query=");
      }
      out_.points.emplace_back(point);
    }
  }

  void problem(std::string_view key, std::string message, std::string hint) {
    problems_.push_back({keys_.span(key), std::move(message), std::move(hint)});
  }
  Assumption& note(std::string text, std::string flag, std::string source = "") {
    return out_.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source)});
  }

  const SpokenWords& words_;
  std::vector<Diagnostic>& problems_;
  KeyWords keys_;
  Attention shape_;
  std::optional<bool> mask_;  ///< causal or not, where it is said
  Values queries_;
  std::optional<Values> kv_;
  Values sequences_;
  SpokenOperation out_;
};

}  // namespace

SpokenOperation read_attention(const SpokenWords& words, const std::optional<Values>& batch,
                               std::vector<Diagnostic>& problems) {
  return AttentionReader(words, batch, problems).read();
}

}  // namespace scalecalc::cli
