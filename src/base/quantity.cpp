// Names the dimensions of quantities, for messages and explanations. Everything else about quantities is in the
// header.
#include "base/quantity.h"

#include <array>
#include <utility>

namespace scalecalc {
namespace {

void append_factor(std::string& product, const char* symbol, int power) {
  if (!product.empty()) product += ' ';
  product += symbol;
  if (power != 1) product += '^' + std::to_string(power);
}

}  // namespace

std::string unit_name(const Dim& dim) {
  if (dim == kByteDim) return "bytes";
  if (dim == kFlopDim) return "FLOPs";
  if (dim == kByteDim - kSecondDim) return "bytes/s";
  if (dim == kJouleDim - kSecondDim) return "W";
  const std::array<std::pair<const char*, int>, 5> factors{
      {{"byte", dim.byte}, {"FLOP", dim.flop}, {"USD", dim.usd}, {"J", dim.joule}, {"s", dim.second}}};
  std::string above;
  std::string below;
  int factors_below = 0;
  for (const auto& [symbol, power] : factors) {
    if (power > 0) append_factor(above, symbol, power);
    if (power < 0) {
      append_factor(below, symbol, -power);
      ++factors_below;
    }
  }
  if (factors_below == 0) return above;
  if (above.empty()) above = "1";
  return above + "/" + (factors_below > 1 ? "(" + below + ")" : below);
}

}  // namespace scalecalc
