// Launch files on the command line: --export and --cluster of train and serve, and --from of such files.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/io.h"
#include "cli/environment.h"
#include "cli/flag_reader.h"
#include "config/catalog.h"
#include "launch/cluster.h"
#include "launch/framework.h"
#include "launch/pools.h"
#include "launch/reading.h"
#include "launch/training.h"
#include "serve/serve_question.h"
#include "train/question.h"

namespace scalecalc::cli {

std::span<const Flag> export_flags(Modes modes = kAllModes);

struct ExportAsked {
  std::shared_ptr<const LaunchFramework> framework{};
  std::string path;  ///< empty: standard output, where no table stands then
  std::optional<LaunchCluster> cluster;
  std::shared_ptr<AtomicFile> file{};  ///< at `path`, opened before the work
};
/// UserError for a framework that is none, or of the other job, and where two texts would go to standard output.
std::optional<ExportAsked> export_asked(const Arguments& arguments, LaunchJob job, const Catalog& catalog);
/// A framework of the catalog by its name; UserError naming the nearest.
std::shared_ptr<const LaunchFramework> known_framework(std::string_view name, const Catalog& catalog);
/// "megatron" or "megatron:run.sh", and a cluster.
ExportAsked read_export(FlagReader& reader, const std::string& text, const Arguments& arguments, LaunchJob job,
                        const Catalog& catalog);

/// What is exported, with what was asked.
struct LaunchFile {
  std::shared_ptr<const LaunchFramework> framework{};
  std::string release;  ///< "megatron 0.19 (2026-08-19)"; empty: none is known
  std::string text;
};
/// UserError that cites what stands in the way.
LaunchFile exported(const ExportAsked& asked, const Catalog& catalog, const TrainAnswer& answer, const RankedPlan& plan,
                    const std::string& question);
LaunchFile exported(const ExportAsked& asked, const Catalog& catalog, const ServeAnswer& answer,
                    const ServePoint& point, const std::string& question);

/// A launch file as read, and what must be said of it.
struct LaunchInput {
  std::string file;
  std::shared_ptr<const LaunchFramework> framework{};
  std::vector<LaunchSetting> settings{};
  std::string_view engine = "vllm";     ///< of the pools
  std::vector<ReadPool> pools{};        ///< of a file that deploys some
  std::optional<std::int64_t> chips{};  ///< by what surrounds the command
  std::string served{};                 ///< the word behind the command of a server: its model
  std::vector<std::pair<std::string_view, std::string>> lengths{};  ///< flags of the stamp's question: "--prompt"
  std::string release{};  ///< "megatron 0.19", of the stamp of a file that was written here
  std::size_t neutral = 0;
  std::vector<LaunchSetting> unread{}, open{};
  std::vector<std::string> defaults{};     ///< as LaunchReading::defaults
  std::vector<std::string> differences{};  ///< "--seq 8192, and the file says 4096"

  std::string name() const;
  void note(std::vector<Assumption>& assumptions) const;
};
/// Nothing for an answer of `scalecalc train --json`.
std::optional<LaunchInput> launch_input(const std::string& path, const Catalog& catalog);

/// --from of a launch file becomes the layout it says, and the flags that nobody typed what it says of the question.
/// Nothing if --from is none.
std::optional<LaunchInput> take_launch_file(Arguments& arguments, const Catalog& catalog);

/// The stack, or the engine, whose file is asked for, where nobody names one: figures are of what is launched.
void plan_for_framework(const ExportAsked& asked, Arguments& arguments);
std::optional<LaunchInput> take_serving_file(Arguments& arguments, const Catalog& catalog);

/// What `train` would be asked beside a layout: model, chip, stack.
ImportedLayout imported_layout(const LaunchInput& input, const TrainQuestion& question, const Catalog& catalog);

}  // namespace scalecalc::cli
