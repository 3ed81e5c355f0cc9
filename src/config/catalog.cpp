// Finds and loads files of the catalog by name. Only the one file that is asked for is parsed; other files give their
// `name:` and `aliases:` lines, which the build has put into the embedded table.
#include "config/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/inflate.h"
#include "base/io.h"
#include "base/text.h"
#include "config/extends.h"
#include "config/json_reader.h"
#include "config/near_names.h"
#include "config/packed_tree.h"
#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

std::string_view folder(CatalogKind kind) {
  switch (kind) {
    case CatalogKind::kHardware: return "hardware";
    case CatalogKind::kModel: return "models";
    case CatalogKind::kEfficiency: return "efficiency";
    case CatalogKind::kStack: return "stacks";
    case CatalogKind::kMeasurements: return "measurements";
    case CatalogKind::kLaw: return "laws";
    case CatalogKind::kEvidence: return "evidence";
    case CatalogKind::kKernel: return "kernels";
  }
  return "";
}

std::string_view noun(CatalogKind kind) {
  switch (kind) {
    case CatalogKind::kHardware: return "hardware";
    case CatalogKind::kModel: return "model";
    case CatalogKind::kEfficiency: return "efficiency family";
    case CatalogKind::kStack: return "software stack";
    case CatalogKind::kMeasurements: return "measurements";
    case CatalogKind::kLaw: return "scaling law";
    case CatalogKind::kEvidence: return "evidence";
    case CatalogKind::kKernel: return "attention kernel";
  }
  return "";
}

/// What people put between the parts of a name.
bool separates(char c) { return c == '-' || c == '_' || c == ' '; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Equal once folded: H100 SXM, h100_sxm and h100-sxm are one.
bool same(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  for (;; ++i, ++j) {
    while (i < a.size() && separates(a[i])) ++i;
    while (j < b.size() && separates(b[j])) ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (lower(a[i]) != lower(b[j])) return false;
  }
}

bool answers_to(const Labels& labels, std::string_view wanted) {
  const auto matches = [&](const std::string& label) { return same(label, wanted); };
  return matches(labels.name) || std::any_of(labels.aliases.begin(), labels.aliases.end(), matches);
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kAround = " \t\r\"'[]";
  const std::size_t first = text.find_first_not_of(kAround);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kAround) - first + 1));
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (std::string item = trimmed(text.substr(0, comma)); !item.empty()) out.push_back(std::move(item));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

/// What stands behind `key:` at the start of a line, without a comment.
std::string_view line_value(std::string_view text, std::string_view key) {
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    if (line.starts_with(key)) {
      const std::string_view value = line.substr(key.size());
      return value.substr(0, value.find(" #"));
    }
    start = end + 1;
  }
  return {};
}

struct UserFile {
  fs::path path;
  Labels labels;
};

/// The YAML files of one folder and its direct subfolders, sorted, with their labels. A file that cannot be read
/// answers to its file name; the reason is given when it is asked for.
std::vector<UserFile> user_files(const fs::path& place) {
  std::vector<UserFile> out;
  std::error_code ignored;
  auto it = fs::recursive_directory_iterator(place, fs::directory_options::skip_permission_denied, ignored);
  for (; !ignored && it != fs::recursive_directory_iterator(); it.increment(ignored)) {
    if (it.depth() >= 1) it.disable_recursion_pending();
    // A pipe or a device would be waited for.
    if (it->path().extension() != ".yaml" || !it->is_regular_file(ignored)) continue;
    UserFile file{it->path(), {}};
    file.labels.name = file.path.lexically_relative(place).replace_extension().generic_string();
    try {
      const std::string text = read_text_file(file.path.string());
      if (std::string name = trimmed(line_value(text, "name:")); !name.empty()) file.labels.name = name;
      file.labels.aliases = split_list(line_value(text, "aliases:"));
    } catch (const UserError&) {
      file.labels.aliases.clear();
    }
    out.push_back(std::move(file));
  }
  std::sort(out.begin(), out.end(), [](const UserFile& a, const UserFile& b) { return a.path < b.path; });
  return out;
}

bool in_folder(const EmbeddedFile& file, CatalogKind kind) {
  const std::string_view place = folder(kind);
  return file.path.size() > place.size() && file.path.starts_with(place) && file.path[place.size()] == '/';
}

Labels labels_of(const EmbeddedFile& file) { return {std::string(file.name), split_list(file.aliases)}; }

/// The built-in files of one folder, which lie together.
std::span<const EmbeddedFile> files_of(CatalogKind kind) {
  const std::span<const EmbeddedFile> all = embedded_catalog();
  const std::string_view place = folder(kind);
  const auto begin = std::partition_point(all.begin(), all.end(), [&](const EmbeddedFile& file) {
    return file.path.substr(0, file.path.find('/')) < place;
  });
  const auto end = std::find_if_not(begin, all.end(), [&](const EmbeddedFile& file) { return in_folder(file, kind); });
  return {begin, end};
}

/// The built-in file that answers to a name; nullptr if none does.
const EmbeddedFile* embedded_file(CatalogKind kind, std::string_view name) {
  const std::string wanted = fmt::format("{}/{}", folder(kind), folded(name));
  const EmbeddedLabels all = embedded_labels();
  const auto text_of_label = [&](const EmbeddedLabels::Label& label) {
    return all.text.substr(label.begin, label.size);
  };
  const auto found =
      std::partition_point(all.labels.begin(), all.labels.end(),
                           [&](const EmbeddedLabels::Label& label) { return text_of_label(label) < wanted; });
  if (found == all.labels.end() || text_of_label(*found) != wanted) return nullptr;
  return &embedded_catalog()[found->file];
}

bool has_ending(std::string_view text, std::string_view ending) {
  return text.size() > ending.size() && same(text.substr(text.size() - ending.size()), ending);
}

/// Measurements are long tables; nothing else is.
std::size_t most_nodes(CatalogKind kind) {
  return kind == CatalogKind::kMeasurements ? limits::kTableNodes : limits::kDocumentNodes;
}

/// A model's config.json may list the format of every expert's matrices.
std::size_t most_nodes_of_json(CatalogKind kind) {
  return kind == CatalogKind::kModel ? limits::kTableNodes : limits::kDocumentNodes;
}

ConfigNode read_path(CatalogKind kind, const std::string& path) {
  std::string file = path;
  std::error_code ignored;
  // A Hugging Face model is a directory whose config.json describes it.
  const fs::path inside = fs::path(path) / "config.json";
  if (kind == CatalogKind::kModel && fs::is_directory(path, ignored) && fs::is_regular_file(inside, ignored)) {
    file = inside.string();
  }
  const std::string text = read_text_file(file);
  const std::string name = file == "-" ? "<standard input>" : file;
  const bool json = has_ending(file, ".json") || (file == "-" && looks_like_json(text));
  return json ? read_json(text, name, most_nodes_of_json(kind)) : read_yaml(text, name, most_nodes(kind));
}

/// The file of a name in one user directory: the file called so, or else the one that says it is called so.
std::optional<std::string> find_in_directory(const fs::path& place, const std::string& name) {
  std::error_code ignored;
  const fs::path direct = place / (name + ".yaml");
  const bool inside = ("/" + name + "/").find("/../") == std::string::npos;
  if (inside && fs::is_regular_file(direct, ignored)) return direct.string();
  for (const UserFile& file : user_files(place)) {
    if (answers_to(file.labels, name)) return file.path.string();
  }
  return std::nullopt;
}

std::vector<Labels> user_labels(const std::vector<std::string>& directories, CatalogKind kind) {
  std::vector<Labels> out;
  for (const std::string& directory : directories) {
    for (UserFile& file : user_files(fs::path(directory) / folder(kind))) out.push_back(std::move(file.labels));
  }
  return out;
}

std::vector<Labels> all_labels(const std::vector<std::string>& directories, CatalogKind kind) {
  std::vector<Labels> out = user_labels(directories, kind);
  for (const EmbeddedFile& file : files_of(kind)) out.push_back(labels_of(file));
  return out;
}

/// Each once.
std::vector<std::string> sorted_names(const std::vector<std::string>& directories, CatalogKind kind) {
  std::vector<std::string> out;
  for (Labels& labels : user_labels(directories, kind)) out.push_back(std::move(labels.name));
  for (const EmbeddedFile& file : files_of(kind)) out.emplace_back(file.name);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

[[noreturn]] void report_unknown(const std::vector<std::string>& directories, CatalogKind kind,
                                 const std::string& name) {
  constexpr std::size_t kLongList = 60;  // beyond it nobody reads all names in a message
  const std::vector<Labels> labels = all_labels(directories, kind);
  std::string hint = did_you_mean(near_names(kind, labels, name));
  if (!hint.empty()) hint += ' ';
  std::error_code ignored;
  if (fs::exists(name, ignored)) hint = fmt::format("to read the file of that name, write './{}'; ", name);
  const std::vector<std::string> known = sorted_names(directories, kind);
  const bool plural = kind == CatalogKind::kModel || kind == CatalogKind::kStack || kind == CatalogKind::kLaw;
  const std::string nouns = fmt::format("{}{}", noun(kind), plural ? "s" : "");
  if (known.empty()) {
    hint += fmt::format("no {} is known", noun(kind));
  } else if (known.size() > kLongList) {
    hint += fmt::format("'scalecalc {} list' shows what is known", kind == CatalogKind::kModel ? "model" : "hw");
  } else {
    hint += fmt::format("known {}: {}", nouns, join(known, ", "));
  }
  // What the catalog lacks needs no file of ours.
  if (kind == CatalogKind::kModel) {
    hint += fmt::format("; any model's own config.json is read, or its directory: 'scalecalc {} ./DIR/config.json'",
                        "model");
  }
  throw UserError(fmt::format("unknown {} {}", noun(kind), in_quotes(name)), hint);
}

std::string span_name(const EmbeddedFile& file) { return fmt::format("built-in:{}", file.path); }

/// Text, then document; `room` holds what is inflated.
std::string_view text_and_document(const EmbeddedFile& file, std::string& room) {
  if (file.bytes.size() == file.text_size + file.packed_size) return file.bytes;
  room = inflated(file.bytes, file.text_size + file.packed_size);
  return room;
}

}  // namespace

std::string text_of(const EmbeddedFile& file) {
  std::string room;
  return std::string(text_and_document(file, room).substr(0, file.text_size));
}

ConfigNode document_of(const EmbeddedFile& file) {
  std::string room;
  const std::string_view both = text_and_document(file, room);
  return unpack(both.substr(file.text_size), both.substr(0, file.text_size), span_name(file));
}

std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (!separates(c)) out += lower(c);
  }
  return out;
}

bool is_catalog_path(std::string_view text) {
  return text == "-" || text.starts_with('.') || text.starts_with('/') || text.ends_with('/') ||
         has_ending(text, ".yaml") || has_ending(text, ".yml") || has_ending(text, ".json");
}

Catalog::Catalog(std::vector<std::string> directories, std::shared_ptr<Remembered> remembered)
    : directories_(std::move(directories)), remembered_(std::move(remembered)) {
  for (const std::string& directory : directories_) {
    std::error_code ignored;
    if (!fs::is_directory(directory, ignored)) {
      throw UserError(fmt::format("{} is not a directory", in_quotes(directory)),
                      "a config directory holds hardware/, models/, efficiency/, stacks/ or laws/");
    }
  }
}

namespace {

bool may_extend(CatalogKind kind) {
  return kind == CatalogKind::kHardware || kind == CatalogKind::kModel || kind == CatalogKind::kStack;
}

/// A path in a file is seen from that file.
std::string seen_from(const std::string& name_or_path, const std::string& file) {
  if (!is_catalog_path(name_or_path) || name_or_path == "-" || fs::path(name_or_path).is_absolute())
    return name_or_path;
  return (fs::path(file).parent_path() / name_or_path).lexically_normal().string();
}

}  // namespace

ConfigNode Catalog::find(CatalogKind kind, const std::string& name_or_path,
                         const std::vector<std::string>& seen) const {
  const auto is_new = [&](const std::string& file) { return std::find(seen.begin(), seen.end(), file) == seen.end(); };
  if (is_catalog_path(name_or_path)) {
    if (is_new(name_or_path)) return read_path(kind, name_or_path);
  } else {
    for (const std::string& directory : directories_) {
      const auto found = find_in_directory(fs::path(directory) / folder(kind), name_or_path);
      if (!found || !is_new(*found)) continue;
      if (embedded_file(kind, name_or_path) != nullptr) {
        note_replaced({{std::string(noun(kind)), name_or_path, *found}});
      }
      return read_yaml(read_text_file(*found), *found, most_nodes(kind));
    }
    const EmbeddedFile* const file = embedded_file(kind, name_or_path);
    if (file != nullptr && is_new(span_name(*file))) return document_of(*file);
    if (seen.empty()) report_unknown(directories_, kind, name_or_path);
    const std::vector<Labels> labels = all_labels(directories_, kind);
    const bool known =
        std::any_of(labels.begin(), labels.end(), [&](const Labels& l) { return answers_to(l, name_or_path); });
    if (!known) report_unknown(directories_, kind, name_or_path);
  }
  throw UserError(fmt::format("{} extends itself: {}", in_quotes(name_or_path), join(seen, " extends ")), "");
}

ConfigNode Catalog::load(CatalogKind kind, const std::string& name_or_path) const {
  std::vector<ConfigNode> chain;  // filled by push_back, as a list in braces would copy the document
  chain.push_back(find(kind, name_or_path, {}));
  std::vector<std::string> seen;
  while (const ConfigNode* base = may_extend(kind) ? chain.back().find("extends") : nullptr) {
    if (base->kind != ConfigNode::Kind::kScalar || base->is_null()) {
      throw UserError({Diagnostic{base->span, fmt::format("'extends' is {}", kind_name(base->kind)),
                                  fmt::format("the name or the file of the {} it differs from", noun(kind))}});
    }
    const SourceSpan at = base->span;
    seen.push_back(chain.back().span.file.str());
    try {
      chain.push_back(find(kind, seen_from(base->text, seen.back()), seen));
    } catch (const UserError& error) {
      Diagnostic problem = error.diagnostics().front();
      if (problem.where.file.empty()) problem.where = at;
      throw UserError({problem});
    }
  }
  ConfigNode out = std::move(chain.back());
  for (chain.pop_back(); !chain.empty(); chain.pop_back()) out = extended(std::move(out), chain.back());
  return out;
}

std::optional<std::string> Catalog::name_of(CatalogKind kind, const std::string& text) const {
  for (const Labels& labels : user_labels(directories_, kind)) {
    if (answers_to(labels, text)) return labels.name;
  }
  const EmbeddedFile* const file = embedded_file(kind, text);
  return file == nullptr ? std::nullopt : std::optional(std::string(file->name));
}

thread_local std::vector<ReplacedFile>* Catalog::noting_ = nullptr;

std::vector<ReplacedFile> Catalog::replaced() const {
  const std::lock_guard lock(replaced_->mutex);
  return replaced_->files;
}

void Catalog::note_replaced(const std::vector<ReplacedFile>& files) const {
  if (files.empty()) return;
  if (noting_ != nullptr) noting_->insert(noting_->end(), files.begin(), files.end());
  const std::lock_guard lock(replaced_->mutex);
  for (const ReplacedFile& file : files) {
    std::vector<ReplacedFile>& known = replaced_->files;
    if (std::find(known.begin(), known.end(), file) == known.end()) known.push_back(file);
  }
}

std::vector<std::string> Catalog::names(CatalogKind kind) const { return sorted_names(directories_, kind); }

}  // namespace scalecalc
