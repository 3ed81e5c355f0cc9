// Parses and checks the notation of a sharded matmul with the sizes of its dimensions and mesh axes.
#include "matmul/matmul_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "base/units.h"

namespace scalecalc {
namespace {

constexpr std::string_view kForm = "for example \"A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]\"";
constexpr std::string_view kRouteForm = "for example \"A[I_X, J] -> A[I, J_X]\"";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<DType> dtype_of(std::string_view word) {
  const auto* const found = std::find(kDTypeNames.begin(), kDTypeNames.end(), word);
  if (found == kDTypeNames.end()) return std::nullopt;
  return static_cast<DType>(found - kDTypeNames.begin());
}

/// "bf17" before a bracket is a format mistyped, not an array.
bool looks_like_format(std::string_view word) {
  for (const std::string_view prefix : {"bfloat", "float", "uint", "int", "bf", "fp", "tf"}) {
    if (!word.starts_with(prefix)) continue;
    word.remove_prefix(prefix.size());
    return !word.empty() && std::all_of(word.begin(), word.end(), is_digit);
  }
  return false;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  NotedExpression expression() {
    NotedExpression out;
    out.text = text_;
    out.operands.push_back(array());
    while (true) {
      skip_blanks();
      if (at_end()) break;
      const std::size_t start = at_;
      if (take_any({"->", "→"})) {
        if (out.results.empty()) {
          if (out.target) fail(start, 1, "the array has its layout already", std::string(kRouteForm));
          out.target = array();
          continue;
        }
        if (out.results.back()) fail(start, 1, "this product has a result already", std::string(kForm));
        out.results.back() = array();
      } else if (take_any({"*", "·", "⋅", "×", "@"})) {
        if (out.target) fail(start, 1, "a product stands behind the arrow", std::string(kForm));
        out.operands.push_back(array());
        out.results.emplace_back();
      } else {
        expected(out.results.empty() || !out.results.back() ? "'*', '->' or the end" : "'*' or the end");
      }
    }
    return out;
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::size_t length, std::string message, std::string hint) const {
    throw UserError({notation_problem(std::string(text_), at, length, std::move(message), std::move(hint))});
  }

  [[noreturn]] void expected(std::string_view what, std::string hint = std::string(kForm)) const {
    if (at_end()) fail(text_.size(), 1, fmt::format("the expression ends where {} was expected", what), hint);
    std::string_view rest = text_.substr(at_);
    next_code_point(rest);
    const std::size_t length = text_.size() - at_ - rest.size();
    fail(at_, length, fmt::format("{} stands where {} was expected", in_quotes(text_.substr(at_, length)), what), hint);
  }

  bool at_end() const { return at_ >= text_.size(); }
  char here() const { return at_end() ? '\0' : text_[at_]; }
  void skip_blanks() {
    while (here() == ' ' || here() == '\t' || here() == '\n') ++at_;
  }
  bool take(std::string_view symbol) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }
  bool take_any(std::initializer_list<std::string_view> symbols) {
    return std::any_of(symbols.begin(), symbols.end(), [&](std::string_view s) { return take(s); });
  }

  /// Letters and digits, and underscores where a name may have them.
  NotedWord word(bool underscores) {
    NotedWord out{"", at_};
    while (is_letter(here()) || is_digit(here()) || (underscores && here() == '_')) out.text += text_[at_++];
    return out;
  }

  /// [format] [name] [:] [format] '[' dimensions ']' [partial sums]
  NotedArray array() {
    NotedArray out;
    skip_blanks();
    if (!is_letter(here()) && here() != '[') expected("an array such as A[I_X, J]");
    NotedWord first = word(true);
    out.dtype = dtype_of(first.text);
    if (!out.dtype && looks_like_format(first.text)) unknown_format(first);
    if (!out.dtype) out.name = std::move(first);
    if (!take(":") && out.dtype) {
      skip_blanks();
      out.name = word(true);
    } else {
      format_after(out);
    }
    if (!take("[")) expected("'['", "the dimensions of an array stand in brackets: A[I_X, J]");
    dimensions(out);
    if (take("{")) partial_sums(out);
    return out;
  }

  /// The format of "A: int8[I, J]".
  void format_after(NotedArray& out) {
    skip_blanks();
    const NotedWord found = word(true);
    if (found.text.empty()) return;
    const std::optional<DType> dtype = dtype_of(found.text);
    if (!dtype || out.dtype) unknown_format(found);
    out.dtype = dtype;
  }

  [[noreturn]] void unknown_format(const NotedWord& word) const {
    const std::vector<std::string> known(kDTypeNames.begin(), kDTypeNames.end());
    const std::string near = did_you_mean(nearest(word.text, known));
    fail(word.at, word.text.size(), fmt::format("{} is no number format", in_quotes(word.text)),
         fmt::format("{}{}formats: {}", near, near.empty() ? "" : " ", join(known, ", ")));
  }

  void dimensions(NotedArray& out) {
    if (take("]")) return;  // a scalar
    while (true) {
      skip_blanks();
      if (!is_letter(here())) expected("the name of a dimension", "a dimension starts with a letter: A[I_X, J]");
      NotedDimension dim{word(false), {}};
      if (here() == '_') {
        ++at_;
        dim.axes = axes();
      }
      out.dims.push_back(std::move(dim));
      if (take("]")) return;
      if (here() == '_') expected("',' or ']'", "several axes are written I_XY or I_{X,Y}");
      if (!take(",")) expected("',' or ']'");
    }
  }

  /// Behind the underscore: XY, {XY} or {X,Y}.
  std::vector<NotedWord> axes() {
    std::vector<NotedWord> out;
    const bool braces = take("{");
    while (true) {
      if (braces) skip_blanks();
      NotedWord axis = word(false);
      if (axis.text.empty()) expected("the name of a mesh axis", "a dimension cut over axis X is written I_X");
      out.push_back(std::move(axis));
      if (!braces || take("}")) return out;
      if (!take(",")) expected("',' or '}'");
    }
  }

  void partial_sums(NotedArray& out) {
    skip_blanks();
    if (!take("U_")) expected("'U_'", "partial sums over axis X are written {U_X}");
    out.partial = axes();
    if (!take("}")) expected("'}'", "partial sums over axis X are written {U_X}");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

NotedExpression parse_notation(std::string_view text) { return Parser(text).expression(); }

Diagnostic notation_problem(const std::string& expression, std::size_t at, std::size_t length, std::string message,
                            std::string hint) {
  SourceSpan where;
  where.file = "<command line>";
  where.line_text = expression;
  where.column = static_cast<int>(count_characters(std::string_view(expression).substr(0, at))) + 1;
  where.length = static_cast<int>(std::max<std::size_t>(
      1, count_characters(std::string_view(expression).substr(std::min(at, expression.size()), length))));
  return {std::move(where), std::move(message), std::move(hint)};
}

namespace {

/// Every way to read "XY" as names of axes one after the other.
void splits(const Mesh& mesh, std::string_view text, AxisList& prefix, std::vector<AxisList>& out) {
  if (text.empty()) {
    out.push_back(prefix);
    return;
  }
  for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
    if (!text.starts_with(mesh.axes[a].name)) continue;
    prefix.push_back(static_cast<std::uint8_t>(a));
    splits(mesh, text.substr(mesh.axes[a].name.size()), prefix, out);
    prefix.pop_back();
  }
}

class Understanding {
 public:
  Understanding(const MatmulInput& input, const NotedExpression& noted, MatmulProblem& problem)
      : input_(input), noted_(noted), problem_(problem) {}

  void arrays() {
    for (std::size_t i = 0; i < noted_.operands.size(); ++i) {
      const std::string name(1, static_cast<char>('A' + static_cast<char>(i % 26)));
      problem_.operands.push_back(array(noted_.operands[i], name));
    }
    for (const auto& result : noted_.results) {
      const std::string name(1, static_cast<char>('A' + static_cast<char>(noted_.operands.size() % 26)));
      results_.push_back(result ? std::optional(array(*result, name)) : std::nullopt);
    }
    unique_names();
    if (noted_.target) target();
  }

  void sizes() {
    for (const GivenSize& given : input_.sizes) {
      if (!position(given.dim)) unknown_size(given.dim);
    }
    for (Dimension& dim : problem_.tables.dims) size(dim);
    if (!problems_.empty()) return;
    for (std::size_t i = 0; i < noted_.operands.size(); ++i) divisible(noted_.operands[i], problem_.operands[i]);
    for (std::size_t i = 0; i < noted_.results.size(); ++i) {
      if (noted_.results[i]) divisible(*noted_.results[i], *results_[i]);
    }
    if (noted_.target) divisible(*noted_.target, target_);
  }

  void products() {
    if (problems_.empty()) understand_products(noted_, results_, problem_, problems_);
  }

  void finish() {
    if (!problems_.empty()) throw UserError(std::move(problems_));
  }

 private:
  void complain(const NotedWord& word, std::string message, std::string hint = "") {
    problems_.push_back(notation_problem(noted_.text, word, std::move(message), std::move(hint)));
  }

  /// The same array, laid out otherwise.
  void target() {
    const ShardedArray& given = problem_.operands.front();
    target_ = array(*noted_.target, given.name);
    const NotedWord& name = noted_.target->name;
    const NotedWord place = name.text.empty() ? NotedWord{"[", name.at} : name;
    if (target_.name != given.name) {
      complain(place, fmt::format("{} is not {}: nothing is multiplied", target_.name, given.name),
               std::string(kRouteForm));
    } else if (target_.dims != given.dims) {
      complain(place, fmt::format("{} has other dimensions behind the arrow", given.name),
               "the same ones in the same order: a redistribution changes which axes cut them");
    } else if (target_.dtype != given.dtype && noted_.target->dtype) {
      complain(place, fmt::format("{} is in {} before the arrow", given.name, name_of(given.dtype)),
               "a redistribution changes no format");
    } else if ((target_.layout.partial & ~given.layout.partial) != 0) {
      complain(place, fmt::format("{} holds no such partial sums before the arrow", given.name),
               "sums are added up, as in A[I, J]{U_X} -> A[I_X, J]");
    }
    problem_.target = target_.layout;
  }

  std::optional<std::size_t> position(std::string_view dim) const {
    const auto& dims = problem_.tables.dims;
    const auto at = std::find_if(dims.begin(), dims.end(), [&](const Dimension& d) { return d.name == dim; });
    if (at == dims.end()) return std::nullopt;
    return static_cast<std::size_t>(at - dims.begin());
  }

  ShardedArray array(const NotedArray& noted, const std::string& default_name) {
    ShardedArray out;
    out.name = noted.name.text.empty() ? default_name : noted.name.text;
    out.dtype = noted.dtype.value_or(input_.dtype.value_or(DType::kBf16));
    if (noted.dims.size() > kMostArrayDims) {
      complain(noted.dims[kMostArrayDims].name, fmt::format("{} has more than {} dimensions", out.name, kMostArrayDims),
               "fold dimensions that are cut alike into one");
    }
    AxisMask used = 0;
    for (const NotedDimension& dim : noted.dims) {
      std::optional<std::size_t> at = position(dim.name.text);
      if (!at) {
        at = problem_.tables.dims.size();
        problem_.tables.dims.push_back({dim.name.text, 1});
      }
      if (std::find(out.dims.begin(), out.dims.end(), *at) != out.dims.end()) {
        complain(dim.name, fmt::format("dimension {} stands twice in {}", dim.name.text, out.name),
                 fmt::format("call the second one {}2 and give it a size of its own", dim.name.text));
      }
      out.dims.push_back(*at);
      out.layout.cut.push_back(axes(dim.axes, out.name, used));
    }
    out.layout.partial = mask_of(axes(noted.partial, out.name, used));
    return out;
  }

  /// `used` are the axes this array has already.
  AxisList axes(const std::vector<NotedWord>& words, const std::string& array, AxisMask& used) {
    AxisList out;
    for (const NotedWord& word : words) {
      for (const std::uint8_t axis : axes_of(word)) {
        if ((used >> axis & 1U) != 0) {
          complain(word, fmt::format("mesh axis {} stands twice in {}", input_.mesh.axes[axis].name, array),
                   "a mesh axis cuts one dimension of an array at most: its chips cannot hold different parts twice "
                   "(book ch. 3)");
        }
        used |= AxisMask{1} << axis;
        if (input_.mesh.axes[axis].size > 1) out.push_back(axis);  // an axis of one chip cuts nothing
      }
    }
    return out;
  }

  AxisList axes_of(const NotedWord& word) {
    std::vector<AxisList> ways;
    AxisList prefix;
    splits(input_.mesh, word.text, prefix, ways);
    if (ways.size() == 1) return ways.front();
    std::vector<std::string> names;
    for (const MeshAxis& axis : input_.mesh.axes) names.push_back(axis.name);
    if (ways.empty()) {
      const std::string near = did_you_mean(nearest(word.text, names));
      complain(word, fmt::format("the mesh has no axis {}", in_quotes(word.text)),
               names.empty() ? std::string("give the mesh: --mesh X=4,Y=4")
                             : fmt::format("{}{}its axes: {}", near, near.empty() ? "" : " ", join(names, ", ")));
      return {};
    }
    complain(word,
             fmt::format("{} may be read as {} or as {}", in_quotes(word.text), spelled(ways[0]), spelled(ways[1])),
             "put commas between the axes: I_{X,Y}");
    return {};
  }

  std::string spelled(const AxisList& axes) const {
    std::vector<std::string> names;
    for (const std::uint8_t axis : axes) names.push_back(input_.mesh.axes[axis].name);
    return join(names, ", ");
  }

  void unique_names() {
    std::set<std::string> seen;
    const auto look = [&](const NotedArray& noted, const ShardedArray& array) {
      if (seen.insert(array.name).second) return;
      const NotedWord place = noted.name.text.empty() ? NotedWord{" ", noted.name.at} : noted.name;
      complain(place, fmt::format("two arrays are called {}", array.name), "give each array a name of its own");
    };
    for (std::size_t i = 0; i < noted_.operands.size(); ++i) look(noted_.operands[i], problem_.operands[i]);
    for (std::size_t i = 0; i < noted_.results.size(); ++i) {
      if (noted_.results[i]) look(*noted_.results[i], *results_[i]);
    }
  }

  void unknown_size(const std::string& dim) {
    std::vector<std::string> names;
    for (const Dimension& d : problem_.tables.dims) names.push_back(d.name);
    const std::string near = did_you_mean(nearest(dim, names));
    problems_.push_back({SourceSpan{}, fmt::format("the expression has no dimension {}", in_quotes(dim)),
                         fmt::format("{}{}its dimensions: {}", near, near.empty() ? "" : " ", join(names, ", "))});
  }

  void size(Dimension& dim) {
    const auto given =
        std::find_if(input_.sizes.begin(), input_.sizes.end(), [&](const GivenSize& g) { return g.dim == dim.name; });
    if (given == input_.sizes.end()) {
      complain(place_of(dim.name), fmt::format("how large is {}?", dim.name),
               fmt::format("--dims {}=8192, or what one chip holds of it: --local {}=1024", dim.name, dim.name));
      return;
    }
    dim.size = given->size;
    if (given->local) dim.size *= ways_of(dim.name);
  }

  /// The same dimension may be cut differently in two arrays; then what a chip holds of it has no one meaning.
  std::int64_t ways_of(const std::string& dim) {
    std::set<std::int64_t> ways;
    const auto look = [&](const ShardedArray& array) {
      for (std::size_t d = 0; d < array.dims.size(); ++d) {
        if (problem_.tables.dims[array.dims[d]].name == dim) ways.insert(input_.mesh.ways(array.layout.cut[d]));
      }
    };
    for (const ShardedArray& operand : problem_.operands) look(operand);
    for (const auto& result : results_) {
      if (result) look(*result);
    }
    if (noted_.target) look(target_);
    if (ways.size() > 1) {
      complain(place_of(dim),
               fmt::format("--local {0}: the arrays cut {0} over {1} and over {2} chips", dim, *ways.begin(),
                           *ways.rbegin()),
               fmt::format("give its whole size: --dims {}=N", dim));
    }
    return *ways.begin();
  }

  NotedWord place_of(const std::string& dim) const {
    for (const NotedArray& array : noted_.operands) {
      for (const NotedDimension& d : array.dims) {
        if (d.name.text == dim) return d.name;
      }
    }
    for (const auto& result : noted_.results) {
      for (const NotedDimension& d : result ? result->dims : std::vector<NotedDimension>{}) {
        if (d.name.text == dim) return d.name;
      }
    }
    return {};
  }

  void divisible(const NotedArray& noted, const ShardedArray& array) {
    for (std::size_t d = 0; d < array.dims.size(); ++d) {
      const Dimension& dim = problem_.tables.dims[array.dims[d]];
      const std::int64_t ways = input_.mesh.ways(array.layout.cut[d]);
      if (dim.size % ways == 0) continue;
      complain(noted.dims[d].name,
               fmt::format("{} = {} does not divide over the {} chips of {}", dim.name, group_thousands(dim.size), ways,
                           input_.mesh.text(array.layout.cut[d])),
               fmt::format("{} or {} would; pad the dimension",
                           group_thousands(std::max<std::int64_t>(1, dim.size / ways) * ways),
                           group_thousands((dim.size / ways + 1) * ways)));
    }
  }

  const MatmulInput& input_;
  const NotedExpression& noted_;
  MatmulProblem& problem_;
  std::vector<std::optional<ShardedArray>> results_;
  ShardedArray target_;
  std::vector<Diagnostic> problems_;
};

void note_formats(const MatmulInput& input, const NotedExpression& noted, MatmulProblem& problem) {
  if (input.dtype) return;
  const bool silent =
      std::any_of(noted.operands.begin(), noted.operands.end(), [](const NotedArray& array) { return !array.dtype; });
  if (silent)
    problem.assumptions.push_back(
        Assumption{"arrays in bf16 where the expression names no format", "--dtype", "book ch. 3"}.is("bf16"));
}

}  // namespace

bool Product::contracts() const {
  return std::any_of(loops.begin(), loops.end(), [](const Loop& l) { return l.kind == LoopKind::kContracted; });
}

std::vector<std::size_t> Product::dims_of(LoopKind kind) const {
  std::vector<std::size_t> out;
  for (const Loop& loop : loops) {
    if (loop.kind == kind) out.push_back(loop.dim);
  }
  return out;
}

const ShardedArray& MatmulProblem::left_of(std::size_t product) const {
  return product == 0 ? operands.front() : products[product - 1].result;
}

MatmulProblem understand(const MatmulInput& input) {
  const NotedExpression noted = parse_notation(input.expression);
  MatmulProblem problem;
  problem.expression = input.expression;
  problem.tables.mesh = input.mesh;
  note_formats(input, noted, problem);
  Understanding understanding(input, noted, problem);
  understanding.arrays();
  understanding.sizes();
  understanding.products();
  understanding.finish();
  return problem;
}

}  // namespace scalecalc
