// Writes and reads a study's manifest, and refuses to continue a study whose inputs have changed.
#include "batch/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "base/digest.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/text.h"
#include "batch/cases.h"
#include "batch/files.h"
#include "config/catalog.h"
#include "config/embedded_digest.h"
#include "report/json_text.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchema = "scalecalc/batch-manifest/1";

Json column_json(const StudyColumn& column) {
  return {{"name", column.name}, {"numeric", !column.numbers.empty()}, {"values", column.values}};
}

Json study_json(const Study& study) {
  Json axes = Json::array();
  for (const StudyAxis& axis : study.axes) {
    Json columns = Json::array();
    for (const StudyColumn& column : axis.columns) columns.push_back(column_json(column));
    axes.push_back(std::move(columns));
  }
  Json flags = Json::array();
  for (const StudyFlag& flag : study.flags) flags.push_back({{"flag", flag.flag}, {"values", flag.values}});
  return {{"command", study.command},
          {"arguments", study.arguments},
          {"flags", flags},
          {"axes", axes},
          {"where", study.where.empty() ? Json(nullptr) : Json(study.where)},
          {"records", study.all_records ? "all" : "first"},
          {"config_directories", study.config_directories}};
}

Study study_from(const Json& json) {
  Study out;
  out.command = json.at("command");
  out.arguments = json.at("arguments");
  for (const Json& flag : json.at("flags")) out.flags.push_back({flag.at("flag"), flag.at("values")});
  for (const Json& axis : json.at("axes")) {
    StudyAxis made;
    for (const Json& column : axis) {
      StudyColumn read{.name = column.at("name"), .values = column.at("values")};
      if (column.at("numeric").get<bool>()) read.numbers = numbers_of(read.values);
      if (read.values.empty()) throw std::domain_error("an axis is empty");
      made.columns.push_back(std::move(read));
    }
    if (made.columns.empty()) throw std::domain_error("an axis has no columns");
    out.axes.push_back(std::move(made));
  }
  if (!json.at("where").is_null()) out.where = json.at("where");
  out.all_records = json.at("records") == "all";
  out.config_directories = json.at("config_directories");
  return out;
}

Json manifest_json(const StudyManifest& manifest) {
  Json inputs = Json::array();
  for (const PinnedFile& file : manifest.inputs) inputs.push_back({{"path", file.path}, {"sha256", file.sha256}});
  Json out = document_head(kSchema, manifest.tool_version);
  out["study"] = study_json(manifest.study);
  out["catalog_sha256"] = manifest.catalog_sha256;
  out["inputs"] = inputs;
  out["cases"] = manifest.cases;
  out["shards"] = manifest.shards;
  return out;
}

std::string hash_of(const StudyManifest& manifest) { return sha256(manifest_json(manifest).dump()); }

/// Files a value may name: itself, or what a directory of a model holds.
void add_files(const std::string& value, std::vector<std::string>& out) {
  std::error_code ignored;
  if (!is_catalog_path(value)) return;
  const fs::path path(value);
  if (fs::is_regular_file(path, ignored)) out.push_back(value);
  const fs::path place = fs::is_directory(path, ignored) ? path : path.parent_path();
  for (const char* name : {"config.json", "hf_quant_config.json"}) {
    const fs::path beside = place / name;
    const bool belongs = fs::is_directory(path, ignored) || path.filename() == "config.json";
    if (belongs && fs::is_regular_file(beside, ignored)) out.push_back(beside.string());
  }
}

std::vector<std::string> named_files(const Study& study) {
  std::vector<std::string> out;
  for (const std::string& argument : study.arguments) add_files(argument, out);
  for (const StudyFlag& flag : study.flags) {
    for (const std::string& value : flag.values) add_files(value, out);
  }
  for (const StudyAxis& axis : study.axes) {
    for (const StudyColumn& column : axis.columns) {
      for (const std::string& value : column.values) add_files(value, out);
    }
  }
  std::error_code ignored;
  for (const std::string& directory : study.config_directories) {
    for (const auto& entry : fs::recursive_directory_iterator(directory, ignored)) {
      if (entry.path().extension() == ".yaml" && entry.is_regular_file(ignored)) out.push_back(entry.path().string());
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

[[noreturn]] void refuse(const std::string& directory, std::string message, std::string hint) {
  throw UserError({Diagnostic{SourceSpan{.file = manifest_path(directory)}, std::move(message), std::move(hint)}});
}

/// Made for the manifest's files by another program, or changed since.
void check_pins(const StudyManifest& manifest, const std::string& directory, std::string_view tool_version) {
  constexpr std::string_view kAgain = "plan the study again, in another directory";
  if (manifest.tool_version != tool_version) {
    refuse(directory,
           fmt::format("the study was planned by scalecalc {}, and this is {}", manifest.tool_version, tool_version),
           std::string(kAgain));
  }
  if (manifest.catalog_sha256 != embedded_catalog_sha256()) {
    refuse(directory, "the study was planned with other built-in models and hardware than this program has",
           std::string(kAgain));
  }
  std::vector<std::string> changed;
  for (const PinnedFile& file : manifest.inputs) {
    if (sha256(read_whole_file(file.path)) != file.sha256) changed.push_back(file.path);
  }
  if (!changed.empty()) {
    refuse(directory, fmt::format("changed since the study was planned: {}", join(changed, ", ")), std::string(kAgain));
  }
}

}  // namespace

StudyManifest make_manifest(Study study, std::string_view tool_version, std::uint64_t shards) {
  StudyManifest out{.study = std::move(study), .tool_version = std::string(tool_version)};
  out.catalog_sha256 = embedded_catalog_sha256();
  for (const std::string& path : named_files(out.study)) out.inputs.push_back({path, sha256(read_whole_file(path))});
  out.cases = grid_size(out.study).value_or(0);
  out.shards = shards;
  out.hash = hash_of(out);
  return out;
}

std::string manifest_path(const std::string& directory) { return (fs::path(directory) / "manifest.json").string(); }

bool has_manifest(const std::string& directory) {
  std::error_code ignored;
  return fs::exists(manifest_path(directory), ignored);
}

void write_manifest(const StudyManifest& manifest, const std::string& directory) {
  make_directory(directory);
  AtomicFile file(manifest_path(directory));
  Json json = manifest_json(manifest);
  json["hash"] = manifest.hash;
  file.commit(json_text(json, 1));
  sync_directory(directory);
}

StudyManifest read_manifest(const std::string& directory, std::string_view tool_version) {
  if (!has_manifest(directory)) {
    refuse(directory, "there is no manifest", "scalecalc batch plan STUDY.yaml -o DIR makes one");
  }
  StudyManifest out;
  try {
    const std::string text = read_whole_file(manifest_path(directory));
    if (limits::json_exceeds(text, limits::kTreeLevels)) throw std::domain_error(limits::too_deep(limits::kTreeLevels));
    const Json json = Json::parse(text);
    if (const std::string schema = json.at("schema"); schema != kSchema) {
      refuse(directory,
             fmt::format("the manifest is a {} of scalecalc {}, and scalecalc {} reads {}", schema,
                         json.at("tool").at("version").get<std::string>(), tool_version, kSchema),
             "use the release that planned the study, or plan it again in another directory");
    }
    out.study = study_from(json.at("study"));
    out.tool_version = json.at("tool").at("version");
    out.catalog_sha256 = json.at("catalog_sha256");
    for (const Json& file : json.at("inputs")) out.inputs.push_back({file.at("path"), file.at("sha256")});
    out.cases = json.at("cases");
    out.shards = json.at("shards");
    out.hash = json.at("hash");
  } catch (const Json::exception& error) {
    refuse(directory, fmt::format("the manifest is damaged: {}", error.what()), "plan the study again");
  } catch (const std::domain_error& error) {
    refuse(directory, fmt::format("the manifest is damaged: {}", error.what()), "plan the study again");
  }
  if (hash_of(out) != out.hash || out.shards == 0 || grid_size(out.study) != out.cases) {
    refuse(directory, "the manifest is damaged: its hash is not that of its content", "plan the study again");
  }
  return out;
}

StudyManifest manifest_to_run(const std::string& directory, std::string_view tool_version) {
  StudyManifest out = read_manifest(directory, tool_version);
  check_pins(out, directory, tool_version);
  return out;
}

}  // namespace scalecalc
