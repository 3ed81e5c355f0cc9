// Reads the `launch:` blocks of stack files, built-in ones and a user's, into the tables of frameworks.
// docs/stacks.md describes the block.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "config/embedded_launches.h"
#include "config/fields.h"
#include "launch/framework.h"
#include "model/fine_tune.h"
#include "spec/kept.h"

namespace scalecalc {
namespace {

constexpr std::int64_t kLastPriority = 1000;

bool is_term(std::string_view text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string_view::npos;
}

/// Whether each of the parts between separators is of a form.
template <class Form>
bool each_part(std::string_view text, std::string_view separators, Form form) {
  for (bool more = true; more;) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (!form(text.substr(0, end))) return false;
    more = end < text.size();
    text.remove_prefix(more ? end + 1 : end);
  }
  return true;
}

bool is_product_text(std::string_view text) { return each_part(text, "*/", is_term); }

bool is_relation(std::string_view text, std::string_view signs) {
  const std::size_t at = text.find_first_of(signs);
  return at != std::string_view::npos && is_term(text.substr(0, at)) && at + 1 < text.size();
}

bool are_conditions(std::string_view text) {
  return each_part(text, ",", [](std::string_view one) { return is_relation(one, "=<>!"); });
}

bool are_pairs(std::string_view text) {
  return each_part(text, ",", [](std::string_view one) { return is_relation(one, "="); });
}

/// The terms of a row's value, product, conditions or pairs.
std::vector<std::string_view> terms_in(std::string_view text) {
  if (text.starts_with("[@")) return {text.substr(2, text.size() - 3)};
  if (text.starts_with('@')) return {text.substr(1)};
  if (text.starts_with('[') || text.starts_with('\'')) return {};  // words of the framework
  std::vector<std::string_view> out;
  const bool related = text.find_first_of("=<>!") != std::string_view::npos;
  each_part(text, related ? "," : "*/", [&](std::string_view part) {
    part = part.substr(0, part.find_first_of("=<>!"));
    if (part.find_first_not_of("0123456789") != std::string_view::npos) out.push_back(part);
    return true;
  });
  return out;
}

/// Names of terms that a block may use.
class KnownTerms {
 public:
  KnownTerms(LaunchJob job, const LaunchTermNames& own) : all_(launch_term_names(job == LaunchJob::kServing)) {
    all_.insert(own.begin(), own.end());
  }

  /// The first that is not there.
  std::optional<std::string_view> missing(const std::vector<std::string_view>& terms) const {
    const auto found =
        std::find_if(terms.begin(), terms.end(), [&](std::string_view term) { return !all_.contains(term); });
    return found == terms.end() ? std::nullopt : std::optional(*found);
  }
  std::string hint(std::string_view term) const {
    const std::vector<std::string> names(all_.begin(), all_.end());
    std::string out = did_you_mean(nearest(term, names));
    if (!out.empty()) out += ' ';
    return fmt::format("{}a term that only these rows know is listed under terms: [{}]", out, term);
  }

 private:
  LaunchTermNames all_;
};

bool is_row_value(std::string_view text) {
  if (text.empty()) return false;
  if (text.front() == '\'') return text.size() > 1 && text.back() == '\'';
  if (text.front() == '[') return text.size() > 2 && text.back() == ']';
  return text.front() == '@' ? is_term(text.substr(1)) : is_product_text(text);
}

/// Where a part of a text stands, if the file has the text as it is.
SourceSpan part_of(const ConfigNode& node, std::size_t start, std::size_t length) {
  SourceSpan where = node.span;
  if (node.quoted || where.length != static_cast<int>(node.text.size()) || length == 0) return where;
  where.column += static_cast<int>(start);
  where.length = static_cast<int>(length);
  return where;
}

/// One line of `rows:`, "--sequence-parallel 'on' says sp=on": its words, of which quotes and brackets keep blanks.
class RowLine {
 public:
  RowLine(const ConfigNode& node, const KnownTerms& terms, Problems& problems)
      : node_(node), terms_(terms), problems_(problems) {}

  LaunchRow read() {
    LaunchRow out;
    next();
    if (word_ == "says") {
      take(out.says, are_pairs, kPairs);
    } else if (word_ == "one") {
      take(out.value, is_product_text, kProduct);
    } else {
      out.key = word_;
      if (word_.empty())
        fail("a row is empty", "KEY VALUE [says TERM=VALUE] [when CONDITION] [default PRODUCT] [read|written]");
      next();
      if (word_ != "absent") out.value = checked(is_row_value, kValue);
    }
    while (next()) clause(out);
    if (!failed_ && out.value.empty() && out.says.empty()) fail("this row says nothing", "absent says TERM=VALUE");
    return out;
  }

 private:
  static constexpr std::string_view kValue =
      "a product of terms (mb*ga), a literal ('full'), @word, a list ([a b]) or absent";
  static constexpr std::string_view kProduct = "a product of terms and numbers: mb*ga/pp";
  static constexpr std::string_view kPairs = "what it says, with commas between: remat=full,zero=1";
  static constexpr std::string_view kConditions = "conditions with commas between: pp>1,zero<3,remat!full";

  void clause(LaunchRow& out) {
    if (word_ == "says") {
      take(out.says, are_pairs, kPairs);
    } else if (word_ == "when") {
      take(out.when, are_conditions, kConditions);
    } else if (word_ == "default") {
      take(out.absent, is_product_text, kProduct);
    } else if (word_ == "read" || word_ == "written") {
      out.use = word_ == "read" ? RowUse::kRead : RowUse::kWritten;
    } else {
      fail(fmt::format("unknown word {} in a row", in_quotes(word_)), "says, when, default, read or written");
    }
  }

  template <class Form>
  void take(std::string_view& out, Form form, std::string_view expected) {
    next();
    out = checked(form, expected);
  }

  template <class Form>
  std::string_view checked(Form form, std::string_view expected) {
    if (!form(word_)) {
      fail(word_.empty() ? "the row ends where something is to follow" : in_quotes(word_) + " is not read here",
           "expected " + std::string(expected));
    } else if (const auto term = terms_.missing(terms_in(word_))) {
      const std::size_t start = at_ + static_cast<std::size_t>(term->data() - word_.data());
      fail_at(start, term->size(), fmt::format("there is no term {}", in_quotes(*term)), terms_.hint(*term));
    }
    return word_;
  }

  bool next() {
    const std::string_view text = node_.text;
    at_ = std::min(text.find_first_not_of(' ', end_), text.size());
    const char first = at_ < text.size() ? text[at_] : ' ';
    const std::size_t closes = first == '\'' || first == '[' ? text.find(first == '[' ? ']' : '\'', at_ + 1) : at_;
    end_ = std::min(text.find(' ', std::min(closes, text.size())), text.size());
    word_ = text.substr(at_, end_ - at_);
    return !word_.empty();
  }

  void fail(std::string message, std::string_view hint) { fail_at(at_, word_.size(), std::move(message), hint); }
  void fail_at(std::size_t start, std::size_t length, std::string message, std::string_view hint) {
    if (!std::exchange(failed_, true))
      problems_.add(part_of(node_, start, length), std::move(message), std::string(hint));
  }

  const ConfigNode& node_;
  const KnownTerms& terms_;
  Problems& problems_;
  std::string_view word_;
  std::size_t at_ = 0, end_ = 0;
  bool failed_ = false;
};

template <class T>
void put_before(std::vector<T>& of_base, std::vector<T> own) {
  of_base.insert(of_base.begin(), own.begin(), own.end());
}

/// Where the document keeps it, if it is there.
void take_text(Fields& fields, const ConfigNode& map, std::string_view key, std::string_view& out, bool required) {
  if (required) {
    fields.text(key);
  } else {
    fields.optional_text(key);
  }
  if (const ConfigNode* value = map.find(key); value != nullptr) out = value->text;
}

/// A framework of one stack file.
struct LaunchBlock {
  const ConfigNode::Entry* entry;
  const ConfigNode* document;
};
using LaunchBlocks = std::map<std::string_view, LaunchBlock>;

class BlockReader {
 public:
  BlockReader(const LaunchBlock& block, const LaunchBlocks& blocks, const LaunchTermNames& own_terms,
              Problems& problems)
      : block_(block),
        blocks_(blocks),
        own_terms_(own_terms),
        node_(block.entry->value),
        fields_(node_, fmt::format("launch.{}", block.entry->key), problems),
        problems_(problems) {}

  /// Over `base`, which the block extends, if any.
  LaunchFramework read(const LaunchFramework* base) {
    LaunchFramework out = base == nullptr ? LaunchFramework{} : *base;
    out.name = block_.entry->key;
    out.title = out.name;
    out.stack = own_stack();
    fields_.optional_text("extends");
    texts(out, base == nullptr);
    out.priority = fields_.optional_count("priority", {1, kLastPriority}).value_or(kLastPriority);
    if (const auto job = fields_.optional_word("job", {"training", "serving"})) out.job = static_cast<LaunchJob>(*job);
    if (const auto format = fields_.optional_word("format", {"shell", "yaml", "toml", "json", "python"})) {
      out.format = static_cast<LaunchFormat>(*format);
    }
    if (const auto naming = fields_.optional_word("naming", {"shapes", "repository", "own"})) {
      out.naming = static_cast<ModelNaming>(*naming);
    }
    out.peft = fields_.flag("peft", out.peft);
    lists(out);
    fields_.finish();
    return out;
  }

 private:
  /// A stack goes by the framework's name where its file has that for an alias.
  std::string_view own_stack() const {
    const ConfigNode* name = block_.document->find("name");
    const ConfigNode* aliases = block_.document->find("aliases");
    const bool alias = aliases != nullptr && std::any_of(aliases->items.begin(), aliases->items.end(),
                                                         [&](const auto& a) { return a.text == block_.entry->key; });
    return alias ? block_.entry->key : name == nullptr ? std::string_view{} : std::string_view(name->text);
  }

  void texts(LaunchFramework& out, bool required) {
    take_text(fields_, node_, "title", out.title, required);
    take_text(fields_, node_, "stack", out.stack, false);
    if (out.stack == "none") out.stack = {};
    take_text(fields_, node_, "source", out.source, required);
    take_text(fields_, node_, "command", out.command, required);
    take_text(fields_, node_, "script", out.script, false);
    take_text(fields_, node_, "file", out.file, false);
    take_text(fields_, node_, "program", out.program, false);
    take_text(fields_, node_, "configs", out.configs, false);
    take_text(fields_, node_, "yours", out.yours, false);
    take_text(fields_, node_, "workers", out.workers, false);
    take_text(fields_, node_, "ranks", out.ranks, false);
  }

  void lists(LaunchFramework& out) {
    fields_.node("shared");  // lists of rows and of limits that other frameworks name
    fields_.text_list("terms");
    const KnownTerms terms(out.job, own_terms_);
    std::vector<LaunchRow> rows;
    each(fields_.node("rows"), "rows",
         [&](const ConfigNode& item) { rows.push_back(RowLine(item, terms, problems_).read()); });
    put_before(out.rows, std::move(rows));
    std::vector<LaunchLimit> limits;
    each(fields_.node("limits"), "limits", [&](const ConfigNode& item) { limits.push_back(limit(item, terms)); });
    put_before(out.limits, std::move(limits));
    fields_.text_list("neutral");
    if (const ConfigNode* neutral = node_.find("neutral"); neutral != nullptr) {
      for (const ConfigNode& item : neutral->items) out.neutral.emplace_back(item.text);
    }
    if (const ConfigNode* models = fields_.node("models")) {
      for (const ConfigNode::Entry& each : models->entries) out.models.push_back({each.key, each.value.text});
    }
    if (const ConfigNode* adapters = fields_.node("adapters")) {
      for (const ConfigNode::Entry& each : adapters->entries) {
        out.adapters.push_back({targets(each.value), each.key});
      }
    }
    if (const ConfigNode* taken = fields_.node("default_adapters")) out.default_adapters = targets(*taken);
  }

  /// The items of a list; "shared deepspeed.peft" stands for those of another.
  template <class Take>
  void each(const ConfigNode* list, std::string_view what, Take take) {
    if (list == nullptr) return;
    if (list->kind != ConfigNode::Kind::kSequence) {
      problems_.add(list->span, fmt::format("{} is {}, where a list is expected", what, kind_name(list->kind)));
    }
    for (const ConfigNode& item : list->items) {
      if (!item.text.starts_with("shared ")) {
        take(item);
      } else if (const ConfigNode* shared = shared_list(item.text.substr(7)); shared != nullptr) {
        std::for_each(shared->items.begin(), shared->items.end(), take);
      } else {
        problems_.add(item.span, fmt::format("no list is called {}", in_quotes(item.text.substr(7))),
                      "FRAMEWORK.NAME, of which the framework has shared: {NAME: [...]}");
      }
    }
  }

  const ConfigNode* shared_list(std::string_view name) const {
    const std::size_t dot = std::min(name.find('.'), name.size());
    const auto block = blocks_.find(name.substr(0, dot));
    if (block == blocks_.end() || dot == name.size()) return nullptr;
    const ConfigNode* shared = block->second.entry->value.find("shared");
    return shared == nullptr ? nullptr : shared->find(name.substr(dot + 1));
  }

  LaunchLimit limit(const ConfigNode& item, const KnownTerms& terms) {
    Fields fields(item, "limit", problems_);
    LaunchLimit out;
    take_text(fields, item, "when", out.when, true);
    take_text(fields, item, "says", out.says, true);
    take_text(fields, item, "source", out.source, true);
    take_text(fields, item, "instead", out.instead, false);
    fields.finish();
    if (!out.when.empty() && !are_conditions(out.when)) {
      problems_.add(item.find("when")->span, fmt::format("{} is no condition", in_quotes(out.when)),
                    "conditions with commas between: pp>1,zero<3,remat!full");
    } else if (const auto term = terms.missing(terms_in(out.when))) {
      const auto start = static_cast<std::size_t>(term->data() - out.when.data());
      problems_.add(part_of(*item.find("when"), start, term->size()),
                    fmt::format("there is no term {}", in_quotes(*term)), terms.hint(*term));
    }
    return out;
  }

  /// Bits of FineTune::targets.
  std::uint8_t targets(const ConfigNode& node) {
    std::uint8_t out = 0;
    const auto take = [&](const ConfigNode& one) {
      const auto* const at = std::find(kLoraTargetNames.begin(), kLoraTargetNames.end(), one.text);
      if (at != kLoraTargetNames.end()) {
        out |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(at - kLoraTargetNames.begin()));
        return;
      }
      problems_.add(one.span, fmt::format("{} is no projection that carries adapters", in_quotes(one.text)),
                    fmt::format("{}", fmt::join(kLoraTargetNames, ", ")));
    };
    if (node.kind == ConfigNode::Kind::kScalar) take(node);
    for (const ConfigNode& item : node.items) take(item);
    return out;
  }

  const LaunchBlock& block_;
  const LaunchBlocks& blocks_;
  const LaunchTermNames& own_terms_;
  const ConfigNode& node_;
  Fields fields_;
  Problems& problems_;
};

/// A stack that `extends:` another has the other's blocks too, whose frameworks are the other's.
bool is_inherited(const LaunchBlock& block) {
  return block.entry->key_span.file.str() != block.document->span.file.str();
}

LaunchBlocks blocks_of(const std::vector<std::shared_ptr<const ConfigNode>>& documents, Problems& problems) {
  LaunchBlocks out;
  for (const bool inherited : {false, true}) {
    for (const auto& document : documents) {
      const ConfigNode* launch = document->find("launch");
      if (launch == nullptr) continue;
      if (!inherited && launch->kind != ConfigNode::Kind::kMap) {
        problems.add(launch->span, fmt::format("launch is {}, where a map is expected", kind_name(launch->kind)),
                     "launch: {NAME: {title: ..., rows: [...]}}");
      }
      for (const ConfigNode::Entry& entry : launch->entries) {
        const LaunchBlock block{&entry, document.get()};
        if (is_inherited(block) != inherited || out.try_emplace(entry.key, block).second || inherited) continue;
        problems.add(entry.key_span,
                     fmt::format("launch.{} stands in {} too", entry.key, out.at(entry.key).document->span.file.str()),
                     fmt::format("give it a name of its own: {}-fork: {{extends: {}}}", entry.key, entry.key));
      }
    }
  }
  return out;
}

/// Terms of rows alone. Those of all frameworks, because rows are shared.
LaunchTermNames own_terms_of(const LaunchBlocks& blocks) {
  LaunchTermNames out;
  for (const auto& [name, block] : blocks) {
    const ConfigNode* terms = block.entry->value.find("terms");
    if (terms == nullptr) continue;
    if (terms->kind == ConfigNode::Kind::kScalar) out.insert(terms->text);
    for (const ConfigNode& item : terms->items) out.insert(item.text);
  }
  return out;
}

}  // namespace

LaunchFrameworks load_frameworks(std::vector<std::shared_ptr<const ConfigNode>> documents) {
  Problems problems;
  const LaunchBlocks blocks = blocks_of(documents, problems);
  const LaunchTermNames own_terms = own_terms_of(blocks);
  std::map<std::string_view, LaunchFramework> read;
  for (const bool extends : {false, true}) {
    for (const auto& [name, block] : blocks) {
      const ConfigNode* of = block.entry->value.find("extends");
      if ((of != nullptr) != extends) continue;
      const auto base = of == nullptr ? read.end() : read.find(of->text);
      if (of != nullptr && base == read.end()) {
        std::vector<std::string> names;
        for (const auto& [known, framework] : read) names.emplace_back(known);
        std::string hint = did_you_mean(nearest(of->text, names));
        if (!hint.empty()) hint += ' ';
        problems.add(of->span, fmt::format("no launch files are known of {}", in_quotes(of->text)),
                     fmt::format("{}frameworks: {}", hint, join(names, ", ")));
        continue;
      }
      read.emplace(name, BlockReader(block, blocks, own_terms, problems).read(of == nullptr ? nullptr : &base->second));
    }
  }
  problems.throw_if_any();
  std::vector<LaunchFramework> all;
  for (auto& [name, framework] : read) all.push_back(std::move(framework));
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.priority < b.priority; });
  return {std::move(all), std::move(documents)};
}

const LaunchFrameworks& launch_frameworks() {
  static const LaunchFrameworks kAll = [] {
    std::map<std::size_t, std::shared_ptr<const ConfigNode>> documents;
    for (const EmbeddedLaunch& each : embedded_launches()) {
      if (auto& document = documents[each.file]; document == nullptr) {
        document = std::make_shared<const ConfigNode>(document_of(embedded_catalog()[each.file]));
      }
    }
    std::vector<std::shared_ptr<const ConfigNode>> all;
    for (const auto& [file, document] : documents) all.push_back(document);
    return load_frameworks(std::move(all));
  }();
  return kAll;
}

std::shared_ptr<const LaunchFrameworks> launch_frameworks(const Catalog& catalog) {
  return kept<LaunchFrameworks>(catalog, "launch frameworks", [&] {
    std::vector<std::shared_ptr<const ConfigNode>> documents;
    for (const std::string& name : catalog.names(CatalogKind::kStack)) {
      documents.push_back(kept_document(catalog, CatalogKind::kStack, name));
    }
    return load_frameworks(std::move(documents));
  });
}

}  // namespace scalecalc
