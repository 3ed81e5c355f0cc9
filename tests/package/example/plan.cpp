// The fastest plan for a job, as JSON on standard output.
#include <scalecalc.hpp>

#include <iostream>

int main(int argc, char** argv) {
  const std::string chips = argc > 1 ? argv[1] : "64";
  const auto answer =
      scalecalc::api::ask({"train", "llama3-70b", "--hw", "h100-sxm", "--chips", chips, "--top", "1", "--json"});
  std::cout << answer.output;
  std::cerr << answer.messages;
  return answer.status;
}
