// A letter and a text: files of each kind that people hand over (model, hardware, stack, law, kernel, measurements) and
// what is typed (sharded products, sweeps, conditions, shards). Each is read or refused in words; what is read is
// finite.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/quoting.h"
#include "base/sweep.h"
#include "base/text.h"
#include "batch/condition.h"
#include "batch/study.h"
#include "config/catalog.h"
#include "config/yaml_reader.h"
#include "matmul/matmul_problem.h"
#include "model/accounting.h"
#include "spec/kernel_spec.h"
#include "spec/law_spec.h"
#include "spec/load.h"
#include "spec/load_stack.h"
#include "validate/measurement.h"
#include "validate/training_rows_options.h"

namespace {

using namespace scalecalc;

void read_document(char kind, std::string_view text) {
  static const Catalog kCatalog;
  const ConfigNode document = read_yaml(text, "fuzz.yaml");
  switch (kind) {
    case 'm': {
      const double parameters = count_parameters(load_model(document)).total;
      check(std::isfinite(parameters) && parameters > 0, "a model has parameters");
      break;
    }
    case 'h': load_hardware(document, kCatalog); break;
    case 's': load_stack(document); break;
    case 'l': load_law(document); break;
    case 'k': load_kernel(document, kCatalog); break;
    default:
      for (const Measurement& row : cli::read_measurements(document)) {
        check(!row.shape || row.shape->layers <= 10'000, "a measured model has the layers of a model file");
      }
  }
}

void read_typed(char kind, const std::string& text) {
  switch (kind) {
    case 'n': parse_notation(text); break;
    case 'w':
      for (const UnitKind unit : {UnitKind::kCount, UnitKind::kBytes, UnitKind::kSeconds}) {
        const auto read = parse_sweep(text, unit);
        const auto* values = std::get_if<std::vector<double>>(&read);
        if (values == nullptr) continue;
        check(values->size() <= scalecalc::limits::kSweepValues, "a sweep has an end");
        for (const double value : *values) check(std::isfinite(value), "values of a sweep are finite");
      }
      break;
    case 'c': {
      Condition condition(text, {"mfu", "in_hw"}, {});
      const bool once = condition.holds({0.5, std::string("x")});
      check(condition.holds({0.5, std::string("x")}) == once, "a condition says the same of the same row");
      break;
    }
    default:
      split_placeholders(text);
      check(printable(printable(text)) == printable(text), "what is printable stays so");
      check(shell_quoted_line(text).find('\n') == std::string::npos, "a comment is one line");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.empty()) return 0;
  try {
    if (std::string_view("mhslkr").find(text.front()) != std::string_view::npos) {
      read_document(text.front(), std::string_view(text).substr(1));
    } else {
      read_typed(text.front(), text.substr(1));
    }
  } catch (const UserError& error) {
    check(!error.diagnostics().empty(), "an error says what is wrong");
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      check(printable_lines(render(diagnostic)) == render(diagnostic), "a message holds nothing a terminal obeys");
    }
  }
  return 0;
}
