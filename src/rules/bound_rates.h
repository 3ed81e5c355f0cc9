// The rates a rule of thumb compares: one chip's, from the data sheet or times what its kernels and links reach.
#pragma once

#include "primitives/named_rates.h"

namespace scalecalc {

class BoundRates {
 public:
  /// Keeps a reference to `hw`. `ideal`: data-sheet rates; otherwise times the hardware file's efficiencies.
  BoundRates(const HardwareSpec& hw, DType compute, bool ideal) : chip_(hw), compute_(compute), ideal_(ideal) {}

  const NamedRates& chip() const { return chip_; }
  const HardwareSpec& hw() const { return chip_.hw(); }
  bool is_torus() const { return chip_.is_torus(); }
  /// Whether the file describes a network between chips with its rate, and one between slices or nodes.
  bool has_network() const;
  bool has_outer_network() const;

  FlopsPerSecondOf<Traced> compute() const { return compute(compute_); }  ///< C
  FlopsPerSecondOf<Traced> compute(DType dtype) const;
  /// C as the data sheet has it whatever the efficiencies: what an MFU is a share of.
  FlopsPerSecondOf<Traced> peak() const { return chip_.matmul(compute_); }
  BytesPerSecondOf<Traced> hbm() const;          ///< W_hbm
  BytesPerSecondOf<Traced> link() const;         ///< W_uni; torus only
  BytesPerSecondOf<Traced> axis() const;         ///< W_ici; torus only. W_uni where the slice's axes are not closed
  BytesPerSecondOf<Traced> scale_up() const;     ///< W_gpu; switched only
  BytesPerSecondOf<Traced> scale_out() const;    ///< W_dcn, or a chip's share of W_node
  BytesPerSecondOf<Traced> node_egress() const;  ///< W_node; switched only
  double node_size() const { return static_cast<double>(chip_.node_size()); }  ///< switched only

  /// alpha_ici = C / W_ici; torus only.
  FlopsPerByteOf<Traced> axis_intensity() const;
  /// C / min(W_gpu, W_node): what data parallelism over many nodes sees; switched only.
  FlopsPerByteOf<Traced> collective_intensity() const;
  /// What a tensor-parallel group of that many chips sees: alpha_ici on a torus, C / W_gpu in a node, C / W_node
  /// beyond.
  FlopsPerByteOf<Traced> tensor_intensity(std::int64_t degree) const;

 protected:
  void take_axes_as_lines() { rings_ = false; }

 private:
  NamedRates chip_;
  DType compute_;
  bool ideal_;
  bool rings_ = true;  ///< every axis of the torus is closed
};

}  // namespace scalecalc
