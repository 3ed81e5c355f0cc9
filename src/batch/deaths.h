// Questions in which the program itself died, a bug of ours: the study goes on without them, in this process and in
// every later one. A thread says which case it asks. A fault's signal adds that case to a file in the directory of the
// results and starts the program again, in its place: what landed stays, what the program that died held is gone. The
// new one finds the file and makes rows of these cases instead of asking them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batch/manifest.h"

namespace scalecalc {

/// The signal each case died of, by the case's number.
using Deaths = std::map<std::uint64_t, int>;

/// Returns what earlier processes died of in this study.
Deaths deaths_in(const std::string& directory, const StudyManifest& manifest);
/// Returns the answer that a case has instead: that of a bug.
StudyReply reply_of_death(int signal);

/// While one lives its thread asks the case.
class CaseAsked {
 public:
  /// `alone`: no other case is being asked, so that a fault on a thread that helps with this one is this case's too.
  explicit CaseAsked(std::uint64_t number, bool alone = false);
  ~CaseAsked();
  CaseAsked(const CaseAsked&) = delete;
  CaseAsked& operator=(const CaseAsked&) = delete;

 private:
  bool alone_;
};

/// While it lives, a fault in a case is noted in the study's directory. One at a time in a process.
class FaultWatch {
 public:
  /// `words` start the program again, its name left out; without them the process ends by the signal once that is
  /// noted.
  FaultWatch(const std::string& directory, const StudyManifest& manifest,
             const std::optional<std::vector<std::string>>& words);
  ~FaultWatch();
  FaultWatch(const FaultWatch&) = delete;
  FaultWatch& operator=(const FaultWatch&) = delete;

 private:
  struct Noted;
  std::unique_ptr<Noted> noted_;
};

/// Returns the directory of results with which the program that died in this process started this one; nothing if none
/// did.
std::optional<std::string> handed_on_directory(
    const std::function<std::optional<std::string>(const std::string&)>& variable);

}  // namespace scalecalc
