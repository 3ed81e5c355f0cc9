// The same for C++, over the functions of scalecalc.h alone, so that compilers and standard libraries may differ.
#pragma once

#include <new>
#include <string>
#include <vector>

#include "scalecalc.h"

namespace scalecalc::api {

struct Answer {
  int status = 0;        ///< as the program's exit status
  std::string output;    ///< JSON, if the words ask for it
  std::string messages;  ///< warnings; of a wrong question what is wrong with it
  bool answered() const { return status == 0; }
};

/// ask({"train", "llama3-70b", "--hw", "h100-sxm", "--chips", "64", "--json"})
inline Answer ask(const std::vector<std::string>& words) {
  std::vector<const char*> pointers;
  pointers.reserve(words.size());
  for (const std::string& word : words) {
    const std::size_t nul = word.find('\0');
    if (nul != std::string::npos)
      return {2, "", "error: a word of the question has a NUL character after '" + word.substr(0, nul) + "'\n"};
    pointers.push_back(word.c_str());
  }
  scalecalc_answer* answer = scalecalc_ask(static_cast<int>(pointers.size()), pointers.data());
  if (answer == nullptr) throw std::bad_alloc();
  try {
    Answer out{scalecalc_status(answer), scalecalc_output(answer), scalecalc_messages(answer)};
    scalecalc_free(answer);
    return out;
  } catch (...) {
    scalecalc_free(answer);
    throw;
  }
}

}  // namespace scalecalc::api
