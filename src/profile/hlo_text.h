// XLA's HLO text (a dump of --xla_dump_to, or of lower().compile().as_text()) as instructions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/hlo_mesh.h"

namespace scalecalc {

/// One array; a tuple is several.
struct HloArray {
  std::string type;  ///< "bf16"
  std::vector<double> dims;
  bool in_hbm = true;          ///< else on the chip or in the host's memory, by the memory space of its layout
  double padded_elements = 0;  ///< in whole tiles of its layout, where it has one
  double elements() const;
  double bytes() const;
  double stored_bytes() const;  ///< in HBM, whole tiles
};

struct HloInstruction {
  std::string name;
  std::string opcode;
  std::vector<HloArray> result;
  std::vector<std::size_t> elements;  ///< of a tuple: where in `result` each of its elements begins
  std::vector<std::string> operands;  ///< names
  std::string_view attributes;        ///< behind the operands; into the module's text
  std::size_t line = 0;
};

struct HloComputation {
  std::vector<HloInstruction> instructions;  ///< in the order of the text, which is the schedule's where there is one
  std::map<std::string, std::size_t, std::less<>> by_name;
  const HloInstruction* find(std::string_view name) const;
};

struct HloModule {
  std::string text;
  std::string file;
  std::string name;
  bool scheduled = false;
  std::int64_t partitions = 1;
  std::string entry;
  std::string_view header;  ///< its line of the text
  std::map<std::string, HloComputation, std::less<>> computations;
};

bool is_hlo_text(std::string_view first_bytes);
/// UserError (exit 2) with the line for a text that is none, or ends within a computation.
HloModule read_hlo(const std::string& path);

/// What stands behind `key=` in an instruction's attributes, brackets balanced: "{0}", "%body"; empty if it is not
/// there.
std::string_view hlo_attribute(std::string_view attributes, std::string_view key);
/// The pieces of a list at its commas, what stands in brackets left whole; the first limits::kHloDevices.
std::vector<std::string_view> hlo_items(std::string_view list);
/// The whole numbers in a text: "{0,1}", "[\"1\"]"; the first limits::kHloDevices of them.
std::vector<std::int64_t> hlo_numbers(std::string_view text);

/// Devices that one collective runs between.
struct HloGroups {
  std::int64_t size = 1;
  std::int64_t stride = 1;  ///< between two of a group; 0: not evenly spaced
  std::int64_t count = 1;
  std::string axes;     ///< names of a mesh, where the text has them
  MeshFactors factors;  ///< of each group; empty if groups differ, or are no nested steps
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;  ///< of a permutation: from which to which
};
/// Of `replica_groups` in any of its notations, or of source_target_pairs; all devices if there are none.
HloGroups hlo_groups(const HloInstruction& instruction, std::int64_t devices);

}  // namespace scalecalc
