// Records how each number was computed and prints the formula with its inputs, for `--explain`.
#include "base/traced.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"

namespace scalecalc {
namespace {

using Op = TraceNode::Op;

/// Characters of a line, its name included; with indent and sign it stays below 200.
constexpr std::size_t kLongestFormula = 180;

double evaluate(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSubtract: return a - b;
    case Op::kMultiply: return a * b;
    case Op::kDivide: return a / b;
    case Op::kMax: return a < b ? b : a;
    case Op::kMin: return b < a ? b : a;
    case Op::kCeil: return std::ceil(a);
    case Op::kFloor: return std::floor(a);
    case Op::kSqrt: return std::sqrt(a);
    case Op::kLog2: return std::log2(a);
    case Op::kExpm1: return std::expm1(a);
    case Op::kPower: return std::pow(a, b);
    case Op::kNamed: return a;
    case Op::kConstant:
    case Op::kInput: break;
  }
  internal_error("a constant has no operands");
}

int precedence(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kSubtract: return 1;
    case Op::kMultiply:
    case Op::kDivide: return 2;
    default: return 3;
  }
}

std::string_view function_name(Op op) {
  switch (op) {
    case Op::kMax: return "max";
    case Op::kMin: return "min";
    case Op::kCeil: return "ceil";
    case Op::kFloor: return "floor";
    case Op::kSqrt: return "sqrt";
    case Op::kExpm1: return "expm1";
    case Op::kPower: return "pow";
    default: return "log2";
  }
}

std::string number(double value, Dim unit) {
  if (unit == kByteDim) return format_quantity(value, UnitKind::kBytes, 4);
  if (unit == kByteDim - kSecondDim) return format_quantity(value, UnitKind::kBytesPerSecond, 4);
  if (unit == kFlopDim - kSecondDim) return format_quantity(value, UnitKind::kFlopsPerSecond, 4);
  if (unit == kSecondDim) return format_quantity(value, UnitKind::kSeconds, 4);
  if (unit == Dim{}) return fmt::format("{:.6g}", value);
  return fmt::format("{:.4g} {}", value, unit_name(unit));
}

bool is_leaf(const TraceNode& node) {
  return node.op == Op::kInput || node.op == Op::kNamed || node.op == Op::kConstant;
}

/// A result that is only another's second name has no line of its own: it is told as that.
const TraceNode& told(const TraceNode& node) {
  return node.op == Op::kNamed && is_leaf(*node.args[0]) && node.args[0]->op != Op::kConstant ? told(*node.args[0])
                                                                                              : node;
}

/// A result that came out as zero: it adds nothing to a sum.
bool is_nothing(const TraceNode& node) { return node.op == Op::kNamed && node.value == 0; }

/// Parts of a formula too long to read at once, which have lines of their own: "part 1 of NAME".
struct Part {
  std::string name;
  Dim unit;
};
using Parts = std::unordered_map<const TraceNode*, Part>;

/// Writes an expression either in names or in numbers.
class Writer {
 public:
  Writer(bool in_names, const Parts& parts) : in_names_(in_names), parts_(parts) {}

  std::string write(const TraceNode& node) const { return expression(node, 0, false); }

  /// What stands for a part of a formula: its name, or its value.
  std::string term(const TraceNode& node, int outer = 0, bool right = false) const {
    if (const auto part = parts_.find(&node); part != parts_.end()) {
      return in_names_ ? part->second.name : number(node.value, part->second.unit);
    }
    return expression(node, outer, right);
  }

 private:
  std::string expression(const TraceNode& node, int outer, bool right) const {
    if (node.op == Op::kInput || node.op == Op::kNamed) {
      return in_names_ ? told(node).name : number(node.value, node.unit);
    }
    if (node.op == Op::kConstant) return fmt::format("{:.6g}", node.value);
    if (precedence(node.op) == 3) return function_call(node);
    return infix(node, outer, right);
  }

  /// max(max(a, b), a) reads max(a, b).
  void arguments(const TraceNode& node, std::vector<std::string>& out) const {
    for (const TracePtr& arg : node.args) {
      const bool nests = arg->op == node.op && (node.op == Op::kMax || node.op == Op::kMin);
      if (nests && !parts_.contains(arg.get())) {
        arguments(*arg, out);
        continue;
      }
      std::string text = term(*arg);
      const bool repeats = node.op == Op::kMax || node.op == Op::kMin;
      if (!repeats || std::find(out.begin(), out.end(), text) == out.end()) out.push_back(std::move(text));
    }
  }

  std::string function_call(const TraceNode& node) const {
    std::vector<std::string> texts;
    arguments(node, texts);
    const bool chooses = node.op == Op::kMax || node.op == Op::kMin;
    if (chooses && texts.size() == 1) return texts.front();
    return std::string(function_name(node.op)) + "(" + join(texts, ", ") + ")";
  }

  std::string infix(const TraceNode& node, int outer, bool right) const {
    if (node.op == Op::kAdd && is_nothing(*node.args[0])) return term(*node.args[1], outer, right);
    if (node.op == Op::kAdd && is_nothing(*node.args[1])) return term(*node.args[0], outer, right);
    static constexpr const char* kSymbols[] = {" + ", " - ", " * ", " / "};
    const int own = precedence(node.op);
    const auto symbol = kSymbols[static_cast<int>(node.op) - static_cast<int>(Op::kAdd)];
    const std::string text = term(*node.args[0], own, false) + symbol + term(*node.args[1], own, true);
    // a - (b + c) and a / (b * c) need their brackets; a + (b - c) keeps them for the reader.
    const bool brackets = own < outer || (own == outer && right);
    return brackets ? "(" + text + ")" : text;
  }

  bool in_names_;
  const Parts& parts_;
};

/// The unit that the operands' units give. Constants have none, so a formula that makes a quantity of a number lacks
/// it.
Dim unit_below(const TraceNode& node) {
  switch (node.op) {
    case Op::kConstant: return {};
    case Op::kInput:
    case Op::kNamed: return node.unit;
    case Op::kMultiply: return unit_below(*node.args[0]) + unit_below(*node.args[1]);
    case Op::kDivide: return unit_below(*node.args[0]) - unit_below(*node.args[1]);
    default: return unit_below(*node.args[0]);
  }
}

/// The steps of an explanation: a line for each named result, and lines before it for the largest parts of a formula
/// that is too long to be read at once.
class Explainer {
 public:
  std::vector<ExplainedStep> take() { return std::move(steps_); }

  void collect(const TracePtr& node) {
    if (!seen_.insert(node.get()).second) return;
    for (const TracePtr& arg : node->args) collect(arg);
    if (node->op != Op::kNamed || is_leaf(*node->args[0])) return;
    const TraceNode& formula = *node->args[0];
    parts_.clear();
    units_.clear();
    give_unit(formula, node->unit);
    while (true) {
      sizes_.clear();
      if (size(formula).fits(node->name)) break;
      if (is_nothing(*node)) return;  // nobody asks how a long formula comes to nothing
      const TraceNode* part = largest_part(formula, node->name);
      if (part == nullptr) break;
      const Part line{part_name(), units_[part]};
      add(line.name + " of " + node->name, *part, line.unit, node->source);
      parts_.emplace(part, line);
    }
    add(node->name, formula, node->unit, node->source);
  }

 private:
  /// Characters of a formula in names and in numbers, at most.
  struct Size {
    std::size_t names = 0, numbers = 0;
    bool fits(const std::string& name) const {
      return name.size() + names <= kLongestFormula && numbers <= kLongestFormula;
    }
  };

  std::string part_name() const { return fmt::format("part {}", parts_.size() + 1); }

  void add(const std::string& name, const TraceNode& formula, Dim unit, const std::string& source) {
    ExplainedStep step{
        name, Writer(true, parts_).write(formula), Writer(false, parts_).write(formula), formula.value, unit, source};
    // A backward computes again what the forward has told.
    if (told_.insert(step.name + " = " + step.formula + " = " + step.numbers).second) steps_.push_back(std::move(step));
  }

  Size size(const TraceNode& node) {
    if (const auto part = parts_.find(&node); part != parts_.end()) {
      return {part->second.name.size(), number(node.value, part->second.unit).size()};
    }
    if (is_leaf(node)) return {Writer(true, parts_).write(node).size(), Writer(false, parts_).write(node).size()};
    if (node.op == Op::kAdd && is_nothing(*node.args[0])) return size(*node.args[1]);
    if (node.op == Op::kAdd && is_nothing(*node.args[1])) return size(*node.args[0]);
    if (const auto known = sizes_.find(&node); known != sizes_.end()) return known->second;
    constexpr std::size_t kSymbol = 3, kBrackets = 2, kName = 6;
    const bool calls = precedence(node.op) == 3;
    const std::size_t own = calls ? kName + kBrackets : kSymbol;
    Size out{own, own};
    for (const TracePtr& arg : node.args) {
      const Size inner = size(*arg);
      const bool bracketed = !calls && !is_leaf(*arg) && !parts_.contains(arg.get()) &&
                             precedence(arg->op) + (arg == node.args[0] ? 1 : 0) <= precedence(node.op);
      const std::size_t around = (bracketed || calls ? kBrackets : 0);
      out.names += inner.names + around;
      out.numbers += inner.numbers + around;
    }
    return sizes_[&node] = out;
  }

  /// The longest operand, at any depth, that is a line itself; nullptr if none is longer than its name would be.
  const TraceNode* largest_part(const TraceNode& formula, const std::string& name) {
    const std::string line = part_name() + " of " + name;
    const TraceNode* out = nullptr;
    std::size_t most = part_name().size();
    std::unordered_set<const TraceNode*> seen;
    std::vector<const TraceNode*> open{&formula};
    while (!open.empty()) {
      const TraceNode& node = *open.back();
      open.pop_back();
      if (is_leaf(node) || parts_.contains(&node) || !seen.insert(&node).second) continue;
      for (const TracePtr& arg : node.args) open.push_back(arg.get());
      const Size own = size(node);
      if (&node == &formula || !own.fits(line) || own.names <= most) continue;
      most = own.names;
      out = &node;
    }
    return out;
  }

  /// From a result down: terms of a sum have its unit, and a factor what the other leaves.
  void give_unit(const TraceNode& node, Dim unit) {
    if (is_leaf(node) || !units_.emplace(&node, unit).second) return;
    const bool product = node.op == Op::kMultiply || node.op == Op::kDivide;
    if (!product) {
      for (const TracePtr& arg : node.args) give_unit(*arg, unit);
      return;
    }
    const Dim left = unit_below(*node.args[0]), right = unit_below(*node.args[1]);
    if (node.op == Op::kDivide) {
      give_unit(*node.args[0], right == Dim{} && left == Dim{} ? Dim{} : unit + right);
      give_unit(*node.args[1], right);
    } else {
      give_unit(*node.args[0], right == Dim{} ? left : unit - right);
      give_unit(*node.args[1], right);
    }
  }

  std::unordered_set<const TraceNode*> seen_;
  std::vector<ExplainedStep> steps_;
  std::unordered_set<std::string> told_;
  Parts parts_;  ///< of the formula at hand
  std::unordered_map<const TraceNode*, Dim> units_;
  std::unordered_map<const TraceNode*, Size> sizes_;
};

double reevaluate_node(const TracePtr& node, std::unordered_map<const TraceNode*, double>& memo) {
  if (node->op == Op::kConstant || node->op == Op::kInput) return node->value;
  if (const auto it = memo.find(node.get()); it != memo.end()) return it->second;
  const double a = reevaluate_node(node->args[0], memo);
  const double b = node->args.size() > 1 ? reevaluate_node(node->args[1], memo) : 0;
  return memo[node.get()] = evaluate(node->op, a, b);
}

bool is_constant(const Traced& x, double value) { return x.node()->op == Op::kConstant && x.value() == value; }

/// Whether a result of these operands is below zero at no value of the inputs that has the sign of the one read.
bool stays_positive(Op op, const TraceNode& a, const TraceNode& b) {
  switch (op) {
    case Op::kAdd:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kMin: return a.positive && b.positive;
    case Op::kMax: return a.positive || b.positive;
    case Op::kCeil:
    case Op::kFloor:
    case Op::kSqrt:
    case Op::kPower: return a.positive;
    default: return false;
  }
}

}  // namespace

Traced::Traced(const Traced& other) = default;
Traced& Traced::operator=(const Traced& other) = default;
Traced& Traced::operator=(Traced&& other) noexcept = default;
Traced::~Traced() = default;

Traced::Traced(double constant)
    : node_(std::make_shared<TraceNode>(TraceNode{.value = constant, .positive = constant >= 0})) {}

Traced Traced::leaf(double value, std::string_view name, std::string_view source, Dim unit) {
  return Traced(std::make_shared<TraceNode>(TraceNode{.op = Op::kInput,
                                                      .value = value,
                                                      .name = std::string(name),
                                                      .source = std::string(source),
                                                      .unit = unit,
                                                      .positive = value >= 0}));
}

Traced Traced::with_name(std::string_view name, std::string_view source, Dim unit) const {
  if (node_->op == Op::kConstant) return *this;  // nothing to explain
  return Traced(std::make_shared<TraceNode>(TraceNode{.op = Op::kNamed,
                                                      .value = node_->value,
                                                      .args = {node_},
                                                      .name = std::string(name),
                                                      .source = std::string(source),
                                                      .unit = unit,
                                                      .positive = node_->positive}));
}

Traced Traced::combine(Op op, const Traced& a, const Traced& b) {
  // Adding an absent term or multiplying by one says nothing to the reader; the value is the same to the bit.
  if (op == Op::kAdd && is_constant(a, 0)) return b;
  if ((op == Op::kAdd || op == Op::kSubtract) && is_constant(b, 0)) return a;
  if (op == Op::kMultiply && is_constant(a, 1)) return b;
  if ((op == Op::kMultiply || op == Op::kDivide) && is_constant(b, 1)) return a;
  if (op == Op::kMultiply && (is_constant(a, 0) || is_constant(b, 0))) return Traced(0.0);
  if (op == Op::kDivide && is_constant(a, 0)) return a;
  // What a largest value is looked for from, and a term that is none.
  if (op == Op::kMax && is_constant(a, 0) && b.node_->positive) return b;
  if (op == Op::kMax && is_constant(b, 0) && a.node_->positive) return a;
  if (a.node_->op == Op::kConstant && b.node_->op == Op::kConstant) return Traced(evaluate(op, a.value(), b.value()));
  return Traced(std::make_shared<TraceNode>(TraceNode{.op = op,
                                                      .value = evaluate(op, a.value(), b.value()),
                                                      .args = {a.node_, b.node_},
                                                      .positive = stays_positive(op, *a.node_, *b.node_)}));
}

Traced Traced::apply(Op op, const Traced& a) {
  return Traced(std::make_shared<TraceNode>(TraceNode{.op = op,
                                                      .value = evaluate(op, a.value(), 0),
                                                      .args = {a.node_},
                                                      .positive = stays_positive(op, *a.node_, *a.node_)}));
}

std::vector<ExplainedStep> explain(const Traced& root) {
  Explainer explainer;
  explainer.collect(root.node());
  return explainer.take();
}

double reevaluate(const Traced& root) {
  std::unordered_map<const TraceNode*, double> memo;
  return reevaluate_node(root.node(), memo);
}

}  // namespace scalecalc
