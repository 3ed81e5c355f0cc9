// Returns the commit that the program was built from, in a file of its own because it changes most often.
#include "cli/help.h"

namespace scalecalc::cli {

std::string_view commit_built() { return SCALECALC_COMMIT; }

}  // namespace scalecalc::cli
