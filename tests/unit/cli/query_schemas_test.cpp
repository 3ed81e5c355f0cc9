// What docs/schema says of the query of each answer, made of the commands' tables of flags. SCALECALC_UPDATE_SCHEMAS=1
// writes it. A schema lists what no table knows: "x-by-hand" are members that the answer itself gives, which stay as
// the file has them; "x-filled-in" are flags whose default the answer fills in, so that they are never null.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/io.h"
#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/output_command.h"
#include "cli/run.h"
#include "support/every_answer.h"

namespace scalecalc::cli {
namespace {

using Schema = nlohmann::ordered_json;
using SchemaKeys = std::vector<std::string>;

/// What answers under one schema ask: the flags of their commands and modes, then those of other modes, and their
/// queries.
struct Described {
  std::vector<Flag> flags;
  std::vector<Flag> of_other_modes;
  std::vector<Schema> queries;
};

Schema::json_pointer place_of(const std::string& key, const std::string& between = "/") {
  return Schema::json_pointer('/' + join(parts_between(key, '.'), between));
}

/// What with_query makes of a flag: by the type of its member, or as it is typed.
QueryForm form_in_query(const Flag& flag) {
  if (flag.show != nullptr) return flag.form;
  if (flag.kind == FlagKind::kSwitch) return QueryForm::kFlag;
  if (flag.kind == FlagKind::kRepeatable) return QueryForm::kTexts;
  const bool is_text = flag.reading == Reading::kText || flag.reading == Reading::kWord;
  if (flag.store != nullptr || is_text) return QueryForm::kText;
  return flag.reading == Reading::kSweep ? QueryForm::kNumbers : QueryForm::kNumber;
}

/// Whether nothing is known of it that says there is always a value: a flag that must be given has one.
bool null_by_table(const Flag& flag) {
  const bool shown_null = flag.show != nullptr ? flag.may_be_null : flag.kind != FlagKind::kSwitch;
  return shown_null && flag.ask.empty();
}

Schema typed(const char* type, bool may_be_null) {
  return may_be_null ? Schema{{"type", {type, "null"}}} : Schema{{"type", type}};
}

Schema number_schema(const Flag& flag, bool may_be_null) {
  const bool whole = flag.reading == Reading::kCount || form_in_query(flag) == QueryForm::kInteger;
  Schema out = typed(whole ? "integer" : "number", may_be_null);
  switch (flag.reading) {
    case Reading::kCount:
      out["minimum"] = flag.range.least;
      if (flag.range.most > 0) out["maximum"] = flag.range.most;
      break;
    case Reading::kShare: out.update({{"minimum", 0}, {"maximum", 1}}); break;
    case Reading::kSomeShare: out.update({{"exclusiveMinimum", 0}, {"maximum", 1}}); break;
    case Reading::kQuantity:
    case Reading::kSweep: out["exclusiveMinimum"] = 0; break;
    case Reading::kText:
    case Reading::kWord: break;
  }
  return out;
}

Schema list_of(Schema items) { return {{"type", "array"}, {"items", std::move(items)}}; }

Schema text_schema(const Flag& flag, bool may_be_null) {
  if (flag.words.empty()) return typed("string", may_be_null);
  Schema words = Schema::array();
  for (const std::string_view word : flag.words) words.push_back(word);
  if (may_be_null) words.push_back(nullptr);
  return {{"enum", std::move(words)}};
}

Schema schema_of(const Flag& flag, bool may_be_null) {
  Schema out;
  switch (form_in_query(flag)) {
    case QueryForm::kLayout: return {{"$ref", "train.schema.json#/definitions/filter"}};
    case QueryForm::kFlag: out = typed("boolean", may_be_null); break;
    case QueryForm::kTexts: out = list_of(typed("string", false)); break;
    case QueryForm::kNumbers: out = list_of(number_schema(flag, false)); break;
    case QueryForm::kInteger:
    case QueryForm::kNumber: out = number_schema(flag, may_be_null); break;
    case QueryForm::kTyped:
    case QueryForm::kWord:
    case QueryForm::kText: out = text_schema(flag, may_be_null); break;
  }
  out["description"] = help_text(flag);
  return out;
}

/// A default may be a number that nobody can type: plan 0 is the recommended one.
void admit(const Schema& value, Schema& number) {
  if (!value.is_number()) return;
  const bool below = (number.contains("minimum") && value < number["minimum"]) ||
                     (number.contains("exclusiveMinimum") && value <= number["exclusiveMinimum"]);
  if (!below) return;
  number.erase("exclusiveMinimum");
  number["minimum"] = value;
}

Schema new_object() {
  return {{"type", "object"},
          {"required", Schema::array()},
          {"properties", Schema::object()},
          {"additionalProperties", false}};
}

bool is_one_of(const SchemaKeys& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// The schema of a query made anew, of the old one only what no table knows.
class QuerySchema {
 public:
  QuerySchema(const Schema& old, const Described& described)
      : old_(old), described_(described), by_hand_(listed("x-by-hand")), filled_in_(listed("x-filled-in")) {}

  Schema made() const {
    Schema out;
    for (const char* kept : {"description", "x-by-hand", "x-filled-in"}) {
      if (old_.contains(kept)) out[kept] = old_[kept];
    }
    out.update(new_object());
    for (const std::string& key : by_hand_) put(out, key, member_by_hand(key), required_by_hand(key));
    for (const auto& [key, flag] : flags()) {
      if (!is_one_of(by_hand_, key)) put(out, key, member(flag), times(key) == described_.queries.size());
    }
    return out;
  }

  /// Keys that a schema lists without need.
  SchemaKeys idle() const {
    SchemaKeys out;
    for (const auto& [key, flag] : flags()) {
      if (is_one_of(by_hand_, key) && alike(member(flag), member_by_hand(key))) out.push_back("x-by-hand " + key);
      if (is_one_of(filled_in_, key) && !null_by_table(flag)) out.push_back("x-filled-in " + key);
    }
    for (const std::string& key : filled_in_) {
      if (times(key) == 0) out.push_back("x-filled-in " + key);
    }
    for (const std::string& key : by_hand_) {
      if (times(key) == 0) out.push_back("x-by-hand " + key);
    }
    return out;
  }

 private:
  SchemaKeys listed(const char* list) const {
    return old_.contains(list) ? old_[list].get<SchemaKeys>() : SchemaKeys{};
  }

  /// Those that a query repeats, the first of each key.
  std::vector<std::pair<std::string, Flag>> flags() const {
    std::vector<std::pair<std::string, Flag>> out;
    std::set<std::string> seen;
    for (const std::vector<Flag>* flags : {&described_.flags, &described_.of_other_modes}) {
      for (const Flag& flag : *flags) {
        const std::string key = query_key(flag);
        if (flag.asks && times(key) > 0 && seen.insert(key).second) out.emplace_back(key, flag);
      }
    }
    return out;
  }

  /// In how many of the queries it is.
  std::size_t times(const std::string& key) const {
    return static_cast<std::size_t>(std::count_if(described_.queries.begin(), described_.queries.end(),
                                                  [&](const Schema& query) { return query.contains(place_of(key)); }));
  }

  Schema member(const Flag& flag) const {
    const std::string key = query_key(flag);
    bool may_be_null = null_by_table(flag) && !is_one_of(filled_in_, key);
    for (const Schema& query : described_.queries) {
      may_be_null = may_be_null || (query.contains(place_of(key)) && query.at(place_of(key)).is_null());
    }
    Schema out = schema_of(flag, may_be_null);
    for (const Schema& query : described_.queries) {
      if (query.contains(place_of(key))) admit(query.at(place_of(key)), out);
    }
    return out;
  }

  Schema member_by_hand(const std::string& key) const {
    const auto place = place_of(key, "/properties/");
    return old_["properties"].contains(place) ? old_["properties"].at(place) : Schema::object();
  }
  bool required_by_hand(const std::string& key) const {
    const std::size_t dot = key.rfind('.');
    const Schema in = dot == key.npos ? old_ : member_by_hand(key.substr(0, dot));
    return std::find(in["required"].begin(), in["required"].end(), key.substr(dot + 1)) != in["required"].end();
  }

  static bool alike(Schema one, Schema other) {
    one.erase("description");
    other.erase("description");
    return one == other;
  }

  void put(Schema& object, const std::string& key, Schema member, bool required, const std::string& around = "") const {
    const std::size_t dot = key.find('.');
    const std::string name = key.substr(0, dot);
    Schema& members = object["properties"];
    if (dot == key.npos) {
      if (required) object["required"].push_back(name);
      members[name] = std::move(member);
      return;
    }
    if (!members.contains(name)) {
      const Schema old = member_by_hand(around + name);
      members[name] = old.contains("description") ? Schema{{"description", old["description"]}} : Schema::object();
      members[name].update(new_object());
      if (times(around + name) == described_.queries.size()) object["required"].push_back(name);
    }
    put(members[name], key.substr(dot + 1), std::move(member), required, around + name + '.');
  }

  const Schema& old_;
  const Described& described_;
  SchemaKeys by_hand_;
  SchemaKeys filled_in_;
};

std::filesystem::path schema_file(const std::string& name) {
  return std::filesystem::path(SCALECALC_SOURCE_DIR) / "docs" / "schema" / (name + ".schema.json");
}
Schema schema_named(const std::string& name) { return Schema::parse(read_text_file(schema_file(name).string())); }

/// What is described by each form of the query of each schema: `compare` has two.
using AllDescribed = std::map<std::string, std::map<std::size_t, Described>>;

void describe(std::vector<std::string> words, AllDescribed& out) {
  words.emplace_back("--json");
  std::ostringstream text;
  std::ostringstream err;
  Environment env{.out = text, .err = err};
  ASSERT_EQ(run(words, env), 0) << join(words, " ") << err.str();
  const Schema document = Schema::parse(text.str());
  const Schema& query = document["query"];
  const bool serves = query.contains("task") && query["task"] == "serve";
  Described& of = out[parts_between(document["schema"].get<std::string>(), '/').at(1)][serves ? 1 : 0];
  of.queries.push_back(query);
  const Command& command = *find_command(words.front());
  const auto mode = mode_of(parse_arguments({words.begin() + 1, words.end()}, command));
  for (const Flag& flag : command.flags) (!mode || flag.is_of(*mode) ? of.flags : of.of_other_modes).push_back(flag);
}

const AllDescribed& all_described() {
  static const AllDescribed kAll = [] {
    AllDescribed out;
    for (const test::AskedAnswer& asked : test::every_answer()) describe(asked.words, out);
    const std::string results = SCALECALC_SOURCE_DIR "/tests/data/released/0.1.0/merged.jsonl";
    describe({"batch", "diff", results, results}, out);
    return out;
  }();
  return kAll;
}

/// On one line, with blanks between.
std::string on_one_line(const Schema& value) {
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [key, member] : value.items()) {
    parts.push_back((value.is_object() ? Schema(key).dump() + ": " : "") + on_one_line(member));
  }
  return (value.is_object() ? "{" : "[") + join(parts, ", ") + (value.is_object() ? "}" : "]");
}

bool holds_objects(const Schema& value) {
  return std::any_of(value.begin(), value.end(), [](const Schema& inner) {
    return inner.is_object() || (inner.is_array() && holds_objects(inner));
  });
}

/// Broken into lines where a line would be long, but for an object that holds no other.
std::string in_lines(const Schema& value, std::size_t indent) {
  constexpr std::size_t kWidth = 120;
  const std::string line = on_one_line(value);
  const bool outer = value.is_structured() && holds_objects(value);
  if (!value.is_structured() || indent + line.size() <= kWidth || (value.is_object() && !outer)) return line;
  const std::string margin = '\n' + std::string(indent + 2, ' ');
  std::string out = value.is_object() ? "{" : "[";
  std::size_t column = kWidth;
  for (const auto& [key, member] : value.items()) {
    const std::string name = value.is_object() ? Schema(key).dump() + ": " : "";
    const std::string text = name + in_lines(member, indent + 2);
    if (out.size() > 1) out += ',';
    const bool same_line = !outer && column + text.size() + 2 <= kWidth;
    out += (same_line ? " " : margin) + text;
    column = text.size() + (same_line ? column + 2 : indent + 2);
  }
  return out + '\n' + std::string(indent, ' ') + (value.is_object() ? '}' : ']');
}

/// In the file's own text, whose other lines stay as they are.
void write_query(const std::filesystem::path& path, const Schema& query) {
  std::string text = read_text_file(path.string());
  const std::string name = "\n    \"query\": ";
  const std::size_t start = text.find(name) + name.size();
  const std::size_t end = std::min(text.find("\n    \"", start), text.find("\n  }", start));
  text.replace(start, end - start, in_lines(query, 4) + (text[end - 1] == ',' ? "," : ""));
  std::ofstream(path) << text;
}

TEST(QuerySchemas, AreMadeOfTheTablesOfFlags) {
  for (const auto& [name, forms] : all_described()) {
    const Schema old = schema_named(name)["properties"]["query"];
    Schema now = old;
    for (const auto& [i, described] : forms) {
      Schema& form = now.contains("oneOf") ? now["oneOf"][i] : now;
      form = QuerySchema(form, described).made();
    }
    if (now != old && std::getenv("SCALECALC_UPDATE_SCHEMAS") != nullptr) write_query(schema_file(name), now);
    EXPECT_EQ(now, schema_named(name)["properties"]["query"])
        << schema_file(name) << " says another query than the table of flags: run this test with "
        << "SCALECALC_UPDATE_SCHEMAS=1 and read the difference";
  }
}

TEST(QuerySchemas, ListByHandOnlyWhatNoTableKnows) {
  for (const auto& [name, forms] : all_described()) {
    const Schema query = schema_named(name)["properties"]["query"];
    for (const auto& [i, described] : forms) {
      const Schema& form = query.contains("oneOf") ? query["oneOf"][i] : query;
      EXPECT_EQ(QuerySchema(form, described).idle(), SchemaKeys{}) << name;
    }
  }
}

TEST(QuerySchemas, AreAllMade) {
  for (const auto& entry : std::filesystem::directory_iterator(schema_file("train").parent_path())) {
    if (!entry.is_regular_file()) continue;
    const std::string name = parts_between(entry.path().filename().string(), '.').front();
    const Schema document = schema_named(name);
    const auto query = Schema::json_pointer("/properties/query");
    if (!document.contains(query) || document.at(query) == typed("object", false)) continue;
    EXPECT_TRUE(all_described().contains(name)) << name << ": no answer in tests/support/every_answer.cpp has it";
  }
}

/// Whatever command gets it: a row of the table is all that a flag needs.
TEST(QuerySchemas, HaveAnAddedFlagWithoutAHand) {
  constexpr std::array<std::string_view, 2> kWords{"all", "some"};
  for (const auto& [name, forms] : all_described()) {
    const Schema query = schema_named(name)["properties"]["query"];
    const Schema old = query.contains("oneOf") ? query["oneOf"][0] : query;
    Described described = forms.begin()->second;
    described.flags.push_back(count("--added-layers", {2, 64}, "N", "what it counts", "8"));
    described.flags.push_back(word("--added-words", kWords, "{}"));
    for (Schema& one : described.queries) one.update({{"added_layers", nullptr}, {"added_words", "all"}});
    Schema expected = old["properties"];
    expected["added_layers"] =
        Schema::parse(R"({"type": ["integer", "null"], "minimum": 2, "maximum": 64, "description": "what it counts"})");
    expected["added_words"] = Schema::parse(R"({"enum": ["all", "some", null], "description": "all or some"})");
    const Schema made = QuerySchema(old, described).made();
    EXPECT_EQ(nlohmann::json(made["properties"]), nlohmann::json(expected)) << name;
    EXPECT_EQ(made["required"].size(), old["required"].size() + 2) << name;
  }
}

}  // namespace
}  // namespace scalecalc::cli
