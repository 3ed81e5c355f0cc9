// What a kernel of a recording is, by the patterns of configs/words/kernels.yaml.
#include "profile/kernel_names.h"

#include <algorithm>

#include "base/check.h"
#include "config/built_in_words.h"
#include "profile/hlo_category.h"

namespace scalecalc {
namespace {

struct KernelWords {
  std::vector<KernelPattern> kernels, hlo_categories;
};

DeviceWork work_named(std::string_view name) {
  const auto* const at = std::find(kDeviceWorkNames.begin(), kDeviceWorkNames.end(), name);
  check(at != kDeviceWorkNames.end(), "a pattern of kernels names a work");
  return static_cast<DeviceWork>(at - kDeviceWorkNames.begin());
}

std::vector<KernelPattern> patterns_in(const ConfigNode& list, const ConfigNode& sources) {
  std::vector<KernelPattern> out;
  for (const ConfigNode& row : list.items) {
    const ConfigNode* source = row.find("source");
    const ConfigNode* text = source == nullptr ? nullptr : sources.find(source->text);
    for (const ConfigNode& name : row.find("names")->items) {
      out.push_back({name.text, work_named(row.find("work")->text),
                     text == nullptr ? std::string_view{} : std::string_view(text->text)});
    }
  }
  return out;
}

const KernelWords& kernel_words() {
  static const ConfigNode kDocument = built_in_words("words/kernels.yaml");
  static const KernelWords kWords{patterns_in(*kDocument.find("patterns"), *kDocument.find("sources")),
                                  patterns_in(*kDocument.find("hlo_categories"), *kDocument.find("sources"))};
  return kWords;
}

bool letters_alike(char part, char in_name) {
  return part == in_name || (part >= 'a' && part <= 'z' && in_name == part - 'a' + 'A');
}

bool holds(std::string_view name, std::string_view parts) {
  while (!parts.empty()) {
    const std::string_view part = parts.substr(0, parts.find(' '));
    if (std::search(name.begin(), name.end(), part.begin(), part.end(),
                    [](char in_name, char wanted) { return letters_alike(wanted, in_name); }) == name.end()) {
      return false;
    }
    parts.remove_prefix(std::min(parts.size(), part.size() + 1));
  }
  return true;
}

}  // namespace

std::optional<DeviceWork> work_of_hlo_category(std::string_view category) {
  for (const KernelPattern& row : kernel_words().hlo_categories) {
    if (category.find(row.parts) != std::string_view::npos) return row.work;
  }
  return std::nullopt;
}

std::span<const KernelPattern> kernel_patterns() { return kernel_words().kernels; }

DeviceWork work_of_kernel(std::string_view name) {
  for (const KernelPattern& pattern : kernel_patterns()) {
    if (holds(name, pattern.parts)) return pattern.work;
  }
  return DeviceWork::kUnknown;
}

}  // namespace scalecalc
