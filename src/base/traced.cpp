#include "base/traced.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/units.h"

namespace scalecalc {
namespace {

using Op = TraceNode::Op;

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

std::string number(double value, Dim unit) {
  if (unit == kByteDim) return format_quantity(value, UnitKind::kBytes, 4);
  if (unit == kByteDim - kSecondDim) return format_quantity(value, UnitKind::kBytesPerSecond, 4);
  if (unit == kFlopDim - kSecondDim) return format_quantity(value, UnitKind::kFlopsPerSecond, 4);
  if (unit == kSecondDim) return format_quantity(value, UnitKind::kSeconds, 4);
  if (unit == Dim{}) return fmt::format("{:.6g}", value);
  return fmt::format("{:.4g} {}", value, unit_name(unit));
}

/// Writes an expression either in names or in numbers.
class Writer {
 public:
  explicit Writer(bool in_names) : in_names_(in_names) {}

  std::string write(const TraceNode& node, int outer = 0, bool right = false) const {
    if (node.op == Op::kInput || node.op == Op::kNamed) {
      return in_names_ ? node.name : number(node.value, node.unit);
    }
    if (node.op == Op::kConstant) return fmt::format("{:.6g}", node.value);
    if (precedence(node.op) == 3) return function_call(node);
    return infix(node, outer, right);
  }

 private:
  std::string function_call(const TraceNode& node) const {
    std::string out;
    switch (node.op) {
      case Op::kMax: out = "max("; break;
      case Op::kMin: out = "min("; break;
      case Op::kCeil: out = "ceil("; break;
      case Op::kFloor: out = "floor("; break;
      case Op::kSqrt: out = "sqrt("; break;
      case Op::kExpm1: out = "expm1("; break;
      case Op::kPower: out = "pow("; break;
      default: out = "log2("; break;
    }
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (i > 0) out += ", ";
      out += write(*node.args[i]);
    }
    return out + ")";
  }

  std::string infix(const TraceNode& node, int outer, bool right) const {
    static constexpr const char* kSymbols[] = {" + ", " - ", " * ", " / "};
    const int own = precedence(node.op);
    const auto symbol = kSymbols[static_cast<int>(node.op) - static_cast<int>(Op::kAdd)];
    const std::string text = write(*node.args[0], own, false) + symbol + write(*node.args[1], own, true);
    // a - (b + c) and a / (b * c) need their brackets; a + (b - c) keeps them for the reader.
    const bool brackets = own < outer || (own == outer && right);
    return brackets ? "(" + text + ")" : text;
  }

  bool in_names_;
};

void collect(const TracePtr& node, std::unordered_set<const TraceNode*>& seen, std::vector<ExplainedStep>& out) {
  if (!seen.insert(node.get()).second) return;
  for (const TracePtr& arg : node->args) collect(arg, seen, out);
  if (node->op != Op::kNamed) return;
  const TraceNode& formula = *node->args[0];
  if (formula.op == Op::kInput || formula.op == Op::kNamed || formula.op == Op::kConstant) return;
  out.push_back(
      {node->name, Writer(true).write(formula), Writer(false).write(formula), node->value, node->unit, node->source});
}

double reevaluate_node(const TracePtr& node, std::unordered_map<const TraceNode*, double>& memo) {
  if (node->op == Op::kConstant || node->op == Op::kInput) return node->value;
  if (const auto it = memo.find(node.get()); it != memo.end()) return it->second;
  const double a = reevaluate_node(node->args[0], memo);
  const double b = node->args.size() > 1 ? reevaluate_node(node->args[1], memo) : 0;
  return memo[node.get()] = evaluate(node->op, a, b);
}

bool is_constant(const Traced& x, double value) { return x.node()->op == Op::kConstant && x.value() == value; }

}  // namespace

Traced::Traced(double constant) : node_(std::make_shared<TraceNode>(TraceNode{.value = constant})) {}

Traced Traced::leaf(double value, std::string_view name, std::string_view source, Dim unit) {
  return Traced(std::make_shared<TraceNode>(TraceNode{
      .op = Op::kInput, .value = value, .name = std::string(name), .source = std::string(source), .unit = unit}));
}

Traced Traced::with_name(std::string_view name, std::string_view source, Dim unit) const {
  if (node_->op == Op::kConstant) return *this;  // nothing to explain
  return Traced(std::make_shared<TraceNode>(TraceNode{.op = Op::kNamed,
                                                      .value = node_->value,
                                                      .args = {node_},
                                                      .name = std::string(name),
                                                      .source = std::string(source),
                                                      .unit = unit}));
}

Traced Traced::combine(Op op, const Traced& a, const Traced& b) {
  // Adding an absent term or multiplying by one says nothing to the reader; the value is the same to the bit.
  if (op == Op::kAdd && is_constant(a, 0)) return b;
  if ((op == Op::kAdd || op == Op::kSubtract) && is_constant(b, 0)) return a;
  if (op == Op::kMultiply && is_constant(a, 1)) return b;
  if ((op == Op::kMultiply || op == Op::kDivide) && is_constant(b, 1)) return a;
  if (op == Op::kMultiply && (is_constant(a, 0) || is_constant(b, 0))) return Traced(0.0);
  if (op == Op::kDivide && is_constant(a, 0)) return a;
  if (a.node_->op == Op::kConstant && b.node_->op == Op::kConstant) return Traced(evaluate(op, a.value(), b.value()));
  return Traced(std::make_shared<TraceNode>(
      TraceNode{.op = op, .value = evaluate(op, a.value(), b.value()), .args = {a.node_, b.node_}}));
}

Traced Traced::apply(Op op, const Traced& a) {
  return Traced(
      std::make_shared<TraceNode>(TraceNode{.op = op, .value = evaluate(op, a.value(), 0), .args = {a.node_}}));
}

std::vector<ExplainedStep> explain(const Traced& root) {
  std::vector<ExplainedStep> steps;
  std::unordered_set<const TraceNode*> seen;
  collect(root.node(), seen, steps);
  return steps;
}

double reevaluate(const Traced& root) {
  std::unordered_map<const TraceNode*, double> memo;
  return reevaluate_node(root.node(), memo);
}

}  // namespace scalecalc
