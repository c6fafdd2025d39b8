// SPDX-License-Identifier: Apache-2.0
// Reductions of 16-bit floating-point numbers: many elements at a time give what one element at a time gives.
#include "shmem/collective/typed_reduction.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace shmem {
namespace {

using Half = std::uint16_t;
using Halves = std::vector<Half>;

constexpr std::size_t kAll = std::size_t{1} << 16;

struct Case {
  ElementType type;
  ElementOperation operation;
};

/// Two NaNs need not have the same bits.
bool is_nan(ElementType type, Half value) {
  const unsigned infinity = type == ElementType::kFloat16 ? 0x7c00 : 0x7f80;
  return (value & 0x7fffU) > infinity;
}

Halves combined(const Reduction& reduction, Halves to, const Halves& from, std::size_t at_once) {
  for (std::size_t i = 0; i < to.size(); i += at_once) {
    reduction.combine(&to[i], &from[i], std::min(at_once, to.size() - i));
  }
  return to;
}

class HalvesTest : public testing::TestWithParam<Case> {};

TEST_P(HalvesTest, ManyAtOnceGiveTheSameBits) {
  const auto [type, operation] = GetParam();
  const auto typed = typed_reduction(type, operation);
  ASSERT_TRUE(typed);
  Halves each(kAll);
  for (std::size_t i = 0; i < kAll; ++i) {
    each[i] = static_cast<Half>(i);
  }
  // Zeros, ones, subnormal numbers, the largest ones, infinities and NaNs of both signs, and numbers in between.
  for (const unsigned other :
       {0x0000U, 0x8000U, 0x0001U, 0x8003U, 0x03ffU, 0x3c00U, 0x3c01U, 0xbf80U, 0x3f81U, 0x7bffU,
        0xfbffU, 0x7c00U, 0xfc00U, 0x7f7fU, 0x7f80U, 0xff80U, 0x7e01U, 0xffc1U, 0x5555U, 0x2aabU}) {
    Halves others(kAll);
    for (std::size_t i = 0; i < kAll; ++i) {
      others[i] = static_cast<Half>(other ^ (i >> 13));
    }
    const Halves expected = combined(typed->reduction, each, others, 1);
    const Halves got = combined(typed->reduction, each, others, 1003);  // not a multiple of any vector's size
    for (std::size_t i = 0; i < kAll; ++i) {
      if (got[i] != expected[i]) {
        ASSERT_TRUE(is_nan(type, got[i]) && is_nan(type, expected[i]))
            << std::hex << each[i] << " with " << others[i] << ": " << got[i] << " instead of " << expected[i];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, HalvesTest,
                         testing::Values(Case{ElementType::kFloat16, ElementOperation::kSum},
                                         Case{ElementType::kFloat16, ElementOperation::kProduct},
                                         Case{ElementType::kFloat16, ElementOperation::kMinimum},
                                         Case{ElementType::kFloat16, ElementOperation::kMaximum},
                                         Case{ElementType::kBfloat16, ElementOperation::kSum},
                                         Case{ElementType::kBfloat16, ElementOperation::kProduct},
                                         Case{ElementType::kBfloat16, ElementOperation::kMinimum},
                                         Case{ElementType::kBfloat16, ElementOperation::kMaximum}),
                         [](const testing::TestParamInfo<Case>& tested) {
                           return std::string(name_of(tested.param.type)) + "_" + name_of(tested.param.operation);
                         });

}  // namespace
}  // namespace shmem
