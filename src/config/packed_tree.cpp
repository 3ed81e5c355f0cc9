// Packs the catalog's trees into text when the program is built, and unpacks them when it runs. A node is a letter (p
// scalar that stands at its span as it is, s another scalar, q quoted scalar, l list, m map), its span (line, column,
// length), then its text, its items, or its entries with the key and the key's span before each value; a key is its
// span and nothing, where it stands there as it is, or its text. Numbers are base 128, low digits first. Lines and
// columns count from the span before: what is written alike is packed alike, and deflates well.
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

/// Differences: 0, -1, 1, -2 ... as 0, 1, 2, 3 ...
std::size_t folded_sign(int difference) {
  return difference < 0 ? static_cast<std::size_t>(-1 - difference) * 2 + 1 : static_cast<std::size_t>(difference) * 2;
}

int unfolded_sign(std::size_t number) {
  const int half = static_cast<int>(number / 2);
  return number % 2 == 0 ? half : -1 - half;
}

/// Where the next span is expected: on the line of the last, after it.
struct Cursor {
  int line = 1;
  int column = 1;

  void move(const SourceSpan& span) {
    line = span.line;
    column = span.column + span.length;
  }
};

void put(std::string& out, std::string_view text) {
  put(out, text.size());
  out += text;
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

/// What stands there, if columns and lengths are bytes.
std::string_view text_at(const std::vector<std::string_view>& lines, const SourceSpan& span) {
  const std::size_t line = static_cast<std::size_t>(span.line);
  if (span.line < 1 || line > lines.size() || span.column < 1 || span.length < 1) return {};
  const std::string_view text = lines[line - 1];
  const std::size_t column = static_cast<std::size_t>(span.column);
  return column > text.size() ? std::string_view{} : text.substr(column - 1, static_cast<std::size_t>(span.length));
}

class Packer {
 public:
  explicit Packer(std::string_view text) : lines_(lines_of(text)) {}

  void add(const ConfigNode& node) {
    const bool plain = !node.quoted && !node.text.empty() && text_at(lines_, node.span) == node.text;
    switch (node.kind) {
      case ConfigNode::Kind::kScalar: out_ += node.quoted ? 'q' : plain ? 'p' : 's'; break;
      case ConfigNode::Kind::kSequence: out_ += 'l'; break;
      case ConfigNode::Kind::kMap: out_ += 'm'; break;
    }
    add(node.span);
    switch (node.kind) {
      case ConfigNode::Kind::kScalar:
        if (!plain) put(out_, std::string_view(node.text));
        break;
      case ConfigNode::Kind::kSequence:
        put(out_, node.items.size());
        for (const ConfigNode& item : node.items) add(item);
        break;
      case ConfigNode::Kind::kMap:
        put(out_, node.entries.size());
        for (const ConfigNode::Entry& entry : node.entries) {
          check(!entry.key.empty(), "a key of the catalog has a name");
          add(entry.key_span);
          put(out_, text_at(lines_, entry.key_span) == entry.key ? std::string_view{} : std::string_view(entry.key));
          add(entry.value);
        }
        break;
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void add(const SourceSpan& span) {
    put(out_, folded_sign(span.line - cursor_.line));
    put(out_, folded_sign(span.column - cursor_.column));
    put(out_, static_cast<std::size_t>(span.length));
    cursor_.move(span);
  }

  Cursor cursor_;
  std::vector<std::string_view> lines_;
  std::string out_;
};

class Unpacker {
 public:
  Unpacker(std::string_view packed, std::string_view text, const std::string& file)
      : rest_(packed), lines_(lines_of(text)), shown_(lines_.size()), file_(file) {}

  /// Filled in where it will stay: a document of thousands of nodes moves none of them.
  void fill(ConfigNode& out) {
    const char letter = take(1).front();
    place(out.span);
    if (letter == 'p') {
      out.text = text_at(lines_, out.span);
    } else if (letter == 's' || letter == 'q') {
      out.quoted = letter == 'q';
      out.text = take(number());
    } else if (letter == 'l') {
      out.kind = ConfigNode::Kind::kSequence;
      out.items.resize(count());
      for (ConfigNode& item : out.items) fill(item);
    } else {
      check(letter == 'm', "a packed node is a scalar, a list or a map");
      out.kind = ConfigNode::Kind::kMap;
      out.entries.resize(count());
      for (ConfigNode::Entry& entry : out.entries) {
        place(entry.key_span);
        const std::string_view key = take(number());
        entry.key = key.empty() ? text_at(lines_, entry.key_span) : key;
        fill(entry.value);
      }
    }
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
    if (!rest_.empty() && (static_cast<unsigned char>(rest_.front()) & kMore) == 0) {  // most are short
      const auto digit = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      return digit;
    }
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

  void place(SourceSpan& out) {
    out.file = file_;
    out.line = cursor_.line + unfolded_sign(number());
    out.column = cursor_.column + unfolded_sign(number());
    out.length = static_cast<int>(number());
    cursor_.move(out);
    const std::size_t line = static_cast<std::size_t>(out.line);
    if (line < 1 || line > lines_.size()) return;
    SharedText& shown = shown_[line - 1];
    if (shown.empty()) shown = SharedText(lines_[line - 1]);
    out.line_text = shown;
  }

  std::string_view rest_;
  Cursor cursor_;
  std::vector<std::string_view> lines_;
  std::vector<SharedText> shown_;  ///< the lines that something stands on, each once
  SharedText file_;
};

}  // namespace

std::string pack(const ConfigNode& document, std::string_view text) {
  Packer packer(text);
  packer.add(document);
  return packer.take();
}

ConfigNode unpack(std::string_view packed, std::string_view text, const std::string& file) {
  Unpacker unpacker(packed, text, file);
  ConfigNode document;
  unpacker.fill(document);
  check(unpacker.at_end(), "nothing follows a packed document");
  return document;
}

}  // namespace scalecalc
