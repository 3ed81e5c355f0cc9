// Reads the names and sizes of tensors from a checkpoint's index or header, without the weights.
#include "import/safetensors_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/diagnostic.h"
#include "base/io.h"
#include "base/limits.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

/// Keys of a JSON document and their scalars, handed on one by one: an index names hundreds of thousands of tensors,
/// and nothing of them is kept.
class KeyScanner {
 public:
  /// Called with the keys down to a value, and its text where it is a scalar.
  using Visit = std::function<void(std::string_view outer, std::string_view key, std::string_view scalar)>;

  KeyScanner(std::string_view text, const Visit& visit) : text_(text), visit_(visit) {}

  /// Empty, or what is wrong and in which line.
  std::string run() {
    skip_blank();
    if (peek() != '{') return wrong("a map");
    if (!map("", 0)) return wrong(expected_);
    skip_blank();
    return at_ < text_.size() ? wrong("the end of the file") : "";
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blank() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool missing(std::string_view what) {
    expected_ = what;
    return false;
  }
  std::string wrong(std::string_view expected) const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    return fmt::format("line {}: expected {}", line, expected);
  }

  bool string(std::string_view& out) {
    if (peek() != '"') return missing("a text in double quotes");
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') at_ += text_[at_] == '\\' ? 2U : 1U;
    if (peek() != '"') return missing("the end of a text");
    out = text_.substr(begin, at_++ - begin);
    return true;
  }

  /// `outer`: the key of the map itself.
  bool map(std::string_view outer, std::size_t depth) {
    ++at_;
    skip_blank();
    if (peek() == '}') return ++at_, true;
    for (;;) {
      std::string_view key;
      if (!string(key)) return false;
      skip_blank();
      if (peek() != ':') return missing("':'");
      ++at_;
      std::string_view scalar;
      if (!value(key, depth, scalar)) return false;
      if (depth < 2) visit_(outer, key, scalar);
      skip_blank();
      if (peek() == '}') return ++at_, true;
      if (peek() != ',') return missing("',' or '}'");
      ++at_;
      skip_blank();
    }
  }

  bool list(std::size_t depth) {
    ++at_;
    skip_blank();
    if (peek() == ']') return ++at_, true;
    for (;;) {
      std::string_view scalar;
      if (!value("", depth, scalar)) return false;
      skip_blank();
      if (peek() == ']') return ++at_, true;
      if (peek() != ',') return missing("',' or ']'");
      ++at_;
    }
  }

  bool value(std::string_view key, std::size_t depth, std::string_view& scalar) {
    if (depth > limits::kIndexLevels) return missing("less nesting");
    skip_blank();
    if (peek() == '{') return map(key, depth + 1);
    if (peek() == '[') return list(depth + 1);
    if (peek() == '"') return string(scalar);
    const std::size_t end = std::min(text_.find_first_of(",}] \t\r\n", at_), text_.size());
    if (end == at_) return missing("a value");
    scalar = text_.substr(at_, end - at_);
    at_ = end;
    return true;
  }

  std::string_view text_;
  const Visit& visit_;
  std::size_t at_ = 0;
  std::string expected_;
};

bool mentions(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

bool is_of_tower(std::string_view name) {
  constexpr std::array<std::string_view, 12> kTowers{
      "vision", "visual",   "audio", "multi_modal_projector", "mm_projector", "image_newline", "patch_embed",
      "talker", "code2wav", "sound", "image_projector",       "vit."};
  return std::any_of(kTowers.begin(), kTowers.end(), [&](std::string_view part) { return mentions(name, part); });
}

/// The number behind "layers.": of a layer of the language model, or a module behind them.
std::optional<std::int64_t> layer_number(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  const std::size_t at = name.find(kLayers);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = name.substr(at + kLayers.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return error == std::errc{} && end != rest.data() ? std::optional(number) : std::nullopt;
}

void count_tensor(std::string_view name, std::int64_t layers, SafetensorsIndex& out) {
  ++out.tensors;
  if (is_of_tower(name)) {
    ++out.towers;
    return;
  }
  const std::optional<std::int64_t> layer = layer_number(name);
  if (mentions(name, "mtp") || (layer && *layer >= layers)) {
    ++out.modules;
    if (name.ends_with("embed_tokens.weight")) ++out.module_embeddings;
    if (name.ends_with("head.weight")) ++out.module_heads;
    return;
  }
  if (name.ends_with("lm_head.weight")) out.head = true;
}

}  // namespace

SafetensorsIndex read_safetensors_index(std::string_view text, const std::string& file, std::int64_t layers) {
  SafetensorsIndex out{.file = file};
  const KeyScanner::Visit visit = [&](std::string_view outer, std::string_view key, std::string_view scalar) {
    if (outer == "weight_map") count_tensor(key, layers, out);
    if (outer != "metadata" || key != "total_size") return;
    double total = 0;
    const auto [end, error] = std::from_chars(scalar.data(), scalar.data() + scalar.size(), total);
    if (error == std::errc{} && end == scalar.data() + scalar.size() && total > 0) out.total_bytes = total;
  };
  out.problem = KeyScanner(text, visit).run();
  if (out.problem.empty() && out.tensors == 0) out.problem = "its 'weight_map' names no tensor";
  return out;
}

SafetensorsIndex read_safetensors_header(std::string_view header, const std::string& file, double tensor_bytes,
                                         std::int64_t layers) {
  SafetensorsIndex out{.file = file, .total_bytes = tensor_bytes};
  const KeyScanner::Visit visit = [&](std::string_view outer, std::string_view key, std::string_view) {
    if (outer.empty() && key != "__metadata__") count_tensor(key, layers, out);
  };
  out.problem = KeyScanner(header, visit).run();
  return out;
}

namespace {

/// Of a single file: eight bytes of length, then the header. Nothing of what Git LFS leaves in its place.
std::optional<SafetensorsIndex> of_single_file(const fs::path& path, std::int64_t layers) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  std::array<char, 8> length{};
  if (error || !in.read(length.data(), length.size())) return std::nullopt;
  std::uint64_t bytes = 0;
  for (std::size_t i = length.size(); i-- > 0;) bytes = bytes << 8U | static_cast<unsigned char>(length[i]);
  if (bytes < 2 || bytes > limits::kTextFile || bytes + length.size() > size) return std::nullopt;
  std::string header(bytes, '\0');
  if (!in.read(header.data(), static_cast<std::streamsize>(bytes))) return std::nullopt;
  return read_safetensors_header(header, path.string(), static_cast<double>(size - bytes - length.size()), layers);
}

}  // namespace

std::optional<SafetensorsIndex> safetensors_beside(const std::string& directory, std::int64_t layers) {
  const fs::path index = fs::path(directory) / "model.safetensors.index.json";
  const fs::path single = fs::path(directory) / "model.safetensors";
  std::error_code ignored;
  if (fs::is_regular_file(index, ignored)) {
    if (fs::file_size(index, ignored) > limits::kTextFile) {
      return SafetensorsIndex{.file = index.string(), .problem = "it is " + limits::too_large(limits::kTextFile)};
    }
    try {
      return read_safetensors_index(read_text_file(index.string()), index.string(), layers);
    } catch (const UserError& error) {
      return SafetensorsIndex{.file = index.string(), .problem = error.diagnostics().front().message};
    }
  }
  return fs::is_regular_file(single, ignored) ? of_single_file(single, layers) : std::nullopt;
}

}  // namespace scalecalc
