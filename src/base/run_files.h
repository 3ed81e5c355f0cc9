// Which files a run of the program reads and which it is to write: no file is both, under whatever names and links.
#pragma once

#include <string>

namespace scalecalc {

/// While one lives, note_input() and note_output() hold what they are told against each other. Those that live at the
/// same time, in whatever order they end, share their notes.
class RunFiles {
 public:
  RunFiles();
  ~RunFiles();
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;
};

/// An open file is read. UserError if an output is to replace it.
void note_input(int fd, const std::string& path);
/// A file is to be replaced or written. UserError if it has been read.
void note_output(const std::string& path);

}  // namespace scalecalc
