// Recovers the named axes of a compiled program's device mesh from its annotations and groups.
#include "profile/hlo_mesh.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/limits.h"
#include "profile/hlo_text.h"

namespace scalecalc {
namespace {

constexpr auto kMostDevices = static_cast<std::int64_t>(limits::kHloDevices);

/// Whether the `count` devices from `at` on lie `by` behind the first ones.
bool translated(std::span<const std::int64_t> devices, std::size_t at, std::size_t count, std::int64_t by) {
  for (std::size_t i = 0; i < count; ++i) {
    if (devices[at + i] - devices[i] != by) return false;
  }
  return true;
}

/// Letters and digits, a letter first, as expressions of `matmul` have it.
std::string axis_name(std::string_view written) {
  std::string out;
  for (const char c : written) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += c;
  }
  if (out.empty() || std::isalpha(static_cast<unsigned char>(out.front())) == 0) out.insert(0, "a");
  return out;
}

}  // namespace

std::optional<MeshFactors> mesh_factors(std::span<const std::int64_t> devices) {
  MeshFactors out;
  const std::size_t n = devices.size();
  for (std::size_t covered = 1; covered < n;) {
    const std::int64_t stride = devices[covered] - devices[0];
    std::size_t times = 1;
    while ((times + 1) * covered <= n &&
           translated(devices, times * covered, covered, static_cast<std::int64_t>(times) * stride)) {
      ++times;
    }
    while (times > 1 && n % (covered * times) != 0) --times;
    if (times < 2 || stride < 1) return std::nullopt;
    out.push_back({static_cast<std::int64_t>(times), stride});
    covered *= times;
  }
  return out;
}

std::int64_t devices_of(const MeshFactors& factors) {
  std::int64_t out = 1;
  for (const MeshFactor& factor : factors) out *= factor.size;
  return out;
}

std::optional<std::vector<std::int64_t>> iota_devices(std::string_view text) {
  const std::size_t turn = text.find('T');
  const std::vector<std::int64_t> dims = hlo_numbers(text.substr(0, turn));
  std::vector<std::int64_t> order =
      turn == std::string_view::npos ? std::vector<std::int64_t>{} : hlo_numbers(text.substr(turn));
  if (order.empty()) {
    for (std::size_t d = 0; d < dims.size(); ++d) order.push_back(static_cast<std::int64_t>(d));
  }
  const std::set<std::int64_t> different(order.begin(), order.end());
  if (dims.empty() || order.size() != dims.size() || different.size() != dims.size()) return std::nullopt;
  if (*different.begin() != 0 || *different.rbegin() != static_cast<std::int64_t>(dims.size()) - 1) return std::nullopt;
  std::int64_t total = 1;
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (dims[d] < 1 || dims[d] > kMostDevices / total) return std::nullopt;
    strides[d] = total;
    total *= dims[d];
  }
  std::vector<std::int64_t> out{0};
  for (const std::int64_t d : order) {
    const auto dim = static_cast<std::size_t>(d);
    std::vector<std::int64_t> next;
    next.reserve(out.size() * static_cast<std::size_t>(dims[dim]));
    for (const std::int64_t start : out) {
      for (std::int64_t i = 0; i < dims[dim]; ++i) next.push_back(start + i * strides[dim]);
    }
    out = std::move(next);
  }
  return out;
}

std::optional<std::vector<std::size_t>> HloMesh::axes_of(const MeshFactors& factors) const {
  std::vector<std::size_t> out;
  for (const MeshFactor& factor : factors) {
    std::int64_t covered = 1;
    for (std::size_t a = 0; a < axes.size() && covered < factor.size; ++a) {
      if (axes[a].stride != factor.stride * covered || axes[a].size == 1) continue;
      out.push_back(a);
      covered *= axes[a].size;
    }
    if (covered != factor.size) return std::nullopt;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::size_t> HloMesh::axes_between(std::span<const std::pair<std::int64_t, std::int64_t>> pairs) const {
  std::vector<std::size_t> out;
  for (std::size_t a = axes.size(); a-- > 0;) {
    const auto along = [&](std::int64_t device) { return device / axes[a].stride % axes[a].size; };
    if (std::any_of(pairs.begin(), pairs.end(), [&](const auto& p) { return along(p.first) != along(p.second); })) {
      out.push_back(a);
    }
  }
  return out;
}

const HloAxis* HloMesh::find(std::string_view name) const {
  const auto found = std::find_if(axes.begin(), axes.end(), [&](const HloAxis& axis) { return axis.name == name; });
  return found == axes.end() ? nullptr : &*found;
}

std::string HloMesh::names(const std::vector<std::size_t>& positions) const {
  std::string out;
  for (const std::size_t position : positions) out += (out.empty() ? "" : ",") + axes[position].name;
  return out;
}

HloMesh mesh_of(std::span<const MeshFactors> parts, std::int64_t devices) {
  std::set<std::int64_t> borders;
  const auto add = [&](std::int64_t border) {
    const bool fits = std::all_of(borders.begin(), borders.end(), [&](std::int64_t other) {
      return border > other ? border % other == 0 : other % border == 0;
    });
    if (fits) borders.insert(border);
  };
  for (const MeshFactors& part : parts) {
    for (const MeshFactor& factor : part) {
      if (factor.stride < 1 || factor.size < 1 || factor.stride > kMostDevices || factor.size > kMostDevices) continue;
      add(factor.stride);
      add(factor.stride * factor.size);
    }
  }
  HloMesh out;
  if (borders.empty()) return out;
  add(1);
  if (devices > 1) add(devices);
  constexpr std::string_view kLetters = "XYZWVUTSRQ";
  std::int64_t last = 1;
  for (const std::int64_t border : borders) {
    if (border == 1) continue;
    const std::size_t at = out.axes.size();
    if (at >= kLetters.size()) break;
    out.axes.push_back({std::string(1, kLetters[at]), border / last, last});
    last = border;
  }
  return out;
}

HloMesh named_mesh(const std::vector<std::pair<std::string, std::int64_t>>& axes, std::string source) {
  HloMesh out{.source = std::move(source)};
  std::int64_t stride = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    out.axes.push_back({axis->first, axis->second, stride});
    if (axis->second > 1 && stride <= kMostDevices) stride *= axis->second;
  }
  return out;
}

std::vector<std::pair<std::string, std::int64_t>> mesh_in(std::string_view text) {
  std::vector<std::pair<std::string, std::int64_t>> out;
  std::size_t at = text.find("mesh['");
  if (at == std::string_view::npos) at = text.find("sdy.mesh<[\"");
  if (at == std::string_view::npos) return out;
  at = text.find('[', at);
  const std::size_t end = std::min(text.find(']', at), text.size());
  const char quote = text[at + 1];
  for (at = text.find(quote, at); at < end; at = text.find(quote, at)) {
    const std::size_t close = text.find(quote, at + 1);
    if (close >= end) break;
    const std::size_t comma = std::min(text.find(',', close), end);
    const std::vector<std::int64_t> size = hlo_numbers(text.substr(close, comma - close));
    if (size.empty() || size.front() < 1 || size.front() > kMostDevices) return {};
    std::string name = axis_name(text.substr(at + 1, close - at - 1));
    const auto same = [&](const auto& axis) { return axis.first == name; };
    while (std::any_of(out.begin(), out.end(), same)) name += 'a';
    out.emplace_back(std::move(name), size.front());
    at = close + 1;
  }
  return out;
}

}  // namespace scalecalc
