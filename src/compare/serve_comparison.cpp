// Finds the cheapest point of a service on each system, for `scalecalc compare --serve`.
#include "compare/serve_comparison.h"

#include <fmt/format.h>

#include <tuple>

#include "base/progress.h"
#include "base/units.h"
#include "compare/compared.h"

namespace scalecalc {
namespace {

constexpr double kMillionTokens = 1e6;

/// What keeps a system from the limits, in one sentence.
std::string shortage(const ServeAnswer& answer) {
  if (answer.limits.empty()) return answer.notes.empty() ? "no layout is legal" : answer.notes.front();
  const BindingLimit& limit = answer.limits.front();
  if (limit.name == "memory") {
    return fmt::format("a chip has {}, one sequence needs {} at least ({})", bytes_text(limit.asked),
                       bytes_text(limit.nearest), limit.how);
  }
  return fmt::format("--slo-{} {}: nearest is {} ({})", limit.name, seconds_text(limit.asked),
                     seconds_text(limit.nearest), limit.how);
}

class ServiceComparer {
 public:
  ServiceComparer(const ServeCompareQuestion& question, const Catalog& catalog, const std::function<bool()>& stop)
      : q_(question), catalog_(catalog), stop_(stop) {}

  ServeComparison run() {
    out_.question = q_;
    for (const SystemAsked& asked : q_.systems) {
      hardware_.push_back(hardware_compared(asked.hardware, q_.serve.set, catalog_));
      require_known(asked.prices({}), hardware_.back().prices);
    }
    require_prices();
    Progress answered("systems", q_.systems.size());
    for (std::size_t s = 0; s < q_.systems.size(); ++s) {
      system(s);
      answered.add();
    }
    if (answers_.empty() && error_) throw *error_;
    rank();
    assume();
    out_.complete = !stopped();
    return std::move(out_);
  }

 private:
  bool stopped() const { return stop_ && stop_(); }

  void require_prices() const {
    std::vector<Price> prices;
    for (const HardwareSpec& hw : hardware_) prices.insert(prices.end(), hw.prices.begin(), hw.prices.end());
    require_known(q_.prices, prices);
  }

  void system(std::size_t s) {
    const SystemAsked& asked = q_.systems[s];
    ComparedService row;
    row.asked = asked;
    row.hardware = hardware_[s].name;
    row.title = hardware_[s].title;
    row.model = asked.model.empty() ? q_.serve.model : asked.model;
    ask(asked, row);
    const std::vector<Price> offers = offers_of(hardware_[s], asked, q_.prices);
    const std::size_t rows = std::max<std::size_t>(offers.size(), 1);
    for (std::size_t i = 0; i < rows; ++i) {
      ComparedService offered = row;
      if (i < offers.size()) offered.price = offers[i];
      conclude_row(offered);
      sizes_.push_back(asked.chips ? fmt::format("{}", *asked.chips) : "");
      out_.systems.push_back(std::move(offered));
    }
  }

  void ask(const SystemAsked& asked, ComparedService& row) {
    if (stopped()) return row.fail(ComparedStatus::kInterrupted, "not searched");
    ServeQuestion question = q_.serve;
    question.hardware = {asked.hardware};
    if (!asked.model.empty()) question.model = asked.model;
    if (asked.chips) question.chips = asked.chips;
    question.price = 1;  // dollars are chip-hours here; each offer has its own
    question.top = 1;
    question.suggest = false;
    try {
      row.answer = std::make_shared<const ServeAnswer>(serve_answer(question, catalog_, stop_));
    } catch (const UserError& error) {
      if (!error_) error_ = error;
      return row.fail(ComparedStatus::kUnsuited, sentence_of(error));
    }
    row.model = row.answer->model->name;
    answers_.push_back(row.answer);
    names_.push_back(asked.model.empty() ? row.hardware : fmt::format("{} on {}", row.model, row.hardware));
    if (!row.answer->best) {
      const bool memory = !row.answer->limits.empty() && row.answer->limits.front().name == "memory";
      const bool limits = !row.answer->limits.empty();
      row.fail(memory   ? ComparedStatus::kOutOfMemory
               : limits ? ComparedStatus::kTooSlow
                        : ComparedStatus::kNoLayout,
               shortage(*row.answer));
    }
  }

  static void conclude_row(ComparedService& row) {
    if (!row.answered()) return;
    const ServePoint& p = row.best();
    row.chip_hours_per_million = *p.usd_per_million_output;
    row.time_s = p.request_s;
    if (p.joules_per_output_token) row.joules = *p.joules_per_output_token * kMillionTokens;
    if (row.price) row.usd = row.chip_hours_per_million * row.price->usd_per_chip_hour;
  }

  void rank() {
    std::vector<ComparedSystem*> rows;
    for (std::size_t i = 0; i < out_.systems.size(); ++i) {
      rows.push_back(&out_.systems[i]);
      if (!out_.baseline && rows.back()->answered()) out_.baseline = i;
    }
    label_systems(rows, sizes_);
    rank_systems(rows);
    out_.rank_by = q_.rank_by.value_or(RankBy::kCost);
    out_.expectations = check_expectations(q_.expect, {rows.begin(), rows.end()});
  }

  void assume() {
    std::vector<std::vector<Assumption>> each;
    std::vector<const ModelSpec*> models;
    for (const auto& answer : answers_) {
      each.push_back(answer->assumptions);
      models.push_back(&*answer->model);
    }
    std::tie(out_.model, out_.model_title) = names_and_titles(models);
    out_.assumptions = shared_assumptions(names_, each);
    for (const ComparedService& row : out_.systems) out_.assumptions.push_back(price_assumption(row));
    if (auto taken = preemption_assumption(pointers_to(out_.systems), "", false)) {
      out_.assumptions.push_back(*std::move(taken));
    }
  }

  const ServeCompareQuestion& q_;
  const Catalog& catalog_;
  const std::function<bool()>& stop_;
  std::vector<HardwareSpec> hardware_;
  std::vector<std::shared_ptr<const ServeAnswer>> answers_;
  std::vector<std::string> names_, sizes_;
  std::optional<UserError> error_;
  ServeComparison out_;
};

}  // namespace

ServeComparison compare_serving(const ServeCompareQuestion& question, const Catalog& catalog,
                                const std::function<bool()>& stop) {
  return ServiceComparer(question, catalog, stop).run();
}

ServiceCosts service_costs(const ComparedService& row) {
  const ServePoint& p = row.best();
  const Traced chips = Traced::leaf(static_cast<double>(p.chips), "chips", "layout", {});
  const Traced rate = Traced::leaf(p.tokens_per_s, "output tokens per second", "serve, best point", {});
  ServiceCosts out{.chip_hours = (Traced(kMillionTokens) * chips / rate / Traced(kSecondsPerHour))
                                     .with_name(row.label + " chip-hours per million output tokens",
                                                "chips x time, all of it on the output: book ch. 7")};
  if (row.price) {
    const UsdOf price(Traced::leaf(row.price->usd_per_chip_hour, row.label + " price of a chip-hour",
                                   row.price->source.empty() ? "--price" : row.price->source, kUsdDim));
    out.usd =
        named(price * out.chip_hours, "cost of a million output tokens", "chip-hours x price, book ch. 7", row.label);
  }
  return out;
}

}  // namespace scalecalc
