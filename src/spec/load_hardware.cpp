// Reads a hardware file and reports every missing or contradictory figure.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "spec/hardware_reading.h"
#include "spec/kept.h"
#include "spec/load.h"
#include "spec/load_efficiency.h"

namespace scalecalc {
namespace {

bool says_unpublished(const ConfigNode* node) {
  return node != nullptr && node->kind == ConfigNode::Kind::kScalar && node->text == "unpublished";
}

/// Rates by number format; false if there is none.
bool load_rates(Fields& rates, std::array<std::optional<FlopsPerSecond>, kDTypeCount>& out) {
  bool any = false;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (const auto rate = rates.optional_quantity(kDTypeNames[i], UnitKind::kFlopsPerSecond)) {
      out[i] = FlopsPerSecond(*rate);
      any = true;
    }
  }
  return any;
}

/// One rate, which is fp32, or a map of rates by format.
void load_vector(Fields& compute, const HardwareReading& in) {
  const ConfigNode* node = compute.node("vector");
  if (node == nullptr) return;
  auto& rates = in.hw.vector_rates;
  constexpr auto kFp32 = static_cast<std::size_t>(DType::kFp32);
  if (node->kind == ConfigNode::Kind::kMap) {
    Fields fields(*node, "compute.vector", in.problems);
    load_rates(fields, rates);
    fields.finish();
  } else if (const auto rate = compute.optional_quantity("vector", UnitKind::kFlopsPerSecond)) {
    rates[kFp32] = FlopsPerSecond(*rate);
  }
  const auto widest = std::find_if(rates.begin(), rates.end(), [](const auto& rate) { return rate.has_value(); });
  if (widest != rates.end()) in.hw.vector_peak = rates[kFp32] ? rates[kFp32] : *widest;
  in.hw.vector_counts_fma = compute.flag("vector_fma", false);
}

void load_compute(const ConfigNode& node, const HardwareReading& in) {
  Fields fields(node, "compute", in.problems);
  if (!in.unpublished(fields, "matmul", "compute.matmul", "compute.matmul.bf16=459TFLOP/s")) {
    Fields rates(fields.required_node("matmul"), "compute.matmul", in.problems);
    if (!load_rates(rates, in.hw.matmul_peak)) {
      in.problems.add(rates.span(), "compute.matmul must give at least one rate, such as bf16: 459TFLOP/s");
    }
    rates.finish();
  }
  load_vector(fields, in);
  in.hw.compute_source = in.source(fields);
  fields.optional_text("note");
  fields.finish();
}

void load_hbm(const ConfigNode& node, const HardwareReading& in) {
  Fields fields(node, "hbm", in.problems);
  constexpr MemoryKind kKinds[] = {MemoryKind::kHbm, MemoryKind::kGddr, MemoryKind::kLpddr, MemoryKind::kSram};
  in.hw.memory_kind = kKinds[fields.optional_word("kind", {"hbm", "gddr", "lpddr", "sram"}).value_or(0)];
  in.hw.memory_technology = fields.optional_text("technology").value_or("");
  const double label = in.figure(fields, "capacity", UnitKind::kBytes, "hbm.capacity").value_or(0);
  const auto by_flag = [&](const char* key) {
    const ConfigNode* given = node.find(key);
    return given != nullptr && given->span.file.str() == "<command line>";
  };
  if (by_flag("capacity") && node.find("usable") != nullptr && !by_flag("usable")) {
    in.problems.add(node.find("capacity")->span,
                    fmt::format("hbm.capacity is what the label of {} says; programs can allocate hbm.usable, {}",
                                in.hw.name, node.find("usable")->text),
                    "set that: --set hw.hbm.usable=" + node.find("capacity")->text);
  }
  const double usable = fields.optional_quantity("usable", UnitKind::kBytes).value_or(label);
  // Labels say GB of what is GiB: the 141 GB of an H200 are 143771 MiB. A flag asks what more memory would do.
  constexpr double kLabelledGb = 1024.0 * 1024 * 1024 / 1e9;
  if (label > 0 && usable > kLabelledGb * label && !by_flag("usable") && !by_flag("capacity")) {
    in.problems.add(node.find("usable")->span,
                    fmt::format("hbm.usable, {}, is more than hbm.capacity, {}", node.find("usable")->text,
                                node.find("capacity")->text),
                    "usable is what programs can allocate of it");
  }
  in.hw.hbm_label = Bytes(label);
  in.hw.hbm_capacity = Bytes(usable);
  in.hw.hbm_bandwidth =
      BytesPerSecond(in.figure(fields, "bandwidth", UnitKind::kBytesPerSecond, "hbm.bandwidth").value_or(0));
  in.hw.hbm_source = in.source(fields);
  fields.optional_text("note");
  fields.finish();
}

void load_host(const ConfigNode& node, const HardwareReading& in) {
  Fields fields(node, "host", in.problems);
  in.hw.chips_per_host = fields.count("chips", {1, 1024});
  in.hw.host_shape = fields.count_list("shape");
  std::int64_t cells = 1;
  for (const std::int64_t axis : in.hw.host_shape) cells *= axis;
  if (!in.hw.host_shape.empty() && cells != in.hw.chips_per_host) {
    in.problems.add(node.span,
                    fmt::format("host.shape holds {} chips, host.chips says {}", cells, in.hw.chips_per_host));
  }
  in.hw.host_ram = Bytes(fields.optional_quantity("ram", UnitKind::kBytes).value_or(0));
  if (const auto rate = fields.optional_quantity("pcie_bandwidth", UnitKind::kBytesPerSecond)) {
    in.hw.pcie_bandwidth = BytesPerSecond(*rate);
  }
  in.hw.uplink_chips = fields.optional_count("uplink_chips", {1, 1024}).value_or(1);
  if (in.hw.chips_per_host % in.hw.uplink_chips != 0) {
    in.problems.add(node.span, fmt::format("host.uplink_chips, {}, does not divide host.chips, {}", in.hw.uplink_chips,
                                           in.hw.chips_per_host));
  }
  if (const auto rate = fields.optional_quantity("memory_bandwidth", UnitKind::kBytesPerSecond)) {
    in.hw.host_memory_bandwidth = BytesPerSecond(*rate);
  }
  if (const auto rate = fields.optional_quantity("storage_bandwidth", UnitKind::kBytesPerSecond)) {
    in.hw.storage_bandwidth = BytesPerSecond(*rate);
  }
  in.hw.host_source = in.source(fields);
  fields.optional_text("note");
  fields.finish();
}

/// Names by which clouds lend the chip. Launch files read them from the document (launch/cluster.h): no figure needs
/// them.
void check_cloud(const ConfigNode* node, const HardwareReading& in) {
  if (node == nullptr) return;
  Fields fields(*node, "cloud", in.problems);
  fields.text("accelerator_type");
  fields.word("counts", {"cores", "chips"});
  fields.count("jax_devices", {1, 64});
  fields.text("gke_accelerator");
  fields.count("gke_pod_chips", {1, 1024});
  in.source(fields);
  fields.finish();
}

void load_offload(const ConfigNode* node, const HardwareReading& in) {
  if (node == nullptr) return;
  Fields fields(*node, "offload", in.problems);
  OffloadMemory out;
  out.capacity = Bytes(fields.quantity("capacity", UnitKind::kBytes));
  if (const auto rate = fields.optional_quantity("bandwidth", UnitKind::kBytesPerSecond)) {
    out.bandwidth = BytesPerSecond(*rate);
  }
  out.technology = fields.optional_text("technology").value_or("");
  out.source = in.source(fields);
  fields.optional_text("note");
  fields.finish();
  in.hw.offload = std::move(out);
}

void load_power(const ConfigNode* node, const HardwareReading& in) {
  if (node == nullptr) return;
  Fields fields(*node, "power", in.problems);
  in.hw.tdp = Watts(fields.quantity("tdp", UnitKind::kWatts));
  const auto optional = [&](const char* key, std::optional<Watts>& power) {
    if (const auto value = fields.optional_quantity(key, UnitKind::kWatts)) power = Watts(*value);
  };
  optional("idle", in.hw.idle_power);
  optional("host", in.hw.host_power);
  optional("host_measured", in.hw.host_power_measured);
  in.hw.tdp_source = in.source(fields);
  fields.optional_text("note");
  fields.finish();
}

void load_prices(const ConfigNode* node, const HardwareReading& in) {
  if (node == nullptr) return;
  for (const ConfigNode& item : node->items) {
    Fields fields(item, "price", in.problems);
    Price price;
    price.usd_per_chip_hour = fields.quantity("usd_per_chip_hour", UnitKind::kUsdPerHour);
    price.cloud = fields.text("cloud");
    price.region = fields.optional_text("region").value_or("");
    price.terms = fields.text("terms");
    price.date = fields.text("date");
    price.source = in.source(fields);
    fields.optional_text("note");
    fields.finish();
    in.hw.prices.push_back(std::move(price));
  }
}

void load_disagreements(const ConfigNode* node, const HardwareReading& in) {
  if (node == nullptr) return;
  for (const ConfigNode& item : node->items) {
    Fields fields(item, "disagreement", in.problems);
    in.hw.disagreements.push_back(fmt::format("{}: picked {} ({}); others: {}", fields.text("field"),
                                              fields.text("picked"), fields.text("why"), fields.text("others")));
    fields.finish();
  }
}

void load_labels(Fields& fields, HardwareSpec& hw) {
  fields.schema("scalecalc-hardware/1");
  hw.name = fields.text("name");
  hw.aliases = fields.text_list("aliases");
  hw.title = fields.text("title");
  hw.vendor = fields.optional_text("vendor").value_or("");
  hw.year = fields.optional_count("year", {1990, 2100}).value_or(0);
  hw.announced = fields.flag("announced", false);
  hw.note = fields.optional_text("note").value_or("");
  hw.family = fields.text("family");
  fields.optional_text("engine");  // serve/serve_resolve: usual_engine
  if (const auto architecture = fields.optional_word("architecture", kArchitectureNames))
    hw.architecture = kArchitectureNames.at(*architecture);
}

/// A figure of its kind, for hints.
std::string_view example_of(UnitKind kind) {
  switch (kind) {
    case UnitKind::kBytes: return "80GB";
    case UnitKind::kBytesPerSecond: return "400GB/s";
    case UnitKind::kSeconds: return "10us";
    default: return "1";
  }
}

Diagnostic refused(const HardwareSpec& hw, const UnpublishedFigure& figure) {
  return {figure.where,
          fmt::format("{} does not say: {} is unpublished, and this question needs it", hw.name, figure.path),
          figure.flag.empty() ? "give it in a file of your own" : "give it, for example " + figure.flag};
}

/// One path is the other, or lies below it.
bool related(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '.');
}

}  // namespace

namespace {

/// The references that files of the catalog share: configs/sources.yaml.
const std::map<std::string, std::string>& shared_sources() {
  static const std::map<std::string, std::string> kShared = [] {
    std::map<std::string, std::string> out;
    for (const EmbeddedFile& file : embedded_catalog()) {
      if (file.path != "sources.yaml") continue;
      const ConfigNode document = document_of(file);
      for (const ConfigNode::Entry& entry : document.find("sources")->entries) out[entry.key] = entry.value.text;
    }
    return out;
  }();
  return kShared;
}

}  // namespace

HardwareReading::HardwareReading(HardwareSpec& spec, const ConfigNode* sources, Problems& found)
    : hw(spec), problems(found), tags_(shared_sources()) {
  if (sources == nullptr) return;
  if (sources->kind != ConfigNode::Kind::kMap) {
    problems.add(sources->span, "sources must map a tag to a reference");
    return;
  }
  for (const ConfigNode::Entry& entry : sources->entries) tags_[entry.key] = entry.value.text;
}

void HardwareReading::unknown_tag(const ConfigNode& given, const std::string& tag) const {
  const ConfigNode* where = &given;
  for (const ConfigNode& item : given.items) {
    if (item.text == tag) where = &item;
  }
  std::vector<std::string> known;
  for (const auto& [name, reference] : tags_) known.push_back(name);
  const std::string hint = did_you_mean(nearest(tag, known));
  problems.add(where->span, fmt::format("source {} is not among the file's sources", in_quotes(tag)),
               hint.empty() ? fmt::format("sources: {{{}: where the figures stand}}", tag) : hint);
}

std::string HardwareReading::source(Fields& fields) const {
  const std::vector<std::string> listed = fields.text_list("source");
  if (listed.empty() && fields.span().file.str() == "<command line>") return "--set";
  if (listed.empty()) {
    problems.add(fields.span(), fmt::format("{} has no source: every figure needs one", fields.what()));
  }
  std::vector<std::string> out;
  for (const std::string& tag : listed) {
    const auto it = tags_.find(tag);
    if (it == tags_.end()) unknown_tag(*fields.node("source"), tag);
    out.push_back(it == tags_.end() ? tag : it->second);
  }
  return join(out, "; ");
}

bool HardwareReading::unpublished(Fields& fields, std::string_view key, const std::string& path,
                                  const std::string& example) const {
  const ConfigNode* node = fields.node(key);
  if (!says_unpublished(node)) return false;
  hw.unpublished.push_back({path, node->span, example.empty() ? "" : "--set hw." + example});
  return true;
}

std::optional<double> HardwareReading::figure(Fields& fields, std::string_view key, UnitKind kind,
                                              const std::string& path, Range range) const {
  if (unpublished(fields, key, path, fmt::format("{}={}", path, example_of(kind)))) return std::nullopt;
  return fields.quantity(key, kind, range);
}

bool HardwareSpec::publishes(std::string_view path) const {
  return std::none_of(unpublished.begin(), unpublished.end(),
                      [&](const UnpublishedFigure& figure) { return related(figure.path, path); });
}

PaidPrice paid_price(const HardwareSpec& hw, const std::optional<double>& asked, std::string_view name) {
  if (asked) return {*asked, "--price", std::nullopt};
  const Price* p = hw.default_price();
  if (p == nullptr) {
    const std::string text =
        fmt::format("no price is published for {}: cost is left out", name.empty() ? "this chip" : name);
    return {std::nullopt, "hardware file", Assumption{text, "--price", "hardware file"}};
  }
  const std::string text =
      fmt::format("{}{}{:g} USD per chip-hour ({} {}{}{}, {})", name, name.empty() ? "" : " at ", p->usd_per_chip_hour,
                  p->cloud, p->terms, p->region.empty() ? "" : " ", p->region, p->date);
  return {p->usd_per_chip_hour, p->source, Assumption{text, "--price", p->source}.is(p->usd_per_chip_hour)};
}

void require_published(const HardwareSpec& hw, std::initializer_list<std::string_view> paths) {
  std::vector<Diagnostic> missing;
  for (const UnpublishedFigure& figure : hw.unpublished) {
    const bool asked =
        std::any_of(paths.begin(), paths.end(), [&](std::string_view path) { return related(path, figure.path); });
    if (asked) missing.push_back(refused(hw, figure));
  }
  const bool network = std::find(paths.begin(), paths.end(), "network") != paths.end();
  if (network && hw.network.empty() && hw.publishes("network")) {
    missing.push_back({{}, fmt::format("{} stands alone: it has no network to other chips", hw.name), ""});
  }
  if (!missing.empty()) throw UserError(std::move(missing));
}

namespace {

/// All but the coefficients, whose block of the file `own` is.
HardwareSpec read_data_sheet(const ConfigNode& document, Problems& problems, const ConfigNode*& own) {
  Fields fields(document, "hardware", problems);
  HardwareSpec hw;
  load_labels(fields, hw);
  const HardwareReading in(hw, fields.node("sources"), problems);
  load_compute(fields.required_node("compute"), in);
  load_hbm(fields.required_node("hbm"), in);
  load_units(fields.node("units"), in);
  load_onchip(fields.node("onchip"), in);
  if (!in.unpublished(fields, "host", "host", "host.chips=8")) load_host(fields.required_node("host"), in);
  if (!in.unpublished(fields, "network", "network")) load_network(fields.required_node("network"), in);
  check_cloud(fields.node("cloud"), in);
  load_offload(fields.node("offload"), in);
  load_power(fields.node("power"), in);
  load_prices(fields.node("prices"), in);
  load_disagreements(fields.node("disagreements"), in);
  own = fields.node("efficiency");
  fields.finish();
  problems.throw_if_any();
  return hw;
}

}  // namespace

HardwareSpec load_data_sheet(const ConfigNode& document) {
  Problems problems;
  const ConfigNode* own = nullptr;
  return read_data_sheet(document, problems, own);
}

HardwareSpec load_hardware(const ConfigNode& document, const Catalog& catalog, Unpublished unpublished,
                           std::vector<AskedField>* asked) {
  Problems problems(asked);
  const ConfigNode* own = nullptr;
  HardwareSpec hw = read_data_sheet(document, problems, own);
  load_efficiency(*kept_document(catalog, CatalogKind::kEfficiency, hw.family), own, catalog, hw, problems);
  problems.throw_if_any();
  if (unpublished == Unpublished::kRefused) require_published(hw, {"compute", "hbm", "host", "network"});
  return hw;
}

}  // namespace scalecalc
