// Shows the time of a collective with its working, its latencies and its measured points.
#include "collective/collective_output.h"

#include <fmt/format.h>

#include <map>

#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"

namespace scalecalc {
namespace {

std::string text_of_bound(const CollectiveTime& time) {
  if (value_of(time.time) == 0) return "none";
  return time.latency_bound ? "latency" : "bandwidth";
}

/// A point's figures. Points far along a curve carry no working: it would be made and thrown away.
class PointFigures {
 public:
  explicit PointFigures(bool explained) : explained_(explained) {}

  template <class X>
  Figure operator()(std::string_view key, std::string_view label, Format format, const X& value,
                    std::string_view source = {}) const {
    return explained_ ? figure(key, label, format, value, source) : figure(key, label, format, Cell(value_of(value)));
  }

 private:
  bool explained_;
};

/// Figures of a point that a table of points has no room for. Their labels show in the view of a single point.
class Details {
 public:
  /// Only a collective has shards.
  Details(const CollectivePoint& point, bool shards, const PointFigures& made)
      : p_(point), f_(point.figures), shards_(shards), made_(made) {}

  std::vector<Figure> run() {
    add_way();
    add_latency();
    add_torus();
    add_switches();
    return std::move(out_);
  }

 private:
  template <class X>
  void add(std::string_view key, std::string_view label, Format format, const X& value, std::string_view source = {}) {
    out_.push_back(made_(key, label, format, value, source));
  }
  template <class X>
  void add_if(std::string_view key, std::string_view label, Format format, const std::optional<X>& value,
              std::string_view source = {}) {
    if (value) add(key, label, format, *value, source);
  }

  void add_way() {
    if (shards_) add("shard_bytes", "bytes of one member's shard", Format::kBytes, p_.shard);
    const std::string& tier = p_.time.bound_tier;
    out_.push_back(figure("bound_tier", "tier that binds", Format::kText, tier.empty() ? Cell{} : Cell(tier)));
    if (p_.time.hops > 0) out_.push_back(count_figure("hops", p_.time.hops, "hops"));
    if (p_.ports > 0) out_.push_back(count_figure("links", p_.ports, "links used at once"));
    add_if("link_bytes_per_s", "rate of a link, one direction", Format::kBytesPerSecond, f_.link);
    add_if("link_bytes", "bytes over each link, one direction", Format::kBytes, f_.link_bytes,
           "its share of the array, both ways of an all-reduce");
    if (f_.hop) {
      add("hop_transfer_s", "transfer of one hop", Format::kSeconds, f_.hop->transfer);
      add("hop_time_s", "time of one hop", Format::kSeconds, f_.hop->time);
      add("hops_time_s", "time hop by hop", Format::kSeconds, f_.hop->all, "whole hops: half an odd ring rounds down");
    }
  }

  void add_latency() {
    const bool counted = p_.time.latency_rule != LatencyRule::kNotCounted;
    out_.push_back(number_figure("latency_counted", "latency counted", Format::kFlag, counted ? 1 : 0));
    out_.push_back(number_figure("latency_bound", "latency-bound", Format::kFlag, p_.time.latency_bound ? 1 : 0));
    add_if("latency_bound_below_bytes", "latency-bound below", Format::kBytes, f_.latency_bound_below);
    if (!f_.latency) return;
    add("latency_bound_shard_bytes", "latency-bound below, per shard", Format::kBytes, f_.latency->shard_below);
    add("latency_bound_above_members", "latency-bound above, members", Format::kNumber, f_.latency->members_above,
        "book ch. 7, appendix C: V over the bytes a link sends in t_hop");
  }

  void add_torus() {
    add_if("ratio_to_all_gather", "bandwidth time over an all-gather's", Format::kNumber, f_.ratio_to_all_gather,
           "the same array and group");
    add_if("no_wraparound_ratio", "without wraparound over with it", Format::kNumber, f_.no_wraparound_ratio,
           "bandwidth times of lines and of rings");
    add_if("bidirectional_gain", "gain of the second direction", Format::kNumber, f_.bidirectional_gain,
           "book ch. 3, question 10");
    if (f_.bisection) {
      add("bisection.links", "links across the bisection", Format::kNumber, f_.bisection->links);
      add("bisection.time_s", "time across the bisection", Format::kSeconds, f_.bisection->time,
          "book ch. 3: a quarter of the array each way");
    }
    if (f_.chunks) {
      add("chunks.hops_per_chip", "chunk-hops a chip sends", Format::kNumber, f_.chunks->hops);
      add("chunks.bytes_per_chip", "bytes a chip sends on", Format::kBytes, f_.chunks->sent, "chunks of V / N^2");
    }
  }

  void add_switches() {
    if (f_.ragged) {
      add("ragged.approximate_share", "share of the slots sent, approximate", Format::kNumber,
          f_.ragged->approximate_share, "book ch. 12: min(k/N, 1) (N-1)/N");
      add("ragged.expected_share", "share of the slots sent, expected", Format::kNumber, f_.ragged->expected_share,
          "book ch. 12, appendix B: (1 - ((N-1)/N)^k) (N-1)/N");
      add("ragged.dense_time_s", "time if all slots were filled", Format::kSeconds, f_.ragged->dense_time);
      if (value_of(f_.ragged->dense_time) > 0) {
        add("ragged.ratio_to_dense", "time over that", Format::kNumber, p_.time.time / f_.ragged->dense_time);
      }
    }
    if (f_.in_network) {
      add("in_network.without_time_s", "time without in-network reduction", Format::kSeconds, f_.in_network->without);
      add("in_network.with_time_s", "time with it on every tier", Format::kSeconds, f_.in_network->with);
      add("in_network.gain", "gain of in-network reduction", Format::kNumber,
          f_.in_network->without / f_.in_network->with, "book ch. 12: 2 (N-1)/N in one node");
    }
    add_if("printed_tree_time_s", "sharded tree formula as printed", Format::kSeconds, f_.printed_tree_time,
           "book ch. 12: divides by the chips below a link twice");
    add_if("time_over_first", "time over the first point's", Format::kNumber, p_.time_over_first);
  }

  const CollectivePoint& p_;
  const CollectiveFigures& f_;
  bool shards_;
  const PointFigures& made_;
  std::vector<Figure> out_;
};

std::vector<Record> level_records(const CollectivePoint& point, const PointFigures& made) {
  std::vector<Record> out;
  for (std::size_t i = 0; i < point.time.levels.size(); ++i) {
    const LevelTime& level = point.time.levels[i];
    Record record;
    const auto add = [&](Figure f, int importance) {
      f.importance = importance;
      record.figures.push_back(std::move(f));
    };
    const auto count = [](std::int64_t value) { return static_cast<double>(value); };
    add(text_figure("name", "tier", level.name), 0);
    add(number_figure("degree", "children", Format::kInteger, count(level.level.degree)), 1);
    add(number_figure("members", "members", Format::kInteger, count(level.level.members)), 4);
    add(number_figure("chips_below", "chips below", Format::kInteger, count(level.level.chips_below)), 5);
    add(made("link_bytes_per_s", "uplink of a child", Format::kBytesPerSecond, level.link), 1);
    if (value_of(level.time) > 0) {
      add(made("bandwidth_bytes_per_s", "bandwidth", Format::kBytesPerSecond,
               named(point.bytes / level.time, level.name + " bandwidth",
                     "book ch. 12: D W / (D-1) where nothing else cuts the array")),
          0);
    }
    Figure time = made("time_s", level.name + " time", Format::kSeconds, level.time);
    time.label = "time";
    add(std::move(time), 0);
    add(number_figure("reduces", "reduces", Format::kFlag, level.reduces ? 1 : 0), 3);
    if (i < point.figures.switches.size()) {
      add(made("ingress_bytes", "into a switch", Format::kBytes, point.figures.switches[i].ingress), 2);
      add(made("egress_bytes", "out of it", Format::kBytes, point.figures.switches[i].egress), 2);
    }
    out.push_back(std::move(record));
  }
  return out;
}

std::vector<Record> measured_records(const CollectivePoint& point, const PointFigures& made) {
  std::vector<Record> out;
  for (const MeasuredPoint& m : point.measured) {
    Record record{
        {made("bytes_per_s", "bus bandwidth", Format::kBytesPerSecond, m.bus, "NCCL: bytes a chip sends over the time"),
         made("time_s", "measured time", Format::kSeconds, m.time, "NCCL: bytes a chip sends over bus bandwidth"),
         made("time_over_model", "over the model's", Format::kNumber, m.over_model),
         made("gain_over_first", "gain over the first", Format::kFraction, m.gain_over_first)}};
    record.figures[3].importance = 1;
    out.push_back(std::move(record));
  }
  return out;
}

/// "node 1.94 ms, leaf 2.42 ms".
std::string level_text(const CollectivePoint& point) {
  std::vector<std::string> parts;
  for (const LevelTime& level : point.time.levels) {
    parts.push_back(fmt::format("{} {}", level.name, text_of(Cell(value_of(level.time)), Format::kSeconds)));
  }
  return join(parts, ", ");
}

std::string measured_text(const CollectivePoint& point) {
  std::vector<std::string> parts;
  for (const MeasuredPoint& m : point.measured) parts.push_back(text_of(Cell(value_of(m.time)), Format::kSeconds));
  return join(parts, ", ");
}

Record point_record(const CollectivePoint& p, bool shards, bool explained) {
  const PointFigures made(explained);
  Record out{{
      made("bytes", "bytes", Format::kBytes, p.bytes),
      count_figure("group", p.group, "group"),
      made("time_s", "time", Format::kSeconds, p.time.time),
      made("bandwidth_time_s", "bandwidth time", Format::kSeconds, p.time.bandwidth_time),
      made("latency_s", "latency", Format::kSeconds, p.time.latency),
      text_figure("bound_by", "bound by", text_of_bound(p.time)),
      text_figure("algorithm", "algorithm", p.time.algorithm),
  }};
  out.figures.push_back(p.bytes_per_s
                            ? made("bytes_per_s", "bytes/s", Format::kBytesPerSecond, *p.bytes_per_s, "V over the time")
                            : figure("bytes_per_s", "bytes/s", Format::kBytesPerSecond, Cell{}));
  out.figures[3].importance = 2;
  out.figures[4].importance = 1;
  out.figures[6].importance = 3;
  for (Figure& detail : Details(p, shards, made).run()) {
    detail.label.clear();
    out.figures.push_back(std::move(detail));
  }
  out.figures.push_back(records_figure("levels", "", level_text(p), level_records(p, made)));
  out.figures.push_back(records_figure("measured", "", measured_text(p), measured_records(p, made)));
  return out;
}

std::string op_name(const CollectiveQuestion& q) {
  return q.op ? std::string(kCollectiveOpNames[static_cast<std::size_t>(*q.op)]) : "permute";
}

std::string position_text(const MeshPosition& position) {
  std::vector<std::string> parts;
  for (const std::int64_t at : position) parts.push_back(std::to_string(at));
  return join(parts, ",");
}

std::string title_of(const CollectiveAnswer& answer, const HardwareSpec& hw) {
  const CollectiveQuestion& q = answer.question;
  std::string name = op_name(q);
  name.front() = static_cast<char>(name.front() - 'a' + 'A');
  const CollectiveMesh& mesh = answer.points.front().mesh;
  std::string out = fmt::format("{} on {}", name, hw.title);
  if (q.from)
    return fmt::format("{}, mesh {}, from {} to {}", out, mesh.text(), position_text(*q.from), position_text(*q.to));
  const bool several_groups = answer.points.back().group != answer.points.front().group;
  if (several_groups) return out + ", groups of several sizes";
  return fmt::format("{}, over {} of the mesh {}", out, join(mesh.over, ", "), mesh.text());
}

/// "2.42 ms, bound by the bandwidth of leaf".
std::string summary_of(const CollectivePoint& point) {
  const CollectiveTime& time = point.time;
  if (value_of(time.time) == 0) return "nothing moves";
  const std::string bound = time.latency_bound ? "latency" : fmt::format("the bandwidth of {}", time.bound_tier);
  return fmt::format("{}, bound by {}", text_of(Cell(value_of(time.time)), Format::kSeconds), bound);
}

Record query_of(const CollectiveAnswer& answer, const HardwareSpec& hw) {
  const CollectiveQuestion& q = answer.question;
  const CollectiveMesh& mesh = answer.points.front().mesh;
  return {{text_figure("op", "", op_name(q)), text_figure("hardware", "", hw.name),
           text_figure("hardware_title", "", hw.title), text_figure("mesh", "", mesh.text()),
           list_figure("axes", "", {mesh.over.begin(), mesh.over.end()}),
           figure("array", "", Format::kText, q.array ? Cell(q.array->text) : Cell{}),
           figure("top_k", "", Format::kNumber, q.top_k > 0 ? Cell(q.top_k) : Cell{})}};
}

}  // namespace

Output collective_output(const CollectiveAnswer& answer, const HardwareSpec& hw) {
  Output out{.command = "collective", .title = title_of(answer, hw)};
  out.query = query_of(answer, hw);
  const bool shards = answer.question.op.has_value();
  Block points{.key = "points"};
  constexpr std::size_t kExplained = 12;  // of a longer curve the first point is explained
  for (const CollectivePoint& point : answer.points) {
    points.records.push_back(point_record(point, shards, points.records.size() < kExplained));
  }
  out.blocks.push_back(std::move(points));
  if (answer.points.size() == 1) {
    const CollectivePoint& point = answer.points.front();
    out.summary.push_back({summary_of(point), Role::kPlain});
    const auto view = [&](const char* title, bool is_list, std::vector<Record> records) {
      if (!records.empty()) {
        out.blocks.push_back({.title = title, .is_list = is_list, .records = std::move(records), .for_people = true});
      }
    };
    const PointFigures made(false);
    view("In detail", false, {Record{Details(point, shards, made).run()}});
    view("Tiers", true, level_records(point, made));
    view("Measured", true, measured_records(point, made));
  }
  out.plots = {collective_plot(answer)};
  out.assumptions = answer.assumptions;
  return out;
}

Plot collective_plot(const CollectiveAnswer& answer) {
  const auto& points = answer.points;
  const bool groups = points.front().group != points.back().group;
  Plot out{.x = {.title = "bytes", .format = Format::kBytes, .log = true},
           .y = {.title = "time", .format = Format::kSeconds, .log = true}};
  if (groups) out.x = {.title = "chips of a group", .format = Format::kInteger, .log = true};
  std::map<double, PlotSeries> by_bytes;  // one curve for each size where groups are swept
  for (const CollectivePoint& p : points) {
    PlotSeries& series = by_bytes[groups ? value_of(p.bytes) : 0];
    series.name = groups ? text_of(value_of(p.bytes), Format::kBytes) : "the model";
    series.points.push_back({groups ? to_double(p.group) : value_of(p.bytes), value_of(p.time.time)});
  }
  PlotSeries measured{.name = "measured", .joined = false};
  for (const CollectivePoint& p : points) {
    for (const MeasuredPoint& m : p.measured)
      measured.points.push_back({groups ? to_double(p.group) : value_of(p.bytes), value_of(m.time)});
  }
  for (auto& [bytes, series] : by_bytes) out.series.push_back(std::move(series));
  if (!measured.points.empty()) out.series.push_back(std::move(measured));
  return out;
}

}  // namespace scalecalc
