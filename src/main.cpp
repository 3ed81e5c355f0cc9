// The program around the library: real streams, real arguments, real signals.
#include "api/program.h"

int main(int argc, char** argv) { return scalecalc_program(argc, argv); }
