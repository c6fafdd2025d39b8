// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/other_ends.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/launcher/source_lines.hpp"

namespace shmem::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PeEnd waited(const std::string& message, EndKind kind = EndKind::kTold) {
  PeEnd end;
  end.kind = kind;
  end.text = std::string(waiter_in(message)) + "\n" + message;
  return end;
}
PeEnd failed(const std::string& message) {
  PeEnd end;
  end.kind = EndKind::kFailed;
  end.text = message;
  return end;
}

constexpr const char* kBarrier =
    "shmem: PE 3: barrier 3 of team 0 (central_counter) was given up because the job was ended; it waited for PE 1 "
    "(pid "
    "5 on kiwi)";

TEST(OtherEnds, NameWhatWaited) {
  EXPECT_EQ(waiter_in(kBarrier), "barrier 3 of team 0");
  EXPECT_EQ(waiter_in("shmem: PE 3: barrier 7 of active set 2 (gba) cannot complete: a PE has ended"),
            "barrier 7 of active set 2");
  EXPECT_EQ(waiter_in("shmem: PE 12: shmem_signal_wait_until: the wait was given up because ..."),
            "shmem_signal_wait_until");
  EXPECT_EQ(waiter_in("shmem: PE 0: collective call 9 of team 1 (eager) timed out after 5 ms"),
            "collective call 9 of team 1");
  EXPECT_EQ(waiter_in("shmem: PE 0: the job was ended: PE 1 (pid 7) exited with status 127"), "an exchange of all PEs");
  EXPECT_EQ(
      waiter_in("shmem: PE 5: PE 4 (pid 9 on vm, dead), the leader of this node, could not reach the other nodes"),
      "a call between nodes");
  EXPECT_EQ(
      waiter_in("shmem: barrier among 2 PEs: message from PE 0: PE 4 (on kiwi) waited to receive from PE 0: the job "
                "was ended: PE 3 (pid 5 on kiwi) exited"),
      "a call between nodes");
  EXPECT_EQ(waiter_in("something else"), "something else");
}

TEST(OtherEnds, AreCounted) {
  std::vector<PeEnd> others(707, waited(kBarrier));
  EXPECT_THAT(about_others(others, "cause"), ElementsAre("707 other PEs waited in barrier 3 of team 0"));
  EXPECT_THAT(about_others(others, ""), ElementsAre("707 PEs waited in barrier 3 of team 0, for PE 1 (pid 5 on kiwi)"));
  others.resize(3);
  others.push_back(waited("shmem: PE 9: shmem_long_wait_until: the wait was given up", EndKind::kNoticed));
  others.push_back({.kind = EndKind::kTold});
  for (const char* call : {"a", "b"}) {
    others.push_back(waited(std::string("shmem: PE 4: ") + call + ": was given up"));
  }
  EXPECT_THAT(about_others(others, "cause"),
              ElementsAre("3 other PEs waited in barrier 3 of team 0, 1 waited in shmem_long_wait_until, 1 was in no "
                          "call of the library, 2 elsewhere"));
  EXPECT_THAT(about_others({PeEnd{}, PeEnd{}}, "cause"), IsEmpty());
}

TEST(OtherEnds, ThatAreFailuresAreToldApart) {
  const std::string cause = "shmem: PE 2: shmem_put: 8 bytes at 0x7ff12 are wrong";
  const std::vector<PeEnd> same{failed("shmem: PE 0: shmem_put: 8 bytes at 0x7aaa are wrong"), waited(kBarrier)};
  EXPECT_THAT(about_others(same, cause),
              ElementsAre("1 other PE failed, too, with the same message", "1 other PE waited in barrier 3 of team 0"));
  const std::vector<PeEnd> different{same[0], failed("shmem: PE 4: shmem_get: there is no PE 9")};
  EXPECT_THAT(about_others(different, cause),
              ElementsAre("2 other PEs failed, too: shmem: PE 4: shmem_get: there is no PE 9"));
}

TEST(SourceLines, AreNothingWithoutCalls) {
  EXPECT_EQ(source_lines(""), "");
}

TEST(SourceLines, NameTheModuleIfNothingIsKnown) {
  const std::string text = source_lines("1f /no/such/program\n1f /no/such/program\n2a /no/such/library.so\n");
  EXPECT_THAT(text, ::testing::StartsWith("program+0x1f, library.so+0x2a (addr2line "));
}

}  // namespace
}  // namespace shmem::launcher
