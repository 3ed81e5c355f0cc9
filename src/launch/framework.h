// One table for each framework whose launch files are written and read: its arguments, what each says of a plan, and
// what cannot be said. The tables are the `launch:` blocks of the stack files. The rules of what a framework can run
// are its stack's (`supports:`); here are spellings, and limits that follow from a spelling.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/catalog.h"
#include "launch/terms.h"

namespace scalecalc {

enum class LaunchFormat : std::uint8_t { kShell, kYaml, kToml, kJson, kPython };
enum class LaunchJob : std::uint8_t { kTraining, kServing };

/// kWritten: a constant, or another spelling of what a row says; kRead: a spelling that others use.
enum class RowUse : std::uint8_t { kBoth, kWritten, kRead };

/// One argument, both ways. The key is as the framework spells it: "--tp-size" of its script, "run:--nnodes" of the
/// launcher before it, "env:NAME" of the environment, "a.b" of a file; none: a conclusion from other arguments.
struct LaunchRow {
  std::string_view key;
  /// A product of terms ("mb*ga*data"); in single quotes a literal ("'full'", "'on'" of a switch, "'true'"); "@name"
  /// the text of a word, "[@name]" its words as a list; "[a b]" a list; "[~a b]" one that has these among others;
  /// empty: the key is absent.
  std::string_view value;
  std::string_view says{};    ///< of a literal: "remat=full"; it is written where all of that is so
  std::string_view when{};    ///< what else must be so
  std::string_view absent{};  ///< of a product: the framework's default, a product too
  RowUse use = RowUse::kBoth;
};

/// A layout that the spelling cannot say, whatever the framework could run.
struct LaunchLimit {
  std::string_view when;
  std::string_view says;
  std::string_view source;
  std::string_view instead{};  ///< "--fix pp=1": what to ask for
};

/// A model of the catalog by the name that a framework knows it under; the flavor of a model behind '/'.
struct LaunchModelName {
  std::string_view model;
  std::string_view name;
};

/// A module that carries adapters, by the framework's name, and what of FineTune::targets it is. Those of one target
/// each are written; several at once are read.
struct LaunchAdapter {
  std::uint8_t targets = 0;
  std::string_view name;
};

/// How a framework is told which model it runs.
enum class ModelNaming : std::uint8_t {
  kShapes,      ///< by its shapes alone
  kRepository,  ///< by a repository of Hugging Face, or a directory with its files
  kOwn,         ///< by a name of its own (`models`)
};

struct LaunchFramework {
  std::string_view name;   ///< "megatron"
  std::string_view title;  ///< "Megatron-LM"
  std::string_view stack;  ///< whose rules hold, with a release where the files are of an older one: "torchtitan@0.2"
  LaunchJob job = LaunchJob::kTraining;
  LaunchFormat format = LaunchFormat::kShell;  ///< of the file, or of the one that a script writes down
  std::string_view source;                     ///< repository, commit and files that define the arguments
  std::string_view command;                    ///< "torchrun", or how a file is run
  std::string_view script;                     ///< behind the launcher's own arguments; may be empty
  std::string_view file;                       ///< of a script: what its file is called; empty: it has none
  std::string_view program{};  ///< with `configs`: what stands in a command that is no other framework's
  std::string_view configs{};  ///< arguments that name a file of its settings, between blanks
  std::vector<LaunchRow> rows;
  std::vector<LaunchLimit> limits;
  std::vector<std::string_view> neutral;  ///< keys that change no figure, with '*' at their end for all that follow
  ModelNaming naming = ModelNaming::kShapes;
  std::vector<LaunchModelName> models{};
  std::string_view yours{};               ///< what no plan says, and the framework asks for
  std::vector<LaunchAdapter> adapters{};  ///< that it trains beside frozen weights; none: it says nothing of them
  bool peft = false;                      ///< adapters are PEFT's, on modules by the model's own names instead
  std::uint8_t default_adapters = 0;      ///< bits of FineTune::targets: those of a file that names no modules
  std::string_view workers{};             ///< an argument of all nodes of a server but its first
  std::string_view ranks{};               ///< in front of the command where ranks on several nodes are started by MPI
  std::int64_t priority = 0;  ///< in lists, and where a file's arguments are of several alike: the lowest first
};

inline bool says_adapters(const LaunchFramework& framework) { return framework.peft || !framework.adapters.empty(); }

/// Frameworks in the order of their priorities, and the files that their texts are in.
class LaunchFrameworks {
 public:
  LaunchFrameworks(std::vector<LaunchFramework> all, std::vector<std::shared_ptr<const ConfigNode>> documents)
      : all_(std::move(all)), documents_(std::move(documents)) {}
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<LaunchFramework> all_;
  std::vector<std::shared_ptr<const ConfigNode>> documents_;
};
/// Reads the `launch:` blocks of documents of stacks; UserError with all problems.
LaunchFrameworks load_frameworks(std::vector<std::shared_ptr<const ConfigNode>> documents);

/// Those of the built-in stack files.
const LaunchFrameworks& launch_frameworks();
/// Those of a catalog, a user's among them.
std::shared_ptr<const LaunchFrameworks> launch_frameworks(const Catalog& catalog);
/// "megatron, maxtext": the built-in ones of a job.
std::string launch_framework_names(LaunchJob job);
/// By its name; UserError naming the nearest.
const LaunchFramework& launch_framework(std::string_view name, const LaunchFrameworks& known = launch_frameworks());

/// What is known of the model that is launched, beside its shapes.
struct LaunchedModel {
  std::string catalog{};     ///< its name in the catalog; empty for a file, or where the question changes it
  std::string repository{};  ///< of Hugging Face, or the directory of its files; empty: none is known
  std::string model_type{};  ///< its family as a config.json says it; empty: none is known
  std::string activation{};  ///< of the gate of its MLP; empty: the usual one
  std::string draft{};       ///< of speculation, as `repository`; empty: the model's own heads, or none
};
/// The model in the framework's words, "model" and "flavor" of the terms; what is left to the reader, if anything.
std::string name_model(const LaunchFramework& framework, const LaunchedModel& model, LaunchTerms& terms);

/// The catalog's name of what a framework calls `name` (and `flavor`); empty if it is none of its own.
std::string_view catalog_name(const LaunchFramework& framework, std::string_view name, std::string_view flavor);

/// Equations that hold of every plan, whatever says it: the product is 1 where the condition holds.
struct LaunchRelation {
  std::string_view product;
  std::string_view when{};
};
std::span<const LaunchRelation> launch_relations(LaunchJob job);

/// What says the size of the machine before the program of any framework: torchrun, Slurm.
std::span<const LaunchRow> launcher_rows(LaunchJob job);
/// Whether a key is of a launcher, which starts programs of all frameworks.
bool is_of_launcher(std::string_view key);

}  // namespace scalecalc
