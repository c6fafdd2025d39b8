// SPDX-License-Identifier: Apache-2.0
#include "tests/support/soak.hpp"
#include "tests/vm/kernels.hpp"

namespace vm {

// Suites: 6.1, 6.12 and a newer one.
std::vector<std::string> kernels() {
  static const std::vector<std::string> all{"bookworm", "trixie", "trixie-backports"};
  return {all.begin(), all.begin() + test_support::repeats(1, 3)};
}

std::string backend() {
  return "vfio-group";
}

std::vector<std::vector<std::string>> preparations() {
  std::vector<std::string> fetch{"fetch-vm.sh"};
  for (const auto& kernel : kernels()) {
    fetch.push_back(kernel);
  }
  return {fetch};
}

}  // namespace vm
