// Finds the table of a framework and names its model, for `export` and `lint`.
#include "launch/framework.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/text.h"
#include "config/embedded_launches.h"
#include "launch/reading.h"

namespace scalecalc {
namespace {

constexpr std::array kTrainingRelations{
    LaunchRelation{"replicas*shards*tp*cp*pp/chips"},
    LaunchRelation{"replicas*shards/dp/fsdp"},
    LaunchRelation{"nodes*local/chips"},
    LaunchRelation{"dp/replicas", "zero=3"},
    LaunchRelation{"shards", "zero=0"},
    LaunchRelation{"fsdp", "zero<3,replicas=1"},
    LaunchRelation{"fsdp", "zero=0"},
    LaunchRelation{"replicas/dp", "zero>0,fsdp>1"},
    LaunchRelation{"replicas", "zero>0,zero<3,fsdp=1"},
    LaunchRelation{"replicas/dp", "zero>0,replicas>1"},
};

constexpr std::array kServingRelations{
    LaunchRelation{"ep*etp/tp/cp/adp", "moe=on"},
    LaunchRelation{"tp*cp*adp*pp*replicas/chips"},
};

constexpr std::array kTrainingLaunchers{
    LaunchRow{"#SBATCH --nodes", "nodes", {}, {}, {}, RowUse::kRead},
    LaunchRow{"#SBATCH --gpus-per-node", "local", {}, {}, {}, RowUse::kRead},
    LaunchRow{"srun --nodes", "nodes", {}, {}, {}, RowUse::kRead},
    LaunchRow{"srun --gpus-per-node", "local", {}, {}, {}, RowUse::kRead},
    LaunchRow{"run:--nnodes", "nodes", {}, {}, {}, RowUse::kRead},
    LaunchRow{"run:--nproc_per_node", "local", {}, {}, {}, RowUse::kRead},
};
/// Of torchrun, which engines have of their own too.
constexpr std::array<std::string_view, 5> kLauncherKeys{"--nnodes", "--nproc-per-node", "--node-rank", "--master-addr",
                                                        "--master-port"};

}  // namespace

std::span<const LaunchRow> launcher_rows(LaunchJob job) {
  return job == LaunchJob::kTraining ? std::span<const LaunchRow>(kTrainingLaunchers) : std::span<const LaunchRow>();
}

bool is_of_launcher(std::string_view key) {
  return std::any_of(kLauncherKeys.begin(), kLauncherKeys.end(),
                     [&](std::string_view known) { return is_key(known, key); });
}

std::span<const LaunchRelation> launch_relations(LaunchJob job) {
  return job == LaunchJob::kTraining ? std::span<const LaunchRelation>(kTrainingRelations)
                                     : std::span<const LaunchRelation>(kServingRelations);
}

std::string launch_framework_names(LaunchJob job) {
  std::vector<std::string> out;
  for (const EmbeddedLaunch& each : embedded_launches()) {
    if (each.serves == (job == LaunchJob::kServing)) out.emplace_back(each.name);
  }
  return join(out, ", ");
}

std::string name_model(const LaunchFramework& framework, const LaunchedModel& model, LaunchTerms& terms) {
  if (framework.naming == ModelNaming::kShapes) return "";
  std::string name = framework.naming == ModelNaming::kRepository ? model.repository : "";
  for (const LaunchModelName& known : framework.models) {
    if (known.model == model.catalog) name = known.name;
  }
  const std::string ours = terms.word("model").value_or("");
  if (framework.naming == ModelNaming::kOwn) {
    const std::size_t slash = std::min(name.find('/'), name.size());
    terms.words["flavor"] = name.empty() ? "FLAVOR" : slash == name.size() ? "" : name.substr(slash + 1);
    name = name.substr(0, slash);
  }
  if (!name.empty()) {
    terms.words["model"] = name;
    return "";
  }
  terms.words["model"] = "MODEL";
  return fmt::format("MODEL: {} by no name that {} is known to have; put yours there", ours,
                     framework.naming == ModelNaming::kRepository ? "Hugging Face" : framework.title);
}

std::string_view catalog_name(const LaunchFramework& framework, std::string_view name, std::string_view flavor) {
  const std::string whole = flavor.empty() ? std::string(name) : fmt::format("{}/{}", name, flavor);
  for (const LaunchModelName& known : framework.models) {
    if (known.name == whole) return known.model;
  }
  return "";
}

const LaunchFramework& launch_framework(std::string_view name, const LaunchFrameworks& known) {
  std::vector<std::string> names;
  for (const LaunchFramework& framework : known) {
    if (framework.name == name) return framework;
    names.emplace_back(framework.name);
  }
  std::string hint = did_you_mean(nearest(name, names));
  if (!hint.empty()) hint += ' ';
  throw UserError(fmt::format("no launch files are written for {}", in_quotes(name)),
                  fmt::format("{}frameworks: {}", hint, join(names, ", ")));
}

}  // namespace scalecalc
