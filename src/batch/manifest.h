// DIR/manifest.json: what a study's results are computed from, pinned. Two machines, or one on two days, compute shards
// of one study only if their manifests have the same hash.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batch/study.h"

namespace scalecalc {

struct PinnedFile {
  std::string path;
  std::string sha256;
};

struct StudyManifest {
  Study study;  ///< normalised: axes with all their values
  std::string tool_version;
  std::string catalog_sha256;      ///< of the built-in models and hardware
  std::vector<PinnedFile> inputs;  ///< files that the study or its config directories name
  std::uint64_t cases = 0;         ///< points of the grid
  std::uint64_t shards = 1;
  std::string hash;  ///< SHA-256 of all the above
};

/// Reads and hashes the files that the study names.
StudyManifest make_manifest(Study study, std::string_view tool_version, std::uint64_t shards);

std::string manifest_path(const std::string& directory);
bool has_manifest(const std::string& directory);

/// Creates the directory. UserError (exit 74) if it cannot be written.
void write_manifest(const StudyManifest& manifest, const std::string& directory);

/// UserError (exit 2) if there is none or it is damaged. Of another release or catalog too: rows that are there can be
/// counted and merged.
StudyManifest read_manifest(const std::string& directory, std::string_view tool_version);
/// To ask more of its points. UserError (exit 2) also if it was made from something else than what is here now: another
/// version of the program or its catalog, or a changed file.
StudyManifest manifest_to_run(const std::string& directory, std::string_view tool_version);

}  // namespace scalecalc
