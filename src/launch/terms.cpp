// Names the terms of launch files, and evaluates the products and conditions in the rows of a framework's table.
#include "launch/terms.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace scalecalc {
namespace {

constexpr std::string_view kTrainingTerms =
    // The layout, by names of dimensions where they have one.
    "dp fsdp tp sp cp cp_comm pp vpp ep ep_overlap etp zero mb ga schedule remat remat_layers remat_block offload "
    "offload_layers offload_optimizer offload_weights offload_activations loss replicas shards reshard "
    "optimizer_shards "
    // Layers of pipeline chunks.
    "chunks deal accounted layout first_layers last_layers "
    // The machine, and axes of a mesh over it.
    "chips cores local nodes torus architecture data_axis expert_axis fsdp_axis dcn_data dcn_fsdp dcn_tp dcn_cp "
    "dcn_pp dcn_ep "
    // What is trained, and how.
    "seq precision scaling optimizer dropout attention dispatch graphs grad_overlap tp_overlap tune base lora_rank "
    "lora_mlp lora_modules "
    // The model.
    "model flavor layers d_model vocab heads head_dim kv_heads own_head_dim d_ff gated activation gqa mla q_lora "
    "kv_lora nope_dim rope_dim v_dim moe experts topk expert_ff shared_ff expert_layers experts_everywhere "
    "router_groups router_topk_groups mtp_layers kinds plain_layers tied norm positions bias qkv_bias qk_norm";

constexpr std::string_view kServingTerms =
    "tp pp ep ep_overlap etp cp adp adp_on expert_ranks replicas a2a pool chips nodes rank_nodes "
    "all_nodes "
    "chunk seqs longest share redundant eplb stream_interval receive_interval speculative speculation kv weights "
    "model family moe";

LaunchTermNames names_in(std::string_view text) {
  LaunchTermNames out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    out.insert(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

std::vector<std::string_view> comma_split(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    out.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

/// One condition; `a!b` is that a is something else.
std::optional<bool> condition_holds(std::string_view condition, const LaunchTerms& terms) {
  const std::size_t at = condition.find_first_of("=<>!");
  const std::string_view name = condition.substr(0, at);
  const std::string_view asked = condition.substr(at + 1);
  const char relation = condition[at];
  if (const auto limit = whole_number(asked)) {
    const auto value = terms.number(name);
    if (!value) return std::nullopt;
    if (relation == '<') return *value < *limit;
    if (relation == '>') return *value > *limit;
    return (*value == *limit) == (relation == '=');
  }
  const auto word = terms.word(name);
  if (!word) return std::nullopt;
  return (*word == asked) == (relation == '=');
}

}  // namespace

const LaunchTermNames& launch_term_names(bool serving) {
  static const LaunchTermNames kTraining = names_in(kTrainingTerms);
  static const LaunchTermNames kServing = names_in(kServingTerms);
  return serving ? kServing : kTraining;
}

std::optional<std::int64_t> LaunchTerms::number(std::string_view name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> LaunchTerms::word(std::string_view name) const {
  const auto found = words.find(name);
  return found == words.end() ? std::nullopt : std::optional(found->second);
}

void LaunchTerms::set(std::string_view name, std::string_view value) {
  if (const auto number = whole_number(value)) {
    numbers[std::string(name)] = *number;
  } else {
    words[std::string(name)] = std::string(value);
  }
}

LaunchProduct parse_product(std::string_view text) {
  LaunchProduct out;
  bool divides = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("*/"), text.size());
    const std::string_view part = text.substr(0, end);
    LaunchFactor factor{.divides = divides};
    if (const auto number = whole_number(part)) {
      factor.number = *number;
    } else {
      factor.name = std::string(part);
    }
    out.push_back(std::move(factor));
    divides = end < text.size() && text[end] == '/';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::optional<LaunchFraction> value_of(const LaunchProduct& product, const LaunchTerms& terms) {
  LaunchFraction out;
  for (const LaunchFactor& factor : product) {
    const auto value = factor.name.empty() ? std::optional(factor.number) : terms.number(factor.name);
    if (!value) return std::nullopt;
    std::int64_t& side = factor.divides ? out.below : out.above;
    if (__builtin_mul_overflow(side, *value, &side)) return std::nullopt;
    const std::int64_t common = std::gcd(out.above, out.below);
    if (common > 1) out = {out.above / common, out.below / common};
  }
  return out;
}

std::optional<bool> holds(std::string_view conditions, const LaunchTerms& terms) {
  bool all = true;
  bool unknown = false;
  for (const std::string_view condition : comma_split(conditions)) {
    const auto one = condition_holds(condition, terms);
    if (one) all = all && *one;
    unknown = unknown || !one;
  }
  if (!all) return false;
  return unknown ? std::nullopt : std::optional(true);
}

std::vector<std::pair<std::string, std::string>> said(std::string_view says) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string_view each : comma_split(says)) {
    const std::size_t at = each.find('=');
    out.emplace_back(each.substr(0, at), each.substr(at + 1));
  }
  return out;
}

}  // namespace scalecalc
