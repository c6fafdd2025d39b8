// SPDX-License-Identifier: Apache-2.0
// Messages between PEs on several nodes, and PEs with several threads that send, put and get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "shmem/net/network.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/network_processes.hpp"

namespace shmem {
namespace {

using ::testing::Each;
using testing::heap_of;
using ::testing::IsEmpty;
using testing::NetworkPe;
using testing::pattern;
using testing::problem_of;
using testing::with_network;
using NetworkMessageTest = testing::NetworkTest;
using NetworkThreadsTest = testing::NetworkTest;

TEST_F(NetworkMessageTest, DeliversMessagesThatCross) {
  const auto texts = with_network(3, [](NetworkPe& me) {
    std::string text;
    for (const std::size_t size : {0UL, 1UL, 8UL, 1000UL, 64UL << 10, 1UL << 20, 5UL << 20}) {
      std::vector<std::uint64_t> requests;
      const auto mine = pattern(size, me.pe + 1);
      std::vector<std::vector<std::byte>> theirs(static_cast<std::size_t>(me.pes), std::vector<std::byte>(size));
      for (int pe = 0; pe < me.pes; ++pe) {
        if (pe == me.pe) {
          continue;
        }
        const auto sent = me.network->start_send(pe, 7, mine.data(), size);
        const auto received = me.network->start_receive(pe, 7, theirs[static_cast<std::size_t>(pe)].data(), size);
        text += problem_of(sent) + problem_of(received);
        if (sent) {
          requests.push_back(*sent);
        }
        if (received) {
          requests.push_back(*received);
        }
      }
      for (const std::uint64_t request : requests) {
        text += problem_of(me.network->wait(request));
      }
      for (int pe = 0; pe < me.pes; ++pe) {
        if (pe != me.pe && theirs[static_cast<std::size_t>(pe)] != pattern(size, pe + 1)) {
          text += "wrong bytes; ";
        }
      }
    }
    me.barrier();
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_F(NetworkMessageTest, KeepsMessagesOfATagInOrderAndTagsAndSendersApart) {
  const int rounds = test_support::repeats(200, 5000);
  const auto texts = with_network(3, [rounds](NetworkPe& me) {
    std::string text;
    constexpr std::uint64_t kOther = (std::uint64_t{1} << 48) - 1;
    if (me.pe > 0) {
      for (int i = 0; i < rounds; ++i) {
        for (const std::uint64_t tag : {std::uint64_t{0}, kOther}) {
          const std::array<std::uint64_t, 3> message{static_cast<std::uint64_t>(me.pe), tag,
                                                     static_cast<std::uint64_t>(i)};
          const auto sent = me.network->start_send(0, tag, message.data(), sizeof message);
          text += problem_of(sent);
          if (sent) {
            text += problem_of(me.network->wait(*sent));
          }
        }
      }
    }
    for (int i = 0; me.pe == 0 && i < rounds; ++i) {
      for (const int from : {2, 1}) {  // not in the order of arrival
        for (const std::uint64_t tag : {kOther, std::uint64_t{0}}) {
          std::array<std::uint64_t, 3> message{};
          const auto received = me.network->start_receive(from, tag, message.data(), sizeof message);
          text += problem_of(received);
          if (received) {
            text += problem_of(me.network->wait(*received));
          }
          if (message[0] != static_cast<std::uint64_t>(from) || message[1] != tag ||
              message[2] != static_cast<std::uint64_t>(i)) {
            text += "another message came; ";
          }
        }
      }
    }
    me.barrier();
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_F(NetworkMessageTest, TestTellsWhetherAMessageHasArrived) {
  const auto texts = with_network(2, [](NetworkPe& me) -> std::string {
    std::uint64_t value = 42;
    if (me.pe == 1) {
      me.barrier();
      const auto sent = me.network->start_send(0, 1, &value, sizeof value);
      me.barrier();
      return problem_of(sent) + problem_of(me.network->wait(sent.value()));
    }
    std::uint64_t got = 0;
    const auto received = me.network->start_receive(1, 1, &got, sizeof got);
    if (!received) {
      return received.error().text;
    }
    const auto early = me.network->test(*received);
    if (!early || *early) {
      return "came before it was sent";
    }
    me.barrier();
    bool come = false;
    std::string text;
    me.serve([&] {
      const auto now = me.network->test(*received);
      text = problem_of(now);
      come = now && *now;
      return come || !now;
    });
    me.barrier();
    if (me.network->test(*received)) {
      text += "its number is still of use; ";
    }
    return got == 42 ? text : text + "wrong value";
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

/// Threads of each PE put, get, add and send, each to its counterpart in the other PE, while other threads progress.
TEST_F(NetworkThreadsTest, ServesSeveralThreads) {
  const int rounds = test_support::repeats(60, 1000);
  constexpr int kThreads = 3;
  const auto texts = with_network(
      2,
      [rounds](NetworkPe& me) {
        const auto progress = start_progress_thread(*me.network);
        if (!progress) {
          return progress.error().text;
        }
        std::array<std::string, kThreads> problems;
        const auto work = [&](std::size_t thread) {
          std::string& text = problems[thread];
          const int other = 1 - me.pe;
          const std::size_t place = (thread + 1) << 20;
          for (int round = 0; round < rounds && text.empty(); ++round) {
            const auto mine = pattern(round % 2 == 0 ? 64 : 40000, round);
            text += problem_of(me.network->put(heap_of(other, place), mine.data(), mine.size()));
            text += problem_of(me.network->quiet());
            std::vector<std::byte> back(mine.size());
            text += problem_of(me.network->get(back.data(), heap_of(other, place), back.size()));
            if (back != mine) {
              text += "wrong bytes; ";
            }
            text += problem_of(me.network->post_atomic(heap_of(other, 0), 8, AtomicOperation::kAdd, 1));
            text += problem_of(me.network->post_atomic(heap_of(other, 8 + 8 * thread), 8, AtomicOperation::kSet, 5));
            const auto received = me.network->start_receive(other, thread, back.data(), back.size());
            const auto sent = me.network->start_send(other, thread, mine.data(), mine.size());
            text += problem_of(sent) + problem_of(received);
            if (sent) {
              text += problem_of(me.network->wait(*sent));
            }
            if (received) {
              text += problem_of(me.network->wait(*received));
            }
          }
          text += problem_of(me.network->quiet());
        };
        {
          std::vector<std::jthread> threads;
          for (std::size_t thread = 0; thread < kThreads; ++thread) {
            threads.emplace_back(work, thread);
          }
        }
        me.barrier();
        std::string text;
        for (const std::string& problem : problems) {
          text += problem;
        }
        const std::uint64_t sum = me.word<std::uint64_t>(0).load();
        if (sum != std::uint64_t{kThreads} * static_cast<std::uint64_t>(rounds)) {
          text += "sum " + std::to_string(sum);
        }
        return text;
      },
      true);
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_F(NetworkThreadsTest, ServesOthersByItsProgressThreadWhileThePeComputes) {
  const auto texts = with_network(
      2,
      [](NetworkPe& me) -> std::string {
        if (me.pe == 1) {
          const auto progress = start_progress_thread(*me.network);
          while (me.rendezvous.flag.load() == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
          }
          return progress ? "" : progress.error().text;
        }
        std::uint64_t value = 1;
        const auto got = me.network->get(&value, heap_of(1, 0), sizeof value);
        me.rendezvous.flag.store(1);
        return problem_of(got) + (value == 0 ? "" : "wrong value");
      },
      true);
  EXPECT_THAT(texts, Each(IsEmpty()));
}

}  // namespace
}  // namespace shmem
