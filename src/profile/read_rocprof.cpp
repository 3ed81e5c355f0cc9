// Reads the files of AMD's rocprofv3 (ROCprofiler-SDK): its JSON (--output-format json) and its CSV tables
// (--output-format csv), as https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html
// describes them. Kernels, copies, the host's launches and roctx ranges, in nanoseconds of one clock; no shapes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/text.h"
#include "profile/byte_source.h"
#include "profile/json_stream.h"
#include "profile/recording.h"
#include "profile/roc_records.h"

namespace scalecalc {
namespace {

template <class Number>
std::optional<Number> roc_number(std::string_view text) {
  Number out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return out;
}

// ---- JSON

class RocJsonReader {
 public:
  RocJsonReader(const std::string& path, const Stop& stop)
      : stop_(stop), source_(path), json_(source_), records_(path) {}

  Recording read() {
    bool any = false;
    json_.members([&](std::string_view key) {
      if (key != "rocprofiler-sdk-tool") return json_.skip();
      any = true;
      if (json_.peek() == '{') return tool();
      std::size_t tools = 0;
      json_.items([&] {
        if (++tools > 1)
          json_.fail("a second process in one file of rocprofv3", "one file is one process: name each alone");
        tool();
      });
    });
    json_.finish();
    if (!any) json_.fail("JSON without rocprofiler-sdk-tool");
    place();
    return records_.finish();
  }

 private:
  struct Agent {
    bool gpu = false;
    std::string name;
  };
  struct Kept {
    RocTable table;
    RocRecord record;
    std::uint64_t byte;
  };

  void tool() {
    json_.members([&](std::string_view key) {
      if (key == "agents") return list([&] { agent(); });
      if (key == "kernel_symbols") return list([&] { symbol(); });
      if (key == "strings") return strings();
      if (key != "buffer_records" || json_.peek() != '{') return json_.skip();
      json_.members([&](std::string_view table) {
        if (table == "kernel_dispatch") return records(RocTable::kKernels);
        if (table == "memory_copy") return records(RocTable::kCopies);
        if (table == "hip_api") return records(RocTable::kCalls);
        if (table == "marker_api") return records(RocTable::kRanges);
        json_.skip();
      });
    });
  }

  template <class Item>
  void list(const Item& item) {
    if (json_.peek() != '[') return json_.skip();
    json_.items([&] { json_.peek() == '{' ? item() : json_.skip(); });
  }

  void agent() {
    Agent out;
    std::string handle, index;
    json_.members([&](std::string_view key) {
      if (key == "id") {
        handle = this->handle();
      } else if (key == "type") {
        out.gpu = json_.scalar() == "2";
      } else if (key == "product_name") {
        out.name = json_.scalar();
      } else if (key == "logical_node_type_id") {
        index = json_.scalar();
      } else {
        json_.skip();
      }
    });
    if (out.gpu && records_.recording().chip.empty()) records_.recording().chip = out.name;
    out.name = fmt::format("GPU {}", index.empty() ? handle : index);
    agents_[handle] = std::move(out);
  }

  /// Of {"handle": 12}.
  std::string handle() {
    std::string out;
    if (json_.peek() != '{') return std::string(json_.scalar());
    json_.members([&](std::string_view key) {
      if (key == "handle") {
        out = json_.scalar();
      } else {
        json_.skip();
      }
    });
    return out;
  }

  void symbol() {
    std::int64_t id = -1;
    std::string name, formatted;
    json_.members([&](std::string_view key) {
      if (key == "kernel_id") {
        id = roc_number<std::int64_t>(json_.scalar()).value_or(-1);
      } else if (key == "kernel_name") {
        name = json_.scalar();
      } else if (key == "formatted_kernel_name") {
        formatted = json_.scalar();
      } else {
        json_.skip();
      }
    });
    symbols_[id] = shared(formatted.empty() ? std::move(name) : std::move(formatted));
  }

  /// A name that many records may have by its number.
  std::string shared(std::string name) const {
    if (name.size() > limits::kNameText) json_.fail(fmt::format("a name of {} bytes", name.size()));
    return name;
  }

  /// What ranges are called, by their correlation id, and what operations of each kind are.
  void strings() {
    if (json_.peek() != '{') return json_.skip();
    json_.members([&](std::string_view key) {
      if (key == "buffer_records") return list([&] { kind(); });
      if (key != "marker_api") return json_.skip();
      list([&] {
        std::uint64_t id = 0;
        std::string value;
        json_.members([&](std::string_view member) {
          if (member == "key") {
            id = roc_number<std::uint64_t>(json_.scalar()).value_or(0);
          } else if (member == "value") {
            value = json_.scalar();
          } else {
            json_.skip();
          }
        });
        ranges_[id] = shared(std::move(value));
      });
    });
  }

  void kind() {
    std::vector<std::string> operations;
    json_.members([&](std::string_view key) {
      if (key != "operations" || json_.peek() != '[') return json_.skip();
      json_.items([&] { operations.push_back(shared(std::string(json_.scalar()))); });
    });
    operations_.push_back(std::move(operations));
  }

  void records(RocTable table) {
    list([&] {
      constexpr std::size_t kPolled = 4096;
      if (++polled_ % kPolled == 0 && should_stop(stop_)) throw Stopped();
      if (kept_.size() >= limits::kRecordedEvents)
        json_.fail(limits::too_many(limits::kRecordedEvents, "records"), "record fewer steps");
      Kept out{table, {}, json_.offset()};
      RocRecord& r = out.record;
      std::string queue;
      json_.members([&](std::string_view key) { member(key, r, queue); });
      if (!r.start || !r.end) json_.fail("a record without its start and end");
      if (r.stream.empty()) r.stream = "queue " + queue;
      kept_.push_back(std::move(out));
    });
  }

  void member(std::string_view key, RocRecord& r, std::string& queue) {
    if (key == "start_timestamp") {
      r.start = roc_number<std::int64_t>(json_.scalar());
    } else if (key == "end_timestamp") {
      r.end = roc_number<std::int64_t>(json_.scalar());
    } else if (key == "kind") {
      r.kind = roc_number<std::int64_t>(json_.scalar()).value_or(-1);
    } else if (key == "operation") {
      r.operation = roc_number<std::int64_t>(json_.scalar()).value_or(-1);
    } else if (key == "correlation_id" && json_.peek() == '{') {
      json_.members([&](std::string_view id) {
        if (id == "internal") {
          r.correlation = roc_number<std::uint64_t>(json_.scalar()).value_or(0);
        } else {
          json_.skip();
        }
      });
    } else if (key == "dispatch_info" && json_.peek() == '{') {
      json_.members([&](std::string_view info) {
        if (info == "agent_id") {
          r.agent = handle();
        } else if (info == "queue_id") {
          queue = handle();
        } else if (info == "kernel_id") {
          r.kernel = roc_number<std::int64_t>(json_.scalar()).value_or(-1);
        } else {
          json_.skip();
        }
      });
    } else if (key == "stream_id") {
      r.stream = "stream " + handle();
    } else if (key == "src_agent_id") {
      r.from = handle();
    } else if (key == "dst_agent_id") {
      r.to = handle();
    } else if (key == "bytes") {
      r.bytes = roc_number<double>(json_.scalar()).value_or(0);
    } else {
      json_.skip();
    }
  }

  /// Names may stand behind the records that mean them.
  void place() {
    for (Kept& kept : kept_) {
      RocRecord& r = kept.record;
      if (kept.table == RocTable::kKernels) {
        const auto symbol = symbols_.find(r.kernel);
        r.name = symbol == symbols_.end() ? fmt::format("kernel {}", r.kernel) : symbol->second;
        r.agent = device(r.agent);
      } else if (kept.table == RocTable::kCopies) {
        r.direction = direction(r);
        r.from = device(r.from);
        r.to = device(r.to);
      } else if (kept.table == RocTable::kRanges) {
        const auto range = ranges_.find(r.correlation);
        if (range == ranges_.end()) continue;
        r.name = range->second;
      }
      const std::string problem = records_.take(kept.table, r);
      if (!problem.empty()) {
        throw UserError({Diagnostic{SourceSpan{.file = records_.recording().file},
                                    fmt::format("{} (before byte {})", problem, kept.byte),
                                    "record it again: nothing of a damaged file is used"}});
      }
    }
  }

  std::string device(const std::string& handle) const {
    const auto at = agents_.find(handle);
    return at == agents_.end() ? "GPU " + handle : at->second.name;
  }

  std::string direction(const RocRecord& r) const {
    const auto kind = static_cast<std::size_t>(std::max<std::int64_t>(r.kind, 0));
    const auto operation = static_cast<std::size_t>(std::max<std::int64_t>(r.operation, 0));
    if (kind < operations_.size() && operation < operations_[kind].size()) return operations_[kind][operation];
    const auto of_gpu = [&](const std::string& handle) {
      const auto at = agents_.find(handle);
      return at != agents_.end() && at->second.gpu;
    };
    return fmt::format("{}_TO_{}", of_gpu(r.from) ? "DEVICE" : "HOST", of_gpu(r.to) ? "DEVICE" : "HOST");
  }

  const Stop& stop_;
  ByteSource source_;
  JsonStream json_;
  RocRecords records_;
  std::map<std::string, Agent> agents_;
  std::unordered_map<std::int64_t, std::string> symbols_;
  std::unordered_map<std::uint64_t, std::string> ranges_;
  std::vector<std::vector<std::string>> operations_;
  std::vector<Kept> kept_;
  std::size_t polled_ = 0;
};

// ---- CSV

/// Rows of RFC 4180: quoted fields may hold commas, quotes twice and line ends.
class CsvRows {
 public:
  explicit CsvRows(const std::string& path) : source_(path), buffer_(std::size_t{1} << 18U) {}

  /// False at the end.
  bool next(std::vector<std::string>& fields) {
    fields.clear();
    row_ = line_;
    if (peek() < 0) return false;
    for (;;) {
      fields.push_back(field());
      const int c = take();
      if (c == ',') continue;
      if (c == '\r' && peek() == '\n') take();
      if (c < 0) unended_ = true;
      return true;
    }
  }
  /// Whether the last row has no line end: it may be cut off.
  bool unended() const { return unended_; }

  [[noreturn]] void fail(std::string message,
                         std::string hint = "copy or record it again: nothing of a damaged file is used") const {
    throw UserError({Diagnostic{SourceSpan{.file = source_.path(),
                                           .line = static_cast<int>(std::min<std::uint64_t>(row_, 2'000'000'000)),
                                           .column = 1},
                                std::move(message), std::move(hint)}});
  }

 private:
  int peek() {
    if (at_ == end_) {
      at_ = 0;
      end_ = source_.read(buffer_.data(), buffer_.size());
    }
    return at_ == end_ ? -1 : static_cast<unsigned char>(buffer_[at_]);
  }
  int take() {
    const int c = peek();
    if (c >= 0) ++at_;
    line_ += c == '\n' ? 1 : 0;
    return c;
  }
  std::string field() {
    std::string out;
    const auto put = [&](int c) {
      out += static_cast<char>(static_cast<unsigned char>(c));
      if (out.size() > limits::kCellText) fail("a field " + limits::too_large(limits::kCellText));
    };
    if (peek() != '"') {
      while (peek() >= 0 && peek() != ',' && peek() != '\n' && peek() != '\r') put(take());
      return out;
    }
    take();
    for (;;) {
      const int c = take();
      if (c < 0) fail("a quote that never closes: the file was cut off");
      if (c != '"') {
        put(c);
      } else if (peek() == '"') {
        put(take());
      } else {
        break;
      }
    }
    if (peek() >= 0 && peek() != ',' && peek() != '\n' && peek() != '\r') fail("text behind a closing quote");
    return out;
  }

  ByteSource source_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t line_ = 1, row_ = 1;
  bool unended_ = false;
};

class RocCsvReader {
 public:
  RocCsvReader(const std::string& path, const Stop& stop) : stop_(stop), path_(path), records_(path) {}

  Recording read() {
    table(path_);
    // The tables of one process stand beside each other: 199_kernel_trace.csv, 199_hip_api_trace.csv.
    constexpr std::array<std::string_view, 4> kTables{"kernel_trace.csv", "memory_copy_trace.csv", "hip_api_trace.csv",
                                                      "marker_api_trace.csv"};
    for (const std::string_view own : kTables) {
      if (!path_.ends_with(own)) continue;
      const std::string stem = path_.substr(0, path_.size() - own.size());
      for (const std::string_view other : kTables) {
        std::error_code none;
        const std::string beside = stem + std::string(other);
        if (other == own || !std::filesystem::is_regular_file(beside, none)) continue;
        records_.recording().notes.push_back(fmt::format("with {}, which stands beside it", beside));
        table(beside);
      }
      break;
    }
    return records_.finish();
  }

 private:
  void table(const std::string& path) {
    CsvRows rows(path);
    std::vector<std::string> fields;
    rows.next(fields);
    std::map<std::string, std::size_t> columns;
    for (std::size_t i = 0; i < fields.size(); ++i) columns.emplace(lower_case(fields[i]), i);
    const std::size_t width = fields.size();
    const auto has = [&](const char* column) { return columns.contains(column); };
    if (!has("start_timestamp") || !has("end_timestamp")) {
      rows.fail("a table without Start_Timestamp and End_Timestamp", "rocprofv3 --kernel-trace --output-format csv");
    }
    const RocTable kind = has("kernel_name") ? RocTable::kKernels
                          : has("direction") ? RocTable::kCopies
                          : has("function")  ? RocTable::kCalls
                                             : RocTable::kOther;
    if (kind == RocTable::kOther) {
      rows.fail("a table of neither kernels, copies nor calls",
                "name the one that --kernel-trace writes: kernel_trace.csv");
    }
    while (rows.next(fields)) {
      constexpr std::size_t kPolled = 4096;
      if (++polled_ % kPolled == 0 && should_stop(stop_)) throw Stopped();
      if (fields.size() == 1 && fields.front().empty()) continue;
      if (fields.size() != width) {
        rows.fail(fmt::format("a row of {} fields in a table of {} columns{}", fields.size(), width,
                              rows.unended() ? ": the file was cut off" : ""));
      }
      const auto of = [&](const char* column) -> std::string {
        const auto at = columns.find(column);
        return at == columns.end() ? std::string() : fields[at->second];
      };
      RocRecord r{.name = kind == RocTable::kKernels ? of("kernel_name") : of("function"),
                  .agent = agent(of("agent_id")),
                  .direction = of("direction"),
                  .start = roc_number<std::int64_t>(of("start_timestamp")),
                  .end = roc_number<std::int64_t>(of("end_timestamp")),
                  .correlation = roc_number<std::uint64_t>(of("correlation_id")).value_or(0),
                  .from = agent(of("source_agent_id")),
                  .to = agent(of("destination_agent_id"))};
      r.stream = has("stream_id") ? "stream " + of("stream_id") : "queue " + of("queue_id");
      const bool range = kind == RocTable::kCalls && of("domain").starts_with("MARKER");
      const std::string problem = records_.take(range ? RocTable::kRanges : kind, r);
      if (!problem.empty()) rows.fail(problem);
    }
  }

  /// "Agent 7", or the number alone in older releases.
  static std::string agent(const std::string& said) {
    return said.empty() || said.find_first_not_of("0123456789") != std::string::npos ? said : "Agent " + said;
  }

  const Stop& stop_;
  std::string path_;
  RocRecords records_;
  std::size_t polled_ = 0;
};

}  // namespace

bool is_rocprof_csv(std::string_view first) {
  const std::string line = lower_case(first.substr(0, first.find('\n')));
  return line.find(',') != std::string::npos && line.find("start_timestamp") != std::string::npos &&
         line.find("end_timestamp") != std::string::npos;
}

bool is_rocprof_json(std::string_view first) {
  constexpr std::string_view kKey = "\"rocprofiler-sdk-tool\"";
  const std::size_t at = first.find_first_not_of(" \t\r\n{");
  return at != std::string_view::npos && first.substr(at).starts_with(kKey);
}

Recording read_rocprof_json(const std::string& path, const Stop& stop) { return RocJsonReader(path, stop).read(); }
Recording read_rocprof_csv(const std::string& path, const Stop& stop) { return RocCsvReader(path, stop).read(); }

}  // namespace scalecalc
