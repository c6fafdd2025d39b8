// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/kernels.hpp"

#include <cstdlib>
#include <string_view>

#include "tests/support/soak.hpp"

namespace vm {
namespace {

bool uses_iommufd() {
  const char* const kernel = std::getenv("GBA_VM_KERNEL");
  return kernel != nullptr && std::string_view(kernel) == "iommufd";
}

}  // namespace

std::vector<std::string> kernels() {
  if (uses_iommufd()) {
    return {"iommufd"};
  }
  // Suites: 6.1, 6.12 and a newer one.
  static const std::vector<std::string> all{"bookworm", "trixie", "trixie-backports"};
  return {all.begin(), all.begin() + test_support::repeats(1, 3)};
}

std::string backend() {
  return uses_iommufd() ? "vfio-cdev" : "vfio-group";
}

std::vector<std::vector<std::string>> preparations() {
  if (uses_iommufd()) {
    return {{"build-vm-kernel.sh", "--check"}, {"fetch-vm.sh"}};  // --check only: a build takes minutes
  }
  std::vector<std::string> fetch{"fetch-vm.sh"};
  for (const auto& kernel : kernels()) {
    fetch.push_back(kernel);
  }
  return {fetch};
}

}  // namespace vm
