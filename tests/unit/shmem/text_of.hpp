// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace shmem::testing {

template <typename T>
std::string text_of(const base::Result<T>& result) {
  return result ? "went well" : result.error().text;
}

}  // namespace shmem::testing
