#include "plan/anything_fits.h"

#include <span>

#include "base/stop.h"
#include "plan/family_search.h"

namespace scalecalc {
namespace {

bool same_but_microbatch(const Family& a, const Family& b) {
  Layout layout = a.layout;
  layout.micro_batch_seqs = b.layout.micro_batch_seqs;
  return a.slice == b.slice && layout == b.layout;
}

}  // namespace

bool anything_fits(const PlanRequest& request, const std::function<bool()>& stop) {
  const SearchInputs inputs(request);
  SearchStats ignored;
  const Space space(request, ignored);
  FamilySearch search(inputs, space, recipes(request, ignored));
  const Ranker ranker(request.objective);
  const std::span families(space.families());
  for (std::size_t begin = 0, end = 0; begin < families.size() && !should_stop(stop); begin = end) {
    while (end < families.size() && same_but_microbatch(families[begin], families[end])) ++end;
    if (search.any_fits(families.subspan(begin, end - begin), ranker)) return true;
  }
  return false;
}

}  // namespace scalecalc
