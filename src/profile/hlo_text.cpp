// Parses the text of XLA's HLO into instructions, for `scalecalc profile`.
#include "profile/hlo_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <span>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/text.h"
#include "profile/byte_source.h"
#include "profile/shapes.h"

namespace scalecalc {
namespace {

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

/// Where the bracket that opens at `at` closes, texts in quotes left out; npos if it does not.
std::size_t closing(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '{' || c == '[') ++depth;
    if ((c == ')' || c == '}' || c == ']') && --depth == 0) return i;
  }
  return std::string_view::npos;
}

/// "{1,0:T(8,128)(2,1)S(1)}": the order of its dimensions, the fastest first, then tiles and the memory it lies in.
void layout_of(std::string_view layout, HloArray& array) {
  const std::size_t colon = layout.find(':');
  if (colon == std::string_view::npos) return;
  const std::size_t space = layout.find("S(", colon);
  array.in_hbm = space == std::string_view::npos || layout.substr(space).starts_with("S(0)");
  const std::size_t tile = layout.find("T(", colon);
  if (tile == std::string_view::npos) return;
  const std::vector<std::int64_t> order = hlo_numbers(layout.substr(0, colon));
  const std::vector<std::int64_t> sizes = hlo_numbers(layout.substr(tile, layout.find(')', tile) - tile));
  std::vector<double> dims = array.dims;
  for (std::size_t t = 0; t < std::min(order.size(), sizes.size()); ++t) {
    const std::int64_t dim = order[t];
    const auto size = static_cast<double>(sizes[sizes.size() - 1 - t]);
    if (dim >= static_cast<std::int64_t>(dims.size()) || size < 1) return;
    double& length = dims[static_cast<std::size_t>(dim)];
    length = std::ceil(length / size) * size;
  }
  array.padded_elements = 1;
  for (const double dim : dims) array.padded_elements *= dim;
}

/// Adds every array of a shape, those of tuples one after the other: "(f32[2]{0}, /*index=1*/bf16[3,4])". False once
/// `parts` are too many.
bool add_arrays(std::string_view text, std::vector<HloArray>& out, limits::Expansion& parts) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '[' || i == 0) continue;
    std::size_t start = i;
    while (start > 0 && in_name(text[start - 1])) --start;
    const std::size_t end = text.find(']', i);
    if (end == std::string_view::npos) break;
    if (start == i) continue;
    const auto dims = static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(i),
                                                          text.begin() + static_cast<std::ptrdiff_t>(end), ',')) +
                      1;
    if (dims > limits::kHloDimensions || !parts.makes(sizeof(HloArray) + dims * sizeof(double))) return false;
    HloArray array{.type = std::string(text.substr(start, i - start))};
    for (const std::int64_t dim : hlo_numbers(text.substr(i, end - i))) array.dims.push_back(static_cast<double>(dim));
    i = end;
    if (i + 1 < text.size() && text[i + 1] == '{') {
      const std::size_t close = std::min(closing(text, i + 1), text.size() - 1);
      layout_of(text.substr(i + 1, close - i), array);
      i = close;
    }
    out.push_back(std::move(array));
  }
  return true;
}

class HloReader {
 public:
  explicit HloReader(const std::string& path) {
    out_.file = path;
    ByteSource source(path);
    constexpr std::size_t kHloPiece = 1 << 20;
    for (;;) {
      const std::size_t had = out_.text.size();
      out_.text.resize(had + kHloPiece);
      out_.text.resize(had + source.read(out_.text.data() + had, kHloPiece));
      if (out_.text.size() == had) break;
      if (out_.text.size() > limits::kHloText) fail("HLO " + limits::too_large(limits::kHloText), kOneModule);
    }
    parts_.reads(out_.text.size());
  }

  HloModule read() {
    std::string_view rest = out_.text;
    while (!rest.empty()) {
      ++line_;
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      take(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (open_ != nullptr) fail("the text ends within a computation: it was cut off", "dump it again");
    if (out_.entry.empty()) fail("there is no ENTRY computation", "is this a whole module?");
    return std::move(out_);
  }

 private:
  static constexpr const char* kOneModule = "dump one module: --xla_dump_hlo_module_re=NAME";

  [[noreturn]] void fail(std::string message, std::string hint) const {
    throw UserError({Diagnostic{SourceSpan{.file = out_.file, .line = static_cast<int>(line_), .column = 1},
                                std::move(message), std::move(hint)}});
  }

  void take(std::string_view line) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.starts_with("//")) return;
    if (text.starts_with("HloModule")) return header(text);
    if (open_ == nullptr) return computation(text);
    if (text.front() == '}') {
      open_ = nullptr;
      return;
    }
    instruction(text);
  }

  void header(std::string_view text) {
    std::size_t at = text.find(' ');
    if (at == std::string_view::npos) return;
    const std::string_view rest = trimmed(text.substr(at));
    out_.name = rest.substr(0, rest.find(','));
    out_.header = text;
    out_.scheduled = text.find("is_scheduled=true") != std::string_view::npos;
    const std::vector<std::int64_t> partitions = hlo_numbers(hlo_attribute(text, "num_partitions"));
    const std::vector<std::int64_t> replicas = hlo_numbers(hlo_attribute(text, "replica_count"));
    if (!partitions.empty()) out_.partitions = partitions.front();
    if (!replicas.empty()) out_.partitions *= replicas.front();
  }

  /// "ENTRY %main.1 (p: f32[2]) -> f32[2] {"; tables of files and frames are none.
  void computation(std::string_view text) {
    const bool entry = text.starts_with("ENTRY");
    if (entry) text = trimmed(text.substr(5));
    if (text.back() != '{' || (!entry && text.find("->") == std::string_view::npos && text.front() != '%')) return;
    if (text.front() == '%') text.remove_prefix(1);
    std::size_t end = 0;
    while (end < text.size() && in_name(text[end])) ++end;
    const std::string name(text.substr(0, end));
    if (entry) out_.entry = name;
    open_ = &out_.computations[name];
  }

  void instruction(std::string_view text) {
    if (text.starts_with("ROOT ")) text = trimmed(text.substr(5));
    const std::size_t equals = text.find(" = ");
    if (equals == std::string_view::npos)
      fail("a line of a computation that is no instruction", "%name = SHAPE opcode(...)");
    HloInstruction out{.line = line_};
    out.name = text.substr(text.front() == '%' ? 1 : 0, equals - (text.front() == '%' ? 1 : 0));
    std::string_view rest = trimmed(text.substr(equals + 3));
    rest = shape(rest, out);
    const std::size_t paren = rest.find('(');
    const std::size_t close = paren == std::string_view::npos ? paren : closing(rest, paren);
    if (close == std::string_view::npos) fail("an instruction whose operands never end", "the text was cut off");
    out.opcode = trimmed(rest.substr(0, paren));
    operands(rest.substr(paren + 1, close - paren - 1), out);
    out.attributes = rest.substr(close + 1);
    lists(out.attributes);
    constexpr std::size_t kOfName = 2 * sizeof(std::string) + 6 * sizeof(void*);
    kept(sizeof(HloInstruction) + kOfName);
    open_->by_name[out.name] = open_->instructions.size();
    open_->instructions.push_back(std::move(out));
  }

  /// Counts the devices of lists such as "[2,8]<=[16]".
  void lists(std::string_view text) {
    for (std::size_t at = text.find("<=["); at != std::string_view::npos; at = text.find("<=[", at + 1)) {
      double devices = 1;
      for (const std::int64_t size : hlo_numbers(text.substr(at, text.find(']', at) - at))) {
        devices *= static_cast<double>(size);
      }
      if (devices <= static_cast<double>(limits::kHloDevices)) listed_ += static_cast<std::size_t>(devices);
    }
    if (listed_ > limits::kHloListed) fail(limits::too_many(limits::kHloListed, "devices in lists"), kOneModule);
  }

  /// Counts what an instruction takes in memory.
  void kept(std::size_t bytes) {
    if (!parts_.makes(bytes)) fail("the text " + parts_.message(), kOneModule);
  }
  void arrays(std::string_view text, HloInstruction& out) {
    if (!add_arrays(text, out.result, parts_)) {
      fail(fmt::format("a shape of more than {} dimensions, or the text {}", limits::kHloDimensions, parts_.message()),
           kOneModule);
    }
  }

  /// What follows it. A shape may be missing: "%w = while(%p)".
  std::string_view shape(std::string_view rest, HloInstruction& out) {
    std::size_t end = 0;
    if (rest.starts_with("(")) {
      end = closing(rest, 0);
      if (end == std::string_view::npos) fail("a tuple that never closes", "the text was cut off");
      ++end;
    } else {
      while (end < rest.size() && in_name(rest[end])) ++end;
      if (end >= rest.size() || rest[end] != '[') return rest;
      end = std::min(rest.find(' ', end), rest.size());
    }
    if (rest.starts_with("(")) {
      elements(rest.substr(1, end - 2), out);
    } else {
      arrays(rest.substr(0, end), out);
    }
    return trimmed(rest.substr(end));
  }

  /// The arrays of a tuple, and where its elements begin among them.
  void elements(std::string_view tuple, HloInstruction& out) {
    for (const std::string_view element : hlo_items(tuple)) {
      if (trimmed(element).empty()) break;
      out.elements.push_back(out.result.size());
      arrays(element, out);
    }
  }

  void operands(std::string_view list, HloInstruction& out) {
    const std::vector<std::string_view> items = hlo_items(list);
    kept(items.size() * sizeof(std::string));
    for (std::string_view item : items) {
      item = trimmed(item);
      item = item.substr(std::min(item.rfind(' ') + 1, item.size()));
      if (item.starts_with('%')) item.remove_prefix(1);
      if (!item.empty()) out.operands.emplace_back(item);
    }
  }

  HloModule out_;
  HloComputation* open_ = nullptr;
  std::size_t line_ = 0;
  limits::Expansion parts_{limits::kHloParts};
  std::size_t listed_ = 0;
};

/// Of groups of `size` devices, one behind the other; none if they are not alike.
MeshFactors factors_of_groups(std::span<const std::int64_t> devices, std::int64_t size) {
  const auto each = static_cast<std::size_t>(std::max<std::int64_t>(size, 1));
  if (devices.size() < each || devices.size() % each != 0) return {};
  const auto first = mesh_factors(devices.first(each));
  if (!first) return {};
  for (std::size_t at = each; at < devices.size(); at += each) {
    if (mesh_factors(devices.subspan(at, each)) != first) return {};
  }
  return *first;
}

/// The first group of "[2,8]<=[16]" or "[8,2]<=[2,8]T(1,0)": numbers of a reshaped and transposed sequence.
HloGroups iota_groups(std::string_view text) {
  const std::size_t arrow = text.find("<=");
  const std::size_t turn = text.find('T', arrow);
  const std::vector<std::int64_t> groups = hlo_numbers(text.substr(0, arrow));
  const std::vector<std::int64_t> dims =
      hlo_numbers(text.substr(arrow, turn == std::string_view::npos ? turn : turn - arrow));
  std::vector<std::int64_t> order =
      turn == std::string_view::npos ? std::vector<std::int64_t>{} : hlo_numbers(text.substr(turn));
  HloGroups out;
  if (groups.empty() || dims.empty()) return out;
  out.size = groups.back();
  out.count = groups.size() > 1 ? groups.front() : 1;
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t d = dims.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * dims[d];
  if (order.size() != dims.size()) {
    order.resize(dims.size());
    for (std::size_t d = 0; d < dims.size(); ++d) order[d] = static_cast<std::int64_t>(d);
  }
  // The members of a group run over the last of the transposed dimensions.
  const auto devices = iota_devices(text.substr(arrow + 2));
  if (!devices) {
    out.stride = 0;
    return out;
  }
  out.factors = factors_of_groups(*devices, out.size);
  std::int64_t within = 1;
  for (std::size_t d = order.size(); d-- > 0 && within < out.size;) {
    const auto dim =
        static_cast<std::size_t>(std::clamp<std::int64_t>(order[d], 0, static_cast<std::int64_t>(dims.size()) - 1));
    if (within == 1) out.stride = strides[dim];
    if (within > 1 && strides[dim] != out.stride * within) out.stride = 0;
    within *= dims[dim];
  }
  return out;
}

HloGroups explicit_groups(std::string_view text) {
  const std::size_t first_end = text.find('}');
  const std::vector<std::int64_t> first = hlo_numbers(text.substr(0, first_end));
  HloGroups out;
  out.size = static_cast<std::int64_t>(first.size());
  out.count = std::count(text.begin(), text.end(), '{') - 1;
  if (first.size() > 1) out.stride = first[1] - first[0];
  for (std::size_t i = 1; i < first.size(); ++i) {
    if (first[i] - first[i - 1] != out.stride) out.stride = 0;
  }
  const std::vector<std::int64_t> all = hlo_numbers(text);
  if (static_cast<std::int64_t>(all.size()) == out.size * out.count) out.factors = factors_of_groups(all, out.size);
  return out;
}

/// "mesh['fsdp'=4,'tp'=2] {'fsdp'}".
HloGroups mesh_groups(std::string_view text) {
  HloGroups out;
  const std::size_t end = text.find(']');
  const std::string_view mesh = text.substr(0, end);
  std::int64_t inner = 1;
  std::vector<std::pair<std::string, std::int64_t>> axes;
  for (std::size_t at = mesh.find('\''); at != std::string_view::npos; at = mesh.find('\'', at)) {
    const std::size_t close = mesh.find('\'', at + 1);
    if (close == std::string_view::npos) break;
    const std::vector<std::int64_t> size = hlo_numbers(mesh.substr(close, mesh.find(',', close) - close));
    axes.emplace_back(mesh.substr(at + 1, close - at - 1), size.empty() ? 1 : size.front());
    at = close + 1;
  }
  bool first = true;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const bool used = text.find("'" + axis->first + "'", end) != std::string_view::npos;
    if (used) {
      out.size *= axis->second;
      out.axes = out.axes.empty() ? axis->first : axis->first + "," + out.axes;
      if (first) out.stride = inner;
      first = false;
      out.factors.push_back({axis->second, inner});
    } else {
      out.count *= axis->second;
    }
    inner *= axis->second;
  }
  return out;
}

}  // namespace

double HloArray::elements() const {
  double out = 1;
  for (const double dim : dims) out *= dim;
  return out;
}

double HloArray::bytes() const { return elements() * recorded_element_bytes(type); }

double HloArray::stored_bytes() const {
  return in_hbm ? std::max(elements(), padded_elements) * recorded_element_bytes(type) : 0;
}

const HloInstruction* HloComputation::find(std::string_view name) const {
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : &instructions[found->second];
}

bool is_hlo_text(std::string_view first_bytes) { return trimmed(first_bytes).starts_with("HloModule"); }

HloModule read_hlo(const std::string& path) { return HloReader(path).read(); }

std::vector<std::string_view> hlo_items(std::string_view list) {
  std::vector<std::string_view> out;
  std::size_t depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= list.size() && out.size() < limits::kHloDevices; ++i) {
    const char c = i < list.size() ? list[i] : ',';
    depth += c == '(' || c == '{' || c == '[' ? 1 : 0;
    depth -= (c == ')' || c == '}' || c == ']') && depth > 0 ? 1 : 0;
    if (c != ',' || (depth > 0 && i < list.size())) continue;
    out.push_back(list.substr(start, i - start));
    start = i + 1;
  }
  return out;
}

std::string_view hlo_attribute(std::string_view attributes, std::string_view key) {
  for (std::size_t at = attributes.find(key); at != std::string_view::npos; at = attributes.find(key, at + 1)) {
    const std::size_t equals = at + key.size();
    if (equals >= attributes.size() || attributes[equals] != '=' || (at > 0 && in_name(attributes[at - 1]))) continue;
    const std::size_t start = equals + 1;
    std::size_t i = start;
    while (i < attributes.size() && attributes[i] != ',' && attributes[i] != ' ') {
      if (attributes[i] == '{' || attributes[i] == '[' || attributes[i] == '(') {
        i = std::min(closing(attributes, i), attributes.size() - 1);
      }
      ++i;
    }
    // The mesh notation has a blank before its axes.
    if (attributes.substr(start).starts_with("mesh") && attributes.substr(i).starts_with(" {")) {
      i = std::min(attributes.find('}', i), attributes.size() - 1) + 1;
    }
    return attributes.substr(start, i - start);
  }
  return {};
}

std::vector<std::int64_t> hlo_numbers(std::string_view text) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < text.size() && out.size() < limits::kHloDevices;) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
      ++i;
      continue;
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), value);
    if (error == std::errc()) out.push_back(value);
    i = static_cast<std::size_t>(end - text.data());
  }
  return out;
}

HloGroups hlo_groups(const HloInstruction& instruction, std::int64_t devices) {
  std::string_view text = hlo_attribute(instruction.attributes, "replica_groups");
  if (text.starts_with("mesh")) return mesh_groups(text);
  if (text.find("<=") != std::string_view::npos) return iota_groups(text);
  if (text.starts_with("{{")) return explicit_groups(text);
  text = hlo_attribute(instruction.attributes, "source_target_pairs");
  if (text.starts_with("{{")) {
    HloGroups out = explicit_groups(text);
    out.size = 2;
    out.factors.clear();
    const std::vector<std::int64_t> ends = hlo_numbers(text);
    for (std::size_t i = 0; i + 1 < ends.size(); i += 2) out.pairs.emplace_back(ends[i], ends[i + 1]);
    return out;
  }
  return {.size = devices, .factors = devices > 1 ? MeshFactors{{devices, 1}} : MeshFactors{}};
}

}  // namespace scalecalc
