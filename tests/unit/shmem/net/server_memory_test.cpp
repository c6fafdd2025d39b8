// SPDX-License-Identifier: Apache-2.0
// A PE that has no memory for its answer to a request of another one.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>

#include "tests/support/failing_new.hpp"
#include "tests/unit/shmem/network_processes.hpp"

namespace {

constinit std::atomic<bool> no_memory{false};
constinit std::atomic<int> refusals{0};

}  // namespace

bool test_support::must_fail() {
  refusals += no_memory ? 1 : 0;
  return no_memory;
}

namespace shmem::testing {
namespace {

/// UCX calls the function that answers, and no exception may leave it: these frames are C's.
TEST(ServerMemory, ARequestThatCannotBeAnsweredEndsNoProcess) {
  if (!has_ucx()) {
    GTEST_SKIP() << "UCX (libucx0) is not installed";
  }
  const auto results = with_network(
      2,
      [](NetworkPe& place) -> std::string {
        if (place.pe == 0) {
          std::array<std::byte, 64> got{};
          while (place.rendezvous.flag == 0) {
            if (place.network->get(got.data(), heap_of(1, 0), got.size())) {
              return "it was answered";
            }
          }
          return "";
        }
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        no_memory = true;
        place.serve([end] { return refusals != 0 || std::chrono::steady_clock::now() > end; });
        no_memory = false;
        place.rendezvous.flag = 1;
        return refusals != 0 ? "" : "the answer needs no memory";
      },
      true, [](NetworkSettings& settings) { settings.limit = std::chrono::milliseconds(500); });
  EXPECT_EQ(results, (std::vector<std::string>{"", ""}));
}

}  // namespace
}  // namespace shmem::testing
