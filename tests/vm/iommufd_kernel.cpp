// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/kernels.hpp"

namespace vm {

std::vector<std::string> kernels() {
  return {"iommufd"};
}

std::string backend() {
  return "vfio-cdev";
}

std::vector<std::vector<std::string>> preparations() {
  return {{"build-vm-kernel.sh", "--check"}, {"fetch-vm.sh"}};  // --check only: a build takes minutes
}

}  // namespace vm
