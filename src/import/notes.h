// What an import read, filled in and left alone: for `--explain`, and as assumptions of every answer.
#pragma once

#include <string>
#include <vector>

namespace scalecalc {

struct ImportNotes {
  struct Read {
    std::string key;  ///< "text_config.hidden_size"
    std::string value;
  };
  struct Default {
    std::string key;
    std::string value;
    std::string why;  ///< "default of the class", "hidden_size / num_attention_heads"
  };

  std::string file;                   ///< as it was named
  std::string family;                 ///< what it was read as
  std::vector<Read> read;             ///< in the order asked for
  std::vector<Default> defaults;      ///< keys the file does not have
  std::vector<std::string> ignored;   ///< keys that change nothing here
  std::vector<std::string> remarks;   ///< how something was read that could be read otherwise
  std::vector<std::string> warnings;  ///< what may be wrong
};

/// One thing an answer rests on because of how a model was read.
struct ImportStatement {
  std::string text;
  std::string source;    ///< where it comes from
  bool warning = false;  ///< something may be wrong, or was forced
  std::string key{};     ///< "family", "filled_in", "remark" or "warning"
  std::string value{};   ///< of the first two what it is
};

/// The notes in the order in which an answer states them: what was read as what, what was filled in, remarks, warnings.
std::vector<ImportStatement> import_statements(const ImportNotes& notes);

}  // namespace scalecalc
