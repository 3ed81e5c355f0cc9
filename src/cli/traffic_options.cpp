#include "cli/traffic_options.h"

#include <fmt/format.h>

#include "base/io.h"
#include "base/text.h"

namespace scalecalc::cli {
namespace {

constexpr std::int64_t kUsualPrompt = 8192;
constexpr std::int64_t kUsualGeneration = 512;
constexpr CountRange kRequestRange{10, 1'000'000};
constexpr CountRange kSeedRange{0, 1'000'000'000};

Lengths lengths_flag(FlagReader& reader, const Arguments& arguments, const char* flag, std::int64_t usual) {
  const auto text = arguments.value(flag);
  if (!text) return Lengths::fixed(usual);
  const auto parsed = parse_lengths(*text);
  if (const Lengths* lengths = std::get_if<Lengths>(&parsed)) return *lengths;
  const UnitError& error = std::get<UnitError>(parsed);
  reader.problem(fmt::format("{}: {}", flag, error.message), error.hint);
  return Lengths::fixed(usual);
}

/// Requests a second over the whole trace.
double rate_of_trace(const RequestMix& mix) {
  const double span = mix.rows.back().arrival_s - mix.rows.front().arrival_s;
  return span > 0 ? static_cast<double>(mix.rows.size()) / span : 0;
}

}  // namespace

RequestMix request_mix(FlagReader& reader, const Arguments& arguments) {
  if (const auto file = arguments.value("--trace")) {
    for (const char* flag : {"--prompt", "--generate"}) {
      if (arguments.value(flag)) reader.problem(fmt::format("{} and --trace: the trace has its own lengths", flag), "");
    }
    return read_trace(read_text_file(*file), *file);
  }
  return {.prompt = lengths_flag(reader, arguments, "--prompt", kUsualPrompt),
          .generate = lengths_flag(reader, arguments, "--generate", kUsualGeneration)};
}

std::optional<TrafficAsked> traffic_asked(FlagReader& reader, const Arguments& arguments, const RequestMix& mix) {
  const auto rate = reader.positive("--rate", UnitKind::kNumber);
  const auto count = reader.count("--simulate", kRequestRange);
  const auto seed = reader.count("--seed", kSeedRange);
  const double own_rate = mix.has_arrivals ? rate_of_trace(mix) : 0;
  if (!arguments.value("--rate") && own_rate <= 0) {
    if (count || seed) {
      reader.problem(fmt::format("{} needs a rate: how often do requests come?", count ? "--simulate" : "--seed"),
                     "for example --rate 5, or a --trace with arrivals");
    }
    return std::nullopt;
  }
  if (arguments.value("--speculative")) reader.problem("--speculative is not simulated", "leave --rate out");
  if (arguments.value("--regime") == "static") {
    reader.problem("--regime static has no queue of single requests", "leave --rate out");
  }
  TrafficAsked out{.mix = mix, .rate = rate.value_or(own_rate)};
  out.requests = count.value_or(out.requests);
  out.seed = static_cast<std::uint64_t>(seed.value_or(1));
  return out;
}

}  // namespace scalecalc::cli
