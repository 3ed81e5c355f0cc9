// What files may say, from those who read them: the schemas for editors are made of it (docs/schema/files).
#pragma once

#include <functional>
#include <string_view>

#include "config/node.h"

namespace scalecalc {

/// While it lives, readers of this thread tell it each field that they ask for, and its form where they know it.
class FieldRecorder {
 public:
  static constexpr std::string_view kRequired = "required";  ///< told in the place of a form
  using Told = std::function<void(const ConfigNode& map, std::string_view key, std::string_view form)>;
  explicit FieldRecorder(Told told);
  ~FieldRecorder();
  FieldRecorder(const FieldRecorder&) = delete;
  FieldRecorder& operator=(const FieldRecorder&) = delete;

  /// Of this thread; null where nobody listens.
  static const FieldRecorder* current();
  void tell(const ConfigNode& map, std::string_view key, std::string_view form) const { told_(map, key, form); }

 private:
  Told told_;
  const FieldRecorder* before_;
};

}  // namespace scalecalc
