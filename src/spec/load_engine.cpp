// Reads the rules and overheads of a serving engine and chooses its release.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "spec/engine_rules.h"
#include "spec/kernel_spec.h"
#include "spec/months.h"

namespace scalecalc {
namespace {

StaticReserve read_reserve(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "reserve", problems);
  StaticReserve out;
  const auto bytes = [&](const char* key) {
    return fields.optional_quantity(key, UnitKind::kBytes, {0, 1e12}).value_or(0);
  };
  const auto tokens = [&](const char* key) { return static_cast<double>(fields.optional_count(key).value_or(0)); };
  out.fixed = bytes("fixed");
  out.token = bytes("token");
  out.least_tokens = tokens("least_tokens");
  out.graph_sequence = bytes("graph_sequence");
  out.rank = bytes("rank");
  out.shared_sequence = bytes("shared_sequence");
  out.many_sequences = tokens("many_sequences");
  out.many_more = bytes("many_more");
  out.prompt_graphs = bytes("prompt_graphs");
  out.prompt_graphs_mla = bytes("prompt_graphs_mla");
  out.own_heads = bytes("own_heads");
  out.draft_model = bytes("draft_model");
  out.least = bytes("least");
  out.least_from = bytes("least_from");
  fields.finish();
  return out;
}

std::vector<EngineSizes> read_sizes(const ConfigNode& list, Problems& problems) {
  std::vector<EngineSizes> out;
  for (const ConfigNode& node : list.items) {
    Fields fields(node, "sizes", problems);
    EngineSizes sizes;
    sizes.memory = fields.optional_quantity("memory", UnitKind::kBytes, {1, 1e15}).value_or(0);
    sizes.of = fields.text_list("of");
    sizes.except = fields.text_list("except");
    if (const auto chunk = fields.optional_count("chunk_tokens")) sizes.chunk_tokens = static_cast<double>(*chunk);
    sizes.most_sequences = fields.optional_count("most_sequences");
    sizes.graph_sequences = fields.optional_count("graph_sequences");
    sizes.graph_sequences_wide = fields.optional_count("graph_sequences_wide");
    fields.finish();
    out.push_back(std::move(sizes));
  }
  return out;
}

/// What a block or a release says; the rest stays as it was.
void read_rules(Fields& fields, EngineRelease& out) {
  EngineRules& r = out.rules;
  Problems& problems = fields.problems();
  const auto rule = fields.optional_word("cache", {"all", "share_of_all", "share_of_free", "static_share"});
  if (rule) r.rule = static_cast<CacheRule>(*rule);
  const auto share = fields.optional_quantity("share", UnitKind::kFraction, {0.01, 1});
  if (share) r.fix_share(*share);
  if (const ConfigNode* list = fields.node("shares_by_ranks")) {
    r.fix_share(1);
    for (const ConfigNode& item : list->items) {
      const auto value = parse_quantity(item.text, UnitKind::kFraction);
      const double* part = std::get_if<double>(&value);
      if (part == nullptr || *part <= 0 || *part > 1) {
        problems.add(item.span, fmt::format("{} is no share", in_quotes(item.text)), "such as 88%");
      } else {
        r.shares_by_ranks.push_back(*part);
      }
    }
  }
  if (const ConfigNode* reserve = fields.node("reserve")) {
    r.fix_share(1);
    r.reserve = read_reserve(*reserve, problems);
  }
  if (const ConfigNode* sizes = fields.node("sizes")) out.sizes = read_sizes(*sizes, problems);
  if (const auto chunk = fields.optional_count("chunk_tokens")) r.chunk_tokens = static_cast<double>(*chunk);
  r.divides_chunk = fields.flag("divides_chunk", r.divides_chunk);
  r.graph_bytes = fields.optional_quantity("graphs", UnitKind::kBytes, {0, 1e12}).value_or(r.graph_bytes);
  r.graphs_in_share = fields.flag("graphs_in_share", r.graphs_in_share);
  r.graph_sequences = fields.optional_count("graph_sequences").value_or(r.graph_sequences);
  if (const ConfigNode* list = fields.node("graph_sizes")) {
    r.graph_sizes.clear();
    for (const ConfigNode& item : list->items) {
      Fields of(item, "graph_sizes", problems);
      GraphSizes sizes;
      if (const auto from = of.optional_count("from")) sizes.from = static_cast<double>(*from);
      if (const auto by = of.optional_count("by")) sizes.by = static_cast<double>(*by);
      of.finish();
      if (!r.graph_sizes.empty() && sizes.from <= r.graph_sizes.back().from) {
        problems.add(item.span, fmt::format("graph_sizes: {} is no more than the one before", sizes.from),
                     "captured batches stand in ascending order");
      }
      r.graph_sizes.push_back(sizes);
    }
  }
  r.reserves_whole = fields.flag("reserves_whole", r.reserves_whole);
  r.most_sequences = fields.optional_count("most_sequences").value_or(r.most_sequences);
  r.sampler_copies = fields.optional_quantity("sampler_copies", UnitKind::kNumber, {0, 100}).value_or(r.sampler_copies);
  if (const ConfigNode* node_of = fields.node("front_end")) {
    Fields front(*node_of, "front_end", problems);
    r.front_end_s = front.quantity("request", UnitKind::kSeconds, {0, 60});
    r.front_end_per_client_s = front.optional_quantity("per_client", UnitKind::kSeconds, {0, 1}).value_or(0);
    front.text("source");
    front.finish();
  }
  if (const ConfigNode* overhead = fields.node("layer_overhead")) {
    Fields of(*overhead, "layer_overhead", problems);
    LayerOverheads& o = r.layer_overhead;
    o.dense = of.optional_quantity("dense", UnitKind::kSeconds, {0, 1});
    o.mla = of.optional_quantity("mla", UnitKind::kSeconds, {0, 1});
    o.error = of.quantity("error", UnitKind::kFraction, {0, 1});
    o.source = of.text("source");
    of.finish();
  }
  r.stream_interval = fields.optional_count("stream_interval").value_or(r.stream_interval);
  r.receive_interval = fields.optional_count("receive_interval").value_or(r.receive_interval);
  fields.optional_text("note");
}

/// "0.12.0rc3" is 0, 12, 0.
std::vector<int> numbers_of(std::string_view version) {
  std::vector<int> out;
  while (!version.empty()) {
    int value = 0;
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), value);
    if (error != std::errc()) break;
    out.push_back(value);
    const bool more = end != version.data() + version.size() && *end == '.';
    version.remove_prefix(static_cast<std::size_t>(end - version.data()) + (more ? 1 : 0));
    if (!more) break;
  }
  return out;
}

/// The newest of the same line (0.11) that is no newer; null if there is none.
const EngineRelease* release_named(const std::vector<EngineRelease>& releases, std::string_view version) {
  const std::vector<int> asked = numbers_of(version);
  const EngineRelease* out = nullptr;
  for (const EngineRelease& release : releases) {
    const std::vector<int> known = numbers_of(release.rules.version);
    const bool of_line =
        asked.size() >= 2 && known.size() >= 2 && std::equal(known.begin(), known.begin() + 2, asked.begin());
    if (of_line && known <= asked) out = &release;
  }
  return out;
}

}  // namespace

double StaticReserve::bytes(const ShareQuestion& asked, std::int64_t graph_sequences) const {
  const auto graphs = static_cast<double>(graph_sequences);
  double out = fixed + token * std::max(asked.chunk_tokens, least_tokens) + graph_sequence * graphs +
               rank * static_cast<double>(asked.ranks * asked.stages) + (asked.mla ? prompt_graphs_mla : prompt_graphs);
  if (asked.attention_dp > 1) {
    const double each = shared_sequence + (graphs > many_sequences ? many_more : 0);
    out += each * graphs * static_cast<double>(asked.attention_dp);
  }
  if (asked.capacity > least_from) out = std::max(out, least);
  return out + (asked.own_heads ? own_heads : 0) + (asked.draft_model ? draft_model : 0);
}

void EngineRules::put_overhead(const ModelSpec& model, Efficiency& efficiency) const {
  const bool mla = model.attention.mla.has_value();
  const std::optional<double> own = mla ? layer_overhead.mla : model.moe ? std::nullopt : layer_overhead.dense;
  Coefficient& out = efficiency.serving.layer_overhead;
  if (own && !out.typed) out = {*own, layer_overhead.error, layer_overhead.source};
}

double EngineRules::share_of(const ShareQuestion& asked) const {
  if (reserve) {
    const std::int64_t graphs = asked.ranks >= 4 && graph_sequences_wide > 0 ? graph_sequences_wide : graph_sequences;
    return std::max(0.0, 1 - reserve->bytes(asked, graphs) / asked.capacity);
  }
  if (shares_by_ranks.empty()) return share;
  std::size_t at = 0;
  for (std::int64_t ranks = 2; ranks <= asked.ranks && at + 1 < shares_by_ranks.size(); ranks *= 2) ++at;
  return shares_by_ranks[at];
}

void EngineRules::fix_share(double to) {
  share = to;
  shares_by_ranks.clear();
  reserve.reset();
}

std::string EngineRules::title() const {
  return version.empty() ? name : fmt::format("{} {} ({})", name, version, since);
}

double EngineRules::largest_graph(std::int64_t ranks) const {
  const bool wide = ranks >= 4 && graph_sequences_wide > 0;
  const auto largest = static_cast<double>(wide ? graph_sequences_wide : graph_sequences);
  return most_sequences > 0 ? std::min(largest, 2 * static_cast<double>(most_sequences)) : largest;
}

double EngineRules::captured_rows(double rows, std::int64_t ranks) const {
  const double largest = largest_graph(ranks);
  if (graph_sizes.empty() || rows <= 0 || rows > largest) return rows;
  const auto after =
      std::find_if(graph_sizes.begin(), graph_sizes.end(), [&](const GraphSizes& sizes) { return sizes.from > rows; });
  if (after == graph_sizes.begin()) return std::min(after->from, largest);
  const GraphSizes& of = *std::prev(after);
  double out = of.from + of.by * std::ceil((rows - of.from) / of.by);
  if (after != graph_sizes.end()) out = std::min(out, after->from);
  return std::max(rows, std::min(out, largest));
}

EngineRules EngineRelease::on(const HardwareSpec& hw) const {
  EngineRules out = rules;
  const auto names = [&](const std::vector<std::string>& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const std::string& name) { return name == hw.name || name == hw.architecture; });
  };
  for (const EngineSizes& s : sizes) {
    if (hw.hbm_capacity.value() < s.memory || (!s.of.empty() && !names(s.of)) || names(s.except)) continue;
    out.chunk_tokens = s.chunk_tokens.value_or(out.chunk_tokens);
    out.most_sequences = s.most_sequences.value_or(out.most_sequences);
    out.graph_sequences = s.graph_sequences.value_or(out.graph_sequences);
    out.graph_sequences_wide = s.graph_sequences_wide.value_or(out.graph_sequences_wide);
    break;
  }
  return out;
}

std::vector<EngineRelease> read_engine(const ConfigNode& node, const std::string& name, Problems& problems) {
  Fields fields(node, "serving", problems);
  EngineRelease next;
  next.rules.name = name;
  fields.required_node("cache");
  read_rules(fields, next);
  next.rules.source = fields.text("source");
  const ConfigNode* releases = fields.node("releases");
  fields.finish();
  if (releases == nullptr) return {next};
  std::vector<EngineRelease> out;
  for (const ConfigNode& item : releases->items) {
    Fields of(item, "release", problems);
    next.rules.version = of.text("release");
    const std::string since = required_date(of, "since");
    if (since < next.rules.since) {
      problems.add(item.span, fmt::format("release {} is older than the one before it", next.rules.version),
                   "releases stand in the order of their dates");
    }
    next.rules.since = since;
    read_rules(of, next);
    next.rules.source = of.optional_text("source").value_or(next.rules.source);
    of.finish();
    out.push_back(next);
  }
  if (out.empty()) problems.add(releases->span, "releases: none is listed", "leave the key out");
  return out;
}

const EngineRelease& engine_release(const std::vector<EngineRelease>& releases, std::string_view version) {
  if (version.empty()) return releases.back();
  if (const EngineRelease* found = release_named(releases, version)) return *found;
  std::vector<std::string> known;
  for (const EngineRelease& release : releases) known.push_back(release.rules.version);
  const std::string& name = releases.front().rules.name;
  if (known.front().empty()) {
    throw UserError(fmt::format("{}@{}: no release of {} is told apart", name, version, name),
                    fmt::format("--engine {}", name));
  }
  const std::string near = did_you_mean(nearest(version, known));
  throw UserError(fmt::format("{} has no release {}", name, in_quotes(version)),
                  fmt::format("{}{}releases: {}", near, near.empty() ? "" : " ", join(known, ", ")));
}

const EngineRelease& engine_release_of(const std::vector<EngineRelease>& releases, std::string_view called,
                                       std::string_view date) {
  for (std::size_t at = called.find(' '); at != std::string_view::npos; at = called.find(' ', at + 1)) {
    const std::string_view rest = called.substr(at + 1);
    if (const EngineRelease* found = release_named(releases, rest.substr(0, rest.find(' ')))) return *found;
  }
  const std::string month = month_of(date);
  if (month.empty()) return releases.back();
  const EngineRelease* out = &releases.front();
  for (const EngineRelease& release : releases) {
    if (!before(month, release.rules.since)) out = &release;
  }
  return *out;
}

EngineAsked engine_asked(std::string_view typed) {
  const std::size_t at = typed.find('@');
  return {std::string(typed.substr(0, at)), at == std::string_view::npos ? "" : std::string(typed.substr(at + 1))};
}

}  // namespace scalecalc
