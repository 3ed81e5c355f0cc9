#include "cli/help.h"

namespace scalecalc::cli {

std::string_view commit_built() { return SCALECALC_COMMIT; }

}  // namespace scalecalc::cli
