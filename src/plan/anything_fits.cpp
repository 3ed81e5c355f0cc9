// Decides whether any layout of a question fits in memory, without ranking them, for suggestions of what would fit.
#include "plan/anything_fits.h"

#include "base/stop.h"
#include "plan/family_search.h"

namespace scalecalc {
bool anything_fits(const PlanRequest& asked, const std::function<bool()>& stop) {
  const PlanRequest request = settled(asked);
  const SearchInputs inputs(request);
  SearchStats ignored;
  const Space space(request, ignored);
  RunBounds bounds;
  FamilySearch search(inputs, space, recipes(request, ignored), bounds);
  const Ranker ranker(request.objective);
  for (const FamilyRun& run : space.runs()) {
    if (should_stop(stop)) break;
    if (search.any_fits(run, ranker)) return true;
  }
  return false;
}

}  // namespace scalecalc
