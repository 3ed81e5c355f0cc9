// Starts the program around the library, with real streams, real arguments and real signals.
#include "api/program.h"

int main(int argc, char** argv) { return scalecalc_program(argc, argv); }
