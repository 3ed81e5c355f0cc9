// Reads the Kubernetes objects that start a run: the command of their containers and the number of chips.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/quoting.h"
#include "base/text.h"
#include "config/yaml_reader.h"
#include "launch/document.h"
#include "launch/reading.h"

namespace scalecalc {
namespace {

constexpr std::array<std::string_view, 8> kStarters{"LeaderWorkerSet", "JobSet", "Job",        "Deployment",
                                                    "StatefulSet",     "Pod",    "PyTorchJob", "MPIJob"};

const ConfigNode* at_path(const ConfigNode* node, std::initializer_list<std::string_view> path) {
  for (const std::string_view key : path) node = node == nullptr ? nullptr : node->find(key);
  return node;
}

std::int64_t count_at(const ConfigNode& node, std::initializer_list<std::string_view> path, std::int64_t otherwise) {
  const ConfigNode* found = at_path(&node, path);
  if (found == nullptr || found->kind != ConfigNode::Kind::kScalar || found->text.empty()) return otherwise;
  char* end = nullptr;
  const std::int64_t value = std::strtoll(found->text.c_str(), &end, 10);
  return *end == '\0' && value > 0 && value < 1'000'000 ? value : otherwise;
}

/// The description of a pod: of leaders before workers, of the first job before others.
const ConfigNode* pod_in(const ConfigNode& node) {
  if (const ConfigNode* containers = node.find("containers"); containers != nullptr && !containers->items.empty()) {
    return &node;
  }
  if (const ConfigNode* leader = node.find("leaderTemplate")) {
    if (const ConfigNode* pod = pod_in(*leader)) return pod;
  }
  for (const ConfigNode::Entry& entry : node.entries) {
    if (const ConfigNode* pod = pod_in(entry.value)) return pod;
  }
  for (const ConfigNode& item : node.items) {
    if (const ConfigNode* pod = pod_in(item)) return pod;
  }
  return nullptr;
}

/// Pods of the object, and of them those that one server has.
struct Pods {
  std::int64_t all = 1, replicas = 1;
};

Pods pods_of_object(const std::string& kind, const ConfigNode& document) {
  const ConfigNode* spec = document.find("spec");
  if (spec == nullptr) return {};
  if (kind == "LeaderWorkerSet") {
    const std::int64_t replicas = count_at(*spec, {"replicas"}, 1);
    return {replicas * count_at(*spec, {"leaderWorkerTemplate", "size"}, 1), replicas};
  }
  if (kind == "Deployment" || kind == "StatefulSet") {
    const std::int64_t replicas = count_at(*spec, {"replicas"}, 1);
    return {replicas, replicas};
  }
  const auto of_job = [](const ConfigNode& job) {
    return count_at(job, {"parallelism"}, count_at(job, {"completions"}, 1));
  };
  if (kind == "Job") return {of_job(*spec), 1};
  Pods out{0, 1};
  if (const ConfigNode* jobs = spec->find("replicatedJobs")) {
    for (const ConfigNode& job : jobs->items) {
      const ConfigNode* inner = at_path(&job, {"template", "spec"});
      if (inner != nullptr) out.all += count_at(job, {"replicas"}, 1) * of_job(*inner);
    }
  }
  for (const std::string_view key : {"pytorchReplicaSpecs", "mpiReplicaSpecs"}) {
    const ConfigNode* roles = spec->find(key);
    if (roles == nullptr) continue;
    for (const ConfigNode::Entry& role : roles->entries) {
      if (role.key != "Launcher") out.all += count_at(role.value, {"replicas"}, 1);
    }
  }
  out.all = std::max<std::int64_t>(1, out.all);
  return out;
}

std::int64_t chips_of_pod(const ConfigNode& container) {
  for (const std::string_view part : {"limits", "requests"}) {
    const ConfigNode* amounts = at_path(&container, {"resources", part});
    if (amounts == nullptr) continue;
    for (const ConfigNode::Entry& amount : amounts->entries) {
      for (const std::string_view chip : {"/gpu", "/tpu", "/gaudi", "/neuron"}) {
        if (amount.key.find(chip) != std::string::npos) return count_at(*amounts, {amount.key}, 0);
      }
    }
  }
  return 0;
}

/// A script, whose places and problems `place` puts where they stand in the file.
template <class Place>
LaunchText placed_script(const std::string& script, const std::string& file, const Place& place) {
  try {
    LaunchText out = read_shell(script, file);
    for (LaunchSetting& setting : out.settings) place(setting.where);
    return out;
  } catch (const UserError& error) {
    std::vector<Diagnostic> problems = error.diagnostics();
    for (Diagnostic& problem : problems) {
      place(problem.where);
      problem.where.line_text = {};
    }
    throw UserError(std::move(problems), error.exit_code());
  }
}

/// A script of a container: each of its lines where it stands in the file, if it is written over several.
LaunchText script_in(const ConfigNode& script, const std::string& file, std::string_view text) {
  std::size_t begin = 0;
  for (int line = 1; line < script.span.line && begin < text.size(); ++line) begin = text.find('\n', begin) + 1;
  const std::size_t opens = begin + static_cast<std::size_t>(std::max(1, script.span.column)) - 1;
  const bool block = opens < text.size() && (text[opens] == '|' || text[opens] == '>');
  std::size_t indent = 0;
  if (block) {
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
    while (begin + indent < text.size() && text[begin + indent] == ' ') ++indent;
  }
  return placed_script(script.text, file, [&](SourceSpan& where) {
    if (!block) {
      where = script.span;
      return;
    }
    where.line += script.span.line;
    where.column += static_cast<int>(indent);
  });
}

/// Words without a shell: each is where it stands.
LaunchText words_in(const std::vector<const ConfigNode*>& words, const std::string& file) {
  std::vector<std::string> lines;
  for (const ConfigNode* word : words) lines.push_back(shell_quoted_line(word->text));
  return placed_script(join(lines, " \\\n"), file, [&](SourceSpan& where) {
    const auto line = static_cast<std::size_t>(std::max(1, where.line)) - 1;
    if (line < words.size()) where = words[line]->span;
  });
}

LaunchText command_of(const ConfigNode& container, const std::string& file, std::string_view text) {
  std::vector<const ConfigNode*> words;
  for (const std::string_view key : {"command", "args"}) {
    const ConfigNode* part = container.find(key);
    if (part == nullptr) continue;
    for (const ConfigNode& word : part->items) words.push_back(&word);
  }
  const auto is_shell = [](const ConfigNode* word) { return word->text.ends_with("sh") && word->text.size() <= 20; };
  if (words.empty()) return {};
  if (!is_shell(words.front())) return words_in(words, file);
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!words[i]->text.starts_with('-')) return script_in(*words[i], file, text);
  }
  return {};
}

std::optional<LaunchText> object_text(const ConfigNode& document, const std::string& file, std::string_view text) {
  const ConfigNode* kind = document.find("kind");
  const ConfigNode* pod = kind == nullptr ? nullptr : pod_in(document);
  if (pod == nullptr) return std::nullopt;
  const ConfigNode& container = pod->find("containers")->items.front();
  LaunchText out = command_of(container, file, text);
  const Pods pods = pods_of_object(kind->text, document);
  std::vector<LaunchSetting> environment;
  if (pods.replicas > 1) {
    environment.push_back(
        {.key = "env:REPLICAS", .values = {std::to_string(pods.replicas)}, .where = kind->span, .open = {}});
  }
  if (const ConfigNode* given = container.find("env")) {
    for (const ConfigNode& variable : given->items) {
      const ConfigNode* name = variable.find("name");
      const ConfigNode* value = variable.find("value");
      if (name == nullptr || value == nullptr) continue;
      environment.push_back({.key = "env:" + name->text, .values = {value->text}, .where = value->span, .open = {}});
    }
  }
  out.settings.insert(out.settings.begin(), environment.begin(), environment.end());
  if (const std::int64_t chips = chips_of_pod(container) * pods.all; chips > 0) out.chips = chips;
  return out;
}

}  // namespace

std::optional<LaunchText> read_kubernetes(const std::string& text, const std::string& file) {
  std::string document;
  std::size_t content = 0, lines = 0, documents = 0;
  const auto starts = [&] {
    for (const std::string_view kind : kStarters) {
      const std::string line = fmt::format("kind: {}", kind);
      const std::size_t at =
          document.starts_with(line) ? 0 : document.find("\n" + line, std::max<std::size_t>(content, 1) - 1);
      if (at == std::string::npos) continue;
      const std::size_t end = at + line.size() + (document[at] == '\n' ? 1 : 0);
      if (end >= document.size() || document[end] == '\n' || document[end] == ' ' || document[end] == '\r') return true;
    }
    return false;
  };
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find("\n---", begin);
    end = end == std::string::npos ? text.size() : end + 1;
    const std::size_t next = std::min(text.find('\n', end), text.size());
    content = document.size();
    document.append(text, begin, end - begin);
    if (++documents > limits::kLaunchDocuments) {
      throw UserError({Diagnostic{SourceSpan{.file = file, .line = static_cast<int>(lines) + 1, .column = 1},
                                  limits::too_many(limits::kLaunchDocuments, "documents in one file"),
                                  "keep the object that starts the run"}});
    }
    if (starts()) {
      if (auto found = object_text(read_yaml(document, file), file, text)) return found;
    }
    // Lines of what is left behind stay counted.
    const auto at = [&](std::size_t offset) {
      return text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
    };
    lines += static_cast<std::size_t>(std::count(at(begin), at(next + 1), '\n'));
    document.assign(lines, '\n');
    begin = next + 1;
  }
  return std::nullopt;
}

}  // namespace scalecalc
