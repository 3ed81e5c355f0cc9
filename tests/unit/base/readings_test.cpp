// Dual and Traced as numbers.
#include <gtest/gtest.h>

#include "base/scalar.h"

namespace scalecalc {
namespace {

template <class R>
R formula(const R& a, const R& b) {
  return max(a * b, a + b) / (a - R(0.5) * b) + sqrt(a) * log2(b) + min(a, b) - ceil(a / b) + expm1(b / a);
}

TEST(Dual, DerivativeIsTheFiniteDifference) {
  const double a = 7.3, b = 2.1, h = 1e-6;
  const Dual d = formula(Dual(a, 1), Dual(b));
  EXPECT_DOUBLE_EQ(d.value, formula(a, b));
  EXPECT_NEAR(d.derivative, (formula(a + h, b) - formula(a - h, b)) / (2 * h), 1e-6);
}

TEST(Traced, RecordsTheExpressionAndReevaluatesToTheBit) {
  const Traced a = Traced::leaf(7.3, "a", "here", {});
  const Traced b = Traced::leaf(2.1, "b", "there", {});
  const Traced out = formula(a, b);
  EXPECT_EQ(out.value(), formula(7.3, 2.1));
  EXPECT_EQ(reevaluate(out), out.value());
}

TEST(Traced, ExplainsNamedResultsOperandsFirst) {
  const Reader<Traced> reader;
  const BytesOf<Traced> bytes = read(reader, Bytes(2e9), "weights", "model");
  const BytesPerSecondOf<Traced> rate = read(reader, BytesPerSecond(1e12), "hbm", "data sheet");
  const SecondsOf<Traced> load = named(bytes / rate, "load time", "book ch. 7");
  const SecondsOf<Traced> twice = named(load * Traced(2.0) + load, "three loads", "here");
  const std::vector<ExplainedStep> steps = explain(twice.value());
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].name, "load time");
  EXPECT_EQ(steps[0].formula, "weights / hbm");
  EXPECT_EQ(steps[0].numbers, "2 GB / 1 TB/s");
  EXPECT_EQ(steps[0].source, "book ch. 7");
  EXPECT_DOUBLE_EQ(steps[0].value, 2e-3);
  EXPECT_EQ(steps[1].formula, "load time * 2 + load time");
}

TEST(Traced, KeepsBracketsThatMatter) {
  const Traced a = Traced::leaf(8, "a", "", {});
  const Traced b = Traced::leaf(4, "b", "", {});
  const Traced c = Traced::leaf(2, "c", "", {});
  const auto text = [](const Traced& t) { return explain(t.with_name("x", "")).front().formula; };
  EXPECT_EQ(text(a / (b * c)), "a / (b * c)");
  EXPECT_EQ(text(a - (b - c)), "a - (b - c)");
  EXPECT_EQ(text((a + b) * c), "(a + b) * c");
  EXPECT_EQ(text(a * b / c), "a * b / c");
  EXPECT_EQ(text(max(a, b + c)), "max(a, b + c)");
  EXPECT_EQ(text(floor(a / (b - c / a))), "floor(a / (b - c / a))");
  EXPECT_EQ(floor(a / (b - c / a)).value(), 2);
}

TEST(Traced, ZerosThatSayNothingAreNotTold) {
  const Traced a = Traced::leaf(8, "a", "", {});
  const Traced b = Traced::leaf(4, "b", "", {});
  const auto text = [](const Traced& t) { return explain(t.with_name("x", "")).back().formula; };
  EXPECT_EQ(text(max(max(Traced(0.0), a * b), a / b)), "max(a * b, a / b)");
  EXPECT_EQ(text(max(Traced(0.0), b - a)), "max(0, b - a)") << "here it is a limit";
  EXPECT_EQ(text(max(max(a, b + a), a)), "max(a, b + a)");
  EXPECT_EQ(text((a - a).with_name("nothing", "") + a * b), "a * b");
  EXPECT_EQ(text(a.with_name("second name", "") * b), "a * b") << "it has no line of its own";
}

TEST(Traced, TellsALongFormulaInPartsThatAddUp) {
  Traced sum(0.0);
  for (int i = 1; i <= 40; ++i) sum = sum + Traced::leaf(i, "the length of term " + std::to_string(i), "", kSecondDim);
  const std::vector<ExplainedStep> steps = explain(sum.with_name("whole", "", kSecondDim));
  ASSERT_GT(steps.size(), 4u);
  EXPECT_EQ(steps.front().name, "part 1 of whole");
  EXPECT_TRUE(steps[1].formula.starts_with("part 1 + the length of term ")) << steps[1].formula;
  EXPECT_EQ(steps.back().name, "whole");
  EXPECT_EQ(steps.back().value, 820);
  for (const ExplainedStep& step : steps) {
    EXPECT_LE(step.name.size() + step.formula.size(), 180u) << step.formula;
    EXPECT_EQ(step.unit, kSecondDim);
  }
}

TEST(DualReader, ReadsByOneInputOrByAFactorOnSeveral) {
  const Reader<Dual> one("x");
  EXPECT_EQ(one.input(3, "x", "").derivative, 1);
  EXPECT_EQ(one.input(3, "y", "").derivative, 0);
  const Reader<Dual> both({"x", "y"}, 2);
  EXPECT_EQ(both.input(3, "x", "").value, 6);
  EXPECT_EQ(both.input(3, "x", "").derivative, 3);
  EXPECT_EQ(both.input(5, "y", "").value, 10);
  EXPECT_EQ(both.input(5, "z", "").value, 5);
}

/// Of a count that formulas take as it is, a reading has what it is multiplied by.
TEST(DualReader, WholeCountsHaveADerivative) {
  EXPECT_EQ(Reader<double>{}.whole(80, "layers"), 1);
  EXPECT_EQ(Reader<Dual>("layers").whole(80, "layers").value, 1);
  EXPECT_EQ(Reader<Dual>("layers").whole(80, "layers").derivative, 1.0 / 80);
  EXPECT_EQ(Reader<Dual>({"layers"}, 1.5).whole(80, "layers").value, 1.5);
  EXPECT_EQ(Reader<Dual>({"layers"}, 1.5).whole(80, "layers").derivative, 1);
  EXPECT_EQ(Reader<Dual>("seq").whole(80, "layers").derivative, 0);
  EXPECT_EQ(Reader<Traced>{}.whole(80, "layers").value(), 1);
}

}  // namespace
}  // namespace scalecalc
