// A node is a letter (s scalar, q quoted scalar, l list, m map), its span (line, column, length), then its text, its
// items, or its entries with the key and the key's span before each value. Numbers are base 128, low digits first.
#include "config/packed_tree.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace scalecalc {
namespace {

constexpr unsigned kLowBits = 0x7F;
constexpr unsigned kMore = 0x80;
constexpr unsigned kBits = 7;

void put(std::string& out, std::size_t number) {
  for (; number > kLowBits; number >>= kBits) out += static_cast<char>((number & kLowBits) | kMore);
  out += static_cast<char>(number);
}

void put(std::string& out, std::string_view text) {
  put(out, text.size());
  out += text;
}

void put(std::string& out, const SourceSpan& span) {
  for (const int number : {span.line, span.column, span.length}) put(out, static_cast<std::size_t>(number));
}

void put(std::string& out, const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kScalar: out += node.quoted ? 'q' : 's'; break;
    case ConfigNode::Kind::kSequence: out += 'l'; break;
    case ConfigNode::Kind::kMap: out += 'm'; break;
  }
  put(out, node.span);
  switch (node.kind) {
    case ConfigNode::Kind::kScalar: put(out, std::string_view(node.text)); break;
    case ConfigNode::Kind::kSequence:
      put(out, node.items.size());
      for (const ConfigNode& item : node.items) put(out, item);
      break;
    case ConfigNode::Kind::kMap:
      put(out, node.entries.size());
      for (const ConfigNode::Entry& entry : node.entries) {
        put(out, std::string_view(entry.key));
        put(out, entry.key_span);
        put(out, entry.value);
      }
      break;
  }
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    if (lines.back().ends_with('\r')) lines.back().remove_suffix(1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

class Unpacker {
 public:
  Unpacker(std::string_view packed, std::string_view text, const std::string& file)
      : rest_(packed), lines_(lines_of(text)), file_(file) {}

  ConfigNode node() {
    ConfigNode out;
    const char letter = take(1).front();
    out.span = span();
    if (letter == 's' || letter == 'q') {
      out.quoted = letter == 'q';
      out.text = take(number());
    } else if (letter == 'l') {
      out.kind = ConfigNode::Kind::kSequence;
      const std::size_t size = count();
      out.items.reserve(size);
      for (std::size_t i = 0; i < size; ++i) out.items.push_back(node());
    } else {
      check(letter == 'm', "a packed node is a scalar, a list or a map");
      out.kind = ConfigNode::Kind::kMap;
      const std::size_t size = count();
      out.entries.reserve(size);
      for (std::size_t i = 0; i < size; ++i) {
        std::string key(take(number()));
        SourceSpan where = span();
        out.entries.push_back({std::move(key), std::move(where), node()});
      }
    }
    return out;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    check(size <= rest_.size(), "a packed document is whole");
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

  std::size_t number() {
    constexpr unsigned kMostBits = 28;
    std::size_t out = 0;
    for (unsigned shift = 0; shift < kMostBits; shift += kBits) {
      const unsigned digit = static_cast<unsigned char>(take(1).front());
      out |= static_cast<std::size_t>(digit & kLowBits) << shift;
      if ((digit & kMore) == 0) return out;
    }
    check(false, "a packed number has at most four digits");
    return 0;
  }

  /// Each item takes at least one byte.
  std::size_t count() {
    const std::size_t out = number();
    check(out <= rest_.size(), "a packed list is whole");
    return out;
  }

  SourceSpan span() {
    SourceSpan out;
    out.file = file_;
    out.line = static_cast<int>(number());
    out.column = static_cast<int>(number());
    out.length = static_cast<int>(number());
    const std::size_t line = static_cast<std::size_t>(out.line);
    if (line >= 1 && line <= lines_.size()) out.line_text = lines_[line - 1];
    return out;
  }

  std::string_view rest_;
  std::vector<std::string_view> lines_;
  const std::string& file_;
};

}  // namespace

std::string pack(const ConfigNode& document) {
  std::string out;
  put(out, document);
  return out;
}

ConfigNode unpack(std::string_view packed, std::string_view text, const std::string& file) {
  Unpacker unpacker(packed, text, file);
  ConfigNode document = unpacker.node();
  check(unpacker.at_end(), "nothing follows a packed document");
  return document;
}

}  // namespace scalecalc
