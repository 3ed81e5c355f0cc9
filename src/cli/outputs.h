// Where results go: at most one to standard output, any number to files that are opened before the work starts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/io.h"
#include "cli/environment.h"
#include "cli/options.h"

namespace scalecalc::cli {

enum class OutputFormat { kTable, kJson, kJsonl, kCsv, kMarkdown, kHtml, kRow, kRows, kPlot, kSvg };
std::span<const std::string_view> output_format_names();

/// Whether a value of -o asks for a picture: "svg=FILE", "plot".
bool asks_for_picture(std::string_view value);

/// Formats that show warnings and assumptions to their reader.
bool for_people(const std::optional<OutputFormat>& format);

/// Writes a result to a stream and makes sure it arrived. UserError with exit 74 if it did not; a reader that has gone
/// away (EPIPE) is no failure.
void write_result(std::ostream& out, const std::string& text);

class OutputTargets {
 public:
  /// Of -o, --json and --plot. Opens the files.
  explicit OutputTargets(const Arguments& arguments);
  /// Of these values of -o and --json alone.
  OutputTargets(const std::vector<std::string>& values, bool json);

  std::optional<OutputFormat> standard_output() const { return standard_output_; }
  /// Whether some output has this format.
  bool has(OutputFormat format) const;
  /// Calls `text(format)` for each output and writes what it returns; files first, so that they are complete even if
  /// the reader of standard output goes away.
  template <class Text>
  void write(Environment& env, Text text) {
    for (Target& target : files_) target.file.commit(text(target.format, true));
    if (standard_output_) write_result(env.out, text(*standard_output_, false));
  }

 private:
  struct Target {
    OutputFormat format;
    std::string path;
    AtomicFile file;
  };
  void add(std::string_view value);

  std::optional<OutputFormat> standard_output_;
  std::vector<Target> files_;
};

/// True if the words ask for JSON on standard output; usable before they are parsed, so that errors in them come as
/// JSON too.
bool asks_for_json(const std::vector<std::string>& args);

}  // namespace scalecalc::cli
