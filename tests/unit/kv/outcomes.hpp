// SPDX-License-Identifier: Apache-2.0
// What tests expect of the outcomes of all PEs.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <system_error>

#include "shmem/result.hpp"

namespace kv_test {

inline const auto kNoErrors = testing::Each(testing::Field(&shmem::Error::text, testing::IsEmpty()));

inline auto an_error(std::errc code, const std::string& text) {
  return testing::AllOf(testing::Field(&shmem::Error::code, code),
                        testing::Field(&shmem::Error::text, testing::HasSubstr(text)));
}

}  // namespace kv_test
