// What the program is, so that in packages it and other programs share one library.
#pragma once

#include "api/scalecalc.h"

/// Of main(): the process is this command's.
extern "C" SCALECALC_API int scalecalc_program(int argc, char** argv);
