// embed_catalog CONFIGS OUT.cpp: writes a C++ file that holds every *.yaml below CONFIGS but those of studies/, as
// written and parsed, so that the one binary answers from any directory and parses none of them. Runs while the program
// is built.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/digest.h"
#include "base/io.h"
#include "base/text.h"
#include "cmake/write_generated.h"
#include "config/catalog.h"
#include "config/embedded_launches.h"
#include "config/packed_tree.h"
#include "config/yaml_reader.h"

namespace scalecalc {

/// The configuration layer, which this program is linked with, looks names up in a table that does not exist yet.
std::span<const EmbeddedFile> embedded_catalog() { return {}; }
EmbeddedLabels embedded_labels() { return {}; }

namespace {

namespace fs = std::filesystem;

/// A string literal of any bytes, in pieces that compilers and editors can bear.
std::string literal(std::string_view bytes) {
  constexpr std::size_t kPiece = 64;
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    out += "\n     \"";
    for (const char c : bytes.substr(at, kPiece)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
    out += '"';
  }
  return out.empty() ? "\"\"" : out;
}

std::string text_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// Files of users are searched for their aliases line by line, so the files that they copy write them on one line.
std::string aliases_of(const ConfigNode& document, const std::string& text, const std::string& file) {
  const ConfigNode* aliases = document.find("aliases");
  if (aliases == nullptr) return "";
  const std::size_t line = text.find("\naliases: [");
  const std::size_t end = line == std::string::npos ? line : text.find(']', line);
  if (end == std::string::npos || text.find('\n', line + 1) < end) {
    throw UserError(file + ": write aliases as a list on one line: aliases: [a, b]", "");
  }
  std::vector<std::string> names;
  for (const ConfigNode& item : aliases->items) names.push_back(item.text);
  return join(names, ",");
}

/// "hardware/book/tpu-v5p.yaml" is called book/tpu-v5p unless it says otherwise.
std::string name_of(const ConfigNode& document, const std::string& file) {
  if (const ConfigNode* name = document.find("name")) return name->text;
  const std::string inside = file.substr(file.find('/') + 1);
  return inside.substr(0, inside.size() - std::string_view(".yaml").size());
}

/// What is long is deflated; in the folders of which a list reads every file only what is longest, so that a list
/// starts at once. Stacks are not: nearly every question reads one, and needs little of it.
std::string stored(const std::string& folder, const std::string& both) {
  if (folder == "stacks/") return both;
  const bool listed = folder == "hardware/" || folder == "models/";
  const std::size_t least = (listed ? 8U : 2U) << 10U;
  if (both.size() < least) return both;
  uLongf size = compressBound(both.size());
  std::string out(size, '\0');
  const int state = compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(both.data()),
                              both.size(), Z_BEST_COMPRESSION);
  if (state != Z_OK) throw UserError("a file of the catalog cannot be compressed", "");
  if (size >= both.size()) return both;
  out.resize(size);
  return out;
}

/// What files answer to, with the file's place in the table.
using FilesOfLabels = std::set<std::pair<std::string, std::size_t>>;

/// Priority, name, whether it serves and place in the table of the files.
using Launches = std::vector<std::tuple<int, std::string, bool, std::size_t>>;

/// What launch/load_frameworks.cpp reads and checks when the program runs.
void add_launches(const ConfigNode& document, std::size_t place, Launches& out) {
  const ConfigNode* launch = document.find("launch");
  if (launch == nullptr) return;
  for (const ConfigNode::Entry& entry : launch->entries) {
    const ConfigNode* job = entry.value.find("job");
    const ConfigNode* priority = entry.value.find("priority");
    int number = 1000;
    if (priority != nullptr) {
      std::from_chars(priority->text.data(), priority->text.data() + priority->text.size(), number);
    }
    out.emplace_back(number, entry.key, job != nullptr && job->text == "serving", place);
  }
}

std::string entry(const fs::path& root, const std::string& file, std::size_t place, FilesOfLabels& labels,
                  Launches& launches, Sha256& digest) {
  const std::string text = read_text_file((root / file).string());
  digest.add(fmt::format("{} {}\n", file, text.size()));
  digest.add(text);
  const ConfigNode document = read_yaml(text, (root / file).string(), limits::kTableNodes);
  const std::string folder = file.substr(0, file.find('/') + 1);
  labels.emplace(folder + folded(name_of(document, file)), place);
  if (const ConfigNode* aliases = document.find("aliases")) {
    for (const ConfigNode& item : aliases->items) labels.emplace(folder + folded(item.text), place);
  }
  add_launches(document, place, launches);
  const std::string packed = pack(document, text);
  const std::string bytes = stored(folder, text + packed);
  return fmt::format("    {{{}, {}, {},\n     {{{}, {}}}, {}, {}}},\n", text_literal(file),
                     text_literal(name_of(document, file)), text_literal(aliases_of(document, text, file)),
                     literal(bytes), bytes.size(), text.size(), packed.size());
}

std::string table_of(const FilesOfLabels& labels) {
  std::string text;
  std::string places;
  for (const auto& [label, file] : labels) {
    places += fmt::format("    {{{}, {}, {}}},\n", text.size(), label.size(), file);
    text += label;
  }
  return fmt::format(
      "static constexpr std::string_view kLabelText{{{}, {}}};\n\n"
      "static constexpr std::array<EmbeddedLabels::Label, {}> kLabels{{{{\n{}}}}};\n\n"
      "EmbeddedLabels embedded_labels() {{ return {{kLabelText, kLabels}}; }}\n\n",
      literal(text), text.size(), labels.size(), places);
}

std::string launches_table(Launches launches) {
  std::sort(launches.begin(), launches.end());
  std::string out = fmt::format("static constexpr std::array<EmbeddedLaunch, {}> kLaunches{{{{\n", launches.size());
  for (const auto& [priority, name, serves, file] : launches) {
    out += fmt::format("    {{{}, {}, {}}},\n", text_literal(name), serves, file);
  }
  return out + "}};\n\nstd::span<const EmbeddedLaunch> embedded_launches() { return kLaunches; }\n\n";
}

std::string generated(const fs::path& root) {
  std::vector<std::string> files;
  for (const fs::directory_entry& found : fs::recursive_directory_iterator(root)) {
    const std::string file = found.path().lexically_relative(root).generic_string();
    if (found.path().extension() == ".yaml" && !file.starts_with("studies/")) files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  std::string out =
      "// Generated by src/cmake/embed_catalog.cpp from configs/.\n#include \"config/catalog.h\"\n#include "
      "\"config/embedded_digest.h\"\n#include \"config/embedded_launches.h\"\n\n";
  out += fmt::format(
      "#include <array>\n\nnamespace scalecalc {{\n\nstatic constexpr std::array<EmbeddedFile, {}> "
      "kFiles{{{{\n",
      files.size());
  FilesOfLabels labels;
  Launches launches;
  Sha256 digest;
  for (std::size_t i = 0; i < files.size(); ++i) out += entry(root, files[i], i, labels, launches, digest);
  return out + "}};\n\nstd::span<const EmbeddedFile> embedded_catalog() { return kFiles; }\n\n" + table_of(labels) +
         launches_table(launches) +
         fmt::format("std::string_view embedded_catalog_sha256() {{ return \"{}\"; }}\n\n", digest.take()) +
         "}  // namespace scalecalc\n";
}

}  // namespace
}  // namespace scalecalc

int main(int argc, char** argv) { return scalecalc::write_generated(argc, argv, scalecalc::generated); }
