// The scaling book's worked numbers as command lines. A file of this directory, named after the command that answers:
//
//   cases:
//     - id: ch3-q2a-allgather-one-axis
//       chapter: 3
//       where: Question 2 [AllGather latency] (1)      # section of the book
//       kind: quiz                                     # worked, quiz, claim, table, derived
//       run: scalecalc collective all-gather --hw book/tpu-v4p ...
//       expect:
//         - {at: /points/0/time_s, value: 2.33016888889e-05, book: 2.3e-05}
//       disagreement: why the book's own figure is another    # if it is
//
// `run` gets --json appended and goes through the program's entry point. `at` is a JSON pointer into its document
// (/bounds/name=fsdp_limit/value takes the member of a list by its name),
// `value` the exact figure (booleans as 1 and 0), `tolerance` relative and 1e-6 unless given (0: equal), `book` the
// rounded figure in the book, `run` another command line for this figure alone, `exit` the exit status if it is not 0.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace scalecalc::conformance {

struct Expectation {
  std::string run;
  std::string at;
  double value = 0;
  double tolerance = 1e-6;
  std::optional<double> book;
};

struct Case {
  std::string id;
  int chapter = 0;
  std::string where;
  std::string disagreement;
  int exit = 0;
  std::vector<Expectation> expect;
};

/// All files of the directory, by chapter and then by id. UserError on a malformed file or an id given twice.
std::vector<Case> load_cases(const std::string& directory);

}  // namespace scalecalc::conformance
