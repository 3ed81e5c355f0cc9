// Bytes as a question by the grammar of the command line (tests/relations/question.h): the whole program answers, and
// what it says is held to what must be true of every answer (tests/relations/truth.h). What is not so is a crash here.
#include <cstddef>
#include <cstdint>

#include "fuzz/choices.h"
#include "relations/truth.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static scalecalc::relations::Truths truths;
  scalecalc::fuzz::Choices choose(data, size);
  if (choose.below(4) > 0) {
    truths.of_one(scalecalc::relations::random_question(choose));
  } else {
    truths.of_several(scalecalc::relations::random_timing(choose), choose);
  }
  return 0;
}
