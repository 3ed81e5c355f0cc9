// Reads YAML into a tree with places, from yaml-cpp's events. yaml-cpp accepts much that is a mistake in a file of
// numbers (tabs, lone words, duplicate keys, a second document), so those are looked for here, and its terse messages
// are put in words.
#include "config/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "config/source_text.h"

namespace scalecalc {
namespace {

constexpr const char* kUnclosedQuote = "the quote opened here is never closed";

/// Problems so far; throws them all when asked, or when there are too many.
class Findings {
 public:
  void add(SourceSpan where, std::string message, std::string hint = "") {
    found_.push_back({std::move(where), std::move(message), std::move(hint)});
    if (found_.size() == kMostProblems) throw_all();
  }
  [[noreturn]] void fatal(SourceSpan where, std::string message, std::string hint = "") {
    found_.push_back({std::move(where), std::move(message), std::move(hint)});
    throw_all();
  }
  void throw_if_any() {
    if (!found_.empty()) throw_all();
  }

 private:
  [[noreturn]] void throw_all() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Diagnostic& a, const Diagnostic& b) { return a.where.line < b.where.line; });
    throw UserError(std::move(found_));
  }
  std::vector<Diagnostic> found_;
};

/// A collection being built.
struct Frame {
  ConfigNode node;
  bool flow = false;
  SourceSpan opening;
  bool has_key = false;  ///< a map waiting for the value of `key`
  std::string key;
  SourceSpan key_span;
  std::size_t key_end = 0;                      ///< 0 where the key's end in the text is not known
  std::unordered_map<std::string, int> seen{};  ///< keys with their lines
};

class Builder : public YAML::EventHandler {
 public:
  Builder(const SourceText& source, Findings& findings, std::size_t most_nodes)
      : source_(source), findings_(findings), most_nodes_(most_nodes) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    const std::size_t at = offset(mark);
    if (source_.text().substr(at).starts_with("---")) {
      findings_.fatal(source_.span(at, at + 3), "a second document starts here; a file holds one",
                      "put it in a file of its own");
    }
    findings_.fatal(source_.span(at), fmt::format("unexpected {} after the end of the document", here(at)),
                    "check the indentation: a list and a map cannot stand side by side");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    ConfigNode node;
    const std::size_t at = source_.skip_properties(offset(mark));
    const bool written = at < source_.text().size() && is_null_word(source_.text().substr(at));
    const bool of_key = waits_for_value();
    node.span = source_.span(at, written ? source_.scalar_end(at, word_at(at)) : at + 1);
    if (of_key && !(written && node.span.line == stack_.back().key_span.line)) {
      // yaml-cpp reports a missing value at the next token, which may be lines away.
      node.span = stack_.back().key_span;
      check_colon();
    }
    if (written) node.text = "null";
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    if (!stack_.empty() && stack_.back().node.kind == ConfigNode::Kind::kMap && !of_key) {
      findings_.add(node.span, "a key is missing before ':'");
    }
    attach(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const std::size_t at = offset(mark);
    const auto found = anchors_.find(anchor);
    const SourceSpan where = source_.span(at, at + word_at(at).size());
    ConfigNode node;
    if (found == anchors_.end()) {
      findings_.add(where, "an alias may only stand for a text, not for a list or a map", "write the value out");
    } else {
      node = found->second;
      if (!aliased_.makes(node.text.size())) findings_.fatal(where, "the document " + aliased_.message());
    }
    node.span = where;
    attach(std::move(node));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    ConfigNode node;
    const std::size_t at = source_.skip_properties(offset(mark));
    last_end_ = source_.scalar_end(at, value);
    node.text = value;
    node.quoted = tag == "!";
    node.span = source_.span(at, last_end_);
    check_tag(mark, tag);
    // yaml-cpp closes a quote at the end of the file without a word.
    if (node.quoted && source_.is_unclosed_quote(at)) findings_.fatal(source_.span(at), kUnclosedQuote);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    attach(std::move(node), last_end_);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(ConfigNode::Kind::kSequence, mark, tag, anchor, style);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(ConfigNode::Kind::kMap, mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  ConfigNode& root() { return root_; }
  std::size_t last_end() const { return last_end_; }
  /// The innermost collection in brackets that is still open, or null.
  const Frame* open_bracket() const { return stack_.empty() || !stack_.back().flow ? nullptr : &stack_.back(); }

 private:
  std::size_t offset(const YAML::Mark& mark) const {
    return mark.pos < 0 ? 0 : std::min(static_cast<std::size_t>(mark.pos), source_.text().size());
  }

  /// The word at a place, up to the next blank or flow sign.
  std::string_view word_at(std::size_t at) const {
    const std::string_view rest = source_.text().substr(at);
    return rest.substr(0, rest.find_first_of(" \t\r\n,:]}"));
  }
  static bool is_null_word(std::string_view rest) {
    const std::string_view word = rest.substr(0, rest.find_first_of(" \t\r\n,:]}"));
    return word == "null" || word == "~" || word == "Null" || word == "NULL";
  }
  /// What stands at a place, for messages.
  std::string here(std::size_t at) const {
    const std::string_view word = word_at(at);
    return in_quotes(word.empty() ? source_.text().substr(at, 1) : word);
  }

  bool waits_for_value() const { return !stack_.empty() && stack_.back().has_key; }

  /// yaml-cpp takes a line without ':' as a key without value.
  void check_colon() {
    const Frame& map = stack_.back();
    if (map.key_end == 0 || source_.next_on_line(map.key_end) == ':') return;
    // In a bracket cut off by the end of the file the last item may look like a key; the bracket is the problem.
    const bool in_bracket = std::any_of(stack_.begin(), stack_.end(), [](const Frame& f) { return f.flow; });
    if (in_bracket && source_.only_blank_after(map.key_end)) return;
    findings_.add(map.key_span, fmt::format("expected ':' after {}", in_quotes(map.key)));
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    const std::size_t at = offset(mark);
    findings_.add(source_.span(at, at + word_at(at).size()), "tags such as '!!str' are not supported",
                  "quotes make a value a text");
  }

  void count_node(const SourceSpan& where) {
    if (++nodes_ <= most_nodes_) return;
    findings_.fatal(where, limits::too_many(most_nodes_, "values in one document"), "is this the right file?");
  }

  void open(ConfigNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style) {
    const std::size_t at = source_.skip_properties(offset(mark));
    Frame frame;
    frame.node.kind = kind;
    frame.flow = style == YAML::EmitterStyle::Flow;
    frame.opening = source_.span(at);
    frame.node.span = frame.opening;
    if (stack_.size() >= limits::kTreeLevels) findings_.fatal(frame.opening, limits::too_deep(limits::kTreeLevels));
    check_tag(mark, tag);
    if (anchor != YAML::NullAnchor) {
      findings_.add(source_.span(offset(mark)),
                    fmt::format("an anchor on {}: only texts can have one", kind_name(kind)),
                    "write the value out where it is needed");
    }
    stack_.push_back(std::move(frame));
  }

  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    // yaml-cpp places a block map or list at its first entry; people look for it at its key.
    if (!frame.flow && waits_for_value()) frame.node.span = stack_.back().key_span;
    attach(std::move(frame.node));
  }

  /// Puts a finished node where it belongs: the root, a list's next item, a map's next key or value.
  void attach(ConfigNode node, std::size_t end = 0) {
    count_node(node.span);
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.node.kind == ConfigNode::Kind::kSequence) {
      frame.node.items.push_back(std::move(node));
    } else if (frame.has_key) {
      frame.has_key = false;
      add_entry(frame, std::move(node));
    } else {
      start_key(frame, std::move(node), end);
    }
  }

  void start_key(Frame& frame, ConfigNode node, std::size_t end) {
    frame.has_key = true;
    frame.key_end = end;
    if (node.kind != ConfigNode::Kind::kScalar) {
      findings_.add(node.span, fmt::format("a key is a text, not {}", kind_name(node.kind)));
    }
    if (node.text == "<<" && !node.quoted) {
      findings_.add(node.span, "merge keys ('<<') are not supported", "write the fields out");
    }
    frame.key = std::move(node.text);
    frame.key_span = std::move(node.span);
  }

  void add_entry(Frame& frame, ConfigNode value) {
    const auto [first, is_new] = frame.seen.emplace(frame.key, frame.key_span.line);
    if (is_new) {
      frame.node.entries.push_back({std::move(frame.key), frame.key_span, std::move(value)});
      return;
    }
    findings_.add(frame.key_span, fmt::format("duplicate key {}", in_quotes(frame.key)),
                  fmt::format("it stands in line {} already", first->second));
  }

  const SourceText& source_;
  Findings& findings_;
  ConfigNode root_;
  std::vector<Frame> stack_;
  std::unordered_map<YAML::anchor_t, ConfigNode> anchors_;  ///< scalars only
  limits::Expansion aliased_{limits::kYamlAliases};
  std::size_t documents_ = 0;
  std::size_t most_nodes_;
  std::size_t nodes_ = 0;
  std::size_t last_end_ = 0;
};

/// Bytes that are not text, and those yaml-cpp would misread: it takes 0x04 for the end of the file.
void check_characters(const SourceText& source, Findings& findings) {
  const std::string_view text = source.text();
  const std::size_t invalid = invalid_utf8_at(text);
  const auto unwanted = [&](std::size_t at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == '\r') return at + 1 == text.size() || text[at + 1] != '\n';
    return at == invalid || (byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7F;
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!unwanted(at)) continue;
    findings.fatal(source.span(at),
                   fmt::format("not a text file: unexpected byte 0x{:02x}",
                               static_cast<unsigned>(static_cast<unsigned char>(text[at]))),
                   "is this the right file?");
  }
}

/// YAML forbids tabs as indentation, and yaml-cpp glues such lines to the value before. JSON may use them.
void check_tabs(const SourceText& source, Findings& findings) {
  const std::string_view text = source.text();
  bool first_content = true;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::size_t content = std::min(text.find_first_not_of(" \t\r", start), end);
    const bool blank = content == end || text[content] == '#';
    if (!blank && first_content && (text[content] == '{' || text[content] == '[')) return;
    if (!blank) first_content = false;
    const std::size_t tab = text.find('\t', start);
    if (!blank && tab < content) {
      findings.fatal(source.span(tab, content), "a tab is used as indentation", "indent with spaces");
    }
    start = end + 1;
  }
}

struct Wording {
  const char* theirs;
  std::string_view message;
  std::string_view hint;
};

const Wording* wording_of(const std::string& theirs) {
  static const std::vector<Wording> kWordings{
      {YAML::ErrorMsg::MAP_VALUE, "unexpected ':'",
       "put a text that holds ': ' in quotes; check the line above and the indentation"},
      {YAML::ErrorMsg::MAP_KEY, "unexpected '?'", ""},
      {YAML::ErrorMsg::END_OF_MAP, "expected a key at the indentation of the map",
       "check the indentation, and that nothing follows a quoted text"},
      {YAML::ErrorMsg::END_OF_SEQ, "expected '- ' at the indentation of the list",
       "check the indentation, and that nothing follows a quoted text"},
      {YAML::ErrorMsg::BLOCK_ENTRY, "a list item cannot start here", "put '- ' on a line of its own, or use [a, b]"},
      {YAML::ErrorMsg::FLOW_END, "a closing bracket without an opening one", ""},
      {YAML::ErrorMsg::UNKNOWN_TOKEN, "a text cannot start with this character", "put it in quotes"},
      {YAML::ErrorMsg::UNKNOWN_ANCHOR, "an alias to an anchor that is not defined above", ""},
      {YAML::ErrorMsg::EOF_IN_SCALAR, "a quoted text is never closed", ""},
      {YAML::ErrorMsg::DOC_IN_SCALAR, "a quoted text is never closed", ""},
      {YAML::ErrorMsg::INVALID_ESCAPE, "unknown escape sequence in a quoted text", "write \\\\ for a backslash"},
      {YAML::ErrorMsg::INVALID_UNICODE, "this \\u escape is no character that can be read here", ""},
      {YAML::ErrorMsg::BAD_FILE, "nested too deep", ""}};
  // Some of theirs go on with the character they met.
  const auto found =
      std::find_if(kWordings.begin(), kWordings.end(), [&](const Wording& w) { return theirs.starts_with(w.theirs); });
  return found == kWordings.end() ? nullptr : &*found;
}

/// Reports a syntax error where its cause stands, which is often before the place yaml-cpp names.
[[noreturn]] void report_syntax(const YAML::Exception& error, const SourceText& source, const Builder& builder,
                                Findings& findings) {
  const std::size_t at = error.mark.pos < 0 ? source.text().size() : static_cast<std::size_t>(error.mark.pos);
  const bool quote = error.msg == YAML::ErrorMsg::EOF_IN_SCALAR || error.msg == YAML::ErrorMsg::DOC_IN_SCALAR;
  const std::size_t opening = quote ? source.unclosed_quote(builder.last_end()) : std::string_view::npos;
  if (opening != std::string_view::npos) {
    findings.fatal(source.span(opening), kUnclosedQuote);
  }
  const bool bracket = error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW || error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW;
  if (const Frame* frame = builder.open_bracket(); bracket && frame != nullptr) {
    const bool map = frame->node.kind == ConfigNode::Kind::kMap;
    const bool at_end = source.only_blank_after(at);
    if (at_end) findings.fatal(frame->opening, fmt::format("the '{}' opened here is never closed", map ? '{' : '['));
    findings.fatal(source.span(at), fmt::format("expected ',' or '{}'", map ? '}' : ']'),
                   fmt::format("the '{}' in line {} is still open", map ? '{' : '[', frame->opening.line));
  }
  const Wording* words = wording_of(error.msg);
  if (words == nullptr) findings.fatal(source.span(at), "invalid YAML: " + error.msg);
  findings.fatal(source.span(at), std::string(words->message), std::string(words->hint));
}

}  // namespace

ConfigNode read_yaml(std::string_view text, const std::string& file_name, std::size_t most_nodes) {
  while (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // yaml-cpp would skip one and shift every place
  const SourceText source(text, file_name);
  Findings findings;
  check_characters(source, findings);
  check_tabs(source, findings);
  Builder builder(source, findings, most_nodes);
  bool any = false;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    any = parser.HandleNextDocument(builder);
    // The second call finds a second document, or stops at the end; more calls could loop.
    if (any) parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& error) {
    report_syntax(error, source, builder, findings);
  }
  findings.throw_if_any();
  if (!any || (builder.root().is_null() && builder.root().text.empty())) {
    SourceSpan where;
    where.file = file_name;
    findings.fatal(where, "the document is empty");
  }
  return std::move(builder.root());
}

}  // namespace scalecalc
