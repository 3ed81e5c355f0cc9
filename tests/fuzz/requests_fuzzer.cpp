// Any bytes as a trace of requests: rows of at least a token each, with times that are; or a refusal.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/diagnostic.h"
#include "fuzz/errors_fuzz.h"
#include "serve/request_mix.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using scalecalc::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const scalecalc::RequestMix mix = scalecalc::read_trace(text, "requests");
    check(!mix.rows.empty(), "a trace has requests");
    double before = 0;
    for (const scalecalc::ServedRequest& row : mix.rows) {
      check(row.prompt >= 1 && row.generate >= 1, "a request has tokens");
      check(std::isfinite(row.arrival_s) && row.arrival_s >= before, "requests come in the order of their times");
      before = row.arrival_s;
    }
  } catch (const scalecalc::UserError& error) {
    scalecalc::fuzz::check_refusal(error);
  }
  return 0;
}
