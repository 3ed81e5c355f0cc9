// A compiled program's cost as an output of `scalecalc profile`.
#pragma once

#include "profile/hlo_program.h"
#include "report/output.h"

namespace scalecalc {

Output hlo_output(const HloProgram& program, const std::string& file, std::size_t top);

}  // namespace scalecalc
