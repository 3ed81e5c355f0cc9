// `scalecalc hw`: flags to a question about chips, or a list of them.
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/sheet_command.h"
#include "network/slice.h"
#include "primitives/hw.h"
#include "primitives/hw_list.h"
#include "report/hw_sheet.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kChipRange{1, 16'777'216};
constexpr CountRange kPortRange{1, 1024};
constexpr CountRange kBatchRange{1, 1'000'000'000};
constexpr CountRange kYearRange{1990, 2100};
constexpr std::array<std::string_view, 6> kOrders{"name", "year", "matmul", "memory", "bandwidth", "price"};

constexpr std::array kFlags{
    Flag{"--set", 0, FlagKind::kRepeatable, "KEY=VALUE",
         "replace one field of every chip (hw.), or of the first, second ... (hw1., hw2.), such as "
         "hw.hbm.bandwidth=5TB/s",
         "hw.hbm.bandwidth=5TB/s"},
    kExplainFlag,
    Flag{"--dtype", 0, FlagKind::kValue, "FORMAT",
         "number format of the intensities (default bf16); in a list, chips that have a rate in it", "fp8"},
    Flag{"--chips", 0, FlagKind::kValue, "N", "chips of the machine (default: the whole pod, or one node)", "1024"},
    Flag{"--topology", 0, FlagKind::kValue, "AxBxC", "shape of a torus slice", "4x4x8"},
    Flag{"--from", 0, FlagKind::kValue, "X,Y", "send from this chip: coordinates on a torus, a number under switches",
         "0,0"},
    Flag{"--to", 0, FlagKind::kValue, "X,Y", "to this one", "3,3"},
    Flag{"--bytes", 0, FlagKind::kValue, "SIZE", "so many bytes", "16MiB"},
    Flag{"--load", 0, FlagKind::kValue, "SIZE|ROWSxCOLS",
         "load an array from the hosts, gather it on one chip and read it", "128Kix128Ki"},
    Flag{"--load-dtype", 0, FlagKind::kValue, "FORMAT", "number format of ROWSxCOLS (default int8)", "bf16"},
    Flag{"--batch", 0, FlagKind::kValue, "N", "then multiply it with N rows", "8"},
    Flag{"--ports", 0, FlagKind::kValue, "N",
         "links that carry a transfer or a gather at once (default: those the chip has on the way)", "2"},
    Flag{"--pad", 0, FlagKind::kValue, "ROWSxCOLS", "pad a weight to the matrix unit: the useful share", "100x300"},
    Flag{"--registers", 0, FlagKind::kValue, "N", "registers of a thread: how many warps an SM holds", "256"},
    Flag{"--vendor", 0, FlagKind::kValue, "NAME", "list: chips of this vendor", "AMD"},
    Flag{"--family", 0, FlagKind::kValue, "NAME", "list: chips of this family of efficiency coefficients", "tpu"},
    Flag{"--since", 0, FlagKind::kValue, "YEAR", "list: chips of this year and later", "2023"},
    Flag{"--min-memory", 0, FlagKind::kValue, "SIZE", "list: at least so much memory", "80GB"},
    Flag{"--min-bandwidth", 0, FlagKind::kValue, "RATE", "list: at least so much memory bandwidth", "3TB/s"},
    Flag{"--priced", 0, FlagKind::kSwitch, "", "list: chips with a price", ""},
    Flag{"--sold", 0, FlagKind::kSwitch, "", "list: not those merely announced", ""},
    Flag{"--book", 0, FlagKind::kSwitch, "", "list: the entries with the scaling book's rounded rates instead", ""},
    Flag{"--sort", 0, FlagKind::kValue, "name|year|matmul|memory|bandwidth|price", "list: order", "price"},
};

constexpr std::array<std::string_view, 13> kChipFlags{"--chips",     "--topology",   "--from",   "--to",    "--bytes",
                                                      "--load",      "--load-dtype", "--batch",  "--ports", "--pad",
                                                      "--registers", "--set",        "--explain"};
constexpr std::array<std::string_view, 8> kListFlags{"--vendor",        "--family", "--since", "--min-memory",
                                                     "--min-bandwidth", "--priced", "--sold",  "--book"};

/// Flags of the other form: a list has no topology, a chip no vendor to be asked for.
template <std::size_t N>
void refuse(FlagReader& reader, const Arguments& arguments, const std::array<std::string_view, N>& flags,
            const char* why) {
  for (const std::string_view flag : flags) {
    if (arguments.has(flag))
      reader.problem(fmt::format("{} {}", flag, why), "scalecalc hw --help says which go together");
  }
}

std::optional<DType> dtype_flag(FlagReader& reader, std::string_view flag) {
  const auto word = reader.word(flag, kDTypeNames);
  return word ? std::optional(static_cast<DType>(*word)) : std::nullopt;
}

/// "3,3" to numbers; at least one, none negative.
Shape coordinates(FlagReader& reader, const Arguments& arguments, std::string_view flag) {
  Shape out;
  const std::optional<std::string> text = arguments.value(flag);
  if (!text) return out;
  for (std::size_t at = 0; at <= text->size();) {
    const std::size_t end = std::min(text->find(',', at), text->size());
    const auto parsed = parse_quantity(std::string_view(*text).substr(at, end - at), UnitKind::kCount);
    const double* value = std::get_if<double>(&parsed);
    if (value == nullptr || *value > 1e9) {
      reader.problem(fmt::format("{}: {} is no chip", flag, in_quotes(*text)),
                     "coordinates on a torus such as 3,3, or the number of a chip");
      return {};
    }
    out.push_back(static_cast<std::int64_t>(*value));
    at = end + 1;
  }
  return out;
}

/// "100x300"; nothing and a problem if it is none.
std::optional<std::pair<std::int64_t, std::int64_t>> matrix(const std::string& text) {
  std::pair<std::int64_t, std::int64_t> out;
  const std::size_t by = text.find('x');
  if (by == std::string::npos) return std::nullopt;
  const auto rows = parse_quantity(std::string_view(text).substr(0, by), UnitKind::kCount);
  const auto columns = parse_quantity(std::string_view(text).substr(by + 1), UnitKind::kCount);
  const double* r = std::get_if<double>(&rows);
  const double* c = std::get_if<double>(&columns);
  constexpr double kMost = 1e15;
  if (r == nullptr || c == nullptr || *r < 1 || *c < 1 || *r > kMost || *c > kMost) return std::nullopt;
  return std::pair{static_cast<std::int64_t>(*r), static_cast<std::int64_t>(*c)};
}

std::optional<SendQuestion> send_question(FlagReader& reader, const Arguments& arguments) {
  if (!arguments.has("--from") && !arguments.has("--to")) {
    if (arguments.has("--bytes"))
      reader.problem("--bytes needs --from and --to: between which chips?", "such as --from 0,0 --to 3,3");
    return std::nullopt;
  }
  if (!arguments.has("--from") || !arguments.has("--to")) {
    reader.problem("--from and --to go together", "such as --from 0,0 --to 3,3 --bytes 16MiB");
    return std::nullopt;
  }
  SendQuestion out{.from = coordinates(reader, arguments, "--from"), .to = coordinates(reader, arguments, "--to")};
  out.bytes = Bytes(reader.positive("--bytes", UnitKind::kBytes).value_or(1));
  out.ports = reader.count("--ports", kPortRange);
  return out;
}

std::optional<LoadQuestion> load_question(FlagReader& reader, const Arguments& arguments) {
  const std::optional<std::string> text = arguments.value("--load");
  const auto dtype = dtype_flag(reader, "--load-dtype");
  const auto batch = reader.count("--batch", kBatchRange);
  if (!text) {
    for (const char* flag : {"--load-dtype", "--batch"}) {
      if (arguments.has(flag))
        reader.problem(fmt::format("{} needs --load: of which array?", flag), "such as --load 128Kix128Ki");
    }
    return std::nullopt;
  }
  LoadQuestion out{.batch = batch.value_or(0), .ports = reader.count("--ports", kPortRange)};
  if (const auto shape = matrix(*text)) {
    out.rows = shape->first;
    out.columns = shape->second;
    out.elements = static_cast<double>(shape->first) * static_cast<double>(shape->second);
    out.dtype = dtype.value_or(DType::kInt8);
    return out;
  }
  if (dtype)
    reader.problem("--load-dtype goes with --load ROWSxCOLS: a size is in bytes", "such as --load 128Kix128Ki");
  if (batch)
    reader.problem("--batch goes with --load ROWSxCOLS: a size has no columns to multiply",
                   "such as --load 128Kix128Ki");
  out.elements = reader.positive("--load", UnitKind::kBytes).value_or(1);
  return out;
}

HwQuestion chip_question(FlagReader& reader, const Arguments& arguments) {
  HwQuestion q{.hardware = arguments.positionals(), .set = arguments.values("--set")};
  refuse(reader, arguments, kListFlags, "chooses chips for a list, and a chip was named");
  if (arguments.has("--sort"))
    reader.problem("--sort orders a list, and a chip was named", "scalecalc hw list --sort price");
  q.dtype = dtype_flag(reader, "--dtype");
  q.chips = reader.count("--chips", kChipRange);
  if (const auto text = arguments.value("--topology")) {
    q.topology = parse_shape(*text);
    if (q.topology.empty()) {
      reader.problem(fmt::format("--topology: {} is not a shape", in_quotes(*text)),
                     "axis sizes with x between them, such as 16x20x28");
    }
  }
  q.send = send_question(reader, arguments);
  q.load = load_question(reader, arguments);
  if (arguments.has("--ports") && !q.send && !q.load) {
    reader.problem("--ports needs a transfer: --from and --to, or --load", "");
  }
  if (const auto text = arguments.value("--pad")) {
    q.weight = matrix(*text);
    if (!q.weight)
      reader.problem(fmt::format("--pad: {} is not a matrix", in_quotes(*text)), "rows x columns, such as 100x300");
  }
  q.registers_per_thread = reader.count("--registers", {1, 1'000'000});
  return q;
}

HwListQuestion list_question(FlagReader& reader, const Arguments& arguments) {
  HwListQuestion q;
  refuse(reader, arguments, kChipFlags, "asks about a chip, and none was named");
  q.vendor = arguments.value("--vendor");
  q.family = arguments.value("--family");
  q.since = reader.count("--since", kYearRange);
  q.dtype = dtype_flag(reader, "--dtype");
  if (const auto bytes = reader.positive("--min-memory", UnitKind::kBytes)) q.min_memory = Bytes(*bytes);
  if (const auto rate = reader.positive("--min-bandwidth", UnitKind::kBytesPerSecond))
    q.min_bandwidth = BytesPerSecond(*rate);
  q.priced = arguments.has("--priced");
  q.sold = arguments.has("--sold");
  q.book = arguments.has("--book");
  q.order = static_cast<HwOrder>(reader.word("--sort", kOrders).value_or(0));
  return q;
}

ExitCode run_hw(const Arguments& arguments, Environment& env) {
  const std::vector<std::string>& names = arguments.positionals();
  const bool list = names.empty() || (names.size() == 1 && names.front() == "list");
  FlagReader reader(arguments);
  const HwQuestion chip = list ? HwQuestion{} : chip_question(reader, arguments);
  const HwListQuestion all = list ? list_question(reader, arguments) : HwListQuestion{};
  reader.finish();
  return answer_with_sheet(arguments, env, [&](const Catalog& catalog) {
    if (list) return hw_list_sheet(list_hardware(all, catalog));
    HwAnswer found = answer(chip, catalog);
    note_sets(arguments, found.assumptions);
    return hw_sheet(found);
  });
}

constexpr std::string_view kExamples =
    "  scalecalc hw list --since 2023 --sort matmul\n"
    "  scalecalc hw tpu-v5p --topology 4x4x8\n"
    "  scalecalc hw h100-sxm b200 --dtype fp8\n"
    "  scalecalc hw book/tpu-v5e --topology 4x4 --load 128Kix128Ki --batch 8\n";

constexpr std::string_view kNotes =
    "Bandwidths are one way and of one chip unless the line says otherwise.\n"
    "\n"
    "exit status: 0 answered, 2 the question is wrong, 70 a bug of ours,\n"
    "             74 the output could not be written\n";

}  // namespace

const Command& hw_command() {
  static const Command kHw{"hw",
                           "Chips: rates, critical intensities, topology, switches, prices, sources; or a list.",
                           "[list | HW...] [flags]",
                           kExamples,
                           kNotes,
                           kFlags,
                           run_hw};
  return kHw;
}

}  // namespace scalecalc::cli
