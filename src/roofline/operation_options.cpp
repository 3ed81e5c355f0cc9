// Reads the words of `scalecalc roofline` that name an operation and its shape.
#include "roofline/operation_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace scalecalc::cli {
namespace {

using Values = std::vector<double>;
using Problems = std::vector<Diagnostic>;

constexpr SizeRule kFlopsRule{UnitKind::kNumber, 1e-30, 1e30};
constexpr SizeRule kBytesRule{UnitKind::kBytes, 1e-30, 1e30};
constexpr SizeRule kInputsRule{UnitKind::kCount, 1, 1e6};

/// Sizes of a shape word such as 512x8192x28672; the first may be a sweep.
struct ShapeWord {
  std::vector<Values> sizes;
  bool wrong = false;
};

ShapeWord read_shape(const SpokenWords& words, std::size_t word, Problems& problems) {
  ShapeWord out;
  const std::string& text = words[word];
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    const std::string part = text.substr(at, end - at);
    out.sizes.push_back(read_sizes(part, words.span(word, at, part.size()), {}, problems));
    if (out.sizes.back().empty()) out.wrong = true;
    if (out.sizes.size() > 1 && out.sizes.back().size() > 1) {
      problems.push_back({words.span(word, at, part.size()), "only the first size of a shape may be a sweep", ""});
      out.wrong = true;
    }
    at = end + 1;
  }
  return out;
}

class OperationReader {
 public:
  OperationReader(const SpokenWords& words, const std::optional<Values>& batch, Problems& problems)
      : words_(words), batch_(batch), problems_(problems) {}

  SpokenOperation read();

 private:
  void matmul();
  void contraction();
  void elementwise(bool add);
  void dot();
  void load();
  void flops();
  void bytes();

  /// "512 8192 8192" is a shape in several words, and one is expected; a problem then.
  bool shape_in_words();
  /// One of the shapes that a matmul's word may have.
  bool matmul_sizes(Matmul& matmul, Values& rows);
  void tile(KeyWords& keys, Matmul& matmul);
  void passes(KeyWords& keys, Matmul& matmul);
  /// The word behind the operation's name: its elements, of which there may be a sweep. Empty if it is missing.
  Values elements(std::string_view example);
  void no_batch() {
    if (batch_)
      problem(words_.span(0), fmt::format("{} has no batch", words_[0]), "--batch is for matmul and attention");
  }
  void problem(const SourceSpan& where, std::string message, std::string hint = "") {
    problems_.push_back({where, std::move(message), std::move(hint)});
  }
  Assumption& note(std::string text, std::string flag, std::string source = "") {
    return out_.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source)});
  }
  template <class Make>
  void each(const Values& values, std::string_view name, Make make) {
    for (const double value : values) out_.points.push_back(make(value));
    if (values.size() > 1) out_.swept = name;
  }

  const SpokenWords& words_;
  const std::optional<Values>& batch_;
  Problems& problems_;
  SpokenOperation out_;
};

bool OperationReader::shape_in_words() {
  std::vector<std::string> sizes;
  for (std::size_t i = 1; i < words_.size() && words_[i].find('=') == std::string::npos; ++i) {
    if (std::holds_alternative<double>(parse_quantity(words_[i], UnitKind::kCount))) sizes.push_back(words_[i]);
  }
  if (sizes.size() < 2) return false;
  problem(words_.span(2), "a shape is one word, its sizes with x between them",
          fmt::format("{} {}", words_[0], join(sizes, "x")));
  return true;
}

bool OperationReader::matmul_sizes(Matmul& m, Values& rows) {
  constexpr const char* kMatmulForms = "BxDxF such as 512x8192x28672, DxF with --batch, or NxBxDxF for N matmuls alike";
  if (words_.size() < 2) {
    problem(words_.end(), "the shape is missing", kMatmulForms);
    return false;
  }
  const ShapeWord shape = read_shape(words_, 1, problems_);
  if (shape.wrong) return false;
  const std::size_t dims = shape.sizes.size();
  if (dims < 2 || dims > 4 || (dims == 2 && !batch_)) {
    problem(words_.span(1),
            dims == 2 ? fmt::format("{} has no batch", in_quotes(words_[1]))
                      : fmt::format("a matmul has 3 sizes, and {} has {}", in_quotes(words_[1]), dims),
            kMatmulForms);
    return false;
  }
  if (dims == 4) {
    if (shape.sizes[0].size() > 1) {
      problem(words_.span(1), "the number of matrices cannot be swept", "sweep the rows: --batch 8..8192*2");
      return false;
    }
    m.matrices = shape.sizes[0].front();
  }
  m.contraction = shape.sizes[dims - 2].front();
  m.columns = shape.sizes[dims - 1].front();
  if (batch_) {
    rows = *batch_;
    if (dims > 2) note("--batch stands in the place of the shape's own B", "--batch", "command line");
  } else {
    rows = shape.sizes[dims - 3];
  }
  return true;
}

void OperationReader::tile(KeyWords& keys, Matmul& m) {
  const auto text = keys.text("tile");
  if (!text) return;
  const SourceSpan where = keys.span("tile");
  std::vector<double> sizes;
  for (std::size_t at = 0; at <= text->size();) {
    const std::size_t end = std::min(text->find('x', at), text->size());
    const auto size = read_size(text->substr(at, end - at), where, {}, problems_);
    if (!size) return;
    sizes.push_back(*size);
    at = end + 1;
  }
  if (sizes.size() != 3) {
    problem(where, fmt::format("a tile has 3 sizes, and {} has {}", in_quotes(*text), sizes.size()),
            "rows x contraction x columns, such as tile=512x512x512");
    return;
  }
  if (m.per_row_weights) {
    problem(where, "weights=per-row has no tiles: no two rows share a weight");
    return;
  }
  m.tile = MatmulTile{sizes[0], sizes[1], sizes[2]};
}

/// Backward are two products of the same three arrays, or of their gradients: FLOPs and bytes of the forward twice
/// (book, ch. 4: 2 forward, 4 backward, 6 in training).
void OperationReader::passes(KeyWords& keys, Matmul& m) {
  constexpr std::array<std::string_view, 3> kPasses{"forward", "backward", "training"};
  const auto pass = keys.word("pass", kPasses);
  if (!pass || *pass == 0) return;
  if (m.per_row_weights || m.pad != 1 || m.tile) {
    problem(keys.span("pass"), "pass= goes without weights=per-row, pad= and tile=: its products have other shapes",
            "ask of each product alone");
  }
  m.matrices *= static_cast<double>(*pass + 1);
  note(*pass == 1 ? "backward: two products, of the result's gradient with the weights and with the input"
                  : "training: the forward product and two backward",
       "pass=");
}

void OperationReader::matmul() {
  Matmul m;
  Values rows;
  const bool shaped = matmul_sizes(m, rows);
  KeyWords keys(words_, 2, problems_);
  constexpr std::array<std::string_view, 2> kWeights{"shared", "per-row"};
  m.per_row_weights = keys.word("weights", kWeights) == 1U;
  if (m.per_row_weights && m.matrices != 1) {
    problem(keys.span("weights"), "NxBxDxF says already which rows share a matrix", "weights=per-row goes with BxDxF");
  }
  m.pad = keys.size("pad").value_or(1);
  tile(keys, m);
  passes(keys, m);
  keys.finish();
  if (!shaped) return;
  each(rows, "batch", [&](double value) {
    m.rows = value;
    return m;
  });
}

void OperationReader::contraction() {
  no_batch();
  if (words_.size() < 2) {
    problem(words_.end(), "the contraction is missing",
            "for example \"ij,jk->ik\" i=128 j=256 k=512, or \"A[I,J] * B[J,K] -> C[I,K]\" I=128 J=256 K=512");
    return;
  }
  KeyWords keys(words_, 2, problems_);
  if (auto found = read_contraction(words_, 1, keys, problems_)) out_.points.emplace_back(std::move(*found));
}

Values OperationReader::elements(std::string_view example) {
  no_batch();
  if (words_.size() < 2) {
    problem(words_.end(), "the size is missing", fmt::format("for example {}", example));
    return {};
  }
  const ShapeWord shape = read_shape(words_, 1, problems_);
  if (shape.wrong) return {};
  Values out = shape.sizes.front();
  for (std::size_t i = 1; i < shape.sizes.size(); ++i) {
    for (double& value : out) value *= shape.sizes[i].front();
  }
  constexpr double kMostElements = 1e18;
  if (out.back() <= kMostElements) return out;
  problem(words_.span(1), fmt::format("{} has more than 1e18 elements", in_quotes(words_[1])));
  return {};
}

void OperationReader::elementwise(bool add) {
  const Values sizes = elements(add ? "add 1Gi" : "elementwise 1Gi inputs=1 flops=8");
  KeyWords keys(words_, 2, problems_);
  SizeRule inputs_rule = kInputsRule;
  inputs_rule.least = add ? 2 : 1;
  const auto inputs = keys.size("inputs", inputs_rule);
  Elementwise e;
  e.inputs = inputs.value_or(add ? 2 : 1);
  const auto flops = keys.size("flops", kFlopsRule);
  e.flops = flops.value_or(add ? e.inputs - 1 : 1);
  keys.finish();
  if (!inputs) note(add ? "two arrays are added" : "one input array", "inputs=");
  if (!flops && !add) note("one FLOP on each element", "flops=");
  each(sizes, "elements", [&](double value) {
    e.elements = value;
    return e;
  });
}

void OperationReader::dot() {
  const Values sizes = elements("dot 1M");
  KeyWords(words_, 2, problems_).finish();
  each(sizes, "elements", [](double value) { return DotProduct{value}; });
}

void OperationReader::load() {
  const Values sizes = elements("load 70B");
  KeyWords(words_, 2, problems_).finish();
  each(sizes, "parameters", [](double value) { return ParameterLoad{value}; });
}

void OperationReader::flops() {
  no_batch();
  if (words_.size() < 2) return problem(words_.end(), "how many FLOPs?", "for example flops 1e12");
  const auto flops = read_size(words_[1], words_.span(1), kFlopsRule, problems_);
  KeyWords keys(words_, 2, problems_);
  const auto bytes = keys.size("bytes", kBytesRule);
  keys.finish();
  if (flops) out_.points.emplace_back(GivenWork{*flops, bytes.value_or(0)});
}

void OperationReader::bytes() {
  no_batch();
  if (words_.size() < 2) return problem(words_.end(), "how many bytes?", "for example bytes 400GB");
  const auto bytes = read_size(words_[1], words_.span(1), kBytesRule, problems_);
  KeyWords keys(words_, 2, problems_);
  const auto flops = keys.size("flops", kFlopsRule);
  keys.finish();
  if (bytes) out_.points.emplace_back(GivenWork{flops.value_or(0), *bytes});
}

SpokenOperation OperationReader::read() {
  constexpr std::array<std::string_view, 10> kNames{"matmul",      "attention", "contract", "einsum", "add",
                                                    "elementwise", "dot",       "load",     "flops",  "bytes"};
  const std::vector<std::string> known(kNames.begin(), kNames.end());
  if (words_.size() == 0) {
    problems_.push_back({SourceSpan{}, "the operation is missing: what is to be computed?",
                         "for example: scalecalc roofline matmul 512x8192x28672 --hw tpu-v5e"});
    return {};
  }
  const std::size_t problems_before = problems_.size();
  const std::string& name = words_[0];
  const bool is_shaped = name == "matmul" || name == "add" || name == "elementwise" || name == "dot" || name == "load";
  if (is_shaped && shape_in_words()) return {};
  if (name == "matmul") {
    matmul();
  } else if (name == "attention") {
    out_ = read_attention(words_, batch_, problems_);
  } else if (name == "contract" || name == "einsum") {
    contraction();
  } else if (name == "add" || name == "elementwise") {
    elementwise(name == "add");
  } else if (name == "dot") {
    dot();
  } else if (name == "load") {
    load();
  } else if (name == "flops") {
    flops();
  } else if (name == "bytes") {
    bytes();
  } else {
    std::string hint = did_you_mean(nearest(name, known));
    if (!hint.empty()) hint += ' ';
    problem(words_.span(0), fmt::format("unknown operation {}", in_quotes(name)),
            fmt::format("{}operations: {}", hint, join(known, ", ")));
  }
  if (problems_.size() != problems_before) out_.points.clear();
  return std::move(out_);
}

}  // namespace

SpokenOperation read_operation(const SpokenWords& words, const std::optional<Values>& batch, Problems& problems) {
  return OperationReader(words, batch, problems).read();
}

}  // namespace scalecalc::cli
