// Reads kernels of one chip that were timed by themselves: `kernel: matmul`, `attention` or `copy`.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/fields.h"
#include "validate/kernel_measurement.h"
#include "validate/measurement_document.h"

namespace scalecalc {
namespace {

constexpr Range kKernelSize{1, 1e9};

class KernelReader {
 public:
  KernelReader(const ConfigNode& node, const SharedFacts&, Problems& problems)
      : f_(node, "kernel", problems), problems_(problems) {}

  KernelMeasurement run() {
    out_.where = f_.span();
    out_.group = f_.optional_text("group").value_or(f_.span().file.str());
    out_.id = f_.text("id");
    for (const char* told : {"source", "notes"}) f_.optional_text(told);
    question_.calibrated = true;
    const std::size_t kind = f_.word("kernel", {"matmul", "attention", "copy"});
    if (kind == 2) {
      copy();
    } else {
      const DType format = format_of();
      question_.types = {format, format, format, format};
      question_.operations.push_back(kind == 0 ? matmul() : attention());
      time_of_flops();
    }
    f_.finish();
    out_.work = std::move(question_);
    return std::move(out_);
  }

 private:
  DType format_of() {
    const std::optional<std::string> text = f_.optional_text("format");
    if (!text) return DType::kBf16;
    const auto* const found = std::find(kDTypeNames.begin(), kDTypeNames.end(), *text);
    if (found != kDTypeNames.end()) return static_cast<DType>(found - kDTypeNames.begin());
    const std::vector<std::string> known(kDTypeNames.begin(), kDTypeNames.end());
    const std::string near = did_you_mean(nearest(*text, known));
    problems_.add(f_.node("format")->span, fmt::format("unknown format {}", in_quotes(*text)),
                  fmt::format("{}{}accepted: {}", near, near.empty() ? "" : " ", join(known, ", ")));
    return DType::kBf16;
  }

  double size(const char* key) { return static_cast<double>(f_.count(key, kKernelSize)); }

  Operation matmul() {
    const double rows = size("m");
    const double columns = size("n");
    return Matmul{.rows = rows, .contraction = size("k"), .columns = columns};
  }

  Operation attention() {
    Attention out{.sequences = size("batch"), .heads = size("heads")};
    const std::optional<std::int64_t> kv = f_.optional_count("kv_heads", kKernelSize);
    out.kv_heads = kv ? static_cast<double>(*kv) : out.heads;
    out.head_dim = size("head_dim");
    out.query = out.kv = size("seq");
    out.causal = f_.flag("causal", true);
    out.backward = f_.flag("backward", false);
    return out;
  }

  /// Bytes that are read and written.
  void copy() {
    constexpr double kUsual = 1e9;
    const double bytes = f_.optional_quantity("bytes", UnitKind::kBytes).value_or(kUsual);
    const std::optional<double> time = f_.optional_quantity("time", UnitKind::kSeconds);
    const std::optional<double> rate = f_.optional_quantity("bandwidth", UnitKind::kBytesPerSecond);
    question_.operations.emplace_back(GivenWork{.flops = 0, .bytes = bytes});
    if (time.has_value() == rate.has_value() || (time && !f_.has("bytes"))) {
      problems_.add(f_.span(), "a copy has bytes and time, or bandwidth");
      return;
    }
    out_.seconds = time ? *time : bytes / *rate;
  }

  void time_of_flops() {
    const std::optional<double> time = f_.optional_quantity("time", UnitKind::kSeconds);
    const std::optional<double> tflops = f_.optional_quantity("tflops", UnitKind::kNumber);
    if (time.has_value() == tflops.has_value()) {
      problems_.add(f_.span(), "a kernel has time or tflops, one of the two");
      return;
    }
    if (!problems_.empty()) return;  // sizes may be missing
    constexpr double kTera = 1e12;
    const OperationWork work = work_of(question_.operations.front(), question_.types, {});
    out_.seconds = time ? *time : value_of(work.flops) / (*tflops * kTera);
  }

  Fields f_;
  Problems& problems_;
  RooflineQuestion question_;
  KernelMeasurement out_;
};

}  // namespace

bool is_kernels(const ConfigNode& document) {
  const ConfigNode* rows = rows_of(document);
  return rows != nullptr && !rows->items.empty() && rows->items.front().find("kernel") != nullptr;
}

std::vector<KernelMeasurement> read_kernels(const ConfigNode& document) { return read_rows<KernelReader>(document); }

}  // namespace scalecalc
