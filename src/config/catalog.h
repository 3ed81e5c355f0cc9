// Names to documents: where chips, models, efficiency families, software stacks, attention kernels, measured runs and
// scaling laws come from.
//
// A name is looked up, aliases included, in each --config-dir, then SCALECALC_CONFIG_PATH, then the built-in
// catalog. Directories are laid out like configs/: hardware/<name>.yaml, models/<name>.yaml, efficiency/<name>.yaml,
// stacks/<name>.yaml, measurements/<name>.yaml, laws/<name>.yaml, evidence/<name>.yaml,
// kernels/<name>.yaml;
// names may hold one slash (book/tpu-v5p); case, '-', '_' and blanks do not tell names apart. A value that ends in
// .yaml/.yml/.json, starts with . or /, ends with /, or is "-" is a path. A file that ends in .json, and standard input
// that opens like JSON, is read as strict JSON.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/node.h"
#include "config/remembered.h"

namespace scalecalc {

enum class CatalogKind { kHardware, kModel, kEfficiency, kStack, kMeasurements, kLaw, kEvidence, kKernel };

/// One built-in file, from the generated table (src/cmake/embed_catalog.cpp).
struct EmbeddedFile {
  std::string_view path;     ///< "hardware/tpu-v5p.yaml"
  std::string_view name;     ///< "tpu-v5p", "book/tpu-v5p"
  std::string_view aliases;  ///< separated by commas
  std::string_view bytes;    ///< its text, then its document (config/packed_tree.h); deflated if they are longer
  std::size_t text_size = 0, packed_size = 0;
};
/// By path.
std::span<const EmbeddedFile> embedded_catalog();
/// What the built-in files answer to, made when the program is built: their folder and their names and aliases as
/// folded() writes them, "hardware/h100sxm". Sorted, without pointers, which the loader would have to fill in.
struct EmbeddedLabels {
  struct Label {
    std::uint32_t begin;  ///< in `text`
    std::uint16_t size;
    std::uint16_t file;  ///< of embedded_catalog()
  };
  std::string_view text;
  std::span<const Label> labels;
};
EmbeddedLabels embedded_labels();
/// Names are the same whose case and separators alone differ: "H100 SXM" and h100_sxm are h100sxm.
std::string folded(std::string_view name);
/// As written.
std::string text_of(const EmbeddedFile& file);
/// Parsed; its spans say built-in:PATH.
ConfigNode document_of(const EmbeddedFile& file);

/// Whether a MODEL or HW is a path and not a name, as the head of this file says.
bool is_catalog_path(std::string_view text);

/// A user's file that was read where the catalog has one of that name, or of that other name.
struct ReplacedFile {
  std::string kind;  ///< "hardware", "model"
  std::string name;  ///< as it was asked for
  std::string file;  ///< the user's
  friend bool operator==(const ReplacedFile&, const ReplacedFile&) = default;
};

class Catalog {
 public:
  /// `directories` in order of precedence; a directory that does not exist is a UserError.
  /// `remembered`, if any, outlives the catalog and serves others with the same directories.
  explicit Catalog(std::vector<std::string> directories = {}, std::shared_ptr<Remembered> remembered = nullptr);

  /// The parsed document of a name or a path. Unknown names are a UserError with the nearest names; the resolved
  /// node's span.file is the path, or "built-in:hardware/tpu-v5p.yaml". A directory stands for the config.json in it
  /// if a model is asked for. Of hardware, a model or a stack that `extends:` another (config/extends.h) the whole: by
  /// its own name a file extends the one it stands before. Nothing else of what the document says is looked at.
  ConfigNode load(CatalogKind kind, const std::string& name_or_path) const;
  /// The name of the file that a name or an alias stands for; nothing if there is none.
  std::optional<std::string> name_of(CatalogKind kind, const std::string& text) const;
  /// All names (not aliases), sorted, each once.
  std::vector<std::string> names(CatalogKind kind) const;

  /// What is kept between questions; nullptr where there is only one.
  Remembered* remembered() const { return remembered_.get(); }

  /// The user's files that answered in the place of the catalog's, each once, in the order in which they were read.
  std::vector<ReplacedFile> replaced() const;
  /// Notes files that an earlier question read and whose contents this one uses.
  void note_replaced(const std::vector<ReplacedFile>& files) const;
  /// The files that this thread notes while `work` runs.
  template <class Work>
  std::vector<ReplacedFile> replaced_by(Work work) const {
    std::vector<ReplacedFile> out;
    std::vector<ReplacedFile>* const outer = std::exchange(noting_, &out);
    try {
      work();
    } catch (...) {
      noting_ = outer;
      throw;
    }
    noting_ = outer;
    if (outer != nullptr) outer->insert(outer->end(), out.begin(), out.end());
    return out;
  }

 private:
  /// The first document of that name or path in none of the files `seen`.
  ConfigNode find(CatalogKind kind, const std::string& name_or_path, const std::vector<std::string>& seen) const;

  struct Replaced {
    std::mutex mutex;
    std::vector<ReplacedFile> files;
  };

  static thread_local std::vector<ReplacedFile>* noting_;
  std::vector<std::string> directories_;
  std::shared_ptr<Remembered> remembered_;
  std::shared_ptr<Replaced> replaced_ = std::make_shared<Replaced>();
};

/// Applies `a.b.c=value` to a document (the part after the hw./model. prefix): replaces or adds a scalar field;
/// list items by position from 0, or by the tier or name they give (network.0.hop_latency, network.ici.hop_latency). A
/// list of runs (config/overrides.cpp) set to a plain count changes its longest run: layers=96. The value's span says
/// it came from `--set`, so errors about it quote the flag. UserError if the path runs through a scalar or an index is
/// out of range, or if a list of runs cannot have that length.
void apply_override(ConfigNode& document, std::string_view path, std::string_view value, std::string_view flag_text);

/// A document that --set may change, and what its keys start with: "hw", "model".
struct OverrideTarget {
  std::string_view scope;
  ConfigNode* document;
};

/// Texts such as "hw.hbm.bandwidth=5TB/s" applied before the documents are loaded, so that the loader checks them as it
/// checks files. UserError for a text of another form or another scope.
void apply_sets(const std::vector<std::string>& sets, const std::vector<OverrideTarget>& targets);

/// The maps of a document with what apply_override takes to each: "hbm", "network.ici"; of the document itself "".
std::map<const ConfigNode*, std::string> override_paths(const ConfigNode& document);

}  // namespace scalecalc
