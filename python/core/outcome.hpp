// SPDX-License-Identifier: Apache-2.0
// What a call of the libraries has come to, and the exceptions for that.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace shmem_kv {

namespace py = pybind11;

/// 0, or a negative errno and its text.
struct Outcome {
  int error = 0;
  std::string text{};
};

/// Raises the exception that an errno stands for.
[[noreturn]] void raise(int error, const std::string& text);

}  // namespace shmem_kv
