// Any bytes as a launch file: arguments with their places, a framework, and what they say of a layout; or a refusal.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/diagnostic.h"
#include "fuzz/errors_fuzz.h"
#include "launch/reading.h"
#include "launch/training.h"

namespace {

using scalecalc::check;

void check_settings(const scalecalc::LaunchText& file) {
  for (const scalecalc::LaunchSetting& setting : file.settings) {
    check(setting.where.line >= 1 && setting.where.column >= 1, "an argument has a place");
  }
  check(!file.chips || *file.chips >= 1, "a machine has chips");
}

/// Degrees that a layout may have: what is read is no invention of the reader's arithmetic.
void check_pins(const scalecalc::LayoutFilter& pins) {
  for (const auto* degree : {&pins.tp, &pins.pp, &pins.cp, &pins.ep, &pins.fsdp, &pins.dp}) {
    check(!*degree || **degree >= 1, "a degree is at least 1");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const scalecalc::LaunchText file = scalecalc::read_launch_text(text, "launch");
    check_settings(file);
    const scalecalc::LaunchFramework& framework = scalecalc::framework_of(file, text, "launch");
    if (framework.job == scalecalc::LaunchJob::kTraining) {
      check_pins(scalecalc::import_training(framework, file.settings, nullptr, nullptr, 16, 1).pins);
    } else {
      scalecalc::solve(framework, file.settings, {}, {{"chips", 16}});
    }
  } catch (const scalecalc::UserError& error) {
    scalecalc::fuzz::check_refusal(error);
  }
  return 0;
}
