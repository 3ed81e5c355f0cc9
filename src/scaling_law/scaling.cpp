// Answers `scalecalc scaling-law`: the choices for a budget and how a given model compares with them.
#include "scaling_law/scaling.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/text.h"
#include "base/units.h"

namespace scalecalc {
namespace {

using UsdOf = Quantity<kUsdDim, Traced>;
using UsdPerFlop = Quantity<kUsdDim - kFlopDim, Traced>;

constexpr const char* kLifetime = "Sardana et al. (arXiv:2401.00448), equation 2: training and serving together";

class Answering {
 public:
  explicit Answering(const ScalingQuestion& question) : q_(question) {}

  ScalingAnswer run() {
    if (q_.law.loss) surface_ = read_surface(reader_, q_.law);
    if (q_.inference_tokens > 0) require_loss(q_.law, "--inference-tokens");
    price();
    serving();
    budget();
    allocations();
    if (q_.model) standing();
    sizes();
    laws();
    assumptions();
    return std::move(out_);
  }

 private:
  Assumption& assume(std::string text, std::string flag, std::string source, bool warning = false) {
    return out_.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source), warning});
  }

  void price() {
    if (!q_.price) return;
    const ComputePrice& p = *q_.price;
    using Price = Quantity<kUsdDim - kSecondDim, Traced>;
    const Price second(reader_.input(p.usd_per_chip_hour / 3600, "price of a chip", p.price_source, Price::dim));
    const FlopsPerSecondOf<Traced> peak = read(reader_, p.peak, "peak rate", p.peak_source);
    const Traced mfu = reader_.input(p.mfu, "mfu", p.mfu_source);
    flop_price_ = named(second / (peak * mfu), "price of a training FLOP", "chip price over its FLOP/s at the MFU");
  }

  /// kappa: training tokens that cost as much as serving does. docs/model.md, [LIFETIME].
  void serving() {
    if (q_.inference_tokens <= 0) return;
    const Traced served = reader_.input(q_.inference_tokens, "T", "--inference-tokens");
    Traced rho(1.0);
    if (q_.serve_mfu) {
      check(q_.price.has_value(), "a serving MFU stands beside a training MFU");
      rho = reader_.input(q_.price->mfu, "mfu", q_.price->mfu_source) /
            reader_.input(*q_.serve_mfu, "serve_mfu", "--serve-mfu");
      rho = named(rho, "rho", "cost of a serving FLOP over a training FLOP's");
    } else if (q_.serve_usd_per_million) {
      const UsdOf token(
          reader_.input(*q_.serve_usd_per_million / 1e6, "price of a served token", q_.serve_price_source, kUsdDim));
      const Traced size = reader_.input(q_.model->parameters, "parameters of " + q_.model->name, "model file");
      rho = token / (FlopsOf<Traced>(Traced(2.0)) * size) / *flop_price_;
      rho = named(rho, "rho", "cost of a serving FLOP over a training FLOP's");
    }
    kappa_ = named(rho * served / Traced(3.0), "kappa", "2 N T of serving as tokens of 6 N each");
  }

  FlopsOf<Traced> given_flops() const {
    if (q_.flops) return read(reader_, Flops(*q_.flops), "C", "--flops");
    if (q_.budget_usd) {
      const UsdOf usd(reader_.input(*q_.budget_usd, "budget", "--budget", kUsdDim));
      return named(usd / *flop_price_, "C", "dollars over the price of a FLOP");
    }
    return flops_to_train(model_at());
  }

  Allocation<Traced> model_at() const {
    return {reader_.input(q_.model->parameters, "N of " + q_.model->name, "model file: " + q_.model->counted),
            reader_.input(q_.model->tokens, "D of " + q_.model->name, q_.model->tokens_source)};
  }

  /// The compute-optimal choice, and the loss that its rival must reach.
  void budget() {
    if (q_.loss) {
      require_loss(q_.law, "--target-loss");
      if (*q_.loss <= q_.law.loss->irreducible) {
        throw UserError(fmt::format("no model reaches a loss of {:g}: {} puts the irreducible loss at {:g}", *q_.loss,
                                    q_.law.name, q_.law.loss->irreducible),
                        "raise --target-loss");
      }
      best_ = cheapest_for(*surface_, reader_.input(*q_.loss, "loss", "--target-loss"));
      out_.budget = flops_to_train(best_);
      return;
    }
    const FlopsOf<Traced> given = given_flops();
    if (q_.lifetime_budget) {
      // Compute-optimal training is that of the loss which the lifetime-optimal choice reaches.
      rival_ = for_budget(given);
      const Traced loss = loss_at(*surface_, *rival_);
      best_ = cheapest_for(*surface_, loss);
      out_.budget = flops_to_train(best_);
      return;
    }
    out_.budget = given;
    best_ = best_for(reader_, q_.law, given);
  }

  LossSurface<double> plain() const { return read_surface(Reader<double>{}, q_.law); }

  Allocation<Traced> for_budget(const FlopsOf<Traced>& given) const {
    const double root = lifetime_tokens_for_budget(plain(), given.value().value(), kappa_->value());
    const Traced tokens = Traced::leaf(root, "D", "[LIFETIME] the root of its condition, by halving", {});
    const Traced parameters = named(given / (FlopsOf<Traced>(Traced(6.0)) * (tokens + *kappa_)), "N",
                                    "what 6 N (D + kappa) leaves of the budget");
    return {parameters, tokens};
  }

  void allocations() {
    out_.allocations.push_back(figures(AllocationKind::kComputeOptimal, best_));
    if (kappa_) {
      if (!rival_) {
        const Traced loss = loss_at(*surface_, best_);
        const double root = lifetime_tokens_for_loss(plain(), loss.value(), kappa_->value());
        const Traced tokens = Traced::leaf(root, "D", "[LIFETIME] the root of its condition, by halving", {});
        rival_ = {parameters_for(*surface_, loss, tokens), tokens};
      }
      out_.allocations.push_back(figures(AllocationKind::kLifetimeOptimal, *rival_));
      saving();
    }
    if (q_.model) out_.allocations.push_back(figures(AllocationKind::kModel, model_at()));
  }

  AllocationFigures figures(AllocationKind kind, const Allocation<Traced>& at) const {
    AllocationFigures out{.kind = kind, .at = at};
    out.tokens_per_parameter = named(at.tokens / at.parameters, "tokens per parameter", "D / N");
    if (surface_) out.loss = loss_at(*surface_, at);
    out.training = flops_to_train(at);
    out.lifetime = out.training;
    if (kappa_) {
      out.serving = flops_to_serve(at.parameters, reader_.input(q_.inference_tokens, "T", "--inference-tokens"));
      out.lifetime =
          named(FlopsOf<Traced>(Traced(6.0)) * at.parameters * (at.tokens + *kappa_), "lifetime FLOPs", kLifetime);
    }
    if (flop_price_) {
      out.usd = UsdFigures{named(out.training * *flop_price_, "training dollars", "FLOPs x price"),
                           named(out.lifetime * *flop_price_, "lifetime dollars", "FLOPs x price")};
    }
    return out;
  }

  void saving() {
    const AllocationFigures& optimum = out_.allocations[0];
    const AllocationFigures& rival = out_.allocations[1];
    LifetimeSaving saved;
    saved.flops = named(optimum.lifetime - rival.lifetime, "saved FLOPs", kLifetime);
    saved.share = named(saved.flops / optimum.lifetime, "saved share", kLifetime);
    if (flop_price_) saved.usd = named(optimum.usd->lifetime - rival.usd->lifetime, "saved dollars", kLifetime);
    out_.saving = std::move(saved);
  }

  void standing() {
    const AllocationFigures& own = out_.allocations.back();
    const Allocation<Traced> optimum = best_for(reader_, q_.law, own.training);
    ModelStanding found;
    found.over_trained = named(own.tokens_per_parameter / (optimum.tokens / optimum.parameters), "over-trained",
                               "its D / N over that of the compute-optimal choice of its FLOPs");
    if (surface_) {
      const FlopsOf<Traced> least = flops_to_train(cheapest_for(*surface_, *own.loss));
      found.compute_ratio =
          named(own.training / least, "compute over the optimum's", "its FLOPs over the fewest that reach its loss");
      const double kappa = kappa_of(plain(), {q_.model->parameters, q_.model->tokens});
      if (kappa > 0) found.serving_tokens = 3 * kappa;
    }
    out_.standing = std::move(found);
  }

  /// Around the choice that the question is about.
  void sizes() {
    if (!surface_) return;
    const LossSurface<double> law = plain();
    const Allocation<Traced>& centre = rival_ ? *rival_ : best_;
    const double loss = loss_at(law, {centre.parameters.value(), centre.tokens.value()});
    const double flops = flops_to_train<double>({centre.parameters.value(), centre.tokens.value()}).value();
    constexpr double kRounding = 1e-9;
    constexpr int kSteps = 4;  // a factor of four to either side, in halves of a doubling
    for (int step = -kSteps; step <= kSteps; ++step) {
      SizePoint p{.factor = std::exp2(step / 2.0)};
      p.at.parameters = centre.parameters.value() * p.factor;
      p.at.tokens = flops / (6 * p.at.parameters);
      p.loss = loss_at(law, p.at);
      const double wasted = 1 - flops_to_train(cheapest_for(law, *p.loss)).value() / flops;
      p.wasted = wasted > kRounding ? wasted : 0;
      if (reaches(law, loss, p.at.parameters)) {
        p.tokens_same_loss = tokens_for(law, loss, p.at.parameters);
        const double kappa = kappa_ ? kappa_->value() : 0;
        p.lifetime_same_loss = 6 * p.at.parameters * (*p.tokens_same_loss + kappa);
      }
      out_.sizes.push_back(p);
    }
  }

  void laws() {
    const Flops flops(out_.budget.value().value());
    for (const ScalingLaw& law : q_.others) {
      LawPoint p{.law = &law, .at = best_for(Reader<double>{}, law, flops)};
      if (law.loss) p.loss = loss_at(read_surface(Reader<double>{}, law), p.at);
      out_.laws.push_back(p);
    }
  }

  void assumptions() {
    assume(fmt::format("scaling law: {}", q_.law.title), "--law", q_.law.source);
    if (!q_.law.note.empty()) assume("of the law: " + q_.law.note, "", "law file").as("law_note").is(q_.law.note);
    beyond_the_fit();
    assume(q_.law.counts_embeddings ? "N counts all parameters, embeddings too, and training costs 6 N FLOPs per token"
                                    : "N leaves the embeddings out, and training costs 6 N FLOPs per token",
           "", "law file; Kaplan et al. (arXiv:2001.08361), section 2.1")
        .as("parameters_counted")
        .is(q_.law.counts_embeddings ? "all" : "without embeddings");
    if (q_.price) {
      const ComputePrice& p = *q_.price;
      assume(fmt::format("{:g} USD per chip-hour of {}", p.usd_per_chip_hour, p.hardware), "--price", p.price_source)
          .is(p.usd_per_chip_hour);
      assume(fmt::format("training at {:.3g} % MFU of the {} peak", 100 * p.mfu, p.precision), "--mfu", p.mfu_source)
          .is(p.mfu);
    }
    if (kappa_) serving_assumption();
    if (q_.model) {
      const SizedModel& m = *q_.model;
      assume(fmt::format("{}: {} parameters ({}), {} tokens", m.title, format_quantity(m.parameters, UnitKind::kCount),
                         m.counted, format_quantity(m.tokens, UnitKind::kCount)),
             "--tokens", m.tokens_source)
          .is(m.tokens);
      if (m.moe) {
        assume("the law is of dense models; experts count by those a token visits", "", "law file", true)
            .as("experts_counted")
            .is("active");
      }
    }
    assume("a loss is that of the law's own corpus and recipe; it says nothing of another's, nor of tasks", "",
           "law file")
        .as("loss_of")
        .is("the law's corpus");
  }

  void serving_assumption() {
    if (q_.serve_mfu) {
      assume(fmt::format("serving at {:.3g} % MFU of the same peak, at the same price", 100 * *q_.serve_mfu),
             "--serve-mfu", "command line")
          .is(*q_.serve_mfu);
    } else if (q_.serve_usd_per_million) {
      assume(fmt::format("serving costs ${:.3g} per million tokens of {}, and in proportion to the parameters",
                         *q_.serve_usd_per_million, q_.model->name),
             "--serve-price", q_.serve_price_source);
    } else {
      assume("a FLOP of serving costs as much as one of training (decoding costs several times more)",
             "--serve-mfu, --serve-price", kLifetime);
    }
  }

  void beyond_the_fit() {
    std::vector<std::string> beyond;
    const auto look = [&](const char* what, double asked, const std::optional<double>& largest) {
      if (!largest || asked <= *largest) return;
      beyond.push_back(*largest < 1e18 ? fmt::format("{} {}", format_quantity(*largest, UnitKind::kCount), what)
                                       : fmt::format("{:.3g} {}", *largest, what));
    };
    const AllocationFigures& first = out_.allocations.front();
    look("parameters", first.at.parameters.value(), q_.law.largest_parameters);
    look("tokens", first.at.tokens.value(), q_.law.largest_tokens);
    look("FLOPs", first.training.value().value(), q_.law.largest_flops);
    if (beyond.empty()) return;
    assume(fmt::format("extrapolated: the law was fitted to runs of up to {}", join_and(beyond)), "", q_.law.source,
           true)
        .as("fitted_up_to")
        .is(join(beyond, ", "));
  }

  const ScalingQuestion& q_;
  Reader<Traced> reader_;
  std::optional<LossSurface<Traced>> surface_;
  std::optional<UsdPerFlop> flop_price_;
  std::optional<Traced> kappa_;
  Allocation<Traced> best_;
  std::optional<Allocation<Traced>> rival_;
  ScalingAnswer out_;
};

}  // namespace

ScalingAnswer answer(const ScalingQuestion& question) { return Answering(question).run(); }

}  // namespace scalecalc
