// Any bytes as a recording or a program's text: figures that sum to the step, or a UserError with 1 to 20 diagnostics.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/text.h"
#include "config/catalog.h"
#include "profile/hlo_program.h"
#include "profile/profile.h"
#include "spec/load.h"

namespace {

using scalecalc::check;

const scalecalc::HardwareSpec& chip() {
  static const scalecalc::HardwareSpec kChip = [] {
    const scalecalc::Catalog catalog;
    return scalecalc::load_hardware(catalog.load(scalecalc::CatalogKind::kHardware, "h100-sxm"), catalog);
  }();
  return kChip;
}

/// Recordings are read from files.
std::string file_of(const std::uint8_t* data, std::size_t size) {
  static const std::string kPath = [] {
    std::string path = "/tmp/scalecalc-fuzz-XXXXXX";
    check(mkstemp(path.data()) >= 0, "a temporary file");
    return path;
  }();
  std::ofstream(kPath, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  return kPath;
}

void check_profile(const scalecalc::ProfileAnswer& found) {
  double sum = 0;
  for (const double seconds : found.work_s) sum += seconds;
  for (const double seconds : found.idle_s) sum += seconds;
  check(std::isfinite(found.step_s) && std::abs(sum - found.step_s) <= 1e-9 * (1 + found.step_s),
        "parts sum to the step");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string path = file_of(data, size);
  try {
    if (scalecalc::is_hlo_text({reinterpret_cast<const char*>(data), size})) {
      const scalecalc::HloProgram program = scalecalc::hlo_program(scalecalc::read_hlo(path), chip());
      check(program.least_s <= program.most_s * (1 + 1e-12), "a step lies between its bounds");
    } else {
      check_profile(scalecalc::answer(scalecalc::ProfileQuestion{.files = {path}}, chip()));
    }
  } catch (const scalecalc::UserError& error) {
    check(!error.diagnostics().empty() && error.diagnostics().size() <= 20, "an error has 1 to 20 diagnostics");
    for (const scalecalc::Diagnostic& diagnostic : error.diagnostics()) {
      check(scalecalc::invalid_utf8_at(render(diagnostic)) == std::string_view::npos, "a diagnostic is UTF-8");
    }
  }
  return 0;
}
