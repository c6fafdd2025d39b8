// SPDX-License-Identifier: Apache-2.0
// Messages between PEs on several nodes that are given up, have a wrong length, or outlive their sender.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <cstring>
#include <thread>

#include "shmem/net/network.hpp"
#include "tests/support/network.hpp"
#include "tests/unit/shmem/network_processes.hpp"

namespace shmem {
namespace {

using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::IsEmpty;
using testing::NetworkPe;
using testing::problem_of;
using testing::text_of;
using testing::with_network;

using NetworkMessageFailureTest = testing::NetworkTest;

TEST_F(NetworkMessageFailureTest, CancelsMessagesUnderWay) {
  constexpr std::size_t kTooLarge = 8 << 20;  // for the sockets' buffers
  const auto texts = with_network(2, [](NetworkPe& me) -> std::string {
    std::uint64_t value = 0;
    const std::uint64_t mine = 5;
    std::string text;
    if (me.pe == 0) {
      const auto given_up = me.network->start_receive(1, 3, &value, sizeof value);
      me.network->cancel(given_up.value());
      if (me.network->wait(*given_up)) {
        text += "its number is still of use; ";
      }
      me.network->cancel(*given_up);
      me.barrier();
      std::uint64_t again = 0;
      const auto received = me.network->start_receive(1, 3, &again, sizeof again);
      text += problem_of(me.network->wait(received.value()));
      if (value != 0 || again != 5) {
        text += "given to a receive that was given up; ";
      }
      me.barrier();
      me.barrier();  // PE 1 still needs this PE for its large message
      return text;
    }
    me.barrier();
    const auto sent = me.network->start_send(0, 3, &mine, sizeof mine);
    text += problem_of(me.network->wait(sent.value()));
    me.barrier();
    // This message is never received, and it cannot be cancelled without the connection, unless it has left already.
    const auto large = me.network->start_send(0, 4, me.heap.data(), kTooLarge);
    me.network->cancel(large.value());
    if (me.network->start_send(0, 4, &mine, sizeof mine) && !test_support::ucx_sends_at_once()) {
      text += "the connection is still there; ";
    }
    me.barrier();
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_F(NetworkMessageFailureTest, ReportsAMessageOfAnotherLength) {
  const auto texts = with_network(2, [](NetworkPe& me) -> std::string {
    constexpr std::size_t kSent[] = {100, 100, 300000, 300000, 8};
    constexpr std::size_t kExpected[] = {99, 101, 200000, 300001, 8};
    std::string text;
    for (std::size_t i = 0; i < std::size(kSent); ++i) {
      if (me.pe == 1) {
        const auto sent = me.network->start_send(0, i, me.heap.data(), kSent[i]);
        (void)me.network->wait(sent.value());  // UCX does not report the wrong length to the sender
        continue;
      }
      std::memset(me.heap.data(), 0x5a, kSent[i] + kExpected[i]);
      const auto received = me.network->start_receive(1, i, me.heap.data(), kExpected[i]);
      const auto result = me.network->wait(received.value());
      if (kSent[i] == kExpected[i]) {
        text += problem_of(result);
      } else if (result || result.error().code != std::errc::message_size) {
        text += std::to_string(kSent[i]) + " as " + std::to_string(kExpected[i]) + ": " + text_of(result) + "; ";
      } else if (result.error().text.find("PE 1 (on kiwi)") == std::string::npos) {
        text += result.error().text;
      }
      if (*me.heap_at(kExpected[i]) != std::byte{0x5a}) {
        text += "written beyond; ";
      }
    }
    me.barrier();
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_F(NetworkMessageFailureTest, GivesWhatALostPeHasSent) {
  const auto texts = with_network(2, [](NetworkPe& me) -> std::string {
    std::array<char, 500> data{};
    if (me.pe == 1) {
      data.fill('7');
      const auto sent = me.network->start_send(0, 3, data.data(), data.size());
      std::string text = problem_of(me.network->wait(sent.value()));
      while (text.empty() && me.rendezvous.flag.load() == 0) {
        me.network->advance();
      }
      ::raise(SIGKILL);
      return text;
    }
    while (!me.network->has_come({3, ~std::uint64_t{0}})) {
      me.network->advance();
    }
    me.rendezvous.flag.store(1);
    while (!me.network->has_lost(1)) {
      std::uint64_t word = 0;
      static_cast<void>(me.network->get(&word, testing::heap_of(1, 0), sizeof word));
    }
    std::string text;
    if (me.network->start_receive(1, 4, data.data(), data.size())) {
      text += "waits for what will never come; ";
    }
    const auto received = me.network->start_receive(1, 3, data.data(), data.size());
    text += received ? problem_of(me.network->wait(*received)) : received.error().text;
    return data.back() == '7' ? text : text + "wrong data; ";
  });
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(texts[1], "<killed by signal 9>");
}

TEST_F(NetworkMessageFailureTest, DoesNotTakeAMessageForWholeWhoseSenderIsLost) {
  const auto receive = [](NetworkPe& me) -> std::string {
    if (me.pe == 1) {
      me.barrier();
      ::raise(SIGKILL);
    }
    std::uint64_t value = 0;
    const auto received = me.network->start_receive(1, 3, &value, sizeof value);
    me.barrier();
    Result<bool> over = false;
    while ((over = me.network->test(received.value())) && !*over) {
    }
    if (over) {
      return "it is whole; ";
    }
    return over.error().code == std::errc::connection_reset ? "" : over.error().text;
  };
  const auto texts =
      with_network(2, receive, true, [](NetworkSettings& settings) { settings.library = UCX_WITHOUT_CANCEL; });
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(texts[1], "<killed by signal 9>");
}

}  // namespace
}  // namespace shmem
