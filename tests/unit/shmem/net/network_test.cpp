// SPDX-License-Identifier: Apache-2.0
// Successful calls between PEs that reach each other by the network only.
#include "shmem/net/network.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <thread>

#include "shmem/bootstrap/allgather.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/network_processes.hpp"

namespace shmem {
namespace {

using ::testing::Each;
using testing::heap_of;
using ::testing::IsEmpty;
using testing::NetworkPe;
using testing::NetworkTest;
using testing::OneSidedTest;
using testing::pattern;
using testing::problem_of;
using testing::with_network;

constexpr std::size_t kSizes[] = {0, 1, 8, 1000, 64 << 10, 5 << 20};
constexpr std::size_t kLargest = 5 << 20;

bool holds(const std::byte* memory, const std::vector<std::byte>& expected) {
  return expected.empty() || std::memcmp(memory, expected.data(), expected.size()) == 0;
}

TEST_F(NetworkTest, DescribesItsTransport) {
  const auto texts = with_network(2, [](NetworkPe& me) -> std::string {
    const std::string text = me.network->describe();
    for (const char* on_one_node : {"posix", "sysv", "cma", "knem", "xpmem"}) {
      if (text.find(on_one_node) != std::string::npos) {
        return "not by the network: " + text;
      }
    }
    return text.starts_with("ucx 1.") ? "" : text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_P(OneSidedTest, PutsAndGetsEverySize) {
  const auto texts = in_this_way(2, [](NetworkPe& me) {
    std::string text;
    const int other = 1 - me.pe;
    std::memset(me.heap.data(), 0x5a, me.heap.size());
    for (const std::size_t size : kSizes) {
      const auto seed = static_cast<int>(size);
      const auto mine = pattern(size, seed + me.pe);
      text += problem_of(me.network->put(heap_of(other, 100), mine.data(), size));
      text += problem_of(me.network->quiet());
      me.barrier();
      if (!holds(me.heap_at(100), pattern(size, seed + other))) {
        text += "wrong bytes put: " + std::to_string(size) + "; ";
      }
      if (*me.heap_at(99) != std::byte{0x5a} || *me.heap_at(100 + kLargest) != std::byte{0x5a}) {
        text += "too many; ";
      }
      std::vector<std::byte> back(size);
      text += problem_of(me.network->get(back.data(), heap_of(other, 100), size));
      if (back != mine) {
        text += "wrong bytes got: " + std::to_string(size) + "; ";
      }
      me.barrier();
    }
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_P(OneSidedTest, CompletesStartedCopiesByQuiet) {
  const auto texts = in_this_way(3, [](NetworkPe& me) {
    std::string text;
    constexpr std::size_t kStride = 1 << 20;
    // The second half of the heap is for gets: from each other PE, a copy of what this PE has put there.
    const auto sizes = {8UL, 5000UL, kStride};
    for (const std::size_t size : sizes) {
      const auto mine = pattern(size, me.pe);
      for (int pe = 0; pe < me.pes; ++pe) {
        if (pe == me.pe) {
          continue;
        }
        const auto place = static_cast<std::size_t>(me.pe) * kStride;
        text += problem_of(me.network->start_put(heap_of(pe, place), mine.data(), size));
      }
      text += problem_of(me.network->quiet());
      me.barrier();
      std::vector<std::vector<std::byte>> back(static_cast<std::size_t>(me.pes), std::vector<std::byte>(size));
      for (int pe = 0; pe < me.pes; ++pe) {
        if (pe == me.pe) {
          continue;
        }
        const auto place = static_cast<std::size_t>(me.pe) * kStride;
        text += problem_of(me.network->start_get(back[static_cast<std::size_t>(pe)].data(), heap_of(pe, place), size));
      }
      text += problem_of(me.network->quiet());
      for (int pe = 0; pe < me.pes; ++pe) {
        if (pe == me.pe) {
          continue;
        }
        if (back[static_cast<std::size_t>(pe)] != mine) {
          text += "not what was put; ";
        }
        if (!holds(me.heap_at(static_cast<std::size_t>(pe) * kStride), pattern(size, pe))) {
          text += "not put; ";
        }
      }
      me.barrier();
    }
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_P(OneSidedTest, ReachesGlobalVariablesToo) {
  const auto texts = in_this_way(2, [](NetworkPe& me) {
    const auto mine = pattern(4096, me.pe);
    std::string text = problem_of(me.network->put({1 - me.pe, Segment::kGlobals, 0}, mine.data(), 4096));
    text += problem_of(me.network->quiet());
    me.barrier();
    return holds(me.globals.data(), pattern(4096, 1 - me.pe)) ? text : text + "wrong bytes";
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

/// What one PE tells the others about a segment.
struct NewSegment {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t key_bytes = 0;
  std::array<std::byte, 1024> key{};
};

/// "", or why the PEs cannot reach each other's `memory` as `segment`.
std::string attach(NetworkPe& me, Segment segment, std::span<std::byte> memory) {
  const auto key = me.network->add_segment(segment, memory);
  if (!key || key->size() > 1024) {
    return problem_of(key) + "no key; ";
  }
  NewSegment mine{reinterpret_cast<std::uintptr_t>(memory.data()), memory.size(), key->size(), {}};
  std::copy(key->begin(), key->end(), mine.key.begin());
  const auto all = allgather(*me.world, mine);
  if (!all) {
    return problem_of(all);
  }
  std::vector<SegmentAddress> places;
  for (const NewSegment& other : *all) {
    places.push_back({other.address,
                      other.bytes,
                      {other.key.begin(), other.key.begin() + static_cast<std::ptrdiff_t>(other.key_bytes)}});
  }
  me.network->attach_segment(segment, std::move(places));
  return "";
}

TEST_P(OneSidedTest, ReachesSegmentsThatComeAndGo) {
  const auto texts = in_this_way(2, [](NetworkPe& me) {
    std::string text;
    const int other = 1 - me.pe;
    for (const std::size_t slot : {std::size_t{0}, std::size_t{7}, kMostRegistered - 1, std::size_t{7}}) {
      const Segment segment = registered_segment(slot);
      const auto mine = pattern(4096, me.pe + static_cast<int>(slot));
      text += me.network->put({other, segment, 0}, mine.data(), 1) ? "a put before there is a segment; " : "";
      std::vector<std::byte> memory(8192);
      text += attach(me, segment, memory);
      text += problem_of(me.network->put({other, segment, 4096}, mine.data(), 4096));
      text += problem_of(me.network->post_atomic({other, segment, 8}, 8, AtomicOperation::kAdd, 5));
      text += me.network->put({other, segment, 4097}, mine.data(), 4096) ? "a put beyond the end; " : "";
      text += problem_of(me.network->quiet());
      std::vector<std::byte> back(4096);
      text += problem_of(me.network->get(back.data(), {other, segment, 4096}, 4096));
      text += back == mine ? "" : "not what was put; ";
      me.barrier();
      text += holds(memory.data() + 4096, pattern(4096, other + static_cast<int>(slot))) ? "" : "wrong bytes; ";
      text += memory[8] == std::byte{5} ? "" : "wrong word; ";
      me.network->remove_segment(segment);
      text += me.network->put({other, segment, 0}, mine.data(), 1) ? "a put after its end; " : "";
      me.barrier();
    }
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

/// The result of `operation` on `before`.
std::uint64_t after(AtomicOperation operation, std::uint64_t before, std::uint64_t operand, std::uint64_t compared) {
  switch (operation) {
    case AtomicOperation::kAdd:
      return before + operand;
    case AtomicOperation::kAnd:
      return before & operand;
    case AtomicOperation::kOr:
      return before | operand;
    case AtomicOperation::kXor:
      return before ^ operand;
    case AtomicOperation::kSwap:
    case AtomicOperation::kSet:
      return operand;
    case AtomicOperation::kCompareSwap:
      return before == compared ? operand : before;
    case AtomicOperation::kFetch:
      return before;
  }
  return 0;
}

constexpr AtomicOperation kOperations[] = {
    AtomicOperation::kAdd,  AtomicOperation::kAnd,         AtomicOperation::kOr,    AtomicOperation::kXor,
    AtomicOperation::kSwap, AtomicOperation::kCompareSwap, AtomicOperation::kFetch, AtomicOperation::kSet};

/// Tries each operation with and without an answer, and checks that the bytes next to the word do not change.
template <typename Word>
std::string try_atomics(NetworkPe& me) {
  std::string text;
  constexpr std::size_t kSize = sizeof(Word);
  const RemotePlace place = heap_of(1, 64);
  const auto read = [&] {
    Word value = 0;
    text += problem_of(me.network->quiet());
    text += problem_of(me.network->get(&value, place, kSize));
    return value;
  };
  const std::vector<Word> around{Word(0x1111111122222222), Word(0xfffffffff0000001), Word(0x3333333344444444)};
  for (const AtomicOperation operation : kOperations) {
    for (const bool equal : {true, false}) {
      const auto before = around[1];
      const std::uint64_t operand = 0x8000000f8000000f;
      const std::uint64_t compared = equal ? before : before + 1;
      const std::string name =
          "operation " + std::to_string(static_cast<int>(operation)) + " on " + std::to_string(kSize) + " bytes ";
      text += problem_of(me.network->put(heap_of(1, 64 - kSize), around.data(), 3 * kSize));
      const auto expected = static_cast<Word>(after(operation, before, operand, compared));
      text += problem_of(me.network->quiet());
      const auto fetched = me.network->fetch_atomic(place, kSize, operation, operand, compared);
      text += problem_of(fetched);
      if (fetched && *fetched != before) {
        text += name + "had " + std::to_string(*fetched) + "; ";
      }
      if (const Word is = read(); is != expected) {
        text += name + "made " + std::to_string(is) + "; ";
      }
      if (operation == AtomicOperation::kCompareSwap || operation == AtomicOperation::kFetch) {
        continue;
      }
      text += problem_of(me.network->put(place, &before, kSize));
      text += problem_of(me.network->quiet());
      text += problem_of(me.network->post_atomic(place, kSize, operation, operand));
      if (const Word is = read(); is != expected) {
        text += name + "without answer made " + std::to_string(is) + "; ";
      }
    }
  }
  std::vector<Word> whole(3);
  text += problem_of(me.network->get(whole.data(), heap_of(1, 64 - kSize), 3 * kSize));
  if (whole[0] != around[0] || whole[2] != around[2]) {
    text += "a neighbour has changed; ";
  }
  return text;
}

TEST_P(OneSidedTest, DoesEveryAtomicOperationOn4And8Bytes) {
  const auto texts = in_this_way(2, [](NetworkPe& me) {
    std::string text;
    if (me.pe == 0) {
      text = try_atomics<std::uint32_t>(me) + try_atomics<std::uint64_t>(me);
    }
    me.barrier();
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

/// Two remote PEs add by fetching and posted operations, a thread of the word's own process by atomic instructions.
TEST_P(OneSidedTest, LosesNoAdditionOfProcessorsAndRemotePes) {
  const int times = test_support::repeats(3000, 100000);
  const auto texts = in_this_way(3, [times](NetworkPe& me) {
    std::string text;
    std::jthread local;
    me.barrier();
    if (me.pe == 0) {
      local = std::jthread([&me, times] {
        for (int i = 0; i < 20 * times; ++i) {
          me.word<std::uint64_t>(8).fetch_add(1);
        }
      });
    }
    for (int i = 0; me.pe > 0 && i < times; ++i) {
      text += problem_of(me.network->post_atomic(heap_of(0, 8), 8, AtomicOperation::kAdd, 1));
      if (i % 4 == 0) {
        text += problem_of(me.network->fetch_atomic(heap_of(0, 8), 8, AtomicOperation::kAdd, 1));
      }
    }
    text += problem_of(me.network->quiet());
    me.barrier();
    if (me.pe != 0) {
      return text;
    }
    local.join();
    const auto expected = 20 * static_cast<std::uint64_t>(times) +
                          2 * (static_cast<std::uint64_t>(times) + (static_cast<std::uint64_t>(times) + 3) / 4);
    const std::uint64_t sum = me.word<std::uint64_t>(8).load();
    return sum == expected ? text : text + std::to_string(sum) + " of " + std::to_string(expected);
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

/// A PE that sees the later word also sees the earlier bytes, of any size; the word is put or set.
TEST_P(OneSidedTest, PutsInOrderAcrossAFence) {
  const int rounds = test_support::repeats(150, 5000);
  const auto texts = in_this_way(2, [rounds](NetworkPe& me) {
    std::string text;
    constexpr std::size_t kData = 1024;
    constexpr std::size_t kSizesInTurn[] = {8, 300000, 100, 9000, 70000};
    for (int round = 1; round <= rounds; ++round) {
      const std::size_t size = kSizesInTurn[round % 5];
      const auto data = pattern(size, round);
      const auto value = static_cast<std::uint64_t>(round);
      if (me.pe == 0) {
        text += problem_of(me.network->start_put(heap_of(1, kData), data.data(), size));
        text += problem_of(me.network->fence());
        if (round % 2 == 0) {
          text += problem_of(me.network->put(heap_of(1, 0), &value, sizeof value));
        } else {
          text += problem_of(me.network->post_atomic(heap_of(1, 0), 8, AtomicOperation::kSet, value));
        }
        text += problem_of(me.network->quiet());
      } else {
        me.serve([&] { return me.word<std::uint64_t>(0).load(std::memory_order_acquire) == value; });
        if (!holds(me.heap_at(kData), data)) {
          text += "round " + std::to_string(round) + " came early; ";
        }
      }
      me.barrier();
    }
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

/// A PE that does not answer must not delay signals to other PEs.
TEST_P(OneSidedTest, FencesOnePeWithoutTheOthers) {
  const auto texts = in_this_way(3, [](NetworkPe& me) {
    std::string text;
    const std::uint64_t value = 7;
    if (me.pe == 0) {
      const auto data = pattern(300000, 1);
      text += problem_of(me.network->start_put(heap_of(2, 1024), data.data(), data.size()));
      text += problem_of(me.network->start_put(heap_of(1, 1024), data.data(), data.size()));
      text += problem_of(me.network->fence(PeChoice(1)));
      text += problem_of(me.network->post_atomic(heap_of(1, 0), 8, AtomicOperation::kSet, value));
      me.barrier();
      text += problem_of(me.network->quiet());
    } else if (me.pe == 1) {
      me.serve([&] { return me.word<std::uint64_t>(0).load(std::memory_order_acquire) == value; });
      text += holds(me.heap_at(1024), pattern(300000, 1)) ? "" : "the signal came early";
      me.barrier();
    } else {
      while (me.rendezvous.arrived.load() < 2) {  // makes no progress
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
      }
      me.barrier();
    }
    me.barrier();
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(By, OneSidedTest, ::testing::Bool(), testing::name_of_way);

/// The signal handlers of a debugger, a profiler or a language runtime must stay installed.
TEST_F(NetworkTest, KeepsSignalHandlers) {
  const auto texts = with_network(
      1,
      [](NetworkPe& me) {
        std::string text;
        constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGHUP, SIGTERM, SIGCHLD};
        const auto handler_of = [](int signal) {
          struct sigaction action {};
          ::sigaction(signal, nullptr, &action);
          return action.sa_handler;
        };
        std::vector<decltype(handler_of(0))> before;
        for (const int signal : kSignals) {
          before.push_back(handler_of(signal));
        }
        text += me.connect(me.settings());
        std::size_t i = 0;
        for (const int signal : kSignals) {
          if (handler_of(signal) != before[i++]) {
            text += "signal " + std::to_string(signal) + " is handled; ";
          }
        }
        return text;
      },
      false);
  EXPECT_THAT(texts, Each(IsEmpty()));
}

/// Otherwise UCX would patch these functions while other threads may run them.
TEST_F(NetworkTest, DoesNotLetUcxPatchMemoryFunctions) {
  const auto texts = with_network(
      1,
      [](NetworkPe& me) {
        ::unsetenv("UCX_MEM_EVENTS");
        const auto first_bytes = [] {
          std::vector<std::array<unsigned char, 16>> all;
          for (const char* name : {"mmap", "munmap", "mremap", "madvise", "brk", "shmat", "shmdt"}) {
            std::memcpy(all.emplace_back().data(), ::dlsym(RTLD_DEFAULT, name), 16);
          }
          return all;
        };
        const auto before = first_bytes();
        std::string text = me.connect(me.settings());
        return first_bytes() == before ? text : text + "a function of the C library has changed";
      },
      false);
  EXPECT_THAT(texts, Each(IsEmpty()));
}

}  // namespace
}  // namespace shmem
