// Reads measured serving runs from files of measurements.
#include <fmt/format.h>

#include "base/text.h"
#include "config/fields.h"
#include "validate/measurement.h"
#include "validate/measurement_document.h"

namespace scalecalc {
namespace {

constexpr Range kServedSize{1, 1e9};
constexpr double kMilli = 1e-3;

class ServeRowReader {
 public:
  ServeRowReader(const ConfigNode& node, const SharedFacts& shared, Problems& problems)
      : f_(node, "measurement", problems), shared_(shared), problems_(problems) {}

  ServeMeasurement run() {
    facts();
    machine();
    lengths();
    batch();
    load();
    if (out_.complete) {
      measured();
    } else {
      f_.node("measured");
    }
    for (const char* ignored : {"notes", "check"}) f_.node(ignored);
    f_.finish();
    return std::move(out_);
  }

 private:
  void facts() {
    shared_.read(f_, out_, problems_);
    out_.engine = f_.optional_text("engine").value_or("");
    out_.complete = f_.flag("complete", true);
    const ConfigNode* shape = shared_.shape_of(f_, out_.model);
    if (shape == nullptr) return;
    const bool hugging_face = shape->find("num_hidden_layers") != nullptr;
    out_.shape = hugging_face ? read_hf_shape(*shape, problems_) : read_shape(*shape, problems_);
  }

  void machine() {
    out_.weights_dtype = f_.text("weights_dtype");
    out_.kv_dtype = f_.optional_text("kv_dtype").value_or("bf16");
    const ConfigNode* node = f_.node("parallel");
    if (node == nullptr) return;
    Fields p(*node, "parallel", problems_);
    ServeDegrees& d = out_.degrees;
    const auto degree = [&](const char* key, std::optional<std::int64_t>& to) {
      if (p.has(key)) to = p.optional_count(key, kServedSize);
    };
    degree("tp", d.tp);
    degree("pp", d.pp);
    degree("ep", d.ep);
    degree("dp", d.dp);
    degree("attention_dp", d.attention_dp);
    degree("tp_x", d.tp_x);
    d.gathered = p.flag("gathered", false);
    d.ep_overlap = p.flag("ep_overlap", false);
    p.finish();
  }

  void lengths() {
    const auto tokens = [&](const char* key) {
      return f_.has(key) ? f_.optional_quantity(key, UnitKind::kNumber) : std::nullopt;
    };
    out_.input_len = tokens("input_len");
    out_.output_len = tokens("output_len");
    out_.tokens_per_chip = tokens("tokens_per_chip");
    const std::string phase = f_.text("phase");
    for (std::size_t i = 0; i < kServePhaseNames.size(); ++i) {
      if (phase == kServePhaseNames[i]) return void(out_.phase = static_cast<ServePhase>(i));
    }
    if (phase.starts_with("end-to-end")) return void(out_.phase = ServePhase::kThroughput);
    const std::vector<std::string> known(kServePhaseNames.begin(), kServePhaseNames.end());
    const std::string hint = did_you_mean(nearest(phase, known));
    problems_.add(f_.span(), fmt::format("unknown phase {}", in_quotes(phase)),
                  fmt::format("{}{}phases: {}", hint, hint.empty() ? "" : " ", join(known, ", ")));
  }

  /// A number, "saturated", "16384 tokens per GPU", or words that give none.
  void batch() {
    const ConfigNode* node = f_.has("batch") ? f_.node("batch") : nullptr;
    if (node == nullptr) return;
    const auto number = parse_quantity(node->text, UnitKind::kNumber);
    if (const double* value = std::get_if<double>(&number); value != nullptr && *value > 0) {
      out_.batch = *value;
    } else if (node->text == "saturated") {
      out_.saturated = true;
    } else if (const std::size_t words = node->text.find(" tokens per GPU"); words != std::string::npos) {
      const auto tokens = parse_quantity(node->text.substr(0, words), UnitKind::kNumber);
      if (const double* count = std::get_if<double>(&tokens)) out_.tokens_per_chip = *count;
    } else if (node->text != "not stated") {
      problems_.add(node->span, fmt::format("batch {} is no number", in_quotes(node->text)),
                    "a count of sequences, saturated, or leave it out");
    }
  }

  void load() {
    ServeLoadFacts& l = out_.load;
    const auto count = [&](const char* key, std::optional<std::int64_t>& to) {
      if (f_.has(key)) to = f_.optional_count(key, kServedSize);
    };
    count("clients", l.clients);
    count("requests", l.requests);
    count("chunk_tokens", l.chunk_tokens);
    count("stream_interval", l.stream_interval);
    count("receive_interval", l.receive_interval);
    count("prompt_wait_steps", l.prompt_wait_steps);
    l.prompt_wait_share = f_.optional_quantity("prompt_wait_share", UnitKind::kFraction, {0, 1});
    l.rate = f_.optional_quantity("rate_requests_per_s", UnitKind::kNumber, {1e-6, 1e6});
    l.length_ratio = f_.optional_quantity("length_ratio", UnitKind::kFraction, {0.01, 1}).value_or(1);
    if (f_.has("statistic")) l.median = f_.word("statistic", {"mean", "median", "p50"}) > 0;
    if (l.clients && l.rate) {
      problems_.add(f_.span(), "clients and rate_requests_per_s both say when requests come", "leave one out");
    }
  }

  /// Seconds or tokens/s under one of the keys, the first that is there.
  bool take(Fields& m, const char* key, ServeFigure figure) {
    if (out_.measured > 0) return true;
    const auto value = m.optional_quantity(key, UnitKind::kNumber);
    if (!value) return false;
    const bool rate = figure == ServeFigure::kOutputRate || figure == ServeFigure::kInputRate;
    out_.figure = figure;
    out_.measured = rate ? *value : *value * kMilli;
    return true;
  }

  void measured() {
    Fields m(f_.required_node("measured"), "measured", problems_);
    using F = ServeFigure;
    const auto first = m.optional_quantity("ttft_ms", UnitKind::kNumber);
    switch (out_.phase) {
      case ServePhase::kPrefill:
        take(m, "prefill_ms", F::kPrefillTime);
        take(m, "ttft_ms", F::kPrefillTime);
        take(m, "tokens_per_s_total", F::kInputRate);
        break;
      case ServePhase::kDecode:
        take(m, "decode_step_ms", F::kStepTime);
        take(m, "tpot_ms", F::kStepTime);
        take(m, "tokens_per_s_total", F::kOutputRate);
        break;
      case ServePhase::kThroughput:
        take(m, "e2e_ms", F::kBatchTime);
        take(m, "tokens_per_s_total", F::kOutputRate);
        break;
      case ServePhase::kOnline:
        take(m, "tpot_ms", F::kStepTime);
        out_.throughput = m.optional_quantity("tokens_per_s_total", UnitKind::kNumber);
        take(m, "tokens_per_s_total", F::kOutputRate);
        break;
    }
    if (out_.phase != ServePhase::kPrefill && first) out_.first_token = *first * kMilli;
    if (out_.measured <= 0) {
      problems_.add(m.span(),
                    fmt::format("nothing measured that phase {} is compared by",
                                kServePhaseNames[static_cast<std::size_t>(out_.phase)]),
                    "prefill_ms, decode_step_ms, tpot_ms, e2e_ms or tokens_per_s_total");
    }
  }

  Fields f_;
  const SharedFacts& shared_;
  Problems& problems_;
  ServeMeasurement out_;
};

}  // namespace

std::string ServeMeasurement::batch_class() const {
  constexpr double kSmall = 32;
  constexpr double kMiddle = 256;
  if (saturated) return "saturated";
  if (!batch) return "not said";
  return *batch <= kSmall ? "1-32" : *batch <= kMiddle ? "33-256" : "257-";
}

std::optional<double> ServeMeasurement::client_throughput() const {
  if (!load.clients || phase != ServePhase::kOnline) return std::nullopt;
  if (throughput) return throughput;
  if (!first_token || figure != ServeFigure::kStepTime || !output_len) return std::nullopt;
  return static_cast<double>(*load.clients) * *output_len / (*first_token + (*output_len - 1) * measured);
}

bool is_serving(const ConfigNode& document) {
  const ConfigNode* rows = rows_of(document);
  return rows != nullptr && !rows->items.empty() && rows->items.front().find("phase") != nullptr;
}

std::vector<ServeMeasurement> read_serve_measurements(const ConfigNode& document) {
  return read_rows<ServeRowReader>(document);
}

}  // namespace scalecalc
