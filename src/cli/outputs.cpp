// Opens the files of --output before the work starts and writes the answer to each of them.
#include "cli/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/diagnostic.h"
#include "base/text.h"
#include "cli/foreign_words.h"

namespace scalecalc::cli {
namespace {

constexpr std::array<std::string_view, 10> kOutputFormatNames{"table", "json", "jsonl", "csv",  "markdown",
                                                              "html",  "row",  "rows",  "plot", "svg"};

OutputFormat output_format_of(std::string_view word) {
  if (const auto meant = word_meant(word, kOutputFormatNames)) return static_cast<OutputFormat>(*meant);
  const std::vector<std::string> known(kOutputFormatNames.begin(), kOutputFormatNames.end());
  std::string hint = did_you_mean(nearest(word, known));
  if (!hint.empty()) hint += ' ';
  throw UserError(fmt::format("unknown output format {}", in_quotes(word)),
                  fmt::format("{}formats: {}", hint, join(known, ", ")));
}

}  // namespace

std::span<const std::string_view> output_format_names() { return kOutputFormatNames; }

bool asks_for_picture(std::string_view value) {
  const std::string_view word = value.substr(0, value.find('='));
  return word == "plot" || word == "svg";
}

bool for_people(const std::optional<OutputFormat>& format) {
  return format == OutputFormat::kTable || format == OutputFormat::kMarkdown || format == OutputFormat::kHtml;
}

void write_result(std::ostream& out, const std::string& text) {
  errno = 0;
  out << text;
  out.flush();
  if (out) return;
  const int error = errno;
  out.clear();  // the stream may still be asked to flush at exit
  if (error == EPIPE) return;
  const std::string why = error == 0 ? "the stream is closed" : std::strerror(error);
  throw UserError(fmt::format("cannot write to standard output: {}", why), "", ExitCode::kOutputFailed);
}

OutputTargets::OutputTargets(const Arguments& arguments) {
  if (arguments.has("--json")) add("json");
  if (arguments.has("--plot")) add("plot");
  for (const std::string& value : arguments.values("--output")) add(value);
  if (!standard_output_ && files_.empty()) standard_output_ = OutputFormat::kTable;
}

OutputTargets::OutputTargets(const std::vector<std::string>& values, bool json) {
  if (json) add("json");
  for (const std::string& value : values) add(value);
  if (values.empty() && !json) standard_output_ = OutputFormat::kTable;
}

void OutputTargets::add(std::string_view value) {
  const std::size_t equals = value.find('=');
  const OutputFormat format = output_format_of(value.substr(0, equals));
  const std::string path = equals == std::string_view::npos ? "-" : std::string(value.substr(equals + 1));
  if (path == "-") {
    if (standard_output_ && *standard_output_ != format) {
      throw UserError(
          fmt::format("{} and {} cannot both go to standard output",
                      kOutputFormatNames[static_cast<std::size_t>(*standard_output_)], value.substr(0, equals)),
          fmt::format("name a file for one of them: -o {}=FILE", value.substr(0, equals)));
    }
    standard_output_ = format;
    return;
  }
  for (const Target& other : files_) {
    if (other.path == path) {
      throw UserError(fmt::format("two outputs go to the same file {}", in_quotes(path)), "");
    }
  }
  files_.push_back({format, path, AtomicFile(path)});
}

bool OutputTargets::has(OutputFormat format) const {
  return standard_output_ == format ||
         std::any_of(files_.begin(), files_.end(), [&](const Target& target) { return target.format == format; });
}

bool asks_for_json(const std::vector<std::string>& args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::string_view word = args[i];
    if (word == "--") return false;
    if (word == "--json") return true;
    if (word == "-o" || word == "--output") {
      word = i + 1 < args.size() ? std::string_view(args[i + 1]) : std::string_view();
    } else if (word.starts_with("--output=")) {
      word.remove_prefix(std::string_view("--output=").size());
    } else if (word.starts_with("-o")) {
      word.remove_prefix(2);
    } else {
      continue;
    }
    if (word == "json" || word == "json=-") return true;
  }
  return false;
}

}  // namespace scalecalc::cli
