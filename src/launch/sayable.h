// What a framework's launch files can say, as facts of a release: a search over it finds the best plan among those.
#pragma once

#include "launch/framework.h"
#include "plan/stack_supports.h"

namespace scalecalc {

/// `release` with what the framework's table has no value for. Not all that cannot be said is a condition on a layout:
/// training_arguments() has the last word.
StackRelease sayable_release(const LaunchFramework& framework, const StackRelease& release);

}  // namespace scalecalc
