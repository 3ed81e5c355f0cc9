// Sharding annotations of a program in the notation of named axes, "W[I_X, J]", and its products as expressions that
// `scalecalc matmul` continues from.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "profile/hlo_mesh.h"
#include "profile/hlo_text.h"

namespace scalecalc {

/// How one array is cut: for each dimension its whole size and the devices it is cut over.
struct HloCuts {
  std::vector<double> sizes;
  std::vector<MeshFactors> cuts;
  friend bool operator==(const HloCuts&, const HloCuts&) = default;
};

/// An annotated array; those alike are one.
struct HloShardedArray {
  std::string name;      ///< of the first: what the program was traced from says of it, else the instruction's
  std::string type;      ///< "bf16"
  std::string notation;  ///< "[I_X, J]"; empty where the annotation is none of devices
  std::string sizes;     ///< "I=1024,J=512"
  std::string said;      ///< the annotation
  double count = 0;
  double local_bytes = 0;  ///< of one, on a device
  HloCuts cuts;
};

/// A product whose operands' shardings are known.
struct HloShardedProduct {
  std::string expression;  ///< "A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]"
  std::string command;     ///< of `scalecalc`, without the chip
  double count = 0;        ///< places in the text
};

/// The module's annotations as devices; computed once.
class HloShardings {
 public:
  explicit HloShardings(const HloModule& module);
  HloShardings(const HloShardings&) = delete;
  HloShardings& operator=(const HloShardings&) = delete;

  /// Whether shapes are those of one device.
  bool partitioned() const { return partitioned_; }
  /// Every cut that an annotation makes, in the order of the text.
  std::vector<MeshFactors> parts() const;
  std::vector<HloShardedArray> arrays(const HloMesh& mesh) const;
  std::vector<HloShardedProduct> products(const HloMesh& mesh) const;

 private:
  struct Place {
    const HloComputation* in = nullptr;
    const HloInstruction* at = nullptr;
  };
  void find_callers();
  std::optional<HloCuts> annotated(const HloInstruction& i, std::size_t leaf) const;
  std::optional<HloCuts> cuts_of(const HloComputation& in, const HloInstruction& i, std::size_t leaf,
                                 std::size_t depth) const;
  std::optional<HloCuts> derived(const HloComputation& in, const HloInstruction& i, std::size_t leaf,
                                 std::size_t depth) const;
  std::optional<HloCuts> of_parameter(const HloComputation& in, const HloInstruction& i, std::size_t leaf,
                                      std::size_t depth) const;
  std::optional<HloCuts> of_operand(const HloComputation& in, const HloInstruction& i, std::size_t operand,
                                    std::size_t leaf, std::size_t depth) const;
  std::optional<HloCuts> of_result(const HloInstruction& i, std::string_view key, std::size_t leaf,
                                   std::size_t depth) const;

  const HloModule& module_;
  bool partitioned_ = true;
  std::map<std::string, Place, std::less<>> callers_;  ///< of a computation
  mutable std::map<std::pair<const HloInstruction*, std::size_t>, std::optional<HloCuts>> known_;
};

/// What an annotation, "{devices=[2,1]<=[2]}", cuts of an array with so many dimensions; nothing where it places
/// devices by hand, or not at all. `header` says the axes of named ones.
std::optional<std::vector<MeshFactors>> hlo_sharding(std::string_view text, std::size_t dims, std::string_view header);

/// "[I_X, J_{YZ}]"; nothing where a cut is along no axes of the mesh.
std::optional<std::string> sharding_notation(const std::vector<std::string>& dims, const HloCuts& cuts,
                                             const HloMesh& mesh);

}  // namespace scalecalc
