// Everything a command sees of the process it runs in. Handed in, so that tests drive the whole program in-process.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "config/remembered.h"

namespace scalecalc::cli {

struct Environment {
  std::ostream& out;
  std::ostream& err;
  std::function<std::optional<std::string>(const std::string&)> variable;  ///< getenv; empty = no variables
  std::function<bool()> interrupted;                                       ///< polled while working; empty = never
  bool out_is_tty = false;
  bool err_is_tty = false;
  std::size_t width = 0;                   ///< columns of the terminal behind `out`; 0 = unknown
  bool utf8 = false;                       ///< the locale's encoding
  std::shared_ptr<Remembered> remembered;  ///< what is kept between questions; null where there is only one

  std::optional<std::string> get(const std::string& name) const { return variable ? variable(name) : std::nullopt; }
};

}  // namespace scalecalc::cli
