#include "golden/transcript.h"

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "base/quoting.h"
#include "cli/run.h"
#include "golden/select.h"
#include "support/unified_diff.h"

namespace scalecalc::golden {
namespace {

namespace fs = std::filesystem;

/// What follows `key` at the start of a line.
bool starts(const std::string& line, std::string_view key, std::string& rest) {
  if (!line.starts_with(key)) return false;
  rest = line.substr(key.size());
  return true;
}

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

std::string read_block(std::istream& in, std::string& preamble) {
  std::string out;
  for (std::string line; std::getline(in, line);) {
    preamble += line + "\n";
    if (line == "# end") return out;
    out += line + "\n";
  }
  throw std::runtime_error("a # file: block without # end");
}

void read_directive(const std::string& line, std::istream& in, Transcript& out) {
  std::string rest;
  if (starts(line, "# tty: ", rest)) out.tty = std::stoul(rest);
  if (line == "# utf8") out.utf8 = true;
  if (starts(line, "# dir: ", rest)) out.directories.push_back(rest);
  if (starts(line, "# env: ", rest)) out.variables[rest.substr(0, rest.find('='))] = rest.substr(rest.find('=') + 1);
  if (starts(line, "# file: ", rest)) out.files.emplace_back(rest, read_block(in, out.preamble));
  if (starts(line, "# bytes: ", rest)) {
    out.files.emplace_back(rest.substr(0, rest.find(' ')), from_hex(rest.substr(rest.find(' ') + 1)));
  }
  if (starts(line, "# repeat: ", rest)) {
    std::istringstream words(rest);
    std::string name;
    std::string text;
    std::size_t times = 0;
    words >> name >> times;
    words.get();
    std::getline(words, text);
    std::string content;
    for (std::size_t i = 0; i < times; ++i) content += text + "\n";
    out.files.emplace_back(name, content);
  }
}

std::string masked(std::string text) {
  static const std::regex kVersion(R"re(("version": "|"tool_version":"|scalecalc )[0-9]+\.[0-9]+\.[0-9]+)re");
  static const std::regex kCommit("\ncommit [^\n]*\n");
  text = std::regex_replace(text, kCommit, "\ncommit <commit>\n");
  return std::regex_replace(text, kVersion, "$1<version>");
}

/// A fresh working directory with the files of a transcript, left and removed at the end.
class Place {
 public:
  explicit Place(const Transcript& transcript) : before_(fs::current_path()) {
    std::string name = (fs::temp_directory_path() / "scalecalc-golden-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    place_ = name;
    fs::current_path(place_);
    for (const std::string& directory : transcript.directories) fs::create_directories(directory);
    for (const auto& [path, content] : transcript.files) {
      if (fs::path(path).has_parent_path()) fs::create_directories(fs::path(path).parent_path());
      std::ofstream(path, std::ios::binary) << content;
    }
  }
  ~Place() {
    std::error_code ignored;
    fs::current_path(before_, ignored);
    fs::remove_all(place_, ignored);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  fs::path before_;
  fs::path place_;
};

Case run_case(const Transcript& transcript, const Case& item) {
  std::vector<std::string> words = shell_words(item.command);
  if (words.empty() || words.front() != "scalecalc") {
    throw std::runtime_error("not a scalecalc command: " + item.command);
  }
  words.erase(words.begin());
  std::ostringstream out;
  std::ostringstream err;
  cli::Environment env{.out = out, .err = err};
  env.variable = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = transcript.variables.find(name);
    return found == transcript.variables.end() ? std::nullopt : std::optional(found->second);
  };
  env.out_is_tty = transcript.tty > 0;
  env.width = transcript.tty;
  env.utf8 = transcript.utf8;
  const int code = cli::run(words, env);
  Case found{item.command, item.select, masked(out.str()), masked(err.str()), code};
  if (found.select.empty()) return found;
  std::string paths;
  for (const std::string& line : found.select) paths += line + " ";
  found.out = select(found.out, paths);
  return found;
}

}  // namespace

std::string difference(const Case& expected, const Case& found) {
  std::string out;
  const auto stream = [&](const char* name, const std::string& was, const std::string& is) {
    const std::string diff = test::unified_diff(was, is);
    if (!diff.empty()) out += std::string("--- ") + name + ", the transcript\n+++ " + name + ", printed now\n" + diff;
  };
  stream("standard output", expected.out, found.out);
  stream("standard error", expected.err, found.err);
  if (expected.exit != found.exit) {
    out += "-[exit " + std::to_string(expected.exit) + "]\n+[exit " + std::to_string(found.exit) + "]\n";
  }
  return out;
}

Transcript parse_transcript(const std::string& text) {
  Transcript out;
  std::istringstream in(text);
  bool to_err = false;
  std::string rest;
  for (std::string line; std::getline(in, line);) {
    if (starts(line, "$ ", rest)) {
      out.cases.push_back({rest, {}, "", "", 0});
      to_err = false;
    } else if (out.cases.empty()) {
      out.preamble += line + "\n";
      read_directive(line, in, out);
    } else if (out.cases.back().out.empty() && starts(line, "| select ", rest)) {
      out.cases.back().select.push_back(rest);
    } else if (line == "[stderr]") {
      to_err = true;
    } else if (starts(line, "[exit ", rest)) {
      out.cases.back().exit = std::stoi(rest);
      to_err = false;
    } else {
      (to_err ? out.cases.back().err : out.cases.back().out) += line + "\n";
    }
  }
  if (out.cases.empty()) throw std::runtime_error("a transcript without a command");
  return out;
}

std::string write_transcript(const Transcript& transcript) {
  std::string out = transcript.preamble;
  for (const Case& item : transcript.cases) {
    out += "$ " + item.command + "\n";
    for (const std::string& paths : item.select) out += "| select " + paths + "\n";
    out += item.out;
    if (!item.err.empty()) out += "[stderr]\n" + item.err;
    out += "[exit " + std::to_string(item.exit) + "]\n";
  }
  return out;
}

std::vector<Case> run_transcript(const Transcript& transcript) {
  const Place place(transcript);
  std::vector<Case> out;
  for (const Case& item : transcript.cases) out.push_back(run_case(transcript, item));
  return out;
}

}  // namespace scalecalc::golden
