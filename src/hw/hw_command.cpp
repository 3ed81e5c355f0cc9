// Runs `scalecalc hw`: shows chips, lists them, lists the keys of one or writes its file.
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/output_command.h"
#include "cli/set_keys.h"
#include "config/yaml_writer.h"
#include "hw/hw.h"
#include "hw/hw_output.h"
#include "network/slice.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kHwPortRange{1, 1024};
constexpr CountRange kHwBatchRange{1, 1'000'000'000};
constexpr CountRange kYearRange{1990, 2100};
constexpr CountRange kRegisterRange{1, 1'000'000};
constexpr std::array<std::string_view, 6> kHwOrderNames{"name", "year", "matmul", "memory", "bandwidth", "price"};

enum HwMode : std::size_t { kHwList, kOneHw, kHwKeys, kHwDump };
constexpr std::array kHwModes{
    Mode{"hw list", "a list has many chips"},
    Mode{.name = "hw HW", .why = "a chip was named", .draws = "the roofs of its formats, or of several chips"},
    Mode{"hw HW --keys", "what --set takes is listed"},
    Mode{.name = "hw HW --dump-yaml", .why = "the chip's file is printed and nothing else", .has_outputs = false}};
constexpr Modes kOfLists = 1U << kHwList;
constexpr Modes kOfChips = 1U << kOneHw;
constexpr Modes kOfHwFiles = 1U << kHwKeys | 1U << kHwDump;

bool is_hw_list(const Arguments& arguments) {
  const std::vector<std::string>& names = arguments.positionals();
  return names.empty() || names.front() == "list";
}
std::optional<std::size_t> hw_mode(const Arguments& arguments) {
  if (arguments.has("--keys")) return kHwKeys;
  if (arguments.has("--dump-yaml")) return kHwDump;
  return is_hw_list(arguments) ? kHwList : kOneHw;
}

/// "3,3" to numbers; at least one, none negative.
template <Shape SendQuestion::*kEnd>
void read_chip_position(FlagReader& reader, const Flag& flag, const std::string& text, SendQuestion& send) {
  for (const std::string& part : comma_parts(text)) {
    const auto parsed = parse_quantity(part, UnitKind::kCount);
    const double* value = std::get_if<double>(&parsed);
    if (value == nullptr || *value > 1e9) {
      reader.problem(fmt::format("{}: {} is no chip", flag.name, in_quotes(text)),
                     "coordinates on a torus such as 3,3, or the number of a chip");
      return;
    }
    (send.*kEnd).push_back(static_cast<std::int64_t>(*value));
  }
}

/// "100x300"; nothing and a problem if it is none.
std::optional<std::pair<std::int64_t, std::int64_t>> matrix(const std::string& text) {
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

void read_padded(FlagReader& reader, const Flag& flag, const std::string& text, HwQuestion& q) {
  q.weight = matrix(text);
  if (!q.weight) {
    reader.problem(fmt::format("{}: {} is not a matrix", flag.name, in_quotes(text)),
                   fmt::format("rows x columns, such as {}", flag.example));
  }
}

void read_load(FlagReader& reader, const Flag& flag, const std::string& text, LoadQuestion& load) {
  if (const auto shape = matrix(text)) {
    load.rows = shape->first;
    load.columns = shape->second;
    load.elements = static_cast<double>(shape->first) * static_cast<double>(shape->second);
  } else {
    load.elements = reader.quantity(flag).value_or(1);
  }
}

constexpr std::string_view kNoArray = "{} needs --load: of which array?";
constexpr std::string_view kSomeArray = "such as --load 128Kix128Ki";

constexpr std::string_view kDtypeHelp =
    "number format of the intensities (default bf16); in a list, chips that have a rate in it";

constexpr std::array kChipFlags{
    dtype_flag<&HwQuestion::dtype>("--dtype", kDtypeHelp, "fp8"),
    text<&HwQuestion::set>("--set", "KEY=VALUE",
                           "replace one field of every chip (hw.), or of the first, second ... (hw1., hw2.), such as "
                           "hw.hbm.bandwidth=5TB/s",
                           "hw.hbm.bandwidth=5TB/s")
        .repeatable(),
    kExplainFlag,
    count<&HwQuestion::chips>("--chips", kChipRange, "N", "chips of the machine (default: the whole pod, or one node)",
                              "1024"),
    text("--topology", "AxBxC", "shape of a torus slice", "16x20x28").by<kReadShape<&HwQuestion::topology>>(),
    text("--from", "X,Y", "send from this chip: coordinates on a torus, a number under switches", "0,0")
        .by<read_chip_position<&SendQuestion::from>>()
        .needing("--to", "--from and --to go together", "such as --from 0,0 --to 3,3 --bytes 16MiB"),
    text("--to", "X,Y", "to this one", "3,3")
        .by<read_chip_position<&SendQuestion::to>>()
        .needing("--from", "--from and --to go together", "such as --from 0,0 --to 3,3 --bytes 16MiB"),
    quantity<&SendQuestion::bytes>("--bytes", UnitKind::kBytes, "SIZE", "size of the message between --from and --to",
                                   "16MiB")
        .needing("--from --to", "{} needs --from and --to: between which chips?", "such as --from 0,0 --to 3,3"),
    quantity("--load", UnitKind::kBytes, "SIZE|ROWSxCOLS",
             "load an array from the hosts, gather it on one chip and read it", "128Kix128Ki")
        .by<read_load>(),
    dtype_flag<&LoadQuestion::dtype>("--load-dtype", "number format of ROWSxCOLS (default int8)")
        .needing("--load", kNoArray, kSomeArray),
    count<&LoadQuestion::batch>("--batch", kHwBatchRange, "N", "then multiply it with N rows", "8")
        .needing("--load", kNoArray, kSomeArray),
    count("--ports", kHwPortRange, "N",
          "links that carry a transfer or a gather at once (default: those the chip has on the way)", "2")
        .needing("--from --to --load", "{} needs a transfer: --from and --to, or --load", ""),
    text("--pad", "ROWSxCOLS", "pad a weight to the matrix unit: the useful share", "100x300").by<read_padded>(),
    count<&HwQuestion::registers_per_thread>("--registers", kRegisterRange, "N",
                                             "registers of a thread: how many warps an SM holds", "256"),
};

constexpr std::array kHwFileFlags{
    kSetFlag.explained("replace one field of the chip (hw.)"),
    keys_flag().in(1U << kHwKeys),
    toggle("--dump-yaml", "print the chip as a scalecalc-hardware/1 file and nothing else")
        .in(1U << kHwDump)
        .of_output(),
};

constexpr std::array kHwListFlags{
    dtype_flag<&HwListQuestion::dtype>("--dtype", kDtypeHelp, "fp8"),
    text<&HwListQuestion::vendor>("--vendor", "NAME", "chips of this vendor", "AMD"),
    text<&HwListQuestion::family>("--family", "NAME", "chips of this family of efficiency coefficients", "tpu"),
    count<&HwListQuestion::since>("--since", kYearRange, "YEAR", "chips of this year and later", "2023"),
    quantity<&HwListQuestion::min_memory>("--min-memory", UnitKind::kBytes, "SIZE", "at least so much memory", "80GB"),
    quantity<&HwListQuestion::min_bandwidth>("--min-bandwidth", UnitKind::kBytesPerSecond, "RATE",
                                             "at least so much memory bandwidth", "3TB/s"),
    toggle<&HwListQuestion::priced>("--priced", "chips with a price"),
    toggle<&HwListQuestion::sold>("--sold", "not those merely announced"),
    toggle<&HwListQuestion::book>("--book", "the entries with the scaling book's rounded rates instead"),
    word<&HwListQuestion::order>("--sort", kHwOrderNames, "order of the list"),
};

std::span<const Flag> hw_flags() {
  static const std::vector<Flag> kAll =
      composed({{kChipFlags, kOfChips}, {kHwFileFlags, kOfHwFiles}, {kHwListFlags, kOfLists}});
  return kAll;
}

HwQuestion chip_question(FlagReader& reader, const Arguments& arguments) {
  HwQuestion q{.hardware = arguments.positionals()};
  reader.read(q);
  const auto ports = reader.count("--ports");
  if (arguments.has("--from") && arguments.has("--to")) {
    reader.read(q.send.emplace(SendQuestion{.bytes = Bytes(1), .ports = ports}));
  }
  if (arguments.has("--load")) {
    LoadQuestion& load = q.load.emplace(LoadQuestion{.ports = ports});
    reader.read(load);
    if (!load.rows && arguments.has("--load-dtype")) {
      reader.problem("--load-dtype goes with --load ROWSxCOLS: a size is in bytes", std::string(kSomeArray));
    }
    if (!load.rows && arguments.has("--batch")) {
      reader.problem("--batch goes with --load ROWSxCOLS: a size has no columns to multiply", std::string(kSomeArray));
    }
  }
  return q;
}

/// The file of the one chip named, with what --set changes.
ConfigNode chip_document(const Arguments& arguments, const Catalog& catalog) {
  FlagReader reader(arguments);
  const std::string name = reader.only_word("HW", "which chip?");
  reader.finish();
  ConfigNode out = catalog.load(CatalogKind::kHardware, name);
  apply_sets(arguments.values("--set"), {{"hw", &out}});
  return out;
}

ExitCode dump_hw(const Arguments& arguments, Environment& env) {
  FlagReader(arguments).finish();
  const Session session = read_session(arguments, env);
  const Catalog catalog(session.config_directories, session.remembered);
  const ConfigNode document = chip_document(arguments, catalog);
  load_hardware(document, catalog, Unpublished::kAllowed);  // what is printed can be read again
  say_replaced(catalog, session, env);
  write_result(env.out, write_yaml(document));
  return ExitCode::kAnswered;
}

ExitCode list_hw_keys(const Arguments& arguments, Environment& env) {
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    const auto read = [&](const ConfigNode& document, std::vector<AskedField>& asked) {
      load_hardware(document, catalog, Unpublished::kAllowed, &asked);
    };
    return with_query(set_keys_output("hw", chip_document(arguments, catalog), read), arguments);
  });
}

ExitCode run_hw(const Arguments& arguments, Environment& env) {
  if (hw_mode(arguments) == kHwDump) return dump_hw(arguments, env);
  if (hw_mode(arguments) == kHwKeys) return list_hw_keys(arguments, env);
  const bool list = is_hw_list(arguments);
  FlagReader reader(arguments);
  const HwQuestion chip = list ? HwQuestion{} : chip_question(reader, arguments);
  HwListQuestion all;
  if (list) {
    reader.read(all);
    const std::vector<std::string>& names = arguments.positionals();
    if (!names.empty()) all.words.assign(names.begin() + 1, names.end());
  }
  reader.finish();
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    if (list) {
      return with_query(hw_list_output(list_hardware(all, catalog)), arguments, {answered(all)});
    }
    HwAnswer found = answer(chip, catalog);
    note_sets(arguments, found.assumptions);
    return with_query(hw_output(found), arguments, {answered(chip), answered(chip.send), answered(chip.load)});
  });
}

constexpr std::array kHwCommon{FlagGroup{"one chip or several", "--dtype --chips --topology --from --to --bytes --set"},
                               FlagGroup{"hw list", "--vendor --since --min-memory --priced --sort"}};

}  // namespace

const Command& hw_command() {
  static const Command kHw{
      .name = "hw",
      .summary = "Chips: rates, critical intensities, topology, switches, prices, sources; or a list.",
      .usage = "[list [WORD...] | HW...] [flags] | HW --keys | HW --dump-yaml",
      .examples =
          "  scalecalc hw list --since 2023 --sort matmul\n"
          "  scalecalc hw tpu-v5p --topology 4x4x8\n"
          "  scalecalc hw h100-sxm b200 --dtype fp8\n"
          "  scalecalc hw h100-sxm --keys\n"
          "  scalecalc hw book/tpu-v5e --topology 4x4 --load 128Kix128Ki --batch 8\n",
      .notes = "Bandwidths are one way and of one chip unless the line says otherwise.\n",
      .flags = hw_flags(),
      .run = run_hw,
      .modes = kHwModes,
      .mode_of = hw_mode,
      .names = CatalogKind::kHardware,
      .figures = "name memory_bytes memory_bandwidth_bytes_per_s tdp_w usd_per_chip_hour",
      .common = kHwCommon};
  return kHw;
}

}  // namespace scalecalc::cli
