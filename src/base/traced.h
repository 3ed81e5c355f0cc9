// A number that remembers how it was computed: the expression with the names, units and sources of its inputs and of
// its named intermediate results. `--explain` prints these, so the explanation is the code.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"

namespace scalecalc {

struct TraceNode;
using TracePtr = std::shared_ptr<const TraceNode>;

struct TraceNode {
  enum class Op {
    kConstant,
    kInput,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kMax,
    kMin,
    kCeil,
    kFloor,
    kSqrt,
    kLog2,
    kExpm1,
    kPower,
    kNamed
  };
  Op op = Op::kConstant;
  double value = 0;
  std::vector<TracePtr> args;
  std::string name;       ///< inputs and named results
  std::string source;     ///< where the figure or the formula comes from
  Dim unit;               ///< inputs and named results
  bool positive = false;  ///< cannot be below zero, so that a zero beside it in max() says nothing
};

/// Every formula is compiled for this type too: what each operator calls is out of line and marked cold, by which the
/// compiler keeps those copies small.
class Traced {
 public:
  Traced() : Traced(0.0) {}
  [[gnu::cold]] Traced(double constant);  // NOLINT(google-explicit-constructor): a constant is a traced constant
  [[gnu::cold]] Traced(const Traced& other);
  Traced(Traced&& other) noexcept = default;
  [[gnu::cold]] Traced& operator=(const Traced& other);
  [[gnu::cold]] Traced& operator=(Traced&& other) noexcept;
  [[gnu::cold]] ~Traced();
  static Traced leaf(double value, std::string_view name, std::string_view source, Dim unit);

  double value() const { return node_->value; }
  const TracePtr& node() const { return node_; }
  Traced with_name(std::string_view name, std::string_view source, Dim unit = {}) const;

  friend Traced operator+(const Traced& a, const Traced& b) { return combine(TraceNode::Op::kAdd, a, b); }
  friend Traced operator-(const Traced& a, const Traced& b) { return combine(TraceNode::Op::kSubtract, a, b); }
  friend Traced operator*(const Traced& a, const Traced& b) { return combine(TraceNode::Op::kMultiply, a, b); }
  friend Traced operator/(const Traced& a, const Traced& b) { return combine(TraceNode::Op::kDivide, a, b); }
  friend bool operator<(const Traced& a, const Traced& b) { return a.value() < b.value(); }
  friend Traced max(const Traced& a, const Traced& b) { return combine(TraceNode::Op::kMax, a, b); }
  friend Traced min(const Traced& a, const Traced& b) { return combine(TraceNode::Op::kMin, a, b); }
  friend Traced ceil(const Traced& a) { return apply(TraceNode::Op::kCeil, a); }
  friend Traced floor(const Traced& a) { return apply(TraceNode::Op::kFloor, a); }
  friend Traced sqrt(const Traced& a) { return apply(TraceNode::Op::kSqrt, a); }
  friend Traced log2(const Traced& a) { return apply(TraceNode::Op::kLog2, a); }
  friend Traced expm1(const Traced& a) { return apply(TraceNode::Op::kExpm1, a); }
  friend Traced power(const Traced& a, const Traced& b) { return combine(TraceNode::Op::kPower, a, b); }

 private:
  explicit Traced(TracePtr node) : node_(std::move(node)) {}
  [[gnu::cold]] static Traced combine(TraceNode::Op op, const Traced& a, const Traced& b);
  [[gnu::cold]] static Traced apply(TraceNode::Op op, const Traced& a);
  TracePtr node_;
};

/// One line of an explanation: a named result, its formula in names, the same in numbers, and its value.
struct ExplainedStep {
  std::string name;
  std::string formula;  ///< "weight_bytes / hw.hbm.bandwidth"
  std::string numbers;  ///< "1.71 GB / 2.77 TB/s"
  double value = 0;
  Dim unit;
  std::string source;
};

/// The named results below `root`, operands before what uses them, each once; `root` itself last. A formula too long
/// for a line is told in parts, "part 1 of NAME", which it calls "part 1"; results that are zero are left out of sums.
std::vector<ExplainedStep> explain(const Traced& root);

/// Evaluates the recorded expression again from its inputs: equals root.value() bit for bit.
double reevaluate(const Traced& root);

}  // namespace scalecalc
