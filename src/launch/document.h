// Settings of YAML and JSON documents: the path of each value with dots between, and where its key stands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/reading.h"

namespace scalecalc {

/// UserError as the reader of the format throws it.
std::vector<LaunchSetting> document_settings(const std::string& text, const std::string& file, bool json);

/// Of an object of Kubernetes that starts a run, among others in the text; nothing if there is none.
std::optional<LaunchText> read_kubernetes(const std::string& text, const std::string& file);

}  // namespace scalecalc
