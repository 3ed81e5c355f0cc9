// Defines the flags of `scalecalc serve` and reads its question.
#include "serve/serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/io.h"
#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/flag_reader.h"
#include "economics/run_options.h"
#include "serve/tenant_options.h"

namespace scalecalc::cli {
namespace {

constexpr std::int64_t kUsualPrompt = 8192;
constexpr std::int64_t kUsualGeneration = 512;
constexpr CountRange kServeTopRange{1, 100'000};
constexpr CountRange kDraftedRange{1, 1000};
constexpr CountRange kRequestRange{10, 1'000'000};
constexpr CountRange kClientRange{1, 100'000};
constexpr CountRange kSeedRange{0, 1'000'000'000};
constexpr CountRange kEngineCountRange{1, 1'000'000'000};
constexpr CountRange kCopyRange{1, 4096};
constexpr std::string_view kUnderLoad = "{} has no meaning without requests that come";
constexpr std::string_view kSayLoad = "say how often, or how many clients: --rate 5, --concurrency 64";
constexpr std::array<std::string_view, 3> kSpeculationKeys{"draft", "k", "accept"};
constexpr std::array<std::string_view, 3> kPrefixStoreKeys{"host", "disk", "disk_rate"};

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

/// "tp=8" of all chips, "prefill.tp=4" and "decode.ep=32" of a pool.
template <ServePins ServeQuestion::*kAll, ServePins ServeQuestion::*kPrefill, ServePins ServeQuestion::*kDecode>
void read_serve_pins(FlagReader& reader, const Flag& flag, const std::string& text, ServeQuestion& q) {
  constexpr std::array<std::string_view, 2> kPoolNames{"prefill", "decode"};
  std::vector<std::string_view> names;
  for (const ServeDimension& d : kServeDimensionTable) names.push_back(d.name);
  for (const std::string& item : comma_parts(text)) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) {
      reader.problem(fmt::format("{}: {} is not KEY=VALUE", flag.name, in_quotes(item)),
                     fmt::format("for example {} tp=8", flag.name));
      continue;
    }
    const std::size_t dot = item.find('.') < equals ? item.find('.') : std::string::npos;
    ServePins* pins = &(q.*kAll);
    if (dot != std::string::npos) {
      const auto pool = reader.word_of(fmt::format("a pool of {}", flag.name), item.substr(0, dot), kPoolNames);
      if (!pool) continue;
      pins = *pool == 0 ? &(q.*kPrefill) : &(q.*kDecode);
    }
    const std::size_t key = dot == std::string::npos ? 0 : dot + 1;
    const auto at = reader.word_of(fmt::format("a dimension of {}", flag.name), item.substr(key, equals - key), names);
    if (!at) continue;
    const std::string value = item.substr(equals + 1);
    const ServeDimension& d = kServeDimensionTable[*at];
    if (d.name == "scheme") {
      const auto scheme = reader.word_of("scheme", value, kServeSchemeNames);
      if (scheme) pins->*d.pin = static_cast<std::int64_t>(*scheme);
    } else if (d.name == "ep_overlap") {
      constexpr std::array<std::string_view, 4> kSwitchWords{"off", "on", "0", "1"};
      if (const auto on = reader.word_of("ep_overlap", value, kSwitchWords)) {
        pins->*d.pin = static_cast<std::int64_t>(*on % 2);
      }
    } else {
      pins->*d.pin = reader.count_of(fmt::format("{} {}", flag.name, item.substr(0, equals)), value, kServeChipRange);
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

/// "0.9", or "sglang=0.8" where what SGLang calls it was typed (foreign_words.cpp).
template <EngineFact kFact, std::optional<double> ServeQuestion::*kShown>
void read_engine_fact(FlagReader& reader, const Flag& flag, const std::string& text, ServeQuestion& q) {
  const std::size_t equals = text.find('=');
  // A name of our own is of no engine's; vLLM's are ours in most rows.
  const EngineFlag* vllm = engine_flag(kFact, "vllm");
  EngineSetting setting{.fact = kFact, .engine = vllm != nullptr && vllm->name() == flag.name ? "vllm" : ""};
  std::string name(flag.name);
  if (equals != std::string::npos) {
    setting.engine = text.substr(0, equals);
    const EngineFlag* theirs = engine_flag(kFact, setting.engine);
    if (theirs == nullptr) {
      return reader.problem(fmt::format("{} {}: {} has no flag for it", flag.name, text, in_quotes(setting.engine)),
                            fmt::format("for example {} {}", flag.name, flag.example));
    }
    name = theirs->name();
  } else if (kFact == EngineFact::kStream) {
    setting.engine.clear();  // all call it so
  }
  const std::string value = equals == std::string::npos ? text : text.substr(equals + 1);
  std::optional<double> number;
  if constexpr (kFact == EngineFact::kShare) {
    number = reader.quantity_of(name, value, UnitKind::kFraction);
    if (number && (*number <= 0 || *number > 1)) {
      return reader.problem(fmt::format("{} {} is no share", name, value), "above 0, up to 1: 0.9 or 90%");
    }
  } else if (const auto count = reader.count_of(name, value, kEngineCountRange)) {
    number = static_cast<double>(*count);
  }
  if (!number) return;
  setting.value = *number;
  q.*kShown = number;
  q.engine_settings.push_back(setting);
}

template <EngineFact kFact, std::optional<double> ServeQuestion::*kShown>
constexpr Flag engine_fact(const Flag& flag) {
  return flag.by<read_engine_fact<kFact, kShown>>().template shown<kShown>();
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

void read_rate(FlagReader& reader, const Flag& flag, const std::string& text, TrafficAsked& q) {
  if (text == "max") {
    q.most = true;
    return;
  }
  const auto rate = reader.quantity_of(flag.name, text, UnitKind::kNumber);
  if (rate && *rate <= 0)
    reader.problem(fmt::format("--rate {} is not above zero", in_quotes(text)), "--rate 5, or max");
  if (rate) q.rate = *rate;
}

Figure show_rate(const Flag&, const void* question) {
  const TrafficAsked& q = *static_cast<const TrafficAsked*>(question);
  return q.most ? datum("", std::string("max")) : number_figure("", "", Format::kNumber, q.rate);
}

/// "host=1TB,disk=8TB,disk_rate=6GB/s".
void read_prefix_store(FlagReader& reader, const Flag& flag, const std::string& text, TrafficAsked& q) {
  PrefixStoreAsked& store = q.store.emplace();
  for (const std::string& item : comma_parts(text)) {
    const std::size_t equals = std::min(item.find('='), item.size());
    const auto key = reader.word_of(fmt::format("a key of {}", flag.name), item.substr(0, equals), kPrefixStoreKeys);
    if (!key) continue;
    const std::string name = fmt::format("{} {}", flag.name, kPrefixStoreKeys[*key]);
    const bool rate = *key == 2;
    const auto value = reader.quantity_of(name, item.substr(std::min(equals + 1, item.size())),
                                          rate ? UnitKind::kBytesPerSecond : UnitKind::kBytes);
    if (value && *value <= 0) reader.problem(fmt::format("{} is not above zero", name), flag.example.data());
    if (!value) continue;
    if (*key == 0) store.host_bytes = *value;
    if (*key == 1) store.disk_bytes = *value;
    if (rate) store.disk_rate = *value;
  }
  if (store.disk_bytes > 0 && !store.disk_rate) {
    reader.problem("--prefix-store disk needs disk_rate: how fast is it read?",
                   std::string("for example ") + flag.example.data());
  }
  if (store.disk_rate && store.disk_bytes <= 0) {
    reader.problem("--prefix-store disk_rate has no meaning without a disk",
                   std::string("for example ") + flag.example.data());
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
      text<&ServeQuestion::images>("--images", "NxHxW",
                                   "images in each prompt, and their height and width in pixels, of a model with a "
                                   "vision tower; their tokens are among those of --prompt (default: none)",
                                   "1x1024x1024"),
      text("--trace", "FILE",
           "requests of a trace: Azure, BurstGPT and own CSV, Mooncake and own .jsonl, ShareGPT and results of vLLM's "
           "and SGLang's benchmarks; arrivals if it has them",
           "requests.csv"),
      text("--rate", "R",
           "requests a second to carry: the fewest chips that do, or with --chips whether they do; max: the most that "
           "those chips carry",
           "5")
          .by<read_rate>()
          .shown<&TrafficAsked::rate>()
          .key("rate_requests_per_s"),
      word<&TrafficAsked::routing>("--routing", kRoutingNames,
                                   "which replica a request goes to; all are simulated together unless it is random "
                                   "(default: random at a rate, least-loaded of clients)"),
      text("--prefix-store", "host=SIZE,...",
           "memory of each replica beside the chips' for prefixes of a trace that says what its prompts share: "
           "host=SIZE,disk=SIZE,disk_rate=RATE",
           "host=1TB,disk=8TB,disk_rate=6GB/s")
          .by<read_prefix_store>()
          .needing("--trace", "{} has no meaning without prompts that share something", "a trace with hash_ids"),
      count<&TrafficAsked::requests>("--simulate", kRequestRange, "N",
                                     "requests to simulate at that rate (default: 10000)", "20000"),
      count<&TrafficAsked::clients>("--concurrency", kClientRange, "C",
                                    "clients that each send a request when they have the answer to their last", "64")
          .excluding("--rate --simulate --trace", "when requests come"),
      count<&TrafficAsked::client_requests>("--requests", kRequestRange, "N",
                                            "requests of all these clients together (default: 10 of each)", "640")
          .needing("--concurrency", "{} has no meaning without clients", "say how many: --concurrency 64"),
      some_share<&RequestMix::length_ratio>(
          "--length-ratio", "lengths from this share of --prompt and of --generate to all of it, equally likely", "80%")
          .excluding("--trace", "how long requests are"),
      text("--tenant", "NAME:KEY=V,...",
           "one of several users of the service: share= of the requests, prompt=, generate= (default: --prompt, "
           "--generate), slo_ttft=, slo_tpot=, slo_request= of its own",
           "chat:share=0.7,prompt=512..2048,generate=200,slo_ttft=300ms")
          .repeatable()
          .by<read_tenant>()
          .needing("--rate --concurrency", kUnderLoad, kSayLoad)
          .excluding("--trace --length-ratio", "how long requests are"),
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
      text("--fix", "KEY=N,...",
           "pins degrees: tp, pp, ep, etp, attention_dp, cp, dp, tp_x, scheme, ep_overlap; of one pool prefill.tp, "
           "decode.ep, "
           "..., its replicas prefill.dp",
           "tp=8,dp=2")
          .repeatable()
          .by<read_serve_pins<&ServeQuestion::fix, &ServeQuestion::prefill_fix, &ServeQuestion::decode_fix>>(),
      text("--max", "KEY=N,...", "largest degrees to search", "tp=8")
          .repeatable()
          .by<read_serve_pins<&ServeQuestion::max, &ServeQuestion::prefill_max, &ServeQuestion::decode_max>>(),
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
      engine_fact<EngineFact::kTokens, &ServeQuestion::chunk>(
          count("--chunk", kEngineCountRange, "N",
                "most tokens of prompts in one step (default: the engine's on the chip); what vLLM calls "
                "--max-num-batched-tokens, SGLang --chunked-prefill-size, TensorRT-LLM --max_num_tokens",
                "2048")),
      engine_fact<EngineFact::kShare, &ServeQuestion::memory_share>(
          some_share("--gpu-memory-utilization",
                     "share of the memory that the engine takes by its own rule (default: the release's); SGLang's is "
                     "--mem-fraction-static, TensorRT-LLM's --kv_cache_free_gpu_mem_fraction",
                     "0.8")),
      engine_fact<EngineFact::kSequences, &ServeQuestion::most_sequences>(
          count("--max-num-seqs", kEngineCountRange, "N",
                "most sequences at once on a rank (default: the release's on the chip); SGLang's is "
                "--max-running-requests, TensorRT-LLM's --max_batch_size",
                "64")),
      engine_fact<EngineFact::kLength, &ServeQuestion::longest>(
          count("--max-model-len", kEngineCountRange, "N",
                "longest prompt and answer together, which the cache must hold (default: the question's); SGLang's is "
                "--context-length, TensorRT-LLM's --max_seq_len",
                "65536")),
      engine_fact<EngineFact::kStream, &ServeQuestion::stream_interval>(
          count("--stream-interval", kEngineCountRange, "N",
                "tokens of a chunk that clients get, the first alone (default: the engine's)", "20"))
          .needing("--rate --concurrency --trace", kUnderLoad, kSayLoad),
      engine_fact<EngineFact::kReceive, &ServeQuestion::receive_interval>(
          count("--receive-interval", kEngineCountRange, "N",
                "decode steps between looks for new requests: SGLang's --scheduler-recv-interval (default: 1)", "10"))
          .needing("--rate --concurrency --trace", kUnderLoad, kSayLoad),
      some_share<&ServeQuestion::mfu>("--mfu", "share of the peak that prefill reaches, in place of the coefficients",
                                      "40%"),
      word<&ServeQuestion::objective>("--objective", kServeObjectiveNames,
                                      "what is best (default: knee, where tokens per second of a chip times those of "
                                      "a user are most; with a limit, a rate or a --batch throughput)"),
      kEngineFlag.to<&ServeQuestion::engine>(),
      text<&ServeQuestion::as_of>("--as-of", "DATE",
                                  "use the engine release available at this date (default: the latest)", "2025-03"),
      kExpertLoadFlag
          .explained("how unevenly experts are chosen: uniform, a power law, or tokens of each (CSV, YAML or JSON) "
                     "(default: the chip's skew and imbalance)")
          .to<&ServeQuestion::expert_load>(),
      count<&ServeQuestion::redundant_experts>(
          "--redundant-experts", kCopyRange, "N",
          "copies of the most loaded experts, dealt over the expert ranks with them", "8")
          .needing("--expert-load", "{} has no meaning without a load to even out",
                   "say which: --expert-load zipf:0.5"),
      efficiency_flag("calibrated (default): what the chip was measured to reach; ideal: the roofline of the book")
          .when<0, &ServeQuestion::ideal>(),
      kPriceFlag.to<&ServeQuestion::price>(),
  };
  std::find_if(out.begin(), out.end(), [](const Flag& f) { return f.name == "--rate"; })->show = show_rate;
  out.insert(out.end(), power_flags().begin(), power_flags().end());
  out.insert(out.end(), {count<&ServeQuestion::top>("--top", kServeTopRange, "N",
                                                    "points to list (default: 20); 1 lists the best", "50")
                             .among_several(),
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
  if (!out.tenants.empty()) return of_tenants(out);
  if (!arguments.value("--length-ratio")) return out;
  if (out.is_fixed()) {
    out.prompt = shortened(out.prompt, out.length_ratio);
    out.generate = shortened(out.generate, out.length_ratio);
  } else {
    reader.problem("--length-ratio needs one length of prompts and one of answers",
                   "leave it out: a range says which lengths there are");
  }
  return out;
}

/// Requests a second over the whole trace.
double rate_of_trace(const RequestMix& mix) {
  if (mix.is_burst()) return 0;
  return static_cast<double>(mix.rows.size()) / (mix.rows.back().arrival_s - mix.rows.front().arrival_s);
}

std::optional<TrafficAsked> traffic_asked(FlagReader& reader, const Arguments& arguments, const ServeAsked& asked) {
  TrafficAsked out{.mix = asked.mix, .rate = asked.mix.has_arrivals ? rate_of_trace(asked.mix) : 0};
  reader.read(out);
  if (asked.mix.has_arrivals && asked.mix.is_burst() && arguments.value("--rate")) {
    reader.problem("--trace: all its requests arrive at once, which cannot be stretched to a rate",
                   "leave --rate out to serve the burst, or the column arrival");
    return std::nullopt;
  }
  if (out.clients) {
    if (!out.client_requests) out.client_requests = out.usual_client_requests();
    if (*out.client_requests < *out.clients) {
      reader.problem(
          fmt::format("--requests {}: of {} clients some would send none", *out.client_requests, *out.clients),
          fmt::format("for example --requests {}", out.usual_client_requests()));
    }
  } else if (out.most) {
    if (!asked.question.chips) {
      reader.problem("--rate max: of how many chips? More chips carry more", "for example --chips 8");
    }
  } else if (!asked.mix.has_arrivals && out.rate <= 0) {
    for (const char* flag : {"--simulate", "--seed", "--routing", "--prefix-store"}) {
      if (!arguments.has(flag)) continue;
      reader.problem(fmt::format("{} needs a rate: how often do requests come?", flag),
                     "for example --rate 5, --concurrency 64, or a --trace with arrivals");
    }
    return std::nullopt;
  }
  if (out.routing == RequestRouting::kPrefixAware && !asked.mix.blocks) {
    reader.problem("--routing prefix-aware needs prompts that share something", "a --trace with hash_ids");
  }
  if (out.store && !asked.mix.blocks) {
    reader.problem("--prefix-store: the trace does not say what its prompts share", "a --trace with hash_ids");
  }
  if (asked.mix.blocks && arguments.has("--prefix-hit")) {
    reader.problem("--prefix-hit and --trace: the trace says what its prompts share", "leave --prefix-hit out");
  }
  const char* said = out.clients ? "leave --concurrency out" : "leave --rate out";
  if (asked.question.speculation) reader.problem("--speculative is not simulated", said);
  if (asked.question.regime == ServeRegime::kStatic) {
    reader.problem("--regime static has no queue of single requests", said);
  }
  return out;
}

/// No more are ever in flight than there are clients; fewer where memory holds fewer.
std::vector<double> batches_of_clients(std::int64_t clients) {
  std::vector<double> out;
  for (std::int64_t batch = 1; batch < clients; batch *= 2) out.push_back(static_cast<double>(batch));
  out.push_back(static_cast<double>(clients));
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
  const bool pinned = q.prefill_fix.any() || q.prefill_max.any() || q.decode_fix.any() || q.decode_max.any();
  if (pinned && q.disaggregate == Disaggregation::kOff) {
    reader.problem("--fix and --max of prefill or decode need pools of their own", "add --disaggregate on");
  }
  q.prompt = std::round(out.mix.prompt.mean());
  q.generate = std::round(out.mix.generate.mean());
  if (!out.mix.is_fixed() && out.mix.decode_steps() > 0) q.mean_context = std::round(out.mix.decode_context());
  return out;
}

void check_serving(FlagReader& reader, const ServeQuestion& q) {
  if (!q.prefill_hardware.empty() && q.disaggregate != Disaggregation::kOn) {
    reader.problem("--prefill-hw needs pools of their own", "add --disaggregate on");
  }
  if (q.regime == ServeRegime::kStatic && q.disaggregate != Disaggregation::kOff) {
    reader.problem("--regime static decodes where it prefilled", "leave --disaggregate out");
  }
}

ServeAsked read_serve_question(FlagReader& reader, const Arguments& arguments) {
  const std::string model = reader.only_word("MODEL", "what is served?");
  ServeAsked out = read_engine_question(reader, arguments);
  ServeQuestion& q = out.question;
  q.model = model;
  q.power = read_power_terms(reader);
  q.usual_lengths = !arguments.has("--prompt") && !arguments.has("--generate") && !arguments.has("--trace");
  check_serving(reader, q);
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
  if (out.traffic && out.traffic->clients && q.batches.empty()) q.batches = batches_of_clients(*out.traffic->clients);
  return out;
}

}  // namespace scalecalc::cli
