// Computes the peak memory of a compiled program from the lifetimes of its buffers.
#include "profile/hlo_memory.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/diagnostic.h"
#include "base/limits.h"

namespace scalecalc {
namespace {

constexpr std::size_t kNone = SIZE_MAX;

struct Buffer {
  double bytes = 0;
  std::size_t made = 0;  ///< position in the order
  std::size_t last = 0;
  bool held = false;  ///< by who calls: no temporary
};

struct Peak {
  double bytes = 0;
  std::string at;
};

double stored(const std::vector<HloArray>& arrays) {
  double out = 0;
  for (const HloArray& array : arrays) out += array.stored_bytes();
  return out;
}

/// Results that lie in donated parameters: "input_output_alias={ {0}: (0, {}, may-alias), {}: (2, {1}) }", as positions
/// among the results; {} is all of a result that is no tuple.
std::set<std::size_t> donated(std::string_view header) {
  std::set<std::size_t> out;
  std::string_view text = hlo_attribute(header, "input_output_alias");
  std::size_t depth = 0;
  std::size_t open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && ++depth == 2) open = i;
    if (text[i] == '}' && depth-- == 2 && text.substr(i + 1).starts_with(":")) {
      const std::vector<std::int64_t> index = hlo_numbers(text.substr(open, i - open));
      out.insert(index.empty() ? 0 : static_cast<std::size_t>(index.front()));
    }
  }
  return out;
}

/// The buffers of one computation, its own calls' peaks with them.
class Liveness {
 public:
  Liveness(const HloModule& module, const HloComputation& computation, std::size_t depth,
           std::map<const HloComputation*, Peak>& known)
      : module_(module), in_(computation), depth_(depth), known_(known) {
    for (std::size_t i = 0; i < in_.instructions.size(); ++i) {
      for (const std::string& operand : in_.instructions[i].operands) ++uses_[operand];
    }
    for (std::size_t i = 0; i < in_.instructions.size(); ++i) define(i);
  }

  /// Nothing of `results` counts that `free` names; the others live to the end.
  Peak peak(bool results_count, const std::set<std::size_t>& free) {
    if (in_.instructions.empty()) return {};
    const std::vector<std::size_t>& root = values_.back();
    for (std::size_t leaf = 0; leaf < root.size(); ++leaf) {
      Buffer& buffer = buffers_[root[leaf]];
      buffer.last = in_.instructions.size();
      if (!results_count || free.contains(leaf)) buffer.held = true;
    }
    const std::size_t n = in_.instructions.size();
    std::vector<double> change(n + 2, 0.0);
    for (const Buffer& buffer : buffers_) {
      if (buffer.held) continue;
      change[buffer.made] += buffer.bytes;
      change[std::min(buffer.last, n) + 1] -= buffer.bytes;
    }
    Peak out;
    double live = 0;
    for (std::size_t i = 0; i < n; ++i) {
      live += change[i];
      if (live + inner_[i] <= out.bytes) continue;
      out = {live + inner_[i], in_.instructions[i].name};
    }
    return out;
  }
  double constants() const { return constants_; }

 private:
  std::size_t fresh(double bytes, std::size_t at, bool held = false) {
    buffers_.push_back({bytes, at, at, held});
    return buffers_.size() - 1;
  }

  std::vector<std::size_t>* value(const std::string& name) {
    const auto found = in_.by_name.find(name);
    return found == in_.by_name.end() || found->second >= values_.size() ? nullptr : &values_[found->second];
  }

  const HloComputation* called(const HloInstruction& i, std::string_view key) const {
    std::string_view name = hlo_attribute(i.attributes, key);
    if (name.starts_with('%')) name.remove_prefix(1);
    const auto found = module_.computations.find(name);
    return found == module_.computations.end() ? nullptr : &found->second;
  }

  /// What a called computation holds beside its operands and, unless they are its caller's, results.
  double inside(const HloInstruction& i) {
    double out = 0;
    constexpr std::array<std::string_view, 5> kKeys{"body", "condition", "to_apply", "true_computation",
                                                    "false_computation"};
    const bool runs = i.opcode == "while" || i.opcode == "call" || i.opcode == "conditional";
    if (!runs || depth_ == 0) return 0;
    for (const std::string_view key : kKeys) {
      if (const HloComputation* inner = called(i, key)) out = std::max(out, of(*inner));
    }
    return out;
  }

  double of(const HloComputation& computation) {
    if (const auto at = known_.find(&computation); at != known_.end()) return at->second.bytes;
    known_[&computation] = {};
    Peak peak = Liveness(module_, computation, depth_ - 1, known_).peak(false, {});
    known_[&computation] = peak;
    return peak.bytes;
  }

  void define(std::size_t at) {
    const HloInstruction& i = in_.instructions[at];
    for (const std::string& operand : i.operands) {
      if (const auto* read = value(operand)) {
        if ((looked_ += read->size()) > limits::kHloLooks) {
          throw UserError(
              {Diagnostic{SourceSpan{.file = module_.file, .line = static_cast<int>(i.line), .column = 1},
                          "tuples of this module are passed on too often to follow", "is it a real module?"}});
        }
        for (const std::size_t buffer : *read) buffers_[buffer].last = std::max(buffers_[buffer].last, at);
      }
    }
    std::vector<std::size_t> out = aliases(i);
    if (out.size() != i.result.size()) out.assign(i.result.size(), kNone);
    const bool parameter = i.opcode == "parameter";
    const bool constant = i.opcode == "constant";
    for (std::size_t leaf = 0; leaf < out.size(); ++leaf) {
      const double bytes = i.result[leaf].stored_bytes();
      if (constant) constants_ += bytes;
      if (out[leaf] == kNone) out[leaf] = fresh(bytes, at, parameter || constant);
    }
    values_.push_back(std::move(out));
    inner_.push_back(inside(i));
  }

  /// Buffers that an instruction passes on rather than makes; kNone for those it makes. Empty: all are made.
  std::vector<std::size_t> aliases(const HloInstruction& i) {
    std::vector<std::vector<std::size_t>*> operands;
    for (const std::string& operand : i.operands) operands.push_back(value(operand));
    const auto first = [&]() -> std::vector<std::size_t> {
      return operands.empty() || operands[0] == nullptr ? std::vector<std::size_t>{} : *operands[0];
    };
    if (i.opcode == "tuple") {
      std::vector<std::size_t> out;
      for (const auto* operand : operands) {
        if (operand == nullptr || out.size() + operand->size() > i.result.size()) return {};
        out.insert(out.end(), operand->begin(), operand->end());
      }
      return out;
    }
    if (i.opcode == "get-tuple-element") return element(i);
    if (i.opcode == "bitcast" || i.opcode == "while" || i.opcode == "opt-barrier" ||
        i.opcode == "optimization-barrier" || i.opcode == "add-dependency") {
      return first();
    }
    if (i.opcode.ends_with("-start")) {
      // What it reads stands in its result again, before what it makes.
      std::vector<std::size_t> out = first();
      const bool copies = i.opcode == "copy-start";
      if (copies && !out.empty()) out = {kNone, out[0]};
      if (out.size() >= i.result.size()) return {};
      out.resize(i.result.size(), kNone);
      return out;
    }
    if (i.opcode.ends_with("-done")) {
      const std::vector<std::size_t> from = first();
      if (from.size() == i.result.size()) return from;
      const HloInstruction* start = i.operands.empty() ? nullptr : in_.find(i.operands[0]);
      if (start == nullptr) return {};
      std::size_t skip = start->opcode == "copy-start" ? 0 : start->operands.size();
      if (skip + i.result.size() > from.size()) skip = 0;
      if (from.size() < i.result.size()) return {};
      return {from.begin() + static_cast<std::ptrdiff_t>(skip),
              from.begin() + static_cast<std::ptrdiff_t>(skip + i.result.size())};
    }
    if (const auto own = said(i, operands); !own.empty()) return own;
    if (updates_in_place(i) && !i.operands.empty() && uses_[i.operands[0]] == 1) {
      const std::vector<std::size_t> from = first();
      if (from.size() == 1 && !buffers_[from[0]].held) return from;
    }
    return {};
  }

  std::vector<std::size_t> element(const HloInstruction& i) {
    const HloInstruction* from = i.operands.empty() ? nullptr : in_.find(i.operands[0]);
    const auto* all = i.operands.empty() ? nullptr : value(i.operands[0]);
    const std::vector<std::int64_t> index = hlo_numbers(hlo_attribute(i.attributes, "index"));
    if (from == nullptr || all == nullptr || index.empty() ||
        index.front() >= static_cast<std::int64_t>(from->elements.size())) {
      return {};
    }
    const std::size_t start = from->elements[static_cast<std::size_t>(index.front())];
    if (start + i.result.size() > all->size()) return {};
    const auto begin = all->begin() + static_cast<std::ptrdiff_t>(start);
    return {begin, begin + static_cast<std::ptrdiff_t>(i.result.size())};
  }

  /// "output_to_operand_aliasing={{0}: (2, {})}" of one array that one operand is.
  std::vector<std::size_t> said(const HloInstruction& i, const std::vector<std::vector<std::size_t>*>& operands) {
    const std::string_view text = hlo_attribute(i.attributes, "output_to_operand_aliasing");
    std::vector<std::size_t> out(i.result.size(), kNone);
    if (text.empty()) return {};
    bool any = false;
    for (std::size_t at = text.find(": ("); at != std::string_view::npos; at = text.find(": (", at + 1)) {
      const std::size_t open = text.rfind('{', at);
      const std::vector<std::int64_t> of = hlo_numbers(text.substr(open, at - open));
      const std::vector<std::int64_t> by = hlo_numbers(text.substr(at, text.find(',', at) - at));
      const std::size_t leaf = of.empty() ? 0 : static_cast<std::size_t>(of.front());
      if (by.empty() || by.front() >= static_cast<std::int64_t>(operands.size()) || leaf >= out.size()) continue;
      const auto* operand = operands[static_cast<std::size_t>(by.front())];
      if (operand == nullptr || operand->size() != 1 || buffers_[operand->front()].held) continue;
      out[leaf] = operand->front();
      any = true;
    }
    return any ? out : std::vector<std::size_t>{};
  }

  bool updates_in_place(const HloInstruction& i) const {
    if (i.opcode == "dynamic-update-slice" || i.opcode == "scatter") return true;
    if (i.opcode != "fusion" || i.result.size() != 1) return false;
    const HloComputation* fused = called(i, "calls");
    if (fused == nullptr || fused->instructions.empty()) return false;
    const HloInstruction* root = &fused->instructions.back();
    while (root != nullptr && root->opcode == "bitcast" && !root->operands.empty())
      root = fused->find(root->operands[0]);
    if (root == nullptr || root->opcode != "dynamic-update-slice" || root->operands.empty()) return false;
    const HloInstruction* into = fused->find(root->operands[0]);
    while (into != nullptr && into->opcode == "bitcast" && !into->operands.empty())
      into = fused->find(into->operands[0]);
    return into != nullptr && into->opcode == "parameter" && !into->operands.empty() && into->operands[0] == "0";
  }

  const HloModule& module_;
  const HloComputation& in_;
  std::size_t depth_;
  std::map<const HloComputation*, Peak>& known_;
  std::map<std::string, std::size_t, std::less<>> uses_;
  std::vector<Buffer> buffers_;
  std::vector<std::vector<std::size_t>> values_;  ///< of each instruction, leaf by leaf
  std::vector<double> inner_;                     ///< what its calls hold beside
  double constants_ = 0;
  std::size_t looked_ = 0;  ///< at buffers of operands
};

}  // namespace

HloMemory hlo_memory(const HloModule& module) {
  HloMemory out;
  const HloComputation& entry = module.computations.at(module.entry);
  if (entry.instructions.empty()) return out;
  for (const HloInstruction& i : entry.instructions) {
    if (i.opcode == "parameter") out.parameters += stored(i.result);
  }
  const std::vector<HloArray>& results = entry.instructions.back().result;
  out.results = stored(results);
  const std::set<std::size_t> in_place = donated(module.header);
  for (const std::size_t leaf : in_place) out.aliased += leaf < results.size() ? results[leaf].stored_bytes() : 0;
  std::map<const HloComputation*, Peak> known;
  known[&entry] = {};
  Liveness liveness(module, entry, limits::kCallLevels, known);
  const Peak peak = liveness.peak(true, in_place);
  out.constants = liveness.constants();
  out.temporaries = peak.bytes;
  out.at = peak.at;
  return out;
}

}  // namespace scalecalc
