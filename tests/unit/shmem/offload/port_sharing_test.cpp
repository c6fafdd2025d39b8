// SPDX-License-Identifier: Apache-2.0
// The assignment of ports of the switch to PEs, and the sharing of ports by the members of a team.
#include "shmem/offload/port_sharing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "shmem/offload/gba_port.hpp"
#include "tests/unit/shmem/fake_gba.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::GbaPort;
using shmem::Job;
using shmem::PortSharing;
using shmem::TeamMap;
using shmem_test::run_job;

TEST(PortSharing, AssignsPesToPortsInTurn) {
  for (int ports = 1; ports <= 9; ++ports) {
    for (int stride = 1; stride <= 7; ++stride) {
      for (int start = 0; start < 5; ++start) {
        for (int size = 1; size <= 20; ++size) {
          const TeamMap map{start, stride, size};
          const PortSharing sharing(map, ports);
          int openers = 0;
          bool complete = true;
          for (int i = 0; i < size; ++i) {
            int first = 0, behind = 0;
            for (int j = size - 1; j >= 0; --j) {
              if (map.pe(j) % ports == map.pe(i) % ports) {
                first = j;
                ++behind;
              }
            }
            openers += first == i ? 1 : 0;
            complete = complete && map.pe(first) < ports;
            const shmem::MemberGroup group = sharing.group_of(i);
            ASSERT_EQ(group.first, first);
            ASSERT_EQ(group.size, behind);
            ASSERT_EQ((i - first) % group.stride, 0);
          }
          ASSERT_EQ(sharing.openers(), openers);
          ASSERT_EQ(sharing.complete(), complete);
          ASSERT_EQ(sharing.shared(), openers < size);
        }
      }
    }
  }
}

/// The PEs from `first` on try to open one of `ports` ports before the others do. Expects that in the end the first
/// `expected` PEs have one.
void settle(int pes, int ports, int first, int expected) {
  fake_gba::power_on(1);
  fake_gba::limit_ports(ports);
  std::atomic<int> asked{0};
  run_job(pes, [&](Job& job) {
    GbaPort port(job.me);
    while (job.me < first && asked < pes - first) {
      std::this_thread::yield();
    }
    const auto tried = shmem::try_port(job, port);
    ++asked;
    EXPECT_TRUE(tried || tried.error().text == "no port is free");
    ASSERT_TRUE(job.bootstrap->barrier());
    const auto settled = shmem::settle_ports(job, port);
    ASSERT_TRUE(settled);
    EXPECT_EQ(*settled, expected);
    EXPECT_EQ(port.get() != nullptr, job.me < expected);
    ASSERT_TRUE(job.bootstrap->barrier());
  });
}

TEST(SharedPorts, BelongToTheFirstPesWhicheverWasFaster) {
  settle(6, 2, 3, 2);  // PEs 3, 4 and 5 are faster
  settle(6, 5, 3, 5);
  settle(4, 4, 2, 4);
  settle(4, 9, 2, 4);
  settle(4, 0, 2, 0);
}

}  // namespace
