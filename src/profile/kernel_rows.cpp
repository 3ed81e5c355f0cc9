// Turns a recording's kernels into measured rows that `calibrate` reads.
#include "profile/kernel_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace scalecalc {
namespace {

/// Kernels shorter than this mostly wait for their launch.
constexpr double kShortest = 20e-6;

std::string matmul_row(const Matmul& m, DType format, double seconds) {
  if (m.matrices != 1) return "";
  return fmt::format("kernel: matmul, format: {}, m: {}, n: {}, k: {}, time: {:.6g}us", name_of(format), m.rows,
                     m.columns, m.contraction, seconds * 1e6);
}

std::string attention_row(const Attention& a, DType format, double seconds) {
  if (a.query != a.kv) return "";
  return fmt::format(
      "kernel: attention, format: {}, batch: {}, heads: {}, kv_heads: {}, head_dim: {}, seq: {}, causal: {}, backward: "
      "{}, time: {:.6g}us",
      name_of(format), a.sequences, a.heads, a.kv_heads, a.head_dim, a.query, a.causal, a.backward, seconds * 1e6);
}

std::string row_of(const ProfiledKernel& kernel) {
  const double seconds = kernel.calls > 0 ? kernel.seconds / kernel.calls : 0;
  if (!kernel.shaped || seconds < kShortest) return "";
  if (const Matmul* m = std::get_if<Matmul>(&kernel.shaped->operation)) {
    return matmul_row(*m, kernel.shaped->types.compute, seconds);
  }
  if (const Attention* a = std::get_if<Attention>(&kernel.shaped->operation)) {
    return attention_row(*a, kernel.shaped->types.input, seconds);
  }
  return "";
}

/// Bytes that elementwise kernels moved in a second, of those long enough.
std::string copy_row(const ProfileAnswer& found) {
  double bytes = 0, seconds = 0;
  for (const ProfiledKernel& kernel : found.kernels) {
    const bool counts = kernel.work == DeviceWork::kVector && kernel.bytes && kernel.calls > 0 &&
                        kernel.seconds / kernel.calls >= kShortest;
    if (!counts) continue;
    bytes += *kernel.bytes;
    seconds += kernel.seconds;
  }
  const double rate = seconds > 0 ? bytes / seconds : 0;
  // Faster than HBM: caches served what is counted for it, and the rate says nothing.
  if (rate <= 0 || rate > found.hw.hbm_bandwidth.value()) return "";
  return fmt::format("kernel: copy, bandwidth: {:.6g}GB/s", rate / 1e9);
}

}  // namespace

KernelRows kernel_rows(const ProfileAnswer& found) {
  KernelRows out{.yaml = fmt::format("# Kernels of {} on {}, for scalecalc calibrate.\n", found.ranks.front().file,
                                     found.hw.name)};
  const auto add = [&](const std::string& row) {
    if (row.empty()) return;
    out.yaml += fmt::format("- {{id: k{}, {}}}\n", ++out.count, row);
  };
  for (const ProfiledKernel& kernel : found.kernels) add(row_of(kernel));
  add(copy_row(found));
  return out;
}

}  // namespace scalecalc
