// SHA-256, to pin what a study was computed from and to notice a damaged result.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace scalecalc {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void add(std::string_view bytes);
  /// In hexadecimal, of all that was added; then it starts anew.
  std::string take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256(std::string_view bytes);

}  // namespace scalecalc
