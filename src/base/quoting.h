// Texts of unknown origin on their way to a terminal, a spreadsheet or a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scalecalc {

/// Without what a terminal obeys: control characters (of C0, DEL, C1), those that turn the direction of writing, and
/// bytes that are not UTF-8 become \xNN or \uNNNN.
std::string printable(std::string_view text);
/// The same; line ends stay.
std::string printable_lines(std::string_view text);

/// One word of a POSIX shell, in single quotes unless it is plain.
std::string shell_quoted(std::string_view word);
/// The words of a command line, such as shell_quoted() ones with blanks between them: quotes of both kinds group, and
/// outside of them a backslash takes what follows as it is.
std::vector<std::string> shell_words(std::string_view line);
/// A word as shell_quoted() writes it, for bash alone and on one line whatever is in it: what a comment may hold.
std::string shell_quoted_line(std::string_view word);

}  // namespace scalecalc
