// How a long computation is asked to end early.
#pragma once

#include <exception>
#include <functional>

namespace scalecalc {

/// Polled by every long loop, from any of its threads; true: end with what is known. Empty: never.
using Stop = std::function<bool()>;

inline bool should_stop(const Stop& stop) { return stop && stop(); }

/// Leaves a computation that is nothing until it is whole. Caught where something is known beside it.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace scalecalc
