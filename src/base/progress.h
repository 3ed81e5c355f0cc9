// How far a long computation is, for whoever shows it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

namespace scalecalc {

/// What a loop has done, as a count that any thread may raise. Of loops inside each other the outermost alone is told.
class Progress {
 public:
  enum class Pace { kUneven, kEven };

  /// `what` is a literal in the plural, "splits"; `total` 0: not known. Where all cost alike (`even`) the time left can
  /// be told.
  explicit Progress(std::string_view what, std::uint64_t total, Pace pace = Pace::kUneven);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(std::uint64_t count = 1);
  /// Done by an earlier process: they say nothing of the rate.
  void found_done(std::uint64_t count);

  struct State {
    std::string_view what;
    std::uint64_t done = 0;
    std::uint64_t before = 0;  ///< of these, by an earlier process
    std::uint64_t total = 0;
    Pace pace = Pace::kUneven;
    double seconds = 0;  ///< since the loop began
  };
  /// Of the outermost loop; nothing where none counts.
  static std::optional<State> now();

 private:
  bool told_;
};

}  // namespace scalecalc
