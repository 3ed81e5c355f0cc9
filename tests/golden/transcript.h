// Transcripts: command lines with all they print, run in-process in an empty directory.
//
// A file is
//   # free text, and directives before the first command:
//   # tty: 100            standard output is a terminal of that width
//   # utf8                in a UTF-8 locale
//   # env: NAME=VALUE     a variable; the environment is empty otherwise
//   # file: NAME          the lines up to "# end" are that file
//   # bytes: NAME HEX     a file of these bytes
//   # repeat: NAME N TEXT a file of N times the text, a line each
//   # dir: NAME           a directory
//   $ scalecalc train ...
//   | select PATH ...     of the JSON it prints, these members alone (golden/select.h); as many such lines as one likes
//   expected standard output
//   [stderr]
//   expected standard error
//   [exit 2]
// with as many commands as one likes. Times of a search and the version are masked.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace scalecalc::golden {

struct Case {
  std::string command;              ///< as written, without "$ "
  std::vector<std::string> select;  ///< the lines after it, without "| select "
  std::string out;
  std::string err;
  int exit = 0;
};

struct Transcript {
  std::string preamble;  ///< everything before the first command, kept when a file is written again
  std::size_t tty = 0;
  bool utf8 = false;
  std::map<std::string, std::string> variables;
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> directories;
  std::vector<Case> cases;
};

/// What differs between a case and what was found, for a reader: a unified diff of each stream, and the status; "" if
/// nothing does.
std::string difference(const Case& expected, const Case& found);

/// std::runtime_error on a malformed file.
Transcript parse_transcript(const std::string& text);
std::string write_transcript(const Transcript& transcript);

/// Runs every case of a transcript; the results have the same commands. std::runtime_error if a | select leads nowhere.
std::vector<Case> run_transcript(const Transcript& transcript);

}  // namespace scalecalc::golden
