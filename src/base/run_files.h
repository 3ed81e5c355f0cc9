// Which files a run of the program reads and which it is to write: no file is both, under whatever names and links.
#pragma once

#include <memory>
#include <string>

namespace scalecalc {

/// While one lives, note_input() and note_output() of its thread, and of threads without a run of their own where no
/// other run goes on, are held against each other. Runs on several threads know nothing of one another.
class RunFiles {
 public:
  struct Files;

  RunFiles();
  ~RunFiles();
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

 private:
  std::unique_ptr<Files> files_;
  Files* before_;  ///< of the run of this thread in which this one began
};

/// A file that an output is to be written to, until this ends. UserError if another output of the run has it, under
/// whatever name or link.
class ClaimedOutput {
 public:
  /// `target` with its links followed.
  explicit ClaimedOutput(const std::string& target);
  ~ClaimedOutput();
  ClaimedOutput(const ClaimedOutput&) = delete;
  ClaimedOutput& operator=(const ClaimedOutput&) = delete;

 private:
  RunFiles::Files* files_ = nullptr;  ///< of the run that it belongs to; none where that is not known
  std::string place_;
};

/// An open file is read. UserError if an output is to replace it.
void note_input(int fd, const std::string& path);
/// A file is to be replaced or written. UserError if it has been read.
void note_output(const std::string& path);

}  // namespace scalecalc
