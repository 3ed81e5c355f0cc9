// The arguments that a command of a script is started with.
#pragma once

#include <vector>

#include "config/source_text.h"
#include "launch/reading.h"
#include "launch/shell_words.h"

namespace scalecalc {

std::vector<LaunchSetting> flag_settings(std::vector<ShellWord>& words, const SourceText& source);

/// Where a word stands.
SourceSpan place_of_word(const ShellWord& word, const SourceText& source);

}  // namespace scalecalc
