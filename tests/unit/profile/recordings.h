// Recordings written for tests.
#pragma once

#include <string>

#include "profile/profile.h"
#include "support/fixtures.h"

namespace scalecalc::test {

/// Two steps of PyTorch's profiler and two of JAX's trace viewer.
inline std::string recorded(const std::string& name) {
  return std::string(SCALECALC_SOURCE_DIR) + "/tests/data/profiles/" + name;
}

inline ProfileAnswer profiled(const std::string& file) {
  return answer(ProfileQuestion{.files = {file}, .top = 100}, switched_chip());
}

inline double work_us(const ProfileAnswer& found, DeviceWork work) {
  return found.work_s.at(static_cast<std::size_t>(work)) * 1e6;
}
inline double idle_us(const ProfileAnswer& found, IdleCause cause) {
  return found.idle_s.at(static_cast<std::size_t>(cause)) * 1e6;
}

inline const ProfiledKernel* kernel_of(const ProfileAnswer& found, DeviceWork work) {
  for (const ProfiledKernel& kernel : found.kernels) {
    if (kernel.work == work) return &kernel;
  }
  return nullptr;
}

}  // namespace scalecalc::test
