// A study: one command asked at every point of a grid.
//
//   command: train
//   arguments: ["{model}"]               words of the command line; {name} is the value of an axis
//   flags: {hw: h100-sxm, tokens: 15T}   flags that stay; true is a switch
//   axes:                                the first varies slowest
//     model: {models: llama3-*}          names of the catalog; {hardware: tpu-*} likewise, {files: ./m/*.yaml} of files
//     chips: 256..16384*2                a range (base/sweep.h), a list, or one value
//     size: {zip: {seq: [8k, 128k], batch-tokens: [4M, 16M]}}    columns that vary together
//   where: chips <= 4096 OR model = 'llama3-8b'       SQL: points to ask about
//   records: first                       of an answer of several records: the first, or all
//
// An axis whose name no {placeholder} takes is a flag of the command.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/explained.h"
#include "config/catalog.h"

namespace scalecalc {

// One question of a study as the command line would ask it, and what came back. Who answers is handed in, so that a
// study can ask every command there is.

using FlagValues = std::map<std::string, std::vector<std::string>, std::less<>>;  ///< "--chips" to its values

struct StudyQuestion {
  std::string command;
  std::vector<std::string> positionals;
  FlagValues flags;  ///< a switch has no values
};

/// "scalecalc train llama3-8b --hw h100-sxm --chips 8", quoted for a shell; `last` are flags that come after these.
std::string command_line(const StudyQuestion& question, const std::vector<FlagChange>& last = {});

struct StudyReply {
  int exit = 0;          ///< as the command's own exit status
  std::string records;   ///< the command's -o row, or rows
  std::string reason;    ///< on one line, if there is no answer
  std::string warnings;  ///< what the answer rests on and should be known, on one line
};

using Ask = std::function<StudyReply(const StudyQuestion&)>;

/// What a study may say to a command.
struct CommandForm {
  struct Option {
    std::string flag;  ///< "--chips"
    bool takes_value = true;
    bool repeatable = false;
    bool writes = false;  ///< a file
  };
  std::string name;
  std::vector<Option> options;
  std::function<std::string(const std::string& flag)>
      meaning;  ///< "did you mean ...": of a flag it has not; may be empty
};

// Texts with {names} of axes in them: "{batch}x8192x28672".

/// One part of such a text: as written, or the name of an axis.
struct TextPart {
  std::string text;
  bool is_name = false;
};

/// "{{" and "}}" stand for braces. A brace that is never closed is taken as written.
std::vector<TextPart> split_placeholders(std::string_view text);

/// The values of one name along an axis, as texts of the command line.
struct StudyColumn {
  std::string name;
  std::vector<std::string> values;
  std::vector<double> numbers;     ///< the same, if all are plain numbers or counts; else empty
  std::vector<SourceSpan> places;  ///< where the values stand in the study file; empty if they come from a manifest
};

struct StudyAxis {
  std::vector<StudyColumn> columns;  ///< several vary together

  std::size_t size() const { return columns.front().values.size(); }
};

struct StudyFlag {
  std::string flag;                 ///< "--hw"
  std::vector<std::string> values;  ///< with {placeholders}; empty: a switch
};

struct Study {
  std::string command;
  std::vector<std::string> arguments;  ///< with {placeholders}
  std::vector<StudyFlag> flags;        ///< in the order of the file, those of axes last
  std::vector<StudyAxis> axes;
  std::string where;  ///< empty: every point
  bool all_records = false;
  std::vector<std::string> config_directories;
};

/// UserError with every problem of the file, each with its place. `forms` are the commands a study may ask.
Study read_study(const std::string& path, const std::vector<CommandForm>& forms,
                 std::vector<std::string> config_directories);

/// The name of a column in rows and conditions: batch-tokens is batch_tokens there.
std::string row_name(std::string_view column);

/// The row_name of every column, in the order of the axes.
std::vector<std::string> column_names(const Study& study);

/// The numbers of texts that are all counts or plain numbers; empty if one is not.
std::vector<double> numbers_of(const std::vector<std::string>& values);

}  // namespace scalecalc
