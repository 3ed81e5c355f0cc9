// Derives the FLOPs and bytes of a recorded operation from the shapes of its operands.
#include "profile/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <numeric>

namespace scalecalc {
namespace {

using Dims = std::vector<double>;

/// Spellings of element types: PyTorch's in `Input type`, its collectives' `dtype`, XLA's in shapes.
struct ElementType {
  std::string_view name;
  double bytes;
  std::optional<DType> dtype;
};
constexpr std::array kElementTypes{
    ElementType{"c10::BFloat16", 2, DType::kBf16},
    ElementType{"BFloat16", 2, DType::kBf16},
    ElementType{"bf16", 2, DType::kBf16},
    ElementType{"c10::Half", 2, DType::kFp16},
    ElementType{"Half", 2, DType::kFp16},
    ElementType{"f16", 2, DType::kFp16},
    ElementType{"float", 4, DType::kFp32},
    ElementType{"Float", 4, DType::kFp32},
    ElementType{"f32", 4, DType::kFp32},
    ElementType{"double", 8, DType::kFp64},
    ElementType{"Double", 8, DType::kFp64},
    ElementType{"f64", 8, DType::kFp64},
    ElementType{"c10::Float8_e4m3fn", 1, DType::kFp8},
    ElementType{"c10::Float8_e5m2", 1, DType::kFp8},
    ElementType{"c10::Float8_e4m3fnuz", 1, DType::kFp8},
    ElementType{"c10::Float8_e5m2fnuz", 1, DType::kFp8},
    ElementType{"f8e4m3fn", 1, DType::kFp8},
    ElementType{"f8e5m2", 1, DType::kFp8},
    ElementType{"f8e4m3fnuz", 1, DType::kFp8},
    ElementType{"f8e5m2fnuz", 1, DType::kFp8},
    ElementType{"f8e4m3", 1, DType::kFp8},
    ElementType{"c10::Float4_e2m1fn_x2", 1, DType::kFp4},  // two in a byte
    ElementType{"f4e2m1fn", 0.5, DType::kFp4},
    ElementType{"s4", 0.5, DType::kInt4},
    ElementType{"u4", 0.5, std::nullopt},
    ElementType{"c10::Float8_e8m0fnu", 1, std::nullopt},
    ElementType{"f8e8m0fnu", 1, std::nullopt},
    ElementType{"signed char", 1, DType::kInt8},
    ElementType{"Char", 1, DType::kInt8},
    ElementType{"s8", 1, DType::kInt8},
    ElementType{"unsigned char", 1, std::nullopt},
    ElementType{"Byte", 1, std::nullopt},
    ElementType{"u8", 1, std::nullopt},
    ElementType{"bool", 1, std::nullopt},
    ElementType{"Bool", 1, std::nullopt},
    ElementType{"pred", 1, std::nullopt},
    ElementType{"short int", 2, std::nullopt},
    ElementType{"s16", 2, std::nullopt},
    ElementType{"u16", 2, std::nullopt},
    ElementType{"int", 4, std::nullopt},
    ElementType{"Int", 4, std::nullopt},
    ElementType{"s32", 4, std::nullopt},
    ElementType{"u32", 4, std::nullopt},
    ElementType{"long int", 8, std::nullopt},
    ElementType{"long", 8, std::nullopt},
    ElementType{"Long", 8, std::nullopt},
    ElementType{"s64", 8, std::nullopt},
    ElementType{"u64", 8, std::nullopt},
    ElementType{"c64", 8, std::nullopt},
    ElementType{"c128", 16, std::nullopt},
};

const ElementType* element_type(std::string_view name) {
  const auto* const found = std::find_if(kElementTypes.begin(), kElementTypes.end(),
                                         [&](const ElementType& type) { return type.name == name; });
  return found == kElementTypes.end() ? nullptr : found;
}

/// The items of a JSON list as written by JsonStream::raw, each as text: numbers and texts bare, lists with brackets.
std::vector<std::string_view> list_items(std::string_view list) {
  std::vector<std::string_view> out;
  if (list.size() < 2) return out;
  list = list.substr(1, list.size() - 2);
  std::size_t depth = 0;
  bool quoted = false;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '"') quoted = !quoted;
    if (quoted && i < list.size()) continue;
    depth += c == '[' ? 1 : 0;
    depth -= c == ']' && depth > 0 ? 1 : 0;
    if (c != ',' || depth > 0) continue;
    std::string_view item = list.substr(start, i - start);
    if (item.size() >= 2 && item.front() == '"') item = item.substr(1, item.size() - 2);
    if (!item.empty() || i < list.size() || !out.empty()) out.push_back(item);
    start = i + 1;
  }
  return out;
}

Dims dims_of(std::string_view list) {
  Dims out;
  for (const std::string_view item : list_items(list)) {
    double value = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (error != std::errc() || end != item.data() + item.size() || !(value >= 0) || value > 1e15) return {};
    out.push_back(value);
  }
  return out;
}

double product(const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), 1.0, std::multiplies<>()); }

struct Operands {
  std::vector<Dims> dims;
  std::vector<const ElementType*> types;
  std::vector<std::string_view> values;

  const Dims& at(std::size_t i) const {
    static const Dims kNoDims;
    return i < dims.size() ? dims[i] : kNoDims;
  }
  double bytes(std::size_t i) const {
    return i < types.size() && types[i] != nullptr && !at(i).empty() ? product(at(i)) * types[i]->bytes : 0;
  }
};

Operands operands(const RecordedOp& op) {
  Operands out;
  for (const std::string_view item : list_items(op.dims)) out.dims.push_back(dims_of(item));
  for (const std::string_view item : list_items(op.types)) out.types.push_back(element_type(item));
  out.values = list_items(op.values);
  return out;
}

/// Operations whose FLOPs follow from two operands: which ones, and whether the second is transposed.
struct ProductOp {
  std::string_view name;
  std::size_t first, second;
  bool transposed = false;
};
constexpr std::array kProductOps{
    ProductOp{"aten::mm", 0, 1},
    ProductOp{"aten::addmm", 1, 2},
    ProductOp{"aten::addmm_", 1, 2},
    ProductOp{"aten::bmm", 0, 1},
    ProductOp{"aten::baddbmm", 1, 2},
    ProductOp{"aten::baddbmm_", 1, 2},
    ProductOp{"aten::matmul", 0, 1},
    ProductOp{"aten::_scaled_mm", 0, 1},
    ProductOp{"aten::_addmm_activation", 1, 2},
    ProductOp{"aten::linear", 0, 1, true},
    ProductOp{"aten::mv", 0, 1},
    ProductOp{"aten::_int_mm", 0, 1},
    ProductOp{"aten::mkldnn_linear", 0, 1, true},
};

/// Attention's: where the queries stand, which of its dimensions are heads and positions, where is_causal stands.
struct AttentionOp {
  std::string_view name;
  std::size_t query;
  bool heads_first;  ///< [batch, heads, positions, width], else positions before heads
  std::size_t causal;
  bool backward = false;
};
constexpr std::array kAttentionOps{
    AttentionOp{"aten::_scaled_dot_product_flash_attention", 0, true, 4},
    AttentionOp{"aten::_scaled_dot_product_efficient_attention", 0, true, 6},
    AttentionOp{"aten::_scaled_dot_product_cudnn_attention", 0, true, 6},
    AttentionOp{"aten::_scaled_dot_product_flash_attention_backward", 1, true, 10, true},
    AttentionOp{"aten::_scaled_dot_product_efficient_attention_backward", 1, true, 10, true},
    AttentionOp{"aten::_scaled_dot_product_cudnn_attention_backward", 1, true, 12, true},
    AttentionOp{"aten::_flash_attention_forward", 0, false, 8},
    AttentionOp{"aten::_flash_attention_backward", 1, false, 11, true},
    AttentionOp{"aten::_efficient_attention_forward", 0, false, 99},
    AttentionOp{"flash_attn::_flash_attn_forward", 0, false, 5},
    AttentionOp{"flash_attn::_flash_attn_backward", 1, false, 11, true},
};

std::string text_of_dims(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

DType compute_type(const ElementType& type, std::string_view kernel) {
  const DType dtype = type.dtype.value_or(DType::kFp32);
  const bool tf32 = kernel.find("tf32") != std::string_view::npos || kernel.find("s1688") != std::string_view::npos;
  return dtype == DType::kFp32 && tf32 ? DType::kTf32 : dtype;
}

std::optional<ShapedWork> product_work(const ProductOp& how, const Operands& of, std::string_view kernel) {
  const Dims& a = of.at(how.first);
  Dims b = of.at(how.second);
  if (a.empty() || b.empty() || how.first >= of.types.size() || of.types[how.first] == nullptr) return std::nullopt;
  if (b.size() == 1) b.push_back(1);
  Matmul out;
  out.contraction = a.back();
  const double inner = how.transposed ? b.back() : b[b.size() - 2];
  out.columns = how.transposed ? b[b.size() - 2] : b.back();
  if (inner != out.contraction) return std::nullopt;
  const double rows = product(a) / out.contraction;
  // A second operand of more than two dimensions is one matrix for each of the batch.
  out.matrices = b.size() > 2 ? product(Dims(b.begin(), b.end() - 2)) : 1;
  out.rows = rows / out.matrices;
  if (!(out.rows >= 1 && out.columns >= 1 && out.contraction >= 1)) return std::nullopt;
  const ElementType& type = *of.types[how.first];
  if (!type.dtype) return std::nullopt;
  OperandTypes types{*type.dtype, *type.dtype, *type.dtype, compute_type(type, kernel)};
  if (type.bytes == 1) types.result = DType::kBf16;  // products of 8-bit operands are written wider
  return ShapedWork{out, types,
                    fmt::format("{} x {} {}", text_of_dims(a), text_of_dims(of.at(how.second)), name_of(*type.dtype))};
}

std::optional<ShapedWork> attention_work(const AttentionOp& how, const Operands& of) {
  const Dims& q = of.at(how.query);
  const Dims& k = of.at(how.query + 1);
  if (q.size() != 4 || k.size() != 4 || of.types.size() <= how.query || of.types[how.query] == nullptr) {
    return std::nullopt;
  }
  const std::size_t heads = how.heads_first ? 1 : 2;
  const std::size_t positions = 3 - heads;
  const bool causal = how.causal < of.values.size() && of.values[how.causal] == "True";
  const DType dtype = of.types[how.query]->dtype.value_or(DType::kBf16);
  const Attention out{q[0], q[heads], k[heads], q[3], q[positions], k[positions], causal, how.backward};
  if (std::min({q[0], q[heads], k[heads], q[3], q[positions], k[positions]}) < 1) return std::nullopt;
  return ShapedWork{
      out,
      {dtype, dtype, dtype, dtype},
      fmt::format("{} over {}{} {}", text_of_dims(q), text_of_dims(k), causal ? " causal" : "", name_of(dtype))};
}

/// What the operands of an elementwise operation weigh: each read once, and a result as large as the largest written;
/// one that works in place, or copies, writes what is among them.
std::optional<ShapedWork> moved_work(const RecordedOp& op, const Operands& of) {
  double bytes = 0;
  double largest = 0;
  const Dims* shape = nullptr;
  for (std::size_t i = 0; i < of.dims.size(); ++i) {
    const double own = of.bytes(i);
    bytes += own;
    if (own > largest) shape = &of.dims[i];
    largest = std::max(largest, own);
  }
  if (!(bytes > 0)) return std::nullopt;
  const bool copies = op.name.ends_with("copy_") || op.name.ends_with("fill_") || op.name.ends_with("zero_");
  const bool reduces = op.name.ends_with("::sum") || op.name.ends_with("::mean") || op.name.ends_with("max");
  if (!copies && !reduces) bytes += largest;
  ShapedWork out{GivenWork{0, bytes}, {}, shape == nullptr ? "" : text_of_dims(*shape)};
  out.moves_only = true;
  return out;
}

}  // namespace

std::optional<ShapedWork> shaped_work(const RecordedOp& op, DeviceWork work, std::string_view kernel) {
  if (op.flops || (op.bytes && work != DeviceWork::kCollective)) {
    ShapedWork out{GivenWork{op.flops.value_or(0), op.bytes.value_or(0)}, {}, ""};
    out.moves_only = !op.flops;
    return out;
  }
  if (op.dims.empty()) return std::nullopt;
  const Operands of = operands(op);
  if (work == DeviceWork::kMatmul) {
    for (const ProductOp& how : kProductOps) {
      if (how.name == op.name) return product_work(how, of, kernel);
    }
  }
  if (work == DeviceWork::kAttention) {
    for (const AttentionOp& how : kAttentionOps) {
      if (how.name == op.name) return attention_work(how, of);
    }
  }
  if (work == DeviceWork::kVector) return moved_work(op, of);
  return std::nullopt;
}

double recorded_element_bytes(std::string_view type) {
  const ElementType* found = element_type(type);
  return found == nullptr ? 0 : found->bytes;
}

std::optional<KernelTile> tile_of_kernel(std::string_view name) {
  constexpr std::array<std::string_view, 5> kBefore{"tilesize", "_MT", "nvjet_tst_", "nvjet_hsh_", "gemm_bf16_"};
  for (const std::string_view before : kBefore) {
    const std::size_t at = name.find(before);
    if (at == std::string_view::npos) continue;
    const char* const end = name.data() + name.size();
    KernelTile out;
    const auto [by, error] = std::from_chars(name.data() + at + before.size(), end, out.rows);
    if (error != std::errc() || by == end || *by != 'x') continue;
    const auto [stop, second] = std::from_chars(by + 1, end, out.columns);
    if (second == std::errc() && out.rows >= 1 && out.columns >= 1 && out.rows <= 4096 && out.columns <= 4096)
      return out;
  }
  return std::nullopt;
}

}  // namespace scalecalc
