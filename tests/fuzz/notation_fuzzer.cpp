// Any bytes as the notation of sharded arrays and of their products: read, or an explanation with its place.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/diagnostic.h"
#include "fuzz/errors_fuzz.h"
#include "matmul/matmul_problem.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    scalecalc::parse_notation(text);
  } catch (const scalecalc::UserError& error) {
    scalecalc::fuzz::check_refusal(error);
  }
  return 0;
}
