// Servers in pools, of prompts and of generation or of both: what NVIDIA Dynamo and llm-d deploy, and what TensorRT-LLM
// starts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "launch/reading.h"
#include "launch/writing.h"

namespace scalecalc {

struct LaunchPool {
  std::string role;  ///< "prefill", "decode"; of one pool "decode" too
  std::vector<LaunchArgument> arguments;
  std::int64_t replicas = 1;
  std::int64_t chips = 1;  ///< of a replica
  std::int64_t node_chips = 8;
  std::int64_t tensor = 1, data = 1;  ///< ranks of a replica
  std::string_view engine = "vllm";
};

/// Whether the framework deploys pools, in the words of an engine of its own.
bool deploys_pools(const LaunchFramework& framework);
/// Whether an engine starts pools of its own servers by itself.
bool starts_pools(const LaunchFramework& framework);
/// Whether its servers can be the engine's.
bool deploys(const LaunchFramework& framework, std::string_view engine);
/// Why they cannot, with its source; empty where no rule of the framework is known.
std::string undeployed(const LaunchFramework& framework, std::string_view engine);

std::string pools_file(const LaunchFramework& framework, const std::string& model, const std::vector<LaunchPool>& pools,
                       const LaunchStamp& stamp);

/// A pool as a file has it: the engine's arguments, and how many servers.
struct ReadPool {
  std::string role;
  std::vector<LaunchSetting> settings;
};
struct ReadPools {
  std::string_view framework;  ///< "dynamo"; empty: the document is none of these
  std::string_view engine = "vllm";
  std::vector<ReadPool> pools;
};
/// Of a text of YAML. A script may write such a document beside a server that it starts: it is read as a script.
ReadPools read_pools(const std::string& text, const std::string& file);

}  // namespace scalecalc
