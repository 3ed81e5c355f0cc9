// Writes and reads deployments with pools for prefill and decode: NVIDIA Dynamo, llm-d and TensorRT-LLM.
#include "launch/pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/diagnostic.h"
#include "base/text.h"
#include "config/yaml_reader.h"
#include "launch/document.h"

namespace scalecalc {
namespace {

/// An engine that Dynamo starts: ai-dynamo/dynamo components/src/dynamo/{vllm,sglang}; how its pools are told apart and
/// hand over caches is of the deployments in its examples/backends.
struct DynamoEngine {
  std::string_view engine, module, model_flag, transfer;
  /// Its arguments are a file of a ConfigMap (416ff06 components/backends/trtllm/deploy/disagg-multinode.yaml).
  std::string_view file_flag{};
};
constexpr std::array kDynamoEngines{
    DynamoEngine{"vllm", "dynamo.vllm", "--model", ""},
    DynamoEngine{"sglang", "dynamo.sglang", "--model-path", "nixl"},
    DynamoEngine{"trtllm", "dynamo.trtllm", "--model-path", "", "--extra-engine-args"},
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
  const bool from_file = !engine.file_flag.empty();
  if (from_file) words.insert(words.end(), {std::string(engine.file_flag), fmt::format("/engine/{}.yaml", pool.role)});
  const std::string_view volumes =
      from_file ? "        volumes:\n          - name: engine\n            configMap:\n              name: engine\n"
                : "";
  const std::string_view mounts =
      from_file ? "          volumeMounts:\n            - name: engine\n              mountPath: /engine\n" : "";
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
{6}        mainContainer:
          image: "IMAGE"
{7}          command: ["python3", "-m", "{5}"]
          args:
{4})",
                     pool.role, pool.replicas, several, std::min(pool.chips, pool.node_chips),
                     word_list(words, "            "), engine.module, volumes, mounts);
}

std::string indented(const std::string& text, std::string_view by) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += fmt::format("{}{}\n", by, text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// What a server of TensorRT-LLM in a pool has beside its arguments.
std::string trtllm_pool_lines(std::string_view role) {
  const std::string alone = role == "prefill" ? "disable_overlap_scheduler: true\n" : "";
  return alone + "cache_transceiver_config:\n  backend: \"DEFAULT\"\n";
}

/// Files of engines that read some, in front of the deployment.
std::string engine_files(const std::vector<LaunchPool>& pools) {
  if (dynamo_engine(pools.front().engine).file_flag.empty()) return "";
  std::string out = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: engine\ndata:\n";
  for (const LaunchPool& pool : pools) {
    const std::string more = pools.size() > 1 ? trtllm_pool_lines(pool.role) : "";
    out += fmt::format("  {}.yaml: |\n{}", pool.role, indented(yaml_of(pool.arguments) + more, "    "));
  }
  return out + "---\n";
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

/// A file of a ConfigMap, and where its key stands.
struct MountedFile {
  std::string name, text;
  SourceSpan key;
};

/// What `flag` of a service names, in the place of it: the engine's arguments.
void read_engine_file(std::string_view flag, const std::vector<MountedFile>& files, bool prefill,
                      std::vector<LaunchSetting>& settings) {
  const auto named = std::find_if(settings.begin(), settings.end(), [&](const auto& s) { return s.key == flag; });
  if (named == settings.end() || named->values.empty()) return;
  const LaunchSetting said = *named;
  settings.erase(named);
  const std::string& path = said.values.front();
  const std::string name = path.substr(path.find_last_of('/') + 1);
  const auto file = std::find_if(files.begin(), files.end(), [&](const MountedFile& f) { return f.name == name; });
  if (file == files.end()) {
    throw UserError({Diagnostic{said.where, fmt::format("the engine's arguments stand in {}", in_quotes(path)),
                                "no ConfigMap of the file has it: put it beside the deployment"}});
  }
  const std::string above(static_cast<std::size_t>(file->key.line), '\n');  // its lines are those of the whole
  for (LaunchSetting& setting : node_settings(read_yaml(above + file->text, file->key.file))) {
    // A step of prompts alone has no host time that an overlap would hide.
    if (!prefill || setting.key != "disable_overlap_scheduler") settings.push_back(std::move(setting));
  }
}

ReadPools read_dynamo(const ConfigNode& services, const std::vector<MountedFile>& files) {
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
    if (!engine->file_flag.empty()) read_engine_file(engine->file_flag, files, prefill, pool.settings);
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
    out += indented(yaml_of(pool->arguments) + trtllm_pool_lines(each.role), "  ") + "  urls:\n";
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
  out += engine_files(pools) + R"(apiVersion: nvidia.com/v1alpha1
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

namespace {

/// The documents of a file; lines of what is above one stay counted.
std::vector<ConfigNode> documents_of(const std::string& text, const std::string& file) {
  std::vector<ConfigNode> out;
  std::string above;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("\n---\n", begin), text.size());
    const std::string part = text.substr(begin, end - begin) + "\n";
    out.push_back(read_yaml(above + part, file));
    above.append(static_cast<std::size_t>(std::count(part.begin(), part.end(), '\n')) + 1, '\n');
    begin = end == text.size() ? end : end + 5;
  }
  return out;
}

ReadPools read_deployment(const std::vector<ConfigNode>& documents) {
  const auto is_a = [](const ConfigNode& document, std::string_view kind) {
    const ConfigNode* said = document.find("kind");
    return said != nullptr && said->text == kind;
  };
  std::vector<MountedFile> files;
  for (const ConfigNode& document : documents) {
    const ConfigNode* data = document.find("data");
    if (!is_a(document, "ConfigMap") || data == nullptr) continue;
    for (const ConfigNode::Entry& entry : data->entries) files.push_back({entry.key, entry.value.text, entry.key_span});
  }
  for (const ConfigNode& document : documents) {
    const ConfigNode* services = inner(&document, {"spec", "services"});
    if (is_a(document, "DynamoGraphDeployment") && services != nullptr) return read_dynamo(*services, files);
  }
  return {};
}

}  // namespace

ReadPools read_pools(const std::string& text, const std::string& file) {
  if (is_script_text(text, file)) return {};
  const auto has_key = [&](const std::string& key) {
    return text.starts_with(key) || text.find("\n" + key) != std::string::npos;
  };
  if (text.find("DynamoGraphDeployment") != std::string::npos) return read_deployment(documents_of(text, file));
  if (has_key("context_servers:") || has_key("generation_servers:")) return read_trtllm(read_yaml(text, file));
  if (!has_key("modelArtifacts:")) return {};
  const ConfigNode document = read_yaml(text, file);
  return document.find("decode") != nullptr ? read_llm_d(document) : ReadPools{};
}

}  // namespace scalecalc
