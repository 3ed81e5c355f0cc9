// Sweeps of the machine (or the model): --set with ranges of values, the job planned again at every point of their
// grid.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sensitivity/balance.h"
#include "train/question.h"

namespace scalecalc {

/// The most points of a sweep; each is a search.
inline constexpr std::size_t kMostCodesignPoints = 1000;

/// "hw.hbm.bandwidth=2TB/s..8TB/s*2".
struct SetRange {
  std::string path;
  std::vector<std::string> values;  ///< as --set takes them
  std::vector<double> numbers;      ///< the same in the SI base unit
  Dim unit;
};

/// Whether the text of a --set gives several values.
bool is_set_range(std::string_view set);
/// UserError for values that are no quantities of one kind.
SetRange parse_set_range(const std::string& set);

struct CodesignPoint {
  std::vector<std::size_t> at;     ///< which value of each range
  std::optional<RankedPlan> plan;  ///< absent: nothing fits
  GroupElasticities elasticity;
};

struct Codesign {
  std::vector<SetRange> ranges;
  std::vector<CodesignPoint> points;  ///< the last range moves fastest
  bool complete = true;
};

/// `kept`: the plan that runs at every point; otherwise each is planned anew. UserError for a value that the file's
/// field does not take.
Codesign codesign(const TrainQuestion& question, std::vector<SetRange> ranges, const Plan* kept, const Catalog& catalog,
                  const std::function<bool()>& stop);

}  // namespace scalecalc
