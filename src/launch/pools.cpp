#include "launch/pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "launch/document.h"

namespace scalecalc {
namespace {

/// An engine that Dynamo starts: ai-dynamo/dynamo components/src/dynamo/{vllm,sglang}; how its pools are told apart and
/// hand over caches is of the deployments in its examples/backends.
struct DynamoEngine {
  std::string_view engine, module, model_flag, transfer;
};
constexpr std::array kDynamoEngines{
    DynamoEngine{"vllm", "dynamo.vllm", "--model", ""},
    DynamoEngine{"sglang", "dynamo.sglang", "--model-path", "nixl"},
};

const DynamoEngine& dynamo_engine(std::string_view name) {
  for (const DynamoEngine& engine : kDynamoEngines) {
    if (engine.engine == name) return engine;
  }
  return kDynamoEngines.front();
}

/// Flags and their values, each a word; the model is said where the server is.
std::vector<std::string> engine_words(const LaunchPool& pool) {
  std::vector<std::string> out;
  for (const LaunchArgument& argument : pool.arguments) {
    if (!argument.key.starts_with('-') || argument.key == "--model-path") continue;
    out.push_back(argument.key);
    out.insert(out.end(), argument.values.begin(), argument.values.end());
  }
  return out;
}

std::string word_list(const std::vector<std::string>& words, std::string_view indent) {
  std::string out;
  for (const std::string& word : words) out += fmt::format("{}- {}\n", indent, quoted_text(word));
  return out;
}

std::int64_t nodes_of(const LaunchPool& pool) { return (pool.chips + pool.node_chips - 1) / pool.node_chips; }

std::string dynamo_service(const LaunchPool& pool, const std::string& model, bool alone) {
  const DynamoEngine& engine = dynamo_engine(pool.engine);
  std::vector<std::string> words{std::string(engine.model_flag), model};
  if (!alone) words.insert(words.end(), {"--disaggregation-mode", pool.role});
  if (!alone && !engine.transfer.empty()) {
    words.insert(words.end(), {"--disaggregation-transfer-backend", std::string(engine.transfer)});
  }
  for (std::string& word : engine_words(pool)) words.push_back(std::move(word));
  const std::string several =
      nodes_of(pool) > 1 ? fmt::format("      multinode:\n        nodeCount: {}\n", nodes_of(pool)) : "";
  return fmt::format(R"(    {0}:
      componentType: worker
      subComponentType: {0}
      replicas: {1}
{2}      resources:
        limits:
          gpu: "{3}"
      extraPodSpec:
        mainContainer:
          image: "IMAGE"
          command: ["python3", "-m", "{5}"]
          args:
{4})",
                     pool.role, pool.replicas, several, std::min(pool.chips, pool.node_chips),
                     word_list(words, "            "), engine.module);
}

std::string llm_d_pool(const LaunchPool& pool) {
  std::vector<std::string> words = engine_words(pool);
  words.insert(words.end(), {"--kv-transfer-config", R"({"kv_connector":"NixlConnector","kv_role":"kv_both"})"});
  return fmt::format(R"({}:
  create: true
  replicas: {}
  parallelism:
    tensor: {}
    data: {}
    dataLocal: {}
    workers: {}
  containers:
    - name: "vllm"
      image: "IMAGE"
      modelCommand: vllmServe
      args:
{}      resources:
        limits:
          nvidia.com/gpu: "{}"
)",
                     pool.role, pool.replicas, pool.tensor, pool.data,
                     std::max<std::int64_t>(1, pool.data / nodes_of(pool)), nodes_of(pool),
                     word_list(words, "        "), std::min(pool.chips, pool.node_chips));
}

void add_words(const ConfigNode& words, std::vector<LaunchSetting>& out) {
  for (const ConfigNode& word : words.items) {
    const bool flag = word.text.size() > 1 && word.text[0] == '-' && (word.text[1] == '-' || word.text[1] > '9');
    if (flag || out.empty()) {
      const std::size_t equals = word.text.find('=');
      out.push_back({.key = word.text.substr(0, equals), .values = {}, .where = word.span, .open = {}});
      if (equals != std::string::npos) out.back().values.push_back(word.text.substr(equals + 1));
    } else {
      out.back().values.push_back(word.text);
    }
  }
}

void add_replicas(const ConfigNode& of, std::vector<LaunchSetting>& out) {
  const ConfigNode* count = of.find("replicas");
  if (count == nullptr) return;
  out.push_back({.key = "env:REPLICAS", .values = {count->text}, .where = count->span, .open = {}});
}

const ConfigNode* inner(const ConfigNode* node, std::initializer_list<std::string_view> path) {
  for (const std::string_view key : path) node = node == nullptr ? nullptr : node->find(key);
  return node;
}

bool has_flag(const std::vector<LaunchSetting>& settings, std::string_view key, std::string_view value) {
  return std::any_of(settings.begin(), settings.end(), [&](const LaunchSetting& s) {
    return s.key == key && (value.empty() || (!s.values.empty() && s.values.front() == value));
  });
}

ReadPools read_dynamo(const ConfigNode& services) {
  ReadPools out{.framework = "dynamo", .pools = {}};
  for (const ConfigNode::Entry& service : services.entries) {
    const ConfigNode* words = inner(&service.value, {"extraPodSpec", "mainContainer", "args"});
    const ConfigNode* command = inner(&service.value, {"extraPodSpec", "mainContainer", "command"});
    const auto starts = [&](const DynamoEngine& engine) {
      return command != nullptr && std::any_of(command->items.begin(), command->items.end(),
                                               [&](const ConfigNode& w) { return w.text == engine.module; });
    };
    const auto* const engine = std::find_if(kDynamoEngines.begin(), kDynamoEngines.end(), starts);
    if (words == nullptr || engine == kDynamoEngines.end()) continue;
    out.engine = engine->engine;
    ReadPool pool;
    add_words(*words, pool.settings);
    const bool prefill = has_flag(pool.settings, "--is-prefill-worker", "") ||
                         has_flag(pool.settings, "--disaggregation-mode", "prefill");
    pool.role = prefill ? "prefill" : "decode";
    add_replicas(service.value, pool.settings);
    out.pools.push_back(std::move(pool));
  }
  return out;
}

/// Of TensorRT-LLM's own: NVIDIA/TensorRT-LLM 0228a71 tensorrt_llm/llmapi/disagg_utils.py, extract_disagg_cfg.
struct TrtllmPool {
  std::string_view role, section;
};
constexpr std::array kTrtllmPools{TrtllmPool{"prefill", "context_servers"}, TrtllmPool{"decode", "generation_servers"}};

/// What every server of a section is started with; what stands above the sections holds in both.
ReadPools read_trtllm(const ConfigNode& document) {
  ReadPools out{.framework = "trtllm", .engine = "trtllm", .pools = {}};
  for (const TrtllmPool& each : kTrtllmPools) {
    const ConfigNode* section = document.find(each.section);
    if (section == nullptr) continue;
    ReadPool pool{.role = std::string(each.role), .settings = {}};
    for (LaunchSetting& setting : node_settings(document)) {
      const std::string_view key = setting.key;
      const bool above =
          key.find("_servers.") == std::string_view::npos && key != "hostname" && key != "port" && key != "model";
      if (above) pool.settings.push_back(std::move(setting));
    }
    for (LaunchSetting& setting : node_settings(*section)) {
      // A step of prompts alone has no host time that an overlap would hide.
      if (setting.key == "urls" || (each.role == "prefill" && setting.key == "disable_overlap_scheduler")) continue;
      if (setting.key == "num_instances") setting.key = "env:REPLICAS";
      pool.settings.push_back(std::move(setting));
    }
    out.pools.push_back(std::move(pool));
  }
  return out;
}

ReadPools read_llm_d(const ConfigNode& document) {
  ReadPools out{.framework = "llm-d", .pools = {}};
  for (const std::string_view role : {"prefill", "decode"}) {
    const ConfigNode* section = document.find(role);
    const ConfigNode* create = inner(section, {"create"});
    const ConfigNode* containers = inner(section, {"containers"});
    if (containers == nullptr || containers->items.empty() || (create != nullptr && create->text == "false")) continue;
    const ConfigNode* words = containers->items.front().find("args");
    if (words == nullptr) continue;
    ReadPool pool{.role = std::string(role), .settings = {}};
    add_words(*words, pool.settings);
    add_replicas(*section, pool.settings);
    out.pools.push_back(std::move(pool));
  }
  return out;
}

}  // namespace

bool deploys_pools(const LaunchFramework& framework) {
  return framework.job == LaunchJob::kServing && framework.rows.empty();
}

bool starts_pools(const LaunchFramework& framework) { return framework.name == "trtllm"; }

bool deploys(const LaunchFramework& framework, std::string_view engine) {
  if (framework.name != "dynamo") return engine == framework.stack;
  return std::any_of(kDynamoEngines.begin(), kDynamoEngines.end(),
                     [&](const DynamoEngine& each) { return each.engine == engine; });
}

namespace {

struct Undeployed {
  std::string_view framework, engine, why, source;
};
constexpr std::string_view kChartStartsVllm =
    "its chart has arguments of vLLM alone; other engines are commands of your own, or kustomizations of its guides";
constexpr std::string_view kChartSource =
    "llm-d-incubation/llm-d-modelservice 024c0f2: charts/llm-d-modelservice/templates/_helpers.tpl, modelCommand; "
    "llm-d/llm-d aa770a7: guides/pd-disaggregation/modelserver/gpu/sglang";
constexpr std::array kUndeployed{
    Undeployed{
        "dynamo", "trtllm",
        "arguments of TensorRT-LLM stand in files of a ConfigMap beside the deployment, which are not written here",
        "ai-dynamo/dynamo 416ff06: components/backends/trtllm/deploy/disagg-multinode.yaml"},
    Undeployed{"llm-d", "sglang", kChartStartsVllm, kChartSource},
    Undeployed{"llm-d", "trtllm", kChartStartsVllm, kChartSource},
};

/// Ranks of all servers are started by one MPI run, and behind them what hands a prompt's cache on.
std::string trtllm_file(const std::string& model, const std::vector<LaunchPool>& pools) {
  std::int64_t chips = 0;
  for (const LaunchPool& pool : pools) chips += pool.replicas * pool.chips;
  const bool one_node = chips <= pools.front().node_chips;
  std::string out = fmt::format(
      "# start: mpirun -n {} trtllm-serve disaggregated_mpi_worker -c FILE; then: trtllm-serve disaggregated -c FILE\n",
      chips);
  if (!one_node) out += "# HOST: the node of each server, which is yours to name\n";
  out += fmt::format("hostname: \"localhost\"\nport: 8000\nmodel: {}\n", quoted_text(model));
  std::int64_t port = 8001;
  for (const TrtllmPool& each : kTrtllmPools) {
    const auto pool =
        std::find_if(pools.begin(), pools.end(), [&](const LaunchPool& p) { return p.role == each.role; });
    if (pool == pools.end()) continue;
    out += fmt::format("{}:\n  num_instances: {}\n", each.section, pool->replicas);
    const std::string inside = yaml_of(pool->arguments);
    for (std::size_t at = 0; at < inside.size();) {
      const std::size_t end = std::min(inside.find('\n', at), inside.size());
      out += "  " + inside.substr(at, end - at) + "\n";
      at = end + 1;
    }
    if (each.role == "prefill") out += "  disable_overlap_scheduler: true\n";
    out += "  cache_transceiver_config:\n    backend: \"DEFAULT\"\n  urls:\n";
    for (std::int64_t i = 0; i < pool->replicas; ++i) {
      out += fmt::format("    - \"{}:{}\"\n", one_node ? "localhost" : "HOST", port++);
    }
  }
  return out;
}

}  // namespace

std::string undeployed(const LaunchFramework& framework, std::string_view engine) {
  for (const Undeployed& each : kUndeployed) {
    if (each.framework != framework.name || each.engine != engine) continue;
    return fmt::format("{} deploys no servers of {} here: {} ({})", framework.title, engine, each.why, each.source);
  }
  return "";
}

std::string pools_file(const LaunchFramework& framework, const std::string& model, const std::vector<LaunchPool>& pools,
                       const LaunchStamp& stamp) {
  std::string out;
  for (const std::string& line : stamp) out += "# " + comment_line(line) + "\n";
  if (starts_pools(framework)) return out + trtllm_file(model, pools);
  if (framework.name == "llm-d") {
    const bool several = std::any_of(pools.begin(), pools.end(), [](const LaunchPool& p) { return nodes_of(p) > 1; });
    out += fmt::format(
        "modelArtifacts:\n  name: {0}\n  uri: {1}\nmultinode: {2}\nrouting:\n  proxy:\n"
        "    connector: nixlv2\n",
        quoted_text(model), quoted_text("hf://" + model), several);
    for (const LaunchPool& pool : pools) out += llm_d_pool(pool);
    if (pools.size() == 1) out += "prefill:\n  create: false\n";
    return out;
  }
  out += R"(apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: serve
spec:
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      extraPodSpec:
        mainContainer:
          image: "IMAGE"
          command: ["python3", "-m", "dynamo.frontend"]
)";
  for (const LaunchPool& pool : pools) out += dynamo_service(pool, model, pools.size() == 1);
  return out;
}

ReadPools read_pools(const ConfigNode& document) {
  const ConfigNode* kind = document.find("kind");
  const ConfigNode* services = inner(&document, {"spec", "services"});
  if (kind != nullptr && kind->text == "DynamoGraphDeployment" && services != nullptr) return read_dynamo(*services);
  if (document.find("context_servers") != nullptr || document.find("generation_servers") != nullptr) {
    return read_trtllm(document);
  }
  if (document.find("modelArtifacts") != nullptr && document.find("decode") != nullptr) return read_llm_d(document);
  return {};
}

}  // namespace scalecalc
