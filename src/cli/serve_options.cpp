#include "cli/serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/io.h"
#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/flag_reader.h"
#include "cli/run_options.h"

namespace scalecalc::cli {
namespace {

constexpr std::int64_t kUsualPrompt = 8192;
constexpr std::int64_t kUsualGeneration = 512;
constexpr CountRange kServeTopRange{1, 100'000};
constexpr CountRange kDraftedRange{1, 1000};
constexpr CountRange kRequestRange{10, 1'000'000};
constexpr CountRange kSeedRange{0, 1'000'000'000};
constexpr std::array<std::string_view, 3> kSpeculationKeys{"draft", "k", "accept"};

/// Formats as the contract calls them: fp4 is the one with scales that chips compute in.
std::optional<WeightFormat> format_of(FlagReader& reader, std::string_view name, std::string_view text) {
  if (text == "fp4") return WeightFormat::kNvfp4;
  const auto at = reader.word_of(name, text, kWeightFormatNames);
  return at ? std::optional(static_cast<WeightFormat>(*at)) : std::nullopt;
}

void read_weights(FlagReader& reader, const Flag& flag, const std::string& text, ServeQuestion& q) {
  QuantizationSpec& weights = q.weights.emplace(QuantizationSpec{.source = std::string(flag.name)});
  for (const std::string& item : comma_parts(text)) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) {
      if (const auto format = format_of(reader, flag.name, item)) {
        weights.weights = *format;
        weights.bits_per_weight = bits_of(*format);
      }
      continue;
    }
    const auto part = reader.word_of(fmt::format("a part of {}", flag.name), item.substr(0, equals), kWeightPartNames);
    const auto format = format_of(reader, flag.name, item.substr(equals + 1));
    if (part && format) weights.parts[*part] = *format;
  }
}

void read_kv(FlagReader& reader, const Flag& flag, const std::string& text, ServeQuestion& q) {
  q.kv = format_of(reader, flag.name, text);
}

template <ServePins ServeQuestion::*kPins>
void read_serve_pins(FlagReader& reader, const Flag& flag, const std::string& text, ServeQuestion& q) {
  std::vector<std::string_view> names;
  for (const ServeDimension& d : kServeDimensionTable) names.push_back(d.name);
  for (const std::string& item : comma_parts(text)) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) {
      reader.problem(fmt::format("{}: {} is not KEY=VALUE", flag.name, in_quotes(item)),
                     fmt::format("for example {} tp=8", flag.name));
      continue;
    }
    const auto at = reader.word_of(fmt::format("a dimension of {}", flag.name), item.substr(0, equals), names);
    if (!at) continue;
    const std::string value = item.substr(equals + 1);
    const ServeDimension& d = kServeDimensionTable[*at];
    if (d.name == "scheme") {
      const auto scheme = reader.word_of("scheme", value, kServeSchemeNames);
      if (scheme) (q.*kPins).*d.pin = static_cast<std::int64_t>(*scheme);
    } else {
      (q.*kPins).*d.pin = reader.count_of(fmt::format("{} {}", flag.name, d.name), value, kServeChipRange);
    }
  }
}

void read_speculation(FlagReader& reader, const Flag& flag, const std::string& text, ServeQuestion& q) {
  SpeculationAsked asked;
  std::optional<double> accept;
  for (const std::string& item : comma_parts(text)) {
    const std::size_t equals = item.find('=');
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    const auto key = reader.word_of("a key of --speculative", item.substr(0, equals), kSpeculationKeys);
    if (!key) continue;
    if (*key == 0) {
      asked.draft = value;
    } else if (*key == 1) {
      asked.drafted = reader.count_of("--speculative k", value, kDraftedRange).value_or(0);
    } else {
      accept = reader.quantity_of("--speculative accept", value, UnitKind::kFraction);
    }
  }
  if (asked.draft.empty() || asked.drafted == 0 || !accept) {
    return reader.problem("--speculative needs draft=, k= and accept=",
                          fmt::format("for example: --speculative {}", flag.example));
  }
  asked.accept = *accept;
  q.speculation = asked;
}

void read_systems(FlagReader&, const Flag&, const std::string& text, ServeQuestion& q) {
  q.hardware = comma_parts(text);
}

template <Lengths RequestMix::*kLengths>
void read_lengths(FlagReader& reader, const Flag& flag, const std::string& text, RequestMix& mix) {
  const auto parsed = parse_lengths(text);
  if (const Lengths* lengths = std::get_if<Lengths>(&parsed)) {
    mix.*kLengths = *lengths;
  } else {
    reader.problem(fmt::format("{}: {}", flag.name, std::get<UnitError>(parsed).message),
                   std::get<UnitError>(parsed).hint);
  }
}

std::vector<Flag> make_serve_flags() {
  std::vector<Flag> out{
      kHwFlag.explained("hardware: a catalog name or a YAML file; several with commas between")
          .like("h200")
          .by<read_systems>(),
      count<&ServeQuestion::chips>("--chips", kServeChipRange, "N",
                                   "chips of the deployment (default: 1, 2, 4 ... 64, those that are built)", "16"),
      text("--prompt", "LENGTHS",
           "tokens of a prompt: 8192 (default), a range 1024..8192, or lengths with shares 512:0.3,2048:0.7", "2048")
          .by<read_lengths<&RequestMix::prompt>>(),
      text("--generate", "LENGTHS", "tokens of an answer, in the same words (default: 512)", "256")
          .by<read_lengths<&RequestMix::generate>>(),
      text("--trace", "FILE",
           "requests as CSV or .jsonl with the columns prompt, generate and, if wanted, arrival in seconds",
           "requests.csv"),
      quantity<&TrafficAsked::rate>(
          "--rate", UnitKind::kNumber, "R",
          "requests a second to carry: the fewest chips that do, or with --chips whether they do", "5")
          .key("rate_requests_per_s"),
      count<&TrafficAsked::requests>("--simulate", kRequestRange, "N",
                                     "requests to simulate at that rate (default: 10000)", "20000"),
      count<&TrafficAsked::seed>("--seed", kSeedRange, "N", "of the simulated arrivals and lengths (default: 1)", "2"),
      quantity<&ServeQuestion::context>("--context", UnitKind::kCount, "N",
                                        "tokens in the cache while decoding (default: prompt + half the answer)",
                                        "8192"),
      sweep<&ServeQuestion::batches>(
          "--batch", UnitKind::kCount, "N",
          "sequences in flight over all chips: one, a list or a range (default: 1, 2, 4 ... as many as fit)", "1..512"),
      text("--weights", "FORMAT", "format of the weights; parts may differ: fp8,head=bf16 (default: the checkpoint's)",
           "fp8")
          .by<read_weights>(),
      text("--kv", "FORMAT", "format of the KV cache (default: the checkpoint's, else bf16)", "fp8").by<read_kv>(),
      dtype_flag<&ServeQuestion::compute>(
          "--flops", "format the matmuls compute in (default: the weights', where the chip has a rate for it)"),
      text("--fix", "KEY=N,...", "pins degrees: tp, pp, ep, etp, attention_dp, cp, dp, tp_x, scheme", "tp=8,dp=2")
          .repeatable()
          .by<read_serve_pins<&ServeQuestion::fix>>(),
      text("--max", "KEY=N,...", "largest degrees to search", "tp=8")
          .repeatable()
          .by<read_serve_pins<&ServeQuestion::max>>(),
      quantity<&ServeQuestion::slo_ttft>("--slo-ttft", UnitKind::kSeconds, "TIME",
                                         "time to first token a request may take", "500ms"),
      quantity<&ServeQuestion::slo_tpot>("--slo-tpot", UnitKind::kSeconds, "TIME", "time of each further token",
                                         "30ms"),
      quantity<&ServeQuestion::slo_request>("--slo-request", UnitKind::kSeconds, "TIME", "time of a whole request",
                                            "10s"),
      word<&ServeQuestion::regime>("--regime", kServeRegimeNames,
                                   "continuous (default): requests come and go; static: a batch is decoded to its end"),
      word<&ServeQuestion::disaggregate>("--disaggregate", kDisaggregationNames,
                                         "prompts and generation on pools of their own (default: off)"),
      text<&ServeQuestion::prefill_hardware>(
          "--prefill-hw", "HW", "chips of the prefill pool, if they are others; as many as it takes", "h20")
          .key("prefill_hardware"),
      share<&ServeQuestion::prefix_hit>("--prefix-hit", "share of a prompt found in the prefix cache", "60%"),
      text("--speculative", "draft=MODEL,...",
           "speculative decoding: draft=MODEL,k=N,accept=SHARE; draft=mtp: the model's own heads",
           "draft=llama3-8b,k=4,accept=0.7")
          .by<read_speculation>(),
      quantity<&ServeQuestion::chunk>("--chunk", UnitKind::kCount, "N",
                                      "most tokens of prompts in one step (default: the engine's)", "2048"),
      some_share<&ServeQuestion::mfu>("--mfu", "share of the peak that prefill reaches, in place of the coefficients",
                                      "40%"),
      word<&ServeQuestion::objective>("--objective", kServeObjectiveNames,
                                      "what is best (default: knee, where tokens per second of a chip times those of "
                                      "a user are most; with a limit, a rate or a --batch throughput)"),
      text<&ServeQuestion::engine>(
          "--engine", "NAME", "serving engine: its memory rule and its coefficients (default: the chip's usual one)",
          "vllm"),
      kExpertLoadFlag.to<&ServeQuestion::expert_load>(),
      efficiency_flag("calibrated (default): what the chip was measured to reach; ideal: the roofline of the book")
          .when<0, &ServeQuestion::ideal>(),
      kPriceFlag.to<&ServeQuestion::price>(),
  };
  out.insert(out.end(), power_flags().begin(), power_flags().end());
  out.insert(out.end(), {count<&ServeQuestion::top>("--top", kServeTopRange, "N",
                                                    "points to list (default: 20); 1 lists the best", "50"),
                         kAssumeFlag.to<&ServeQuestion::assume>(), kSetFlag.to<&ServeQuestion::set>(), kExplainFlag});
  return out;
}

/// Those of the trace, or of --prompt and --generate.
RequestMix request_mix(FlagReader& reader, const Arguments& arguments) {
  if (const auto file = arguments.value("--trace")) {
    for (const char* flag : {"--prompt", "--generate"}) {
      if (arguments.value(flag)) reader.problem(fmt::format("{} and --trace: the trace has its own lengths", flag), "");
    }
    return read_trace(read_text_file(*file), *file);
  }
  RequestMix out{.prompt = Lengths::fixed(kUsualPrompt), .generate = Lengths::fixed(kUsualGeneration)};
  reader.read(out);
  return out;
}

/// Requests a second over the whole trace.
double rate_of_trace(const RequestMix& mix) {
  const double span = mix.rows.back().arrival_s - mix.rows.front().arrival_s;
  return span > 0 ? static_cast<double>(mix.rows.size()) / span : 0;
}

std::optional<TrafficAsked> traffic_asked(FlagReader& reader, const Arguments& arguments, const ServeAsked& asked) {
  TrafficAsked out{.mix = asked.mix, .rate = asked.mix.has_arrivals ? rate_of_trace(asked.mix) : 0};
  reader.read(out);
  if (asked.mix.has_arrivals && rate_of_trace(asked.mix) <= 0) {
    reader.problem("--trace: all its requests arrive at once, which is no rate",
                   "leave the column arrival out, and say --rate 5 to simulate them");
    return std::nullopt;
  }
  if (!arguments.value("--rate") && out.rate <= 0) {
    for (const char* flag : {"--simulate", "--seed"}) {
      if (!arguments.has(flag)) continue;
      reader.problem(fmt::format("{} needs a rate: how often do requests come?", flag),
                     "for example --rate 5, or a --trace with arrivals");
    }
    return std::nullopt;
  }
  if (asked.question.speculation) reader.problem("--speculative is not simulated", "leave --rate out");
  if (asked.question.regime == ServeRegime::kStatic) {
    reader.problem("--regime static has no queue of single requests", "leave --rate out");
  }
  return out;
}

}  // namespace

std::span<const Flag> serve_flags() {
  static const std::vector<Flag> kAll = make_serve_flags();
  return kAll;
}

ServeAsked read_engine_question(FlagReader& reader, const Arguments& arguments) {
  ServeAsked out{.mix = request_mix(reader, arguments)};
  ServeQuestion& q = out.question;
  reader.read(q);
  q.prompt = std::round(out.mix.prompt.mean());
  q.generate = std::round(out.mix.generate.mean());
  if (!q.context && !out.mix.is_fixed() && out.mix.decode_steps() > 0) q.context = std::round(out.mix.decode_context());
  return out;
}

ServeAsked read_serve_question(FlagReader& reader, const Arguments& arguments) {
  const std::string model = reader.only_word("MODEL", "what is served?");
  ServeAsked out = read_engine_question(reader, arguments);
  ServeQuestion& q = out.question;
  q.model = model;
  q.power = read_power_terms(reader);
  q.usual_lengths = !arguments.has("--prompt") && !arguments.has("--generate") && !arguments.has("--trace");
  if (!q.prefill_hardware.empty() && q.disaggregate != Disaggregation::kOn) {
    reader.problem("--prefill-hw needs pools of their own", "add --disaggregate on");
  }
  if (q.regime == ServeRegime::kStatic && q.disaggregate != Disaggregation::kOff) {
    reader.problem("--regime static decodes where it prefilled", "leave --disaggregate out");
  }
  return out;
}

ServeAsked serve_asked(const Arguments& arguments) {
  FlagReader reader(arguments);
  ServeAsked out = read_serve_question(reader, arguments);
  out.traffic = traffic_asked(reader, arguments, out);
  reader.finish();
  ServeQuestion& q = out.question;
  // A knee is of a front; batches that are asked for are points.
  const bool free = !q.slo_ttft && !q.slo_tpot && !q.slo_request && !out.traffic && q.batches.empty();
  if (free && !arguments.has("--objective")) q.objective = ServeObjective::kKnee;
  return out;
}

}  // namespace scalecalc::cli
