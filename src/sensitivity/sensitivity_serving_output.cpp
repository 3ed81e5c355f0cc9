// Shows what a server's times and throughput depend on, for `scalecalc sensitivity serve`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "report/brief_blocks.h"
#include "sensitivity/sensitivity_output.h"
#include "serve/serve_output.h"

namespace scalecalc {
namespace {

/// Less than this is nothing one would pay for.
constexpr double kNoChange = 0.0005;

struct ServedFigure {
  const char* key;
  const char* label;
  const char* words;
  double (*of)(const ServePoint&);
};
constexpr std::array<ServedFigure, 3> kServedFigures{
    {{"tpot", "TPOT", "TPOT", [](const ServePoint& p) { return p.tpot_s; }},
     {"ttft", "TTFT", "TTFT", [](const ServePoint& p) { return p.ttft_s; }},
     {"tokens_per_s_per_chip", "tok/s/chip", "tokens/s per chip",
      [](const ServePoint& p) { return p.tokens_per_s_per_chip(); }}}};

double changed(const ServedFigure& figure, const ServePoint& there, const ServePoint& here) {
  return figure.of(there) / figure.of(here) - 1;
}

std::string signed_share(double share) { return fmt::format("{:+.3g}%", 100 * share); }

std::string point_text(const ServePoint& p) {
  std::string out = fmt::format("{}, batch {}", describe(p.layout), batch_text(p));
  if (p.pools) {
    out = fmt::format("{} x {} prefill, {} x {} decode, batch {}", p.pools->prefill_replicas,
                      describe(p.pools->prefill_layout), p.pools->decode_replicas, describe(p.layout), batch_text(p));
  }
  return out;
}

class ServeSensitivityOutput {
 public:
  explicit ServeSensitivityOutput(const ServeSensitivity& answer) : a_(answer) {}

  Output run() {
    const ServeAnswer& served = a_.answer;
    Output serve = serve_output(served, false);
    out_.command = "sensitivity-serve";
    out_.title = "What serving depends on: " + serve.title;
    out_.query.figures = serve.query.figures;
    out_.assumptions = served.assumptions;
    out_.nothing_fits = !a_.kept;
    if (!a_.complete) {
      out_.assumptions.push_back(
          Assumption{"interrupted: what was not searched yet is missing", "", "", true}.as("interrupted"));
    }
    if (a_.kept) {
      summary();
    } else {
      out_.summary = std::move(serve.summary);
    }
    out_.software = std::move(serve.software);
    rates();
    if (a_.kept) point();
    if (a_.kept) out_.blocks.push_back(next_block({alone()}));
    return std::move(out_);
  }

 private:
  Line alone() const {
    NextQuestion out = point_alone(a_.answer, *a_.kept);
    out.words = {a_.answer.question.model};
    return next_line(std::move(out));
  }

  void summary() {
    const ServePoint& p = *a_.kept;
    say(out_.summary, "Best: {} on {} chip{}; TPOT {}, TTFT {}, {} tokens/s per chip, bound by {}", point_text(p),
        p.chips, p.chips == 1 ? "" : "s", seconds_text(p.tpot_s), seconds_text(p.ttft_s),
        format_quantity(p.tokens_per_s_per_chip(), UnitKind::kNumber), p.bound_by);
    for (const ServedFigure& f : kServedFigures) helps_most(f);
    std::vector<std::string> idle;
    for (const ServeRateChange& change : a_.rates) {
      const bool any = !change.less || std::any_of(kServedFigures.begin(), kServedFigures.end(), [&](const auto& f) {
        return std::abs(changed(f, *change.less, p)) >= kNoChange;
      });
      if (!any) idle.push_back(change.rate.name);
    }
    if (!idle.empty()) say(out_.summary, "10% less changes nothing: {}", join(idle, ", "));
  }

  /// Which of the rates to buy for one figure.
  void helps_most(const ServedFigure& f) {
    const ServeRateChange* best = nullptr;
    double most = kNoChange;
    for (const ServeRateChange& change : a_.rates) {
      if (!change.more || std::abs(changed(f, *change.more, *a_.kept)) <= most) continue;
      best = &change;
      most = std::abs(changed(f, *change.more, *a_.kept));
    }
    if (best == nullptr) {
      say(out_.summary, "{}: no rate changes it by {:.2g}%", f.words, 100 * kNoChange);
    } else {
      say(out_.summary, Role::kGood, "{}: 10% more {} helps most, {}", f.words, best->rate.name,
          signed_share(changed(f, *best->more, *a_.kept)));
    }
  }

  void rates() {
    constexpr std::size_t kBriefRows = 6;
    Block block{.key = "rates", .title = "Ten per cent more of one rate", .brief_rows = kBriefRows};
    for (const ServeRateChange& change : a_.rates) block.records.push_back(record(change));
    out_.blocks.push_back(std::move(block));
    if (a_.rates.empty()) return;
    out_.notes.emplace_back("layout and batch stay in the first columns; free: the best of all of them by --objective");
    out_.notes.emplace_back("what parts cost is not known: rates are ranked per 10%, not per dollar");
  }

  Record record(const ServeRateChange& change) const {
    Record out;
    std::vector<Figure>& f = out.figures;
    f.push_back(text_figure("input", "rate", change.rate.name));
    f.back().rigid = true;
    f.push_back(number_figure("value", "", Format::kNumber, change.rate.value));
    f.back().shown = quantity_text(change.rate.value, change.rate.unit);
    f.back().label = "value";
    f.back().importance = 3;
    f.push_back(text_figure("unit", "", unit_name(change.rate.unit)));
    const auto add = [&](std::string_view suffix, std::string_view label, const std::optional<ServePoint>& there,
                         int importance) {
      for (const ServedFigure& s : kServedFigures) {
        const std::string name = label.empty() ? "" : fmt::format("{}{}", s.label, label == "-" ? "" : label);
        const auto value = there ? std::optional(changed(s, *there, *a_.kept)) : std::nullopt;
        f.push_back(with_importance(number_figure(fmt::format("{}_{}", s.key, suffix), name, Format::kFraction, value),
                                    importance));
      }
    };
    add("more", "-", change.more, 0);
    add("less", "", change.less, 0);
    f.push_back(flag_figure("less_fits", change.less.has_value()));
    add("free", a_.question.fixed ? "" : " free", change.free, 1);
    f.push_back(text_figure("free_point", a_.question.fixed ? "" : "layout and batch then",
                            change.free ? point_text(*change.free) : "", 2));
    return out;
  }

  void point() {
    const ServePoint& p = *a_.kept;
    out_.blocks.push_back(
        {.key = "point",
         .title = "The point",
         .is_list = false,
         .records = {{{text_figure("layout_text", "layout", point_text(p)),
                       number_figure("chips", "chips", Format::kInteger, static_cast<double>(p.chips)),
                       number_figure("batch", "batch", Format::kNumber, p.batch),
                       number_figure("tpot_s", "TPOT", Format::kSeconds, p.tpot_s),
                       number_figure("ttft_s", "TTFT", Format::kSeconds, p.ttft_s),
                       number_figure("request_time_s", "request", Format::kSeconds, p.request_s),
                       number_figure("tokens_per_s_per_chip", "tok/s/chip", Format::kNumber, p.tokens_per_s_per_chip()),
                       text_figure("bound_by", "bound by", p.bound_by)}}}});
  }

  const ServeSensitivity& a_;
  Output out_;
};

}  // namespace

Output sensitivity_output(const ServeSensitivity& answer) { return ServeSensitivityOutput(answer).run(); }

}  // namespace scalecalc
