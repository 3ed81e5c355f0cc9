#include "cli/bounds_serving_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/sheet_command.h"
#include "import/named_model.h"
#include "model/accounting.h"
#include "spec/load.h"

namespace scalecalc::cli {
namespace {

constexpr std::array kFlags{
    Flag{"--batch", 0, FlagKind::kValue, "N", "sequences decoded together; several draw a curve: 1..512, 32,64", "32"},
    Flag{"--context", 0, FlagKind::kValue, "N",
         "tokens of each sequence in the KV cache (default: --prompt + --generate)", "8192"},
    Flag{"--prompt", 0, FlagKind::kValue, "N", "tokens of a prompt", "8192"},
    Flag{"--generate", 0, FlagKind::kValue, "N", "tokens of an answer", "512"},
    Flag{"--cached", 0, FlagKind::kValue, "N", "tokens of the prompt found in the prefix cache", "4096"},
    Flag{"--prefix-hit", 0, FlagKind::kValue, "SHARE", "the same as a share of the prompt", "60%"},
    Flag{"--flops", 0, FlagKind::kValue, "DTYPE", "format the matmuls of serving compute in (default: --precision)",
         "int8"},
    Flag{"--kv", 0, FlagKind::kValue, "DTYPE", "format of the KV cache (default: that of the activations)", "int8"},
    Flag{"--slo-tpot", 0, FlagKind::kValue, "TIME", "time a decode step may take", "15ms"},
    Flag{"--speculative", 0, FlagKind::kValue, "k=N,accept=SHARE,...",
         "speculative decoding: k drafted tokens, the share of them kept, and draft=MODEL or cost=SHARE, the time of a "
         "draft step in steps of the model",
         "draft=llama3-8b,k=4,accept=0.7"},
    Flag{"--weight-bytes", 0, FlagKind::kValue, "BYTES", "bytes of all weights, in place of parameters x format",
         "26GB"},
    Flag{"--kv-bytes-per-token", 0, FlagKind::kValue, "BYTES", "KV cache of one token, in place of the model's",
         "100kB"},
    Flag{"--total-bytes", 0, FlagKind::kValue, "BYTES", "weights and KV cache of the batch, in place of their sum",
         "112GB"},
    Flag{"--step-time", 0, FlagKind::kValue, "TIME", "decode step, in place of the one derived", "19ms"},
    Flag{"--prefill-time", 0, FlagKind::kValue, "TIME", "time of one prompt, in place of the one derived", "0.91s"},
};

constexpr const char* kSpeculativeExample = "for example: --speculative draft=llama3-8b,k=4,accept=0.7";
constexpr CountRange kDraftRange{1, 1000};

std::optional<DType> read_format(FlagReader& reader, std::string_view flag) {
  const auto word = reader.word(flag, kDTypeNames);
  return word ? std::optional(static_cast<DType>(*word)) : std::nullopt;
}

/// Parameters of the draft: a catalog name, a file, or a size such as 1B.
double draft_parameters(const std::string& name, const Catalog& catalog) {
  const auto size = parse_quantity(name, UnitKind::kCount);
  if (const double* count = std::get_if<double>(&size); count != nullptr && *count > 0) return *count;
  return count_parameters(load_model(load_model_document(catalog, name).document)).total;
}

class SpeculationReader {
 public:
  SpeculationReader(FlagReader& reader, const Catalog& catalog) : reader_(reader), catalog_(catalog) {}

  std::optional<BoundSpeculation> read(const std::string& text) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      item(text.substr(at, end - at));
      at = end + 1;
    }
    const auto given = [&](std::string_view key) { return std::find(seen_.begin(), seen_.end(), key) != seen_.end(); };
    if (!given("k") || !given("accept")) {
      reader_.problem("--speculative needs k= and accept=: how many tokens are drafted and how many of them kept",
                      kSpeculativeExample);
    }
    if (given("draft") && given("cost")) {
      reader_.problem("draft= and cost= of --speculative both say what a draft step takes", "give one of them");
    }
    return out_;
  }

 private:
  void item(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::string key = text.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    constexpr std::array<std::string_view, 4> kKeys{"k", "accept", "cost", "draft"};
    if (value.empty()) {
      reader_.problem(fmt::format("--speculative: {} is not KEY=VALUE", in_quotes(text)), kSpeculativeExample);
    } else if (!reader_.word_of("a key of --speculative", key, kKeys)) {
      return;
    } else if (std::find(seen_.begin(), seen_.end(), key) != seen_.end()) {
      reader_.problem(fmt::format("--speculative gives {} twice", in_quotes(key)));
    } else if (key == "k") {
      out_.drafted = reader_.count_of("--speculative k", value, kDraftRange).value_or(1);
    } else if (key == "draft") {
      out_.draft_parameters = draft_parameters(value, catalog_);
    } else {
      share(key, value);
    }
    seen_.push_back(key);
  }

  void share(const std::string& key, const std::string& value) {
    const auto parsed = parse_quantity(value, UnitKind::kFraction);
    if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
      reader_.problem(fmt::format("--speculative {}: {}", key, error->message), error->hint);
    } else if (key == "accept") {
      out_.accept = std::get<double>(parsed);
    } else {
      out_.cost = std::get<double>(parsed);
    }
  }

  FlagReader& reader_;
  const Catalog& catalog_;
  BoundSpeculation out_;
  std::vector<std::string> seen_;
};

void read_lengths(FlagReader& reader, const Arguments& arguments, BoundServing& out) {
  out.batches = sweep_flag(reader, arguments, "--batch", UnitKind::kCount).value_or(std::vector<double>{});
  out.context = reader.positive("--context", UnitKind::kCount);
  out.prompt = reader.positive("--prompt", UnitKind::kCount);
  out.generate = reader.positive("--generate", UnitKind::kCount);
  out.cached = reader.positive("--cached", UnitKind::kCount);
  out.prefix_hit = reader.fraction("--prefix-hit");
  if (out.cached && out.prefix_hit) {
    reader.problem("--cached and --prefix-hit both say how much of the prompt is cached", "give one of them");
  }
  if (out.cached && !out.prompt && arguments.has("--cached")) {
    reader.problem("--cached needs --prompt: cached tokens of a prompt of how many?", "for example: --prompt 8192");
  }
}

}  // namespace

std::span<const Flag> bounds_serving_flags() { return kFlags; }

BoundServing read_bounds_serving(FlagReader& reader, const Arguments& arguments, const Catalog& catalog) {
  BoundServing out;
  read_lengths(reader, arguments, out);
  out.compute = read_format(reader, "--flops");
  out.kv = read_format(reader, "--kv");
  out.latency = reader.positive("--slo-tpot", UnitKind::kSeconds);
  if (const auto text = arguments.value("--speculative")) {
    out.speculation = SpeculationReader(reader, catalog).read(*text);
  }
  out.weight_bytes = reader.positive("--weight-bytes", UnitKind::kBytes);
  out.kv_bytes_per_token = reader.positive("--kv-bytes-per-token", UnitKind::kBytes);
  out.total_bytes = reader.positive("--total-bytes", UnitKind::kBytes);
  out.step_time = reader.positive("--step-time", UnitKind::kSeconds);
  out.prefill_time = reader.positive("--prefill-time", UnitKind::kSeconds);
  if (out.total_bytes && out.batches.size() > 1) {
    reader.problem("--total-bytes holds for one batch, and --batch gives several", "give one --batch");
  }
  return out;
}

}  // namespace scalecalc::cli
