// Which half of all measured rows a row belongs to, for validate and calibrate. Coefficients, rules and constants are
// chosen on the rows of the fit half; those of the judge half are predicted once all is chosen. configs/splits.yaml
// states the rule, and tests/lint/splits.py computes every half again.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "config/node.h"
#include "validate/measurement.h"

namespace scalecalc {

enum class RowHalf : std::uint8_t { kAll, kFit, kJudge };
inline constexpr std::array<std::string_view, 3> kRowHalfNames{"all", "fit", "judge"};

class Splits {
 public:
  /// Reads configs/splits.yaml.
  explicit Splits(const ConfigNode& document);
  /// Returns the ones that the program ships.
  static const Splits& shipped();

  /// Returns the name of the publication that a row comes from: "nvidia/megatron-lm", "arxiv:2104.04473".
  std::string publication_of(const MeasuredFacts& row) const;
  /// Returns kFit or kJudge, by the hash of the publication's name.
  RowHalf half_of(std::string_view publication) const;
  /// Says whether a set of that title is divided.
  bool divides(const std::string& title) const { return titles_.contains(title); }

 private:
  std::string named_by(std::string_view word) const;
  std::string same_as(std::string name) const;

  std::string salt_;
  std::map<std::string, std::string, std::less<>> same_;
  std::set<std::string> titles_;
};

}  // namespace scalecalc
