// Fused attention kernels by date: what each reaches on which chips from which month on (kernels/<name>.yaml), which of
// them a software stack runs (`attention_kernels:` of stacks/<name>.yaml), and so the one of a run. docs/kernels.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/catalog.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

/// One build of a kernel on some chips. Figures that nobody published are absent.
struct KernelBuild {
  std::vector<std::string> of, except;  ///< architectures, or chips by name
  std::string version;
  std::string since;  ///< "2024-07"; empty: never
  std::string source;
  std::optional<Coefficient> forward, backward;                    ///< fraction of the dense peak in long contexts
  std::optional<Coefficient> half_context, half_context_backward;  ///< tokens, see Efficiency
  std::optional<Coefficient> half_head_dim;

  bool is_of(const HardwareSpec& hw) const;
};

struct KernelSpec {
  std::string name, title;
  std::vector<KernelBuild> builds;

  /// The newest that serves the chip in that month, of any for an empty one; null if none does.
  const KernelBuild* build(const HardwareSpec& hw, std::string_view month) const;
};

/// Elements of a model's heads.
struct HeadWidths {
  std::int64_t keys = 128, values = 128;  ///< of queries and keys; of values and outputs
  friend bool operator==(const HeadWidths&, const HeadWidths&) = default;
};

/// What a stack runs on some chips from a month on.
struct KernelUse {
  std::vector<std::string> of;     ///< frameworks it holds for; empty: the stack
  std::vector<std::string> chips;  ///< or their architectures
  std::string kernel;              ///< by its name; empty: scores are written
  std::string since;
  std::string opt_in;                ///< what a run has to ask for it with; empty: the default
  std::int64_t widest_head = 0;      ///< that it is taken for; 0: any
  bool equal_widths = false;         ///< only where values are as wide as keys
  std::optional<HeadWidths> widths;  ///< only for these

  bool serves(const HeadWidths& heads) const;
};

/// UserError listing every problem of the document; chips and architectures that the catalog does not know are some.
KernelSpec load_kernel(const ConfigNode& document, const Catalog& catalog);
std::vector<KernelSpec> load_kernels(const Catalog& catalog);
/// Of a stack's document; empty if it has none. UserError as above, for kernels that are not known too.
std::vector<KernelUse> load_kernel_uses(const ConfigNode& stack, const Catalog& catalog);

inline constexpr std::string_view kFusedWord = "flash";
inline constexpr std::string_view kUnfusedWord = "unfused";

struct KernelQuestion {
  std::string stack;      ///< by its name or a framework's; empty: no particular one
  std::string framework;  ///< of the stack, where that has kernels of its own
  std::string date;       ///< as month_of takes it; otherwise the newest of everything counts
  std::string stated;     ///< kFusedWord: the stack's newest, asked for; kUnfusedWord; a kernel; empty: nothing
  HeadWidths heads{};     ///< of the model, where there is one
};

/// How a run computes attention, and why.
struct KernelChoice {
  std::string name;   ///< of the kernel; kFusedWord: one that is not known by name; kUnfusedWord
  std::string title;  ///< "FlashAttention-2", with its version where it has some
  std::string why;    ///< "megatron on hopper since 2024-01"
  std::optional<KernelBuild> build;

  bool fused() const { return name != kUnfusedWord; }
};

/// UserError for a kernel that is not known, or never on the chip.
KernelChoice choose_kernel(const Catalog& catalog, const HardwareSpec& hw, const KernelQuestion& asked);

/// Puts the kernel's figures in the place of those of the chip in `efficiency`, which are hw.efficiency's times what
/// was fitted for a stack: that goes on multiplying. What was typed, what the kernel has no figure for and recurrences
/// stay.
void use_kernel(const KernelChoice& choice, const HardwareSpec& hw, Efficiency& efficiency);

}  // namespace scalecalc
