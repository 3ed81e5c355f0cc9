#include "cli/serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/flag_reader.h"
#include "cli/run_options.h"
#include "cli/sheet_command.h"
#include "cli/traffic_options.h"

namespace scalecalc::cli {
namespace {

constexpr std::int64_t kMostServeChips = 65'536;
constexpr CountRange kServeChipRange{1, kMostServeChips};
constexpr CountRange kTopRange{1, 100'000};
constexpr CountRange kDraftedRange{1, 1000};

constexpr std::array kServeFlags{
    Flag{"--hw", 0, FlagKind::kValue, "HW", "hardware: a catalog name or a YAML file; several with commas between",
         "h200"},
    Flag{"--chips", 0, FlagKind::kValue, "N", "chips of the deployment (default: 1, 2, 4 ... 64, those that are built)",
         "16"},
    Flag{"--prompt", 0, FlagKind::kValue, "LENGTHS",
         "tokens of a prompt: 8192 (default), a range 1024..8192, or lengths with shares 512:0.3,2048:0.7", "2048"},
    Flag{"--generate", 0, FlagKind::kValue, "LENGTHS", "tokens of an answer, in the same words (default: 512)", "256"},
    Flag{"--trace", 0, FlagKind::kValue, "FILE",
         "requests as CSV or .jsonl with the columns prompt, generate and, if wanted, arrival in seconds",
         "requests.csv"},
    Flag{"--rate", 0, FlagKind::kValue, "R",
         "requests a second to carry: the fewest chips that do, or with --chips whether they do", "5"},
    Flag{"--simulate", 0, FlagKind::kValue, "N", "requests to simulate at that rate (default: 10000)", "20000"},
    Flag{"--seed", 0, FlagKind::kValue, "N", "of the simulated arrivals and lengths (default: 1)", "2"},
    Flag{"--context", 0, FlagKind::kValue, "N",
         "tokens in the cache while decoding (default: prompt + half the answer)", "8192"},
    Flag{"--batch", 0, FlagKind::kValue, "N",
         "sequences in flight over all chips: one, a list or a range (default: 1, 2, 4 ... as many as fit)", "1..512"},
    Flag{"--weights", 0, FlagKind::kValue, "FORMAT",
         "format of the weights; parts may differ: fp8,head=bf16 (default: the checkpoint's)", "fp8"},
    Flag{"--kv", 0, FlagKind::kValue, "FORMAT", "format of the KV cache (default: the checkpoint's, else bf16)", "fp8"},
    Flag{"--flops", 0, FlagKind::kValue, "DTYPE",
         "format the matmuls compute in (default: the weights', where the chip has a rate for it)", "bf16"},
    Flag{"--fix", 0, FlagKind::kRepeatable, "KEY=N,...",
         "pins degrees: tp, pp, ep, etp, attention_dp, cp, dp, tp_x, scheme", "tp=8,dp=2"},
    Flag{"--max", 0, FlagKind::kRepeatable, "KEY=N,...", "largest degrees to search", "tp=8"},
    Flag{"--slo-ttft", 0, FlagKind::kValue, "TIME", "time to first token a request may take", "500ms"},
    Flag{"--slo-tpot", 0, FlagKind::kValue, "TIME", "time of each further token", "30ms"},
    Flag{"--slo-request", 0, FlagKind::kValue, "TIME", "time of a whole request", "10s"},
    Flag{"--regime", 0, FlagKind::kValue, "continuous|static",
         "continuous (default): requests come and go; static: a batch is decoded to its end", "static"},
    Flag{"--disaggregate", 0, FlagKind::kValue, "off|on|auto",
         "prompts and generation on pools of their own (default: off)", "auto"},
    Flag{"--prefill-hw", 0, FlagKind::kValue, "HW",
         "chips of the prefill pool, if they are others; as many as it takes", "h20"},
    Flag{"--prefix-hit", 0, FlagKind::kValue, "SHARE", "share of a prompt found in the prefix cache", "60%"},
    Flag{"--speculative", 0, FlagKind::kValue, "draft=MODEL,...",
         "speculative decoding: draft=MODEL,k=N,accept=SHARE; draft=mtp: the model's own heads",
         "draft=llama3-8b,k=4,accept=0.7"},
    Flag{"--chunk", 0, FlagKind::kValue, "N", "most tokens of prompts in one step (default: the engine's)", "2048"},
    Flag{"--mfu", 0, FlagKind::kValue, "SHARE", "share of the peak that prefill reaches, in place of the coefficients",
         "40%"},
    Flag{"--objective", 0, FlagKind::kValue, "throughput|latency|cost", "what is best (default: throughput)", "cost"},
    Flag{"--engine", 0, FlagKind::kValue, "NAME",
         "serving engine: its memory rule and its coefficients (default: the chip's usual one)", "vllm"},
    Flag{"--efficiency", 0, FlagKind::kValue, "calibrated|ideal",
         "calibrated (default): what the chip was measured to reach; ideal: the roofline of the book", "ideal"},
    Flag{"--price", 0, FlagKind::kValue, "USD", "dollars per chip and hour (default: the hardware file's first)",
         "2.50"},
    Flag{"--top", 0, FlagKind::kValue, "N", "points to list (default: 20); 1 lists the best", "50"},
    kAssumeFlag,
    kSetFlag,
    kExplainFlag,
};

class ServeOptions {
 public:
  ServeOptions(FlagReader& reader, const Arguments& arguments, const EngineFlagNames& names)
      : arguments_(arguments), reader_(reader), names_(names) {}

  ServeAsked run() {
    subject();
    engine();
    limits();
    choices();
    std::optional<TrafficAsked> traffic = traffic_asked(reader_, arguments_, mix_);
    return {std::move(out_), std::move(mix_), std::move(traffic)};
  }

  /// An engine inside another command's job.
  ServeAsked run_engine() {
    engine();
    choices_of_engine();
    out_.assume = arguments_.value("--assume").value_or("");
    out_.set = arguments_.values("--set");
    out_.chips = reader_.count("--chips", kServeChipRange);
    out_.price = reader_.positive("--price", UnitKind::kUsdPerHour);
    return {std::move(out_), std::move(mix_), std::nullopt};
  }

 private:
  void engine() {
    lengths();
    formats();
    pins(names_.fix, out_.fix);
    pins(names_.max, out_.max);
    speculation();
  }

  void subject() {
    const std::vector<std::string>& words = arguments_.positionals();
    if (words.size() != 1) {
      reader_.problem(words.empty() ? "serve needs a MODEL: what is served?" : "serve takes one MODEL",
                      "for example: scalecalc serve llama3-70b --hw h100-sxm --chips 8");
    } else {
      out_.model = words.front();
    }
    out_.assume = arguments_.value("--assume").value_or("");
    out_.set = arguments_.values("--set");
    const std::optional<std::string> hw = arguments_.value("--hw");
    if (!hw) {
      reader_.problem("--hw is missing: on which hardware?", "a catalog name such as h200, or several: h200,tpu-v6e");
    } else {
      out_.hardware = comma_parts(*hw);
    }
    out_.chips = reader_.count("--chips", kServeChipRange);
  }

  void lengths() {
    mix_ = request_mix(reader_, arguments_);
    out_.prompt = std::round(mix_.prompt.mean());
    out_.generate = std::round(mix_.generate.mean());
    out_.context = reader_.positive("--context", UnitKind::kCount);
    if (!out_.context && !mix_.is_fixed() && mix_.decode_steps() > 0) out_.context = std::round(mix_.decode_context());
    out_.batches = sweep_flag(reader_, arguments_, "--batch", UnitKind::kCount).value_or(std::vector<double>{});
    out_.prefix_hit = reader_.fraction("--prefix-hit").value_or(0);
    out_.chunk = reader_.positive("--chunk", UnitKind::kCount);
    out_.mfu = reader_.fraction("--mfu");
    if (out_.mfu && *out_.mfu <= 0) reader_.problem("--mfu is 0: no prompt would ever end", "for example: --mfu 40%");
  }

  /// Formats as the contract calls them: fp4 is the one with scales that chips compute in.
  std::optional<WeightFormat> format_of(std::string_view name, std::string_view text) {
    if (text == "fp4") return WeightFormat::kNvfp4;
    const auto at = reader_.word_of(name, text, kWeightFormatNames);
    return at ? std::optional(static_cast<WeightFormat>(*at)) : std::nullopt;
  }

  void formats() {
    if (const auto text = arguments_.value(names_.weights)) {
      QuantizationSpec weights{.source = std::string(names_.weights)};
      for (const std::string& item : comma_parts(*text)) {
        const std::size_t equals = item.find('=');
        if (equals == std::string::npos) {
          if (const auto format = format_of(names_.weights, item)) {
            weights.weights = *format;
            weights.bits_per_weight = bits_of(*format);
          }
          continue;
        }
        const auto part =
            reader_.word_of(fmt::format("a part of {}", names_.weights), item.substr(0, equals), kWeightPartNames);
        const auto format = format_of(names_.weights, item.substr(equals + 1));
        if (part && format) weights.parts[*part] = *format;
      }
      out_.weights = weights;
    }
    if (const auto text = arguments_.value("--kv")) out_.kv = format_of("--kv", *text);
    if (const auto at = reader_.word("--flops", kDTypeNames)) out_.compute = static_cast<DType>(*at);
  }

  void pins(std::string_view flag, ServePins& out) {
    std::vector<std::string_view> names;
    for (const ServeDimension& d : kServeDimensionTable) names.push_back(d.name);
    for (const std::string& text : arguments_.values(flag)) {
      for (const std::string& item : comma_parts(text)) {
        const std::size_t equals = item.find('=');
        if (equals == std::string::npos) {
          reader_.problem(fmt::format("{}: {} is not KEY=VALUE", flag, in_quotes(item)),
                          fmt::format("for example {} tp=8", flag));
          continue;
        }
        const auto at = reader_.word_of(fmt::format("a dimension of {}", flag), item.substr(0, equals), names);
        if (!at) continue;
        const std::string value = item.substr(equals + 1);
        const ServeDimension& d = kServeDimensionTable[*at];
        if (d.name == "scheme") {
          const auto scheme = reader_.word_of("scheme", value, kServeSchemeNames);
          if (scheme) out.*d.pin = static_cast<std::int64_t>(*scheme);
        } else {
          out.*d.pin = reader_.count_of(fmt::format("{} {}", flag, d.name), value, kServeChipRange);
        }
      }
    }
  }

  void limits() {
    out_.slo_ttft = reader_.positive("--slo-ttft", UnitKind::kSeconds);
    out_.slo_tpot = reader_.positive("--slo-tpot", UnitKind::kSeconds);
    out_.slo_request = reader_.positive("--slo-request", UnitKind::kSeconds);
    out_.price = reader_.positive("--price", UnitKind::kUsdPerHour);
    out_.power = read_power_terms(reader_);
    if (const auto top = reader_.count("--top", kTopRange)) out_.top = static_cast<std::size_t>(*top);
  }

  void choices_of_engine() {
    constexpr std::array<std::string_view, 2> kEfficiencies{"calibrated", "ideal"};
    out_.ideal = reader_.word("--efficiency", kEfficiencies).value_or(0) == 1;
    out_.engine = arguments_.value("--engine").value_or("");
  }

  void choices() {
    choices_of_engine();
    out_.regime = static_cast<ServeRegime>(reader_.word("--regime", kServeRegimeNames).value_or(0));
    out_.disaggregate = static_cast<Disaggregation>(reader_.word("--disaggregate", kDisaggregationNames).value_or(0));
    out_.objective = static_cast<ServeObjective>(reader_.word("--objective", kServeObjectiveNames).value_or(0));
    out_.prefill_hardware = arguments_.value("--prefill-hw").value_or("");
    if (!out_.prefill_hardware.empty() && out_.disaggregate != Disaggregation::kOn) {
      reader_.problem("--prefill-hw needs pools of their own", "add --disaggregate on");
    }
    if (out_.regime == ServeRegime::kStatic && out_.disaggregate != Disaggregation::kOff) {
      reader_.problem("--regime static decodes where it prefilled", "leave --disaggregate out");
    }
  }

  void speculation() {
    const auto text = arguments_.value("--speculative");
    if (!text) return;
    constexpr std::array<std::string_view, 3> kKeys{"draft", "k", "accept"};
    SpeculationAsked asked;
    std::optional<double> accept;
    for (const std::string& item : comma_parts(*text)) {
      const std::size_t equals = item.find('=');
      const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
      const auto key = reader_.word_of("a key of --speculative", item.substr(0, equals), kKeys);
      if (!key) continue;
      if (*key == 0) {
        asked.draft = value;
      } else if (*key == 1) {
        asked.drafted = reader_.count_of("--speculative k", value, kDraftedRange).value_or(0);
      } else {
        const auto parsed = parse_quantity(value, UnitKind::kFraction);
        if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
          reader_.problem(fmt::format("--speculative accept: {}", error->message), error->hint);
        } else {
          accept = std::get<double>(parsed);
        }
      }
    }
    if (asked.draft.empty() || asked.drafted == 0 || !accept) {
      reader_.problem("--speculative needs draft=, k= and accept=",
                      "for example: --speculative draft=llama3-8b,k=4,accept=0.7");
      return;
    }
    asked.accept = *accept;
    out_.speculation = asked;
  }

  const Arguments& arguments_;
  FlagReader& reader_;
  EngineFlagNames names_;
  ServeQuestion out_;
  RequestMix mix_;
};

}  // namespace

std::span<const Flag> serve_flags() {
  static const std::vector<Flag> kAll = [] {
    std::vector<Flag> out;
    for (const Flag& flag : kServeFlags) {
      out.push_back(flag);
      if (flag.name == "--price") out.insert(out.end(), power_flags().begin(), power_flags().end());
    }
    return out;
  }();
  return kAll;
}

ServeAsked serve_asked(const Arguments& arguments) {
  FlagReader reader(arguments);
  ServeAsked asked = ServeOptions(reader, arguments, {}).run();
  reader.finish();
  return asked;
}

ServeAsked read_engine_question(FlagReader& reader, const Arguments& arguments, const EngineFlagNames& names) {
  return ServeOptions(reader, arguments, names).run_engine();
}

}  // namespace scalecalc::cli
