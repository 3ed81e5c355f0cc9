// Settings of YAML and JSON documents: the path of each value with dots between, and where its key stands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "launch/reading.h"

namespace scalecalc {

/// UserError as the reader of the format throws it.
std::vector<LaunchSetting> document_settings(const std::string& text, const std::string& file, bool json);

/// Of a part of one.
std::vector<LaunchSetting> node_settings(const ConfigNode& node);

/// Whether a text is commands of a shell, by its name or by what its lines begin with.
bool is_script_text(std::string_view text, const std::string& file);

/// A recipe of torchtitan in Python. UserError with its place, and where there are several.
bool is_recipe(std::string_view text);
LaunchText read_recipe(std::string_view text, const std::string& file);

/// Of an object of Kubernetes that starts a run, among others in the text; nothing if there is none.
std::optional<LaunchText> read_kubernetes(const std::string& text, const std::string& file);

}  // namespace scalecalc
