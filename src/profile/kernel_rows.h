// Kernels of a recording as rows that `calibrate` reads (validate/read_kernels.cpp).
#pragma once

#include <string>

#include "profile/profile.h"

namespace scalecalc {

/// Matmuls and attention whose shapes are known, and how fast elementwise kernels moved their bytes, as a YAML file;
/// how many rows it has.
struct KernelRows {
  std::string yaml;
  std::size_t count = 0;
};
KernelRows kernel_rows(const ProfileAnswer& found);

}  // namespace scalecalc
