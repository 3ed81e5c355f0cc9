// What the programs that run while the program is built share.
#pragma once

#include <cstdio>
#include <fstream>
#include <string>

#include "base/diagnostic.h"

namespace scalecalc {

/// `PROGRAM FROM OUT.cpp`: writes what `generated` makes of FROM. The exit status.
template <class Generated>
int write_generated(int argc, char** argv, Generated generated) {
  try {
    if (argc != 3) throw UserError(std::string("usage: ") + argv[0] + " FROM OUT.cpp", "");
    const std::string text = generated(argv[1]);
    std::ofstream out(argv[2], std::ios::binary);
    out << text;
    out.close();
    if (!out) throw UserError(std::string("cannot write ") + argv[2], "");
    return 0;
  } catch (const UserError& error) {
    for (const Diagnostic& problem : error.diagnostics()) std::fputs(render(problem).c_str(), stderr);
    return 1;
  }
}

}  // namespace scalecalc
