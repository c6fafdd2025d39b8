// SPDX-License-Identifier: Apache-2.0
// Groups with ranks on several nodes: processes of this machine that take themselves to be elsewhere.
#include <gtest/gtest.h>

#include <signal.h>

#include "tests/integration/shmem/typed_checks.hpp"
#include "tests/support/process.hpp"

namespace {

using namespace group_ranks;

class GroupOnNodes : public ::testing::Test {
 protected:
  /// Runs ranks on two nodes, or on these, in turn. Skips the test if libshmem was built without UCX.
  static void expect(const std::string& expected, int size, const Body& body,
                     const std::vector<const char*>& nodes = {"kiwi", "lemon"}) {
    expect(expected, size, run_ranks(size, body, nodes));
  }
  static void expect(const std::string& expected, int size, const std::string& all) {
    if (all.find("built without UCX") != std::string::npos) {
      GTEST_SKIP() << "libshmem was built without UCX";
    }
    EXPECT_EQ(expected, all) << size;
  }
};

TEST_F(GroupOnNodes, CollectivesMoveAndCombineAllSizes) {
  for (const int size : {2, 3, 4}) {
    expect("", size, check_all_kinds);
  }
  for (const int size : {3, 6}) {
    expect("", size, check_all_kinds, {"kiwi", "lemon", "mango"});
  }
}

std::uint64_t sent_bytes(shmemx_group_t* group) {
  shmemx_group_statistics_t now{};
  return shmemx_group_statistics(group, &now) == 0 ? now.sent_bytes : 0;
}

/// A call of `kind` with `bytes` on ranks that are on so many nodes in turn. The ranks of node i send expected[i] bytes
/// to other nodes, and heads.
std::string check_sent(shmemx_group_t* group, int kind, int rank, std::size_t bytes, int size,
                       const std::vector<std::size_t>& expected) {
  constexpr std::size_t kHeads = 4000;
  const std::uint64_t before = sent_bytes(group);
  std::string bad = check_kind(group, kind, rank, size, bytes, 0);
  const std::uint64_t sent = sent_bytes(group) - before;
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size));
  std::vector<void*> to;
  for (std::uint64_t& one : all) {
    to.push_back(&one);
  }
  const void* const from = &sent;
  shmemx_group_call_t call = call_of(SHMEMX_GROUP_ALLGATHER);
  call.from = &from;
  call.to = to.data();
  call.bytes = sizeof(sent);
  bad += shmemx_group_run(group, &call) == 0 ? "" : shmemx_error_text();
  for (std::size_t node = 0; node < expected.size(); ++node) {
    std::uint64_t by_node = 0;
    for (std::size_t i = node; i < all.size(); i += expected.size()) {
      by_node += all[i];
    }
    if (by_node < expected[node] || by_node >= expected[node] + kHeads) {
      bad += std::to_string(by_node) + " bytes were sent by node " + std::to_string(node) + ", which has " +
             std::to_string(expected[node]) + " to send; ";
    }
  }
  return bad;
}

TEST_F(GroupOnNodes, ReduceScatterSendsEachBlockToItsNodeOnce) {
  for (const std::size_t bytes : {std::size_t{5000}, std::size_t{200'000}, std::size_t{1'000'000}}) {
    for (const auto& [nodes, size] : {std::pair(2, 2), {2, 3}, {2, 4}, {3, 3}, {3, 4}, {3, 6}}) {
      std::vector<std::size_t> expected;
      for (int node = 0; node < nodes; ++node) {
        const int here = (size - node + nodes - 1) / nodes;
        expected.push_back(static_cast<std::size_t>(size - here) * bytes);
      }
      std::vector<const char*> names{"kiwi", "lemon", "mango"};
      names.resize(static_cast<std::size_t>(nodes));
      expect(
          "", size,
          [&](shmemx_group_t* group, int rank, int all) {
            return check_sent(group, SHMEMX_GROUP_REDUCE_SCATTER, rank, bytes, all, expected);
          },
          names);
    }
  }
}

TEST_F(GroupOnNodes, AllreduceSendsEachByteOnceEachWay) {
  constexpr std::size_t kBytes = 3'000'000;  // several pieces of a stage
  for (const int size : {2, 3, 4}) {
    expect("", size, [](shmemx_group_t* group, int rank, int all) {
      return check_sent(group, SHMEMX_GROUP_ALLREDUCE, rank, kBytes, all, {kBytes, kBytes});
    });
  }
}

/// Ranks send to those of their own node. The leaders of the nodes, ranks 0 and 1, tell each other the sizes.
TEST_F(GroupOnNodes, AlltoallSendsNothingWithinANode) {
  expect("", 4, [](shmemx_group_t* group, int rank, int size) -> std::string {
    constexpr std::size_t kBytes = 200'000;
    constexpr std::size_t kHeads = 4000;
    std::vector<Bytes> from;
    std::vector<Bytes> to;
    std::vector<const void*> from_places;
    std::vector<void*> to_places;
    std::vector<std::uint64_t> bytes;
    for (int other = 0; other < size; ++other) {
      bytes.push_back(other % 2 == rank % 2 ? kBytes : 0);
      from.push_back(filled(rank, other, bytes.back()));
      to.emplace_back(bytes.back());
      from_places.push_back(from.back().data());
      to_places.push_back(to.back().data());
    }
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_ALLTOALL);
    call.from = from_places.data();
    call.to = to_places.data();
    call.from_bytes = bytes.data();
    call.to_bytes = bytes.data();
    const std::uint64_t before = sent_bytes(group);
    if (shmemx_group_run(group, &call) != 0) {
      return shmemx_error_text();
    }
    const std::uint64_t sent = sent_bytes(group) - before;
    const bool leads = rank < 2;
    for (int other = rank % 2; other < size; other += 2) {
      if (to[static_cast<std::size_t>(other)] != filled(other, rank, kBytes)) {
        return "wrong data";
      }
    }
    return (leads ? sent < kHeads : sent == 0) ? "" : std::to_string(sent) + " bytes were sent";
  });
}

TEST_F(GroupOnNodes, ReduceScatterMayOverwriteThisRanksBlock) {
  const auto body = [](shmemx_group_t* group, int rank, int size) -> std::string {
    constexpr std::size_t kBytes = 1'500'000;
    std::vector<Bytes> blocks;
    std::vector<const void*> from;
    for (int i = 0; i < size; ++i) {
      blocks.push_back(filled(rank, i, kBytes));
      from.push_back(blocks.back().data());
    }
    void* to = blocks[static_cast<std::size_t>(rank)].data();
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_REDUCE_SCATTER);
    call.from = from.data();
    call.to = &to;
    call.bytes = kBytes;
    if (shmemx_group_run(group, &call) != 0) {
      return shmemx_error_text();
    }
    Bytes expected(kBytes);
    for (int i = 0; i < size; ++i) {
      for (std::size_t at = 0; at < kBytes; ++at) {
        expected[at] = static_cast<std::uint8_t>(expected[at] + pattern(i, rank, at));
      }
    }
    return blocks[static_cast<std::size_t>(rank)] == expected ? "" : "wrong data";
  };
  expect("", 3, body);
  expect("", 4, body);
}

TEST_F(GroupOnNodes, StatisticsStayAfterAFailure) {
  const SharedCount seen;
  expect("", 4, [&](shmemx_group_t* group, int rank, int size) -> std::string {
    std::string bad = check_kind(group, SHMEMX_GROUP_ALLREDUCE, rank, size, 200'000, 0);
    shmemx_group_statistics_t before{};
    shmemx_group_statistics_t after{};
    bad += shmemx_group_statistics(group, &before) == 0 ? "" : shmemx_error_text();
    seen.add();
    while (rank == 0 && seen.get() < size) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (rank == 0) {
      shmemx_group_abort(group, "enough");
    }
    const shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
    bad += shmemx_group_run(group, &call) != 0 ? "" : "the barrier did not fail";
    bad += shmemx_group_statistics(group, &after) == 0 ? "" : shmemx_error_text();
    const bool counted = before.calls == 1 && before.staged_bytes > 0 && before.sent_bytes > 0;
    const bool kept = after.calls == before.calls && after.staged_bytes >= before.staged_bytes &&
                      after.sent_bytes >= before.sent_bytes;
    return bad + (counted && kept ? ""
                                  : "after the failure " + std::to_string(after.calls) + " calls, " +
                                        std::to_string(after.staged_bytes) + " bytes staged and " +
                                        std::to_string(after.sent_bytes) + " sent");
  });
}

TEST_F(GroupOnNodes, AlltoallTakesSizesThatDiffer) {
  for (const int size : {3, 4}) {
    expect("", size, check_alltoall);
  }
}

TEST_F(GroupOnNodes, GatherSendsNothingWithinANode) {
  expect("", 4, [](shmemx_group_t* group, int rank, int size) -> std::string {
    constexpr std::size_t kBytes = 3'000'000;  // several pieces of a stage
    constexpr std::size_t kHeads = 4000;
    std::string bad;
    for (const int kind : {SHMEMX_GROUP_GATHER, SHMEMX_GROUP_SCATTER}) {
      const std::uint64_t before = sent_bytes(group);
      bad += check_kind(group, kind, rank, size, kBytes, 1);
      const std::uint64_t sent = sent_bytes(group) - before;
      const bool gathers = kind == SHMEMX_GROUP_GATHER;
      const std::size_t expected =
          rank % 2 == (gathers ? 0 : 1) && (gathers || rank == 1) ? (gathers ? 1 : 2) * kBytes : 0;
      bad += sent >= expected && sent < expected + kHeads ? "" : std::to_string(sent) + " bytes were sent";
    }
    return bad;
  });
}

TEST_F(GroupOnNodes, AlltoallInPlaceReadsAllBeforeItWrites) {
  expect("", 2, [](shmemx_group_t* group, int rank, int size) -> std::string {
    constexpr std::size_t kBytes = 100'000;
    Bytes data = filled(rank, 0, kBytes);
    const Bytes second = filled(rank, 1, kBytes);
    data.insert(data.end(), second.begin(), second.end());
    const std::vector<const void*> from{data.data(), data.data() + kBytes};
    const std::vector<void*> to{data.data(), data.data() + kBytes};
    const std::vector<std::uint64_t> bytes(static_cast<std::size_t>(size), kBytes);
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_ALLTOALL);
    call.from = from.data();
    call.to = to.data();
    call.from_bytes = bytes.data();
    call.to_bytes = bytes.data();
    if (shmemx_group_run(group, &call) != 0) {
      return shmemx_error_text();
    }
    Bytes expected = filled(0, rank, kBytes);
    const Bytes rest = filled(1, rank, kBytes);
    expected.insert(expected.end(), rest.begin(), rest.end());
    return data == expected ? "" : "wrong data";
  });
}

TEST_F(GroupOnNodes, CallsThatDifferFailOnAllRanksAndTheGroupGoesOn) {
  expect("", 3, check_calls_that_differ);
}

TEST_F(GroupOnNodes, ADeadRankIsNamedToAllAndTheSurvivorsFormANewGroup) {
  SharedStore second;
  expect("rank 2:  (status 9)\n", 3, [&](shmemx_group_t* group, int rank, int size) -> std::string {
    if (auto bad = check_kind(group, SHMEMX_GROUP_ALLREDUCE, rank, size, 3000, 0); !bad.empty()) {
      return bad;
    }
    if (rank == 2) {
      ::raise(SIGKILL);
    }
    Bytes data(2 << 20);
    void* place = data.data();
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_ALLREDUCE);
    call.from = &place;
    call.to = &place;
    call.bytes = data.size();
    const int error = shmemx_group_run(group, &call);
    const std::string text = shmemx_error_text();
    if (error != -ECONNRESET || text.find("rank 2 (on ") == std::string::npos) {
      return "got " + std::to_string(error) + ": " + text;
    }
    std::string bad = expect_failure(group, call, ECONNRESET, {text});
    shmemx_group_t* next = nullptr;
    const shmemx_group_store_t calls = second.calls();
    if (shmemx_group_create(&calls, rank, 2, &next) != 0) {
      return std::string("new group: ") + shmemx_error_text();
    }
    bad += check_kind(next, SHMEMX_GROUP_ALLREDUCE, rank, 2, 3000, 0);
    shmemx_group_destroy(next);
    return bad;
  });
}

/// The ranks that were in time leave the group, which ends the wait of the late one.
TEST_F(GroupOnNodes, ATimeoutNamesTheRankThatDidNotCome) {
  const auto run = [](int seconds) {
    const SharedCount gave_up;
    const auto body = [&](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
      shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
      if (rank == 1) {
        while (gave_up.get() < 2) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return expect_failure(group, call, ECONNRESET, {"rank", "is lost"});
      }
      call.timeout_ns = static_cast<std::uint64_t>(seconds) * 1'000'000'000;
      const int error = shmemx_group_run(group, &call);
      const std::string text = shmemx_error_text();
      gave_up.add();
      // The other rank may have left before.
      const bool late = error == -ETIMEDOUT && text.find("rank 1 (on ") != std::string::npos;
      return late || (error == -ECONNRESET && text.find("is lost") != std::string::npos) ? "" : text;
    };
    return run_ranks(3, body, {"kiwi", "lemon"});
  };
  expect("", 3, test_support::with_timeouts(run, [](const std::string& all) { return all.empty(); }));
}

/// Rank 1 and its message wait without a limit for rank 2, which comes only when they have ended.
TEST_F(GroupOnNodes, AMemberThatGivesUpEndsTheWaitsOfTheOthers) {
  const SharedCount told;
  expect("", 3, [&](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
    if (rank == 0) {
      call.timeout_ns = 200'000'000;
      return expect_failure(group, call, ETIMEDOUT, {"waited for rank 2 ("});
    }
    std::string bad;
    if (rank == 1) {
      Bytes data(64);
      Mail mail;
      mail.receive(group, data, 0, 3, 0);
      if (shmemx_group_message_wait(mail.message) != -ECONNRESET) {
        bad = std::string("message: ") + shmemx_error_text();
      }
    }
    while (rank == 2 && told.get() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    bad += expect_failure(group, call, ECONNRESET, {"rank 0 is lost: it has given the group up", "timed out after"});
    told.add();
    return bad;
  });
}

TEST_F(GroupOnNodes, MessagesAreMatchedByTagInAnyOrderAndSize) {
  expect("", 2, [](shmemx_group_t* group, int rank, int /*size*/) { return check_messages(group, rank, true); });
}

TEST_F(GroupOnNodes, MessagesOfAnyRankAreReceived) {
  expect("", 4, check_messages_of_any);
}

TEST_F(GroupOnNodes, ManyMessagesGoBackAndForth) {
  expect("", 3, check_many_messages);
}

TEST_F(GroupOnNodes, MessagesWithinANodeDoNotUseTheNetwork) {
  expect("", 4, [](shmemx_group_t* group, int rank, int size) -> std::string {
    const std::uint64_t before = sent_bytes(group);
    const int other = (rank + 2) % size;  // on this node
    for (int i = 0; i < 200; ++i) {
      const Bytes data = filled(rank, i, i == 7 ? 3'000'000 : static_cast<std::size_t>(i * 50));
      Bytes got(data.size());
      Mail out;
      Mail in;
      out.send(group, data, other, i % 3);
      in.receive(group, got, i % 5 == 0 ? -1 : other, i % 3);
      if (shmemx_group_message_wait(in.message) != 0 || shmemx_group_message_wait(out.message) != 0) {
        return shmemx_error_text();
      }
      if (got != filled(other, i, got.size()) || shmemx_group_message_source(in.message) != other) {
        return "wrong data or source in message " + std::to_string(i);
      }
    }
    const std::uint64_t sent = sent_bytes(group);
    shmemx_group_call_t barrier = call_of(SHMEMX_GROUP_BARRIER);  // a rank that leaves waits for a second only
    if (shmemx_group_run(group, &barrier) != 0) {
      return shmemx_error_text();
    }
    return sent == before ? "" : std::to_string(sent - before) + " bytes were sent";
  });
}

TEST_F(GroupOnNodes, AMessageOfADeadRankOfThisNodeFailsWithItsName) {
  const SharedCount made;
  expect("rank 2:  (status 9)\n", 4, [&](shmemx_group_t* group, int rank, int size) -> std::string {
    Bytes data(64);
    Mail mail;
    made.add();
    if (rank == 2) {
      while (made.get() < size) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ::raise(SIGKILL);
    }
    // Rank 3 waits for one that waits for the dead rank: it hears of that one's failure, or of the death.
    mail.receive(group, data, rank == 3 ? 1 : rank == 1 ? 0 : 2, 1);
    const int error = shmemx_group_message_wait(mail.message);
    const std::string text = shmemx_error_text();
    return error != 0 && error != -ETIMEDOUT && text.find(rank == 0 ? "rank 2" : "rank ") != std::string::npos
               ? ""
               : std::to_string(error) + ": " + text;
  });
}

/// Rank 0 waits for a rank of its node, which waits until that has ended.
TEST_F(GroupOnNodes, AMemberOfAnotherNodeThatGivesUpEndsMessagesWithinANode) {
  const SharedCount ended;
  expect("", 4, [&](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
    if (rank == 1) {
      shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
      call.timeout_ns = 100'000'000;
      const std::string bad = expect_failure(group, call, ETIMEDOUT, {"waited for rank"});
      ended.add();
      return bad;
    }
    std::string bad;
    if (rank == 0) {
      Bytes data(64);
      Mail mail;
      mail.receive(group, data, 2, 3, 0);
      const int error = shmemx_group_message_wait(mail.message);
      const std::string text = shmemx_error_text();
      bad = error == -ECANCELED && text.find("rank 1 is lost: it has given the group up") != std::string::npos
                ? ""
                : std::to_string(error) + ": " + text;
      ended.add();
    }
    while (ended.get() < 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return bad;
  });
}

TEST_F(GroupOnNodes, AMessageThatIsNotWaitedForArrives) {
  expect("", 2, check_message_not_waited_for);
}

TEST_F(GroupOnNodes, MessagesFailWithNamesOfRanks) {
  expect("rank 1:  (status 9)\n", 2, [](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
    Bytes data(64);
    if (rank == 1) {
      const Bytes longer(100);
      Mail sent;
      sent.send(group, longer, 0, 2);
      shmemx_group_message_wait(sent.message);
      shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
      shmemx_group_run(group, &call);
      ::raise(SIGKILL);
    }
    Mail late;
    late.receive(group, data, 1, 1, 100'000'000);
    if (shmemx_group_message_wait(late.message) != -ETIMEDOUT ||
        std::string(shmemx_error_text()).find("from rank 1") == std::string::npos) {
      return std::string("timeout: ") + shmemx_error_text();
    }
    Mail other;
    other.receive(group, data, 1, 2);
    if (shmemx_group_message_wait(other.message) != -EMSGSIZE ||
        std::string(shmemx_error_text())
                .find("of rank 1 with tag 2 has 100 bytes; the call that receives it has room for 64") ==
            std::string::npos) {
      return std::string("size: ") + shmemx_error_text();
    }
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
    shmemx_group_run(group, &call);
    Mail last;
    last.receive(group, data, 1, 3);
    const int error = shmemx_group_message_wait(last.message);
    const std::string text = shmemx_error_text();
    return error == -ECONNRESET && text.find("from rank 1 (on ") != std::string::npos && last.done == 1 ? "" : text;
  });
}

TEST_F(GroupOnNodes, AMessageOfAnyRankFailsWithItsNameOnceOneIsLost) {
  expect("rank 1:  (status 9)\n", 3, [](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
    if (rank == 1) {
      ::raise(SIGKILL);
    }
    Bytes data(64);
    Mail any;
    any.receive(group, data, -1, 1);
    const int error = shmemx_group_message_wait(any.message);
    const std::string text = shmemx_error_text();
    return error == -ECONNRESET && text.find("rank 1") != std::string::npos && any.done == 1 ? "" : text;
  });
}

TEST_F(GroupOnNodes, TypedMessagesThatDifferFailOnBothRanksAndLaterOnesArrive) {
  expect("", 2, [](shmemx_group_t* group, int rank, int /*size*/) { return check_typed_messages(group, rank, false); });
}

TEST_F(GroupOnNodes, ATypedMessageThatIsReceivedLateIsNotTakenForALaterOne) {
  const SharedCount gave_up;
  expect("", 2, [&](shmemx_group_t* group, int rank, int /*size*/) { return check_late_typed(group, rank, gave_up); });
}

/// The first message to the sender is the answer, so that it has to wait for a connection.
TEST_F(GroupOnNodes, AReceiverThatDestroysItsGroupAtOnceHasAnswered) {
  for (int repeat = 0; repeat < 10 && !IsSkipped(); ++repeat) {
    expect("", 2, [](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
      const Bytes data = filled(0, 1, 100);
      Bytes got(data.size());
      Mail mail;
      if (rank == 0) {
        mail.send(group, data, 1, 5, 7);
      } else {
        mail.receive_typed(group, got, 0, 5, 7);
      }
      const int error = shmemx_group_message_wait(mail.message);
      return error != 0 ? shmemx_error_text() : rank == 1 && got != data ? "wrong data" : "";
    });
  }
}

TEST_F(GroupOnNodes, SymmetricMemoryIsSharedWithinEachNode) {
  expect("", 4, [](shmemx_group_t* group, int rank, int size) -> std::string {
    constexpr std::size_t kBytes = 200'000;
    shmemx_group_memory_t* memory = nullptr;
    if (shmemx_group_allocate(group, kBytes, 120'000'000'000, &memory) != 0) {
      return shmemx_error_text();
    }
    auto* const mine = static_cast<std::uint8_t*>(shmemx_group_memory_address(memory));
    const Bytes data = filled(rank, 0, kBytes);
    std::copy(data.begin(), data.end(), mine);
    shmemx_group_call_t barrier = call_of(SHMEMX_GROUP_BARRIER);
    std::string bad = shmemx_group_run(group, &barrier) == 0 ? "" : shmemx_error_text();
    for (int other = 0; other < size; ++other) {
      const auto* theirs = static_cast<const std::uint8_t*>(shmemx_group_memory_of(memory, other));
      const Bytes expected = filled(other, 0, kBytes);
      const bool same_node = other % 2 == rank % 2;
      if (same_node != (theirs != nullptr) || (same_node && !std::equal(expected.begin(), expected.end(), theirs))) {
        bad += "wrong memory of rank " + std::to_string(other);
      }
    }
    // Calls take buffers there as they take all others.
    void* place = mine;
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_BROADCAST);
    call.from = call.to = &place;
    call.bytes = kBytes;
    call.root = 3;
    bad += shmemx_group_run(group, &call) == 0 ? "" : shmemx_error_text();
    bad += Bytes(mine, mine + kBytes) == filled(3, 0, kBytes) ? "" : "wrong data";
    bad += shmemx_group_run(group, &barrier) == 0 ? "" : shmemx_error_text();
    shmemx_group_memory_free(memory);
    return bad;
  });
}

TEST_F(GroupOnNodes, TheMembersOfItsNodeThatHaveNotBegunACallAreKnown) {
  const SharedCount asked;
  expect("", 4, [&](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
    std::string bad;
    std::thread asks;
    if (rank == 0) {
      asks = std::thread([&] {
        std::array<char, 200> missing{};
        while (bad.empty() && std::string(missing.data()).find("rank 2 (pid ") == std::string::npos) {
          bad = shmemx_group_missing(group, missing.data(), missing.size()) == 0 ? "" : shmemx_error_text();
        }
        asked.add();
      });
    }
    while (rank == 2 && asked.get() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const std::string failed = shmemx_group_run(group, &call) == 0 ? "" : shmemx_error_text();
    if (asks.joinable()) {
      asks.join();
    }
    return bad + failed;
  });
}

}  // namespace
