// embed_fields SCHEMAS OUT.cpp: writes the names of docs/schema/*.schema.json (report/answer_fields.h) as a C++ file.
// Runs while the program is built.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/io.h"
#include "base/text.h"
#include "cmake/write_generated.h"
#include "config/catalog.h"
#include "config/json_reader.h"

namespace scalecalc {

EmbeddedLabels embedded_labels() { return {}; }
std::span<const EmbeddedFile> embedded_catalog() { return {}; }  // nothing is looked up here

namespace {

namespace fs = std::filesystem;

using Documents = std::map<std::string, ConfigNode>;

/// One schema's names: of each member its own, and with the objects around it before it. Lists start anew.
/// "x-columns" lists columns that CSV alone has or people alone read.
class Names {
 public:
  explicit Names(const Documents& documents) : documents_(documents) {}

  using Path = std::vector<std::string>;
  void walk(const std::string& file, const ConfigNode& node, const Path& around) {
    constexpr std::size_t kDeepest = 6;
    if (around.size() > kDeepest) return;
    for (const ConfigNode& item : node.items) walk(file, item, around);
    for (const auto& [key, span, value] : node.entries) {
      if (key == "$ref") {
        refer(file, value.text, around);
      } else if (key == "properties") {
        for (const ConfigNode::Entry& member : value.entries) member_of(file, member, around);
      } else if (key == "x-columns") {
        for (const ConfigNode& item : value.items) out_.insert(item.text);
      } else if (key == "items") {
        if (in_items_ < kDeepest) {
          ++in_items_;
          walk(file, value, {});
          --in_items_;
        }
      } else if (key == "oneOf" || key == "anyOf" || key == "allOf" || key == "then" || key == "else") {
        walk(file, value, around);
      }
    }
  }

  const std::set<std::string>& all() const { return out_; }

 private:
  void member_of(const std::string& file, const ConfigNode::Entry& member, Path around) {
    around.push_back(member.key);
    std::string name;
    for (auto part = around.rbegin(); part != around.rend(); ++part) {
      name.insert(0, name.empty() ? *part : *part + '_');
      out_.insert(name);
      if (is_open(file, member.value)) out_.insert(name + "_*");
    }
    walk(file, member.value, around);
  }

  /// An object whose members the schema does not name: formats, tiers.
  bool is_open(const std::string& file, const ConfigNode& node) const {
    if (const ConfigNode* to = node.find("$ref")) {
      const auto [target, found] = referred(file, to->text);
      return is_open(target, *found);
    }
    const ConfigNode* type = node.find("type");
    const auto says_object = [](const ConfigNode& n) { return n.text == "object"; };
    if (type == nullptr || !(says_object(*type) || std::any_of(type->items.begin(), type->items.end(), says_object))) {
      return false;
    }
    const ConfigNode* others = node.find("additionalProperties");
    return node.find("properties") == nullptr || (others != nullptr && others->text != "false");
  }

  void refer(const std::string& file, const std::string& to, const Path& around) {
    const auto [target, node] = referred(file, to);
    walk(target, *node, around);
  }

  /// "#/definitions/layout", "train.schema.json#/definitions/plan"
  std::pair<std::string, const ConfigNode*> referred(const std::string& file, const std::string& to) const {
    const std::size_t hash = to.find('#');
    const std::string target = hash == 0 ? file : to.substr(0, hash);
    const auto found = documents_.find(target);
    if (found == documents_.end()) throw UserError(file + ": no schema " + target, "");
    const ConfigNode* node = &found->second;
    for (std::size_t at = hash + 2; hash != std::string::npos && at < to.size();) {
      const std::size_t end = std::min(to.find('/', at), to.size());
      node = node->find(to.substr(at, end - at));
      if (node == nullptr) throw UserError(fmt::format("{}: nothing at {}", file, to), "");
      at = end + 1;
    }
    return {target, node};
  }

  const Documents& documents_;
  std::set<std::string> out_;
  std::size_t in_items_ = 0;
};

/// The literal of a constant, in lines.
std::string literal(const std::vector<std::string>& names) {
  std::string out = "\"";
  std::size_t width = 0;
  for (const std::string& name : names) {
    out += name + ' ';
    width += name.size();
    if (width > 100) out += "\"\n     \"";
    if (width > 100) width = 0;
  }
  return out + '"';
}

/// "x-sections" lists what --only can ask the command's answers for.
std::vector<std::string> sections_of(const ConfigNode& document) {
  std::vector<std::string> out;
  const ConfigNode* sections = document.find("x-sections");
  if (sections == nullptr) return out;
  for (const ConfigNode& section : sections->items) out.push_back(section.text);
  return out;
}

std::string generated(const fs::path& place) {
  constexpr std::string_view kEnding = ".schema.json";
  Documents documents;
  for (const fs::directory_entry& found : fs::directory_iterator(place)) {
    const std::string file = found.path().filename().string();
    if (file.ends_with(kEnding)) documents[file] = read_json(read_text_file(found.path().string()), file);
  }
  std::string out =
      "// Generated by src/cmake/embed_fields.cpp from docs/schema.\n#include <algorithm>\n#include <array>\n\n"
      "#include \"report/answer_fields.h\"\n\nnamespace scalecalc {\n\nnamespace {\n\n"
      "struct Fields {\n  std::string_view document;\n  std::string_view names;\n  std::string_view sections;\n};\n\n";
  out += fmt::format("constexpr std::array<Fields, {}> kFields{{{{\n", documents.size());
  for (const auto& [file, document] : documents) {
    Names names(documents);
    names.walk(file, document, {});
    out += fmt::format("    {{\"{}\",\n     {},\n     {}}},\n", file.substr(0, file.size() - kEnding.size()),
                       literal({names.all().begin(), names.all().end()}), literal(sections_of(document)));
  }
  return out + R"(}};

/// Of all documents of a command, between blanks.
std::vector<std::string> of_command(std::string_view command, std::string_view Fields::*list) {
  std::vector<std::string> out;
  for (const Fields& fields : kFields) {
    const bool of_it = fields.document.starts_with(command) &&
                       (fields.document.size() == command.size() || fields.document[command.size()] == '-');
    for (std::size_t at = 0; of_it && at < (fields.*list).size();) {
      const std::size_t end = (fields.*list).find(' ', at);
      out.emplace_back((fields.*list).substr(at, end - at));
      at = end + 1;
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

std::vector<std::string> answer_fields(std::string_view command) { return of_command(command, &Fields::names); }

std::vector<std::string> answer_sections(std::string_view command) { return of_command(command, &Fields::sections); }

}  // namespace scalecalc
)";
}

}  // namespace
}  // namespace scalecalc

int main(int argc, char** argv) { return scalecalc::write_generated(argc, argv, scalecalc::generated); }
