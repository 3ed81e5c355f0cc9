// Writes a compiled program's shardings and products in the notation of `scalecalc matmul`.
#include "profile/hlo_sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/limits.h"

namespace scalecalc {
namespace {

/// Devices in tiles, "[2,1,4]<=[8] last_tile_dim_replicate" or "[2,1]0,1": what each dimension is cut over.
std::optional<std::vector<MeshFactors>> tiled(std::string_view text, std::size_t dims) {
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  const std::vector<std::int64_t> tiles = hlo_numbers(text.substr(0, close));
  std::string_view rest = text.substr(close + 1);
  rest = rest.substr(0, std::min(rest.find(' '), rest.find('}')));
  const bool iota = rest.starts_with("<=");
  const std::optional<std::vector<std::int64_t>> devices =
      iota ? iota_devices(rest.substr(2)) : std::optional(hlo_numbers(rest));
  if (!devices || devices->empty() || tiles.size() < dims) return std::nullopt;
  std::size_t total = 1;
  for (const std::int64_t tile : tiles) {
    if (tile < 1 || static_cast<std::size_t>(tile) > devices->size() / total) return std::nullopt;
    total *= static_cast<std::size_t>(tile);
  }
  if (total != devices->size()) return std::nullopt;
  std::vector<MeshFactors> out;
  std::size_t step = total;
  for (std::size_t d = 0; d < dims; ++d) {
    const auto tile = static_cast<std::size_t>(tiles[d]);
    step /= tile;
    std::vector<std::int64_t> along;
    for (std::size_t i = 0; i < tile; ++i) along.push_back((*devices)[i * step]);
    const auto factors = mesh_factors(along);
    if (!factors) return std::nullopt;
    out.push_back(*factors);
  }
  return out;
}

/// Axes by name, dimension by dimension: "[{'x'}, {}]".
std::optional<std::vector<MeshFactors>> by_name(std::string_view lists, std::size_t dims, const HloMesh& mesh) {
  const std::size_t open = lists.find('[');
  const std::size_t close = lists.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> items = hlo_items(lists.substr(open + 1, close - open - 1));
  std::vector<MeshFactors> out;
  for (const std::string_view item : items) {
    MeshFactors factors;
    if (item.find(':') != std::string_view::npos) return std::nullopt;  // a part of an axis
    for (const HloAxis& axis : mesh.axes) {
      const std::size_t at = item.find(axis.name);
      if (at == std::string_view::npos || at == 0) continue;
      const char after = at + axis.name.size() < item.size() ? item[at + axis.name.size()] : ' ';
      const char before = item[at - 1];
      const auto quotes = [](char c) { return c == '\'' || c == '"' || c == '\\'; };
      if (quotes(before) && quotes(after) && axis.size > 1) factors.push_back({axis.size, axis.stride});
    }
    out.push_back(std::move(factors));
  }
  if (out.empty() && dims == 0) return out;
  if (out.size() != dims) return std::nullopt;
  return out;
}

HloMesh text_mesh(std::string_view text) { return named_mesh(mesh_in(text), "text"); }

struct DotDims {
  std::vector<std::int64_t> left_batch, left_contracted, right_batch, right_contracted;
};

std::optional<DotDims> dot_dims(const HloInstruction& i) {
  if (i.opcode == "dot") {
    const auto of = [&](std::string_view key) { return hlo_numbers(hlo_attribute(i.attributes, key)); };
    return DotDims{of("lhs_batch_dims"), of("lhs_contracting_dims"), of("rhs_batch_dims"), of("rhs_contracting_dims")};
  }
  if (i.opcode != "custom-call" || i.attributes.find("\"dot_dimension_numbers\"") == std::string_view::npos) {
    return std::nullopt;
  }
  const auto of = [&](std::string_view key) -> std::vector<std::int64_t> {
    const std::size_t at = i.attributes.find(key);
    if (at == std::string_view::npos) return {};
    return hlo_numbers(i.attributes.substr(at, i.attributes.find(']', at) - at));
  };
  return DotDims{of("\"lhs_batch_dimensions\""), of("\"lhs_contracting_dimensions\""), of("\"rhs_batch_dimensions\""),
                 of("\"rhs_contracting_dimensions\"")};
}

bool listed(const std::vector<std::int64_t>& dims, std::size_t dim) {
  return std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(dim)) != dims.end();
}

std::string numbered(char letter, std::size_t n) {
  return n == 0 ? std::string(1, letter) : fmt::format("{}{}", letter, n + 1);
}

/// The dimensions of both operands and of the result under one set of names.
struct NamedProduct {
  std::array<std::vector<std::string>, 3> dims;
  std::array<HloCuts, 3> cuts;
  std::map<std::string, double> sizes;
};

/// Nothing where the numbers of dimensions, or the sizes of shared ones, do not go together.
std::optional<NamedProduct> named_product(const DotDims& d, const HloCuts& left, const HloCuts& right) {
  if (d.left_batch.size() != d.right_batch.size() || d.left_contracted.size() != d.right_contracted.size()) {
    return std::nullopt;
  }
  NamedProduct out;
  out.cuts = {left, right, HloCuts{}};
  out.dims[0].resize(left.sizes.size());
  out.dims[1].resize(right.sizes.size());
  const auto shared = [&](const auto& lefts, const auto& rights, char letter) {
    for (std::size_t n = 0; n < lefts.size(); ++n) {
      const auto l = static_cast<std::size_t>(lefts[n]);
      const auto r = static_cast<std::size_t>(rights[n]);
      if (l >= left.sizes.size() || r >= right.sizes.size() || left.sizes[l] != right.sizes[r]) return false;
      out.dims[0][l] = out.dims[1][r] = numbered(letter, n);
    }
    return true;
  };
  if (!shared(d.left_batch, d.right_batch, 'B') || !shared(d.left_contracted, d.right_contracted, 'J')) {
    return std::nullopt;
  }
  std::vector<MeshFactor> used;
  const auto result = [&](std::size_t operand, std::size_t dim) {
    MeshFactors cut = out.cuts.at(operand).cuts[dim];
    const bool taken = std::any_of(cut.begin(), cut.end(), [&](const MeshFactor& f) {
      return std::any_of(used.begin(), used.end(), [&](const MeshFactor& u) { return u.stride == f.stride; });
    });
    if (taken) cut.clear();
    used.insert(used.end(), cut.begin(), cut.end());
    out.dims[2].push_back(out.dims.at(operand)[dim]);
    out.cuts[2].sizes.push_back(out.cuts.at(operand).sizes[dim]);
    out.cuts[2].cuts.push_back(std::move(cut));
  };
  for (const std::int64_t dim : d.left_batch) result(0, static_cast<std::size_t>(dim));
  const auto free = [&](std::size_t operand, const auto& batch, const auto& contracted, char letter) {
    std::size_t n = 0;
    for (std::size_t dim = 0; dim < out.dims.at(operand).size(); ++dim) {
      if (listed(batch, dim) || listed(contracted, dim)) continue;
      out.dims.at(operand)[dim] = numbered(letter, n++);
      result(operand, dim);
    }
  };
  free(0, d.left_batch, d.left_contracted, 'I');
  free(1, d.right_batch, d.right_contracted, 'K');
  for (std::size_t o = 0; o < 2; ++o) {
    for (std::size_t dim = 0; dim < out.dims.at(o).size(); ++dim) {
      out.sizes[out.dims.at(o)[dim]] = out.cuts.at(o).sizes[dim];
    }
  }
  return out;
}

/// The same elements in other dimensions: neighbours joined or split, of which the slowest alone may be cut. Those of
/// one element come and go: also one that is each device's own, as pipeline stages are.
std::optional<HloCuts> reshaped(const HloCuts& from, const std::vector<double>& before,
                                const std::vector<double>& after) {
  HloCuts out{after, std::vector<MeshFactors>(after.size())};
  const auto next = [](const std::vector<double>& dims, std::size_t at) {
    while (at < dims.size() && dims[at] == 1) ++at;
    return at;
  };
  std::size_t b = next(before, 0);
  std::size_t a = next(after, 0);
  while (b < before.size() && a < after.size()) {
    const std::size_t slowest = b;
    const std::size_t into = a;
    double one = before[b];
    double other = after[a];
    double whole = from.sizes[b];
    while (one != other) {
      if (one < other) {
        b = next(before, b + 1);
        if (b == before.size() || !from.cuts[b].empty()) return std::nullopt;
        one *= before[b];
        whole *= from.sizes[b];
      } else {
        a = next(after, a + 1);
        if (a == after.size()) return std::nullopt;
        other *= after[a];
      }
    }
    out.sizes[into] *= whole / one;
    out.cuts[into] = from.cuts[slowest];
    b = next(before, b + 1);
    a = next(after, a + 1);
  }
  if (b < before.size() || a < after.size()) return std::nullopt;
  return out;
}

/// Of one array of the result's own shape, whatever the others are.
bool is_elementwise(std::string_view opcode) {
  constexpr std::array<std::string_view, 22> kElementwise{
      "add",      "subtract", "multiply",    "divide", "maximum", "minimum", "select",
      "and",      "or",       "exponential", "log",    "tanh",    "rsqrt",   "sqrt",
      "logistic", "power",    "clamp",       "negate", "abs",     "sign",    "dynamic-update-slice",
      "compare"};
  return std::find(kElementwise.begin(), kElementwise.end(), opcode) != kElementwise.end();
}

std::string_view format_word(std::string_view type) {
  if (type == "f32") return "fp32";
  if (type == "f16") return "fp16";
  if (type.starts_with("f8")) return "fp8";
  if (type == "s8" || type == "u8") return "int8";
  return "bf16";
}

}  // namespace

std::optional<std::vector<MeshFactors>> hlo_sharding(std::string_view text, std::size_t dims, std::string_view header) {
  if (const std::size_t at = text.find("devices=["); at != std::string_view::npos)
    return tiled(text.substr(at + 9), dims);
  if (text.starts_with("{replicated")) return std::vector<MeshFactors>(dims);
  if (text.starts_with("{mesh[")) {
    return by_name(text.substr(text.find(']') + 1), dims, text_mesh(text));
  }
  if (const std::size_t at = text.find("#sdy.sharding<@"); at != std::string_view::npos) {
    return by_name(text.substr(at), dims, text_mesh(header));
  }
  return std::nullopt;
}

std::optional<std::string> sharding_notation(const std::vector<std::string>& dims, const HloCuts& cuts,
                                             const HloMesh& mesh) {
  std::vector<std::string> out;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto axes = mesh.axes_of(cuts.cuts[d]);
    if (!axes) return std::nullopt;
    const std::string names = mesh.names(*axes);
    if (names.empty()) {
      out.push_back(dims[d]);
    } else {
      out.push_back(names.size() == 1 ? fmt::format("{}_{}", dims[d], names)
                                      : fmt::format("{}_{{{}}}", dims[d], names));
    }
  }
  return fmt::format("[{}]", fmt::join(out, ", "));
}

HloShardings::HloShardings(const HloModule& module) : module_(module) {
  find_callers();
  // Before partitioning XLA marks what is to be cut, and operations carry annotations; afterwards parameters alone do.
  bool marked = false, cut = module.scheduled;
  for (const auto& [name, computation] : module.computations) {
    for (const HloInstruction& i : computation.instructions) {
      const std::string_view target =
          i.opcode == "custom-call" ? hlo_attribute(i.attributes, "custom_call_target") : std::string_view{};
      marked |= target == "\"Sharding\"" || target.starts_with("\"SPMD");
      marked |= i.opcode == "dot" && !hlo_attribute(i.attributes, "sharding").empty();
      cut |= i.opcode.starts_with("all-") || i.opcode.starts_with("reduce-scatter");
    }
  }
  partitioned_ = cut || (!marked && module.name.find("spmd") != std::string::npos) ||
                 (!marked && module.entry.find("spmd") != std::string::npos);
}

void HloShardings::find_callers() {
  for (const auto& [name, computation] : module_.computations) {
    for (const HloInstruction& i : computation.instructions) {
      for (const std::string_view key : {"calls", "to_apply", "body", "condition"}) {
        std::string_view called = hlo_attribute(i.attributes, key);
        if (called.starts_with('%')) called.remove_prefix(1);
        if (!called.empty()) callers_.try_emplace(std::string(called), Place{&computation, &i});
      }
    }
  }
}

std::optional<HloCuts> HloShardings::annotated(const HloInstruction& i, std::size_t leaf) const {
  std::string_view text = hlo_attribute(i.attributes, "sharding");
  if (text.empty()) text = hlo_attribute(i.attributes, "xla.sdy.sharding");
  if (text.empty() || leaf >= i.result.size()) return std::nullopt;
  if (text.starts_with("{{")) {
    const std::vector<std::string_view> each = hlo_items(text.substr(1, text.size() - 2));
    if (each.size() != i.result.size()) return std::nullopt;
    text = each[leaf].substr(std::min(each[leaf].find('{'), each[leaf].size()));
  } else if (i.result.size() > 1 && !text.starts_with("{replicated")) {
    return std::nullopt;
  }
  const HloArray& array = i.result[leaf];
  auto cuts = hlo_sharding(text, array.dims.size(), module_.header);
  if (!cuts) return std::nullopt;
  HloCuts out{array.dims, std::move(*cuts)};
  if (partitioned_) {
    for (std::size_t d = 0; d < out.sizes.size(); ++d) out.sizes[d] *= static_cast<double>(devices_of(out.cuts[d]));
  }
  return out;
}

std::optional<HloCuts> HloShardings::cuts_of(const HloComputation& in, const HloInstruction& i, std::size_t leaf,
                                             std::size_t depth) const {
  if (depth > limits::kTraceLevels) return std::nullopt;
  const auto key = std::pair{&i, leaf};
  if (const auto at = known_.find(key); at != known_.end()) return at->second;
  known_[key] = std::nullopt;  // what leads back here says nothing
  std::optional<HloCuts> out = annotated(i, leaf);
  if (!out) out = derived(in, i, leaf, depth + 1);
  return known_[key] = std::move(out);
}

std::optional<HloCuts> HloShardings::of_operand(const HloComputation& in, const HloInstruction& i, std::size_t operand,
                                                std::size_t leaf, std::size_t depth) const {
  if (operand >= i.operands.size()) return std::nullopt;
  const HloInstruction* from = in.find(i.operands[operand]);
  return from == nullptr ? std::nullopt : cuts_of(in, *from, leaf, depth);
}

/// Of a called computation's root.
std::optional<HloCuts> HloShardings::of_result(const HloInstruction& i, std::string_view key, std::size_t leaf,
                                               std::size_t depth) const {
  std::string_view name = hlo_attribute(i.attributes, key);
  if (name.starts_with('%')) name.remove_prefix(1);
  const auto found = module_.computations.find(name);
  if (found == module_.computations.end() || found->second.instructions.empty()) return std::nullopt;
  return cuts_of(found->second, found->second.instructions.back(), leaf, depth);
}

std::optional<HloCuts> HloShardings::of_parameter(const HloComputation& in, const HloInstruction& i, std::size_t leaf,
                                                  std::size_t depth) const {
  const auto name = std::find_if(module_.computations.begin(), module_.computations.end(),
                                 [&](const auto& c) { return &c.second == &in; });
  if (name == module_.computations.end()) return std::nullopt;
  const auto caller = callers_.find(name->first);
  const std::vector<std::int64_t> number =
      i.operands.empty() ? std::vector<std::int64_t>{} : hlo_numbers(i.operands[0]);
  if (caller == callers_.end() || number.empty()) return std::nullopt;
  return of_operand(*caller->second.in, *caller->second.at, static_cast<std::size_t>(number.front()), leaf, depth);
}

std::optional<HloCuts> HloShardings::derived(const HloComputation& in, const HloInstruction& i, std::size_t leaf,
                                             std::size_t depth) const {
  // Elementwise with one array of its own shape, or what only moves: cut as its operand is.
  constexpr std::array<std::string_view, 10> kKeeps{
      "convert",         "copy",      "bitcast-convert",      "opt-barrier", "all-gather",
      "all-gather-done", "copy-done", "optimization-barrier", "copy-start",  "while"};
  if (i.opcode == "parameter") return of_parameter(in, i, leaf, depth);
  if (i.opcode == "tuple") {
    for (std::size_t o = 0; o < i.operands.size(); ++o) {
      const HloInstruction* from = in.find(i.operands[o]);
      if (from == nullptr) return std::nullopt;
      if (leaf < from->result.size()) return cuts_of(in, *from, leaf, depth);
      leaf -= from->result.size();
    }
    return std::nullopt;
  }
  if (i.opcode == "get-tuple-element") {
    const HloInstruction* from = i.operands.empty() ? nullptr : in.find(i.operands[0]);
    const std::vector<std::int64_t> index = hlo_numbers(hlo_attribute(i.attributes, "index"));
    if (from == nullptr || index.empty() || index.front() >= static_cast<std::int64_t>(from->elements.size())) {
      return std::nullopt;
    }
    return cuts_of(in, *from, from->elements[static_cast<std::size_t>(index.front())] + leaf, depth);
  }
  if (i.opcode == "fusion" || i.opcode == "call") {
    return of_result(i, i.opcode == "fusion" ? "calls" : "to_apply", leaf, depth);
  }
  if (i.opcode == "async-done" || i.opcode == "async-update") {
    const HloInstruction* start = i.operands.empty() ? nullptr : in.find(i.operands[0]);
    return start == nullptr ? std::nullopt : of_result(*start, "calls", leaf, depth);
  }
  if (is_elementwise(i.opcode) && i.result.size() == 1) {
    for (std::size_t o = 0; o < i.operands.size(); ++o) {
      const HloInstruction* from = in.find(i.operands[o]);
      if (from == nullptr || from->result.size() != 1 || from->result[0].dims != i.result[0].dims) continue;
      if (auto cuts = cuts_of(in, *from, 0, depth)) return cuts;
    }
    return std::nullopt;
  }
  if (i.opcode == "all-gather-start") return of_operand(in, i, 0, 0, depth);
  if (std::find(kKeeps.begin(), kKeeps.end(), i.opcode) != kKeeps.end()) return of_operand(in, i, 0, leaf, depth);
  if (i.result.size() != 1) return std::nullopt;
  const bool reshapes = i.opcode == "reshape" || i.opcode == "bitcast";
  const bool slices = i.opcode == "dynamic-slice" || i.opcode == "slice";
  if (!reshapes && !slices && i.opcode != "transpose") return std::nullopt;
  std::optional<HloCuts> from = of_operand(in, i, 0, 0, depth);
  if (!from) return std::nullopt;
  const HloInstruction* operand = in.find(i.operands[0]);
  const std::vector<double>& before = operand->result.empty() ? from->sizes : operand->result.front().dims;
  const std::vector<double>& after = i.result.front().dims;
  if (before.size() != from->sizes.size()) return std::nullopt;
  if (i.opcode == "transpose") {
    const std::vector<std::int64_t> order = hlo_numbers(hlo_attribute(i.attributes, "dimensions"));
    HloCuts out;
    for (const std::int64_t dim : order) {
      if (dim >= static_cast<std::int64_t>(from->sizes.size())) return std::nullopt;
      out.sizes.push_back(from->sizes[static_cast<std::size_t>(dim)]);
      out.cuts.push_back(from->cuts[static_cast<std::size_t>(dim)]);
    }
    return out;
  }
  if (slices) {
    if (after.size() != before.size()) return std::nullopt;
    for (std::size_t d = 0; d < after.size(); ++d) {
      if (after[d] == before[d]) continue;
      if (!from->cuts[d].empty() && partitioned_ && before[d] == 1) return std::nullopt;
      from->sizes[d] = after[d];
      from->cuts[d].clear();
    }
    return from;
  }
  return reshaped(*from, before, after);
}

std::vector<MeshFactors> HloShardings::parts() const {
  std::vector<MeshFactors> out;
  for (const auto& [name, computation] : module_.computations) {
    for (const HloInstruction& i : computation.instructions) {
      for (std::size_t leaf = 0; leaf < i.result.size(); ++leaf) {
        const auto cuts = annotated(i, leaf);
        if (!cuts) break;
        for (const MeshFactors& cut : cuts->cuts) {
          if (!cut.empty()) out.push_back(cut);
        }
      }
    }
  }
  return out;
}

std::vector<HloShardedArray> HloShardings::arrays(const HloMesh& mesh) const {
  std::vector<HloShardedArray> out;
  std::map<std::string, std::size_t> alike;
  const auto found = module_.computations.find(module_.entry);
  if (found == module_.computations.end()) return out;
  const auto add = [&](const HloInstruction& i, std::size_t leaf) {
    std::string_view said = hlo_attribute(i.attributes, "sharding");
    if (said.empty()) said = hlo_attribute(i.attributes, "xla.sdy.sharding");
    if (said.empty()) return;
    const HloArray& array = i.result[leaf];
    HloShardedArray one{.type = array.type, .said = std::string(said), .local_bytes = array.bytes()};
    std::string_view name;
    const std::size_t at = i.attributes.find("op_name=\"");
    if (at != std::string_view::npos) {
      name = i.attributes.substr(at + 9);
      std::size_t end = 0;
      while (end < name.size() && name[end] != '"') end += name[end] == '\\' ? std::size_t{2} : std::size_t{1};
      name = name.substr(0, std::min(end, name.size()));
    }
    one.name = name.empty() ? i.name : std::string(name);
    std::erase(one.name, '\\');
    if (auto cuts = annotated(i, leaf)) {
      std::vector<std::string> dims;
      std::vector<std::string> sizes;
      for (std::size_t d = 0; d < cuts->sizes.size(); ++d) {
        dims.push_back(d < 16 ? std::string(1, static_cast<char>('I' + static_cast<int>(d))) : fmt::format("I{}", d));
        sizes.push_back(fmt::format("{}={}", dims.back(), cuts->sizes[d]));
      }
      if (!partitioned_) {
        for (const MeshFactors& cut : cuts->cuts) one.local_bytes /= static_cast<double>(devices_of(cut));
      }
      if (auto notation = sharding_notation(dims, *cuts, mesh)) one.notation = std::move(*notation);
      one.sizes = fmt::format("{}", fmt::join(sizes, ","));
      one.cuts = std::move(*cuts);
    }
    const std::string key =
        fmt::format("{} {} {} {}", one.type, one.notation, one.sizes, one.notation.empty() ? said : "");
    const auto [place, is_new] = alike.try_emplace(key, out.size());
    if (is_new) out.push_back(std::move(one));
    out[place->second].count += 1;
  };
  for (const HloInstruction& i : found->second.instructions) {
    if (i.opcode == "get-tuple-element") continue;
    for (std::size_t leaf = 0; leaf < i.result.size(); ++leaf) add(i, leaf);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.local_bytes * a.count > b.local_bytes * b.count; });
  return out;
}

std::vector<HloShardedProduct> HloShardings::products(const HloMesh& mesh) const {
  std::vector<HloShardedProduct> out;
  std::map<std::string, std::size_t> alike;
  for (const auto& [name, computation] : module_.computations) {
    for (const HloInstruction& i : computation.instructions) {
      const auto dims = dot_dims(i);
      if (!dims) continue;
      const auto left = of_operand(computation, i, 0, 0, 0);
      const auto right = of_operand(computation, i, 1, 0, 0);
      if (!left || !right) continue;
      auto product = named_product(*dims, *left, *right);
      if (!product) continue;
      std::array<std::optional<std::string>, 3> notation;
      std::vector<std::size_t> used;
      for (std::size_t o = 0; o < 3; ++o) {
        notation.at(o) = sharding_notation(product->dims.at(o), product->cuts.at(o), mesh);
        for (const MeshFactors& cut : product->cuts.at(o).cuts) {
          const auto axes = mesh.axes_of(cut);
          if (axes) used.insert(used.end(), axes->begin(), axes->end());
        }
      }
      if (!notation[0] || !notation[1] || !notation[2]) continue;
      std::sort(used.rbegin(), used.rend());
      used.erase(std::unique(used.begin(), used.end()), used.end());
      HloShardedProduct one{.expression = fmt::format("A{} * W{} -> C{}", *notation[0], *notation[1], *notation[2])};
      std::vector<std::string> axes;
      for (const std::size_t axis : used)
        axes.push_back(fmt::format("{}={}", mesh.axes[axis].name, mesh.axes[axis].size));
      std::vector<std::string> sizes;
      for (const auto& [dim, size] : product->sizes) sizes.push_back(fmt::format("{}={}", dim, size));
      const HloInstruction* operand = computation.find(i.operands[0]);
      const std::string_view type =
          operand == nullptr || operand->result.empty() ? "bf16" : std::string_view(operand->result.front().type);
      constexpr std::size_t kMostAxes = 4;
      if (!used.empty() && used.size() <= kMostAxes) {
        one.command = fmt::format("matmul \"{}\" --mesh {} --dims {} --dtype {}", one.expression, fmt::join(axes, ","),
                                  fmt::join(sizes, ","), format_word(type));
      }
      const auto [place, is_new] =
          alike.try_emplace(one.expression + fmt::format("{}", fmt::join(sizes, ",")), out.size());
      if (is_new) out.push_back(std::move(one));
      out[place->second].count += 1;
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  return out;
}

}  // namespace scalecalc
