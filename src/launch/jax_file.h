// A plan as a mesh and shardings of plain JAX.
#pragma once

#include <string>

#include "launch/terms.h"

namespace scalecalc {

/// `constants` are the plan's numbers as Python. The word "axes" of the terms are the mesh's axes, outermost first;
/// "weights" lists what the model has.
std::string jax_file(const std::string& constants, const LaunchTerms& terms);

}  // namespace scalecalc
