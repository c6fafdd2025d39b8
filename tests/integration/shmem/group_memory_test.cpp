// SPDX-License-Identifier: Apache-2.0
// Symmetric memory of groups: calls on it give what calls on other memory give, and copy nothing to the library.
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "tests/integration/shmem/group_checks.hpp"

namespace {

using namespace group_ranks;

constexpr std::uint64_t kLimit = 120'000'000'000;
constexpr std::size_t kRoom = std::size_t{24} << 20;

struct FreeMemory {
  void operator()(shmemx_group_memory_t* memory) const { shmemx_group_memory_free(memory); }
};
using Memory = std::unique_ptr<shmemx_group_memory_t, FreeMemory>;

Memory allocate(shmemx_group_t* group, std::size_t bytes) {
  shmemx_group_memory_t* memory = nullptr;
  shmemx_group_allocate(group, bytes, kLimit, &memory);
  return Memory(memory);
}

std::uint8_t* bytes_of(const Memory& memory) {
  return static_cast<std::uint8_t*>(shmemx_group_memory_address(memory.get()));
}

shmemx_group_statistics_t statistics(shmemx_group_t* group) {
  shmemx_group_statistics_t now{};
  shmemx_group_statistics(group, &now);
  return now;
}

/// The buffers of a call in some memory, each `unit` bytes behind the one before.
struct Buffers {
  std::vector<const void*> from;
  std::vector<void*> to;
  std::vector<std::uint64_t> from_bytes;
  std::vector<std::uint64_t> to_bytes;

  [[nodiscard]] shmemx_group_call_t call(int kind, std::size_t bytes, int root) const {
    shmemx_group_call_t made = call_of(kind);
    made.bytes = bytes;
    made.root = root;
    made.from = from.data();
    made.to = to.data();
    made.from_bytes = from_bytes.data();
    made.to_bytes = to_bytes.data();
    return made;
  }
};

Buffers buffers_at(std::uint8_t* from, std::uint8_t* to, int size, std::size_t bytes, std::size_t unit) {
  Buffers made;
  for (int i = 0; i < size; ++i) {
    made.from.push_back(from + static_cast<std::size_t>(i) * unit);
    made.to.push_back(to + static_cast<std::size_t>(i) * unit);
    made.from_bytes.push_back(bytes);
    made.to_bytes.push_back(bytes);
  }
  return made;
}

/// Makes the same call on both; "" if both give the same.
std::string compare(shmemx_group_t* group, int rank, int size, int kind, std::size_t bytes,
                    const std::array<std::uint8_t*, 2>& symmetric, bool in_place) {
  const std::size_t unit = (bytes + 64) / 64 * 64;
  const std::size_t all = unit * static_cast<std::size_t>(size);
  const int root = static_cast<int>(bytes + static_cast<std::size_t>(kind)) % size;
  Bytes from(all);
  for (std::size_t i = 0; i < all; ++i) {
    from[i] = pattern(rank, static_cast<int>(i / unit), i % unit);
  }
  Bytes to(all, 0xee);
  std::copy(from.begin(), from.end(), symmetric[0]);
  std::fill_n(symmetric[1], all, std::uint8_t{0xee});
  if (in_place) {
    to = from;
  }
  const Buffers plain = buffers_at(in_place ? to.data() : from.data(), to.data(), size, bytes, unit);
  const Buffers direct = buffers_at(symmetric[0], in_place ? symmetric[0] : symmetric[1], size, bytes, unit);
  const shmemx_group_call_t first = plain.call(kind, bytes, root);
  const shmemx_group_call_t second = direct.call(kind, bytes, root);
  if (shmemx_group_run(group, &first) != 0) {
    return shmemx_error_text();
  }
  const shmemx_group_statistics_t before = statistics(group);
  if (shmemx_group_run(group, &second) != 0) {
    return shmemx_error_text();
  }
  const shmemx_group_statistics_t after = statistics(group);
  const std::string what =
      "kind " + std::to_string(kind) + " of " + std::to_string(bytes) + " bytes" + (in_place ? " in place" : "") + ": ";
  const bool is_small = bytes <= 1024 || (bytes * static_cast<std::size_t>(size) <= 65536 &&
                                          kind != SHMEMX_GROUP_ALLREDUCE && kind != SHMEMX_GROUP_REDUCE);
  if (!is_small && after.staged_bytes != before.staged_bytes) {
    return what + std::to_string(after.staged_bytes - before.staged_bytes) + " bytes were copied";
  }
  if (after.calls != before.calls + 1 || after.direct_calls != before.direct_calls + (is_small ? 0 : 1)) {
    return what + (is_small ? "it was direct" : "it was not direct");
  }
  if (std::memcmp(to.data(), in_place ? symmetric[0] : symmetric[1], all) != 0) {
    return what + "wrong data";
  }
  return "";
}

TEST(GroupMemory, CallsOnItGiveTheSameAndCopyNothing) {
  for (const int size : {1, 2, 3}) {
    EXPECT_EQ(
        "",
        run_ranks(size,
                  [](shmemx_group_t* group, int rank, int members) -> std::string {
                    const Memory one = allocate(group, kRoom);
                    const Memory other = allocate(group, kRoom);
                    if (!one || !other) {
                      return shmemx_error_text();
                    }
                    for (const std::size_t bytes :
                         {std::size_t{8}, std::size_t{4097}, std::size_t{65537}, std::size_t{1'500'001}}) {
                      for (int kind = SHMEMX_GROUP_BROADCAST; kind <= SHMEMX_GROUP_ALLTOALL; ++kind) {
                        auto bad = compare(group, rank, members, kind, bytes, {bytes_of(one), bytes_of(other)}, false);
                        if (bad.empty() && (kind == SHMEMX_GROUP_ALLREDUCE || kind == SHMEMX_GROUP_BROADCAST ||
                                            kind == SHMEMX_GROUP_REDUCE)) {
                          bad = compare(group, rank, members, kind, bytes, {bytes_of(one), bytes_of(other)}, true);
                        }
                        if (!bad.empty()) {
                          return bad;
                        }
                      }
                    }
                    return "";
                  }))
        << size;
  }
}

/// Half of the members give buffers of other memory, or buffers that overlap: the call is made by way of the stages.
TEST(GroupMemory, CallsThatAreOnlyPartlyOnItAreMadeAsOthers) {
  EXPECT_EQ("", run_ranks(3, [](shmemx_group_t* group, int rank, int size) -> std::string {
              constexpr std::size_t kBytes = 700'000;
              const Memory memory = allocate(group, kRoom);
              Bytes plain(kRoom);
              std::uint8_t* const base = rank == 1 ? plain.data() : bytes_of(memory);
              for (int kind = SHMEMX_GROUP_ALLREDUCE; kind <= SHMEMX_GROUP_ALLTOALL; ++kind) {
                for (int i = 0; i < size; ++i) {
                  std::memset(base + static_cast<std::size_t>(i) * kBytes, 1 + rank + 10 * i, kBytes);
                }
                const Buffers buffers = buffers_at(base, base + kRoom / 2, size, kBytes, kBytes);
                const shmemx_group_call_t call = buffers.call(kind, kBytes, 1);
                if (shmemx_group_run(group, &call) != 0) {
                  return shmemx_error_text();
                }
                const std::uint8_t got = base[kRoom / 2 + kBytes - 1];
                const bool is_root = rank == 1;
                const int expected = kind == SHMEMX_GROUP_ALLREDUCE        ? 6
                                     : kind == SHMEMX_GROUP_REDUCE         ? 6
                                     : kind == SHMEMX_GROUP_REDUCE_SCATTER ? 6 + 30 * rank
                                     : kind == SHMEMX_GROUP_SCATTER        ? 2 + 10 * rank
                                     : kind == SHMEMX_GROUP_ALLTOALL       ? 1 + 10 * rank
                                                                           : 1;
                const bool has_result = is_root || (kind != SHMEMX_GROUP_REDUCE && kind != SHMEMX_GROUP_GATHER);
                if (has_result && got != expected) {
                  return "kind " + std::to_string(kind) + ": " + std::to_string(got);
                }
              }
              // An allreduce of a buffer that is shifted.
              std::memset(bytes_of(memory), 1, kBytes + 64);
              const Buffers shifted = buffers_at(bytes_of(memory), bytes_of(memory) + 64, size, kBytes, 0);
              const shmemx_group_call_t call = shifted.call(SHMEMX_GROUP_ALLREDUCE, kBytes, 0);
              const auto before = statistics(group).direct_calls;
              if (shmemx_group_run(group, &call) != 0) {
                return shmemx_error_text();
              }
              const bool good = bytes_of(memory)[64 + kBytes - 1] == 3 && bytes_of(memory)[64] == 3;
              return good && statistics(group).direct_calls == before ? "" : "a shifted buffer";
            }));
}

/// What rank 0 gives goes along when the ranks meet; the others read each other's blocks where they are.
TEST(GroupMemory, AlltoallIsDirectIfOneRankGivesLittle) {
  EXPECT_EQ("", run_ranks(3, [](shmemx_group_t* group, int rank, int size) -> std::string {
              constexpr std::size_t kUnit = 100'000;
              const Memory memory = allocate(group, kRoom);
              Bytes to(kUnit * static_cast<std::size_t>(size));
              Buffers buffers = buffers_at(bytes_of(memory), to.data(), size, kUnit, kUnit);
              buffers.to_bytes[0] = 100;
              for (int i = 0; i < size; ++i) {
                std::memset(bytes_of(memory) + static_cast<std::size_t>(i) * kUnit, 1 + rank + 10 * i, kUnit);
                buffers.from_bytes[static_cast<std::size_t>(i)] = rank == 0 ? 100 : kUnit;
              }
              const shmemx_group_call_t call = buffers.call(SHMEMX_GROUP_ALLTOALL, 0, 0);
              const shmemx_group_statistics_t before = statistics(group);
              if (shmemx_group_run(group, &call) != 0) {
                return shmemx_error_text();
              }
              for (int i = 0; i < size; ++i) {
                const auto begin = to.begin() + static_cast<std::ptrdiff_t>(i * kUnit);
                const auto right = static_cast<std::uint8_t>(1 + i + 10 * rank);
                if (std::count(begin, begin + kUnit, right) != static_cast<std::ptrdiff_t>(i == 0 ? 100 : kUnit)) {
                  return "wrong data of rank " + std::to_string(i);
                }
              }
              const shmemx_group_statistics_t after = statistics(group);
              return after.direct_calls == before.direct_calls + 1 && after.staged_bytes == before.staged_bytes
                         ? ""
                         : "it was not direct";
            }));
}

/// What a member combines itself it reads where it is.
TEST(GroupMemory, SumsOfOtherMemoryAreCopiedOnlyForOthers) {
  for (const int size : {1, 2, 3}) {
    EXPECT_EQ(
        "",
        run_ranks(size,
                  [](shmemx_group_t* group, int rank, int members) -> std::string {
                    constexpr std::size_t kBytes = 1'500'000;
                    constexpr std::size_t kRounding = 4096;
                    const auto others = static_cast<std::size_t>(members - 1);
                    Bytes from(kBytes * (others + 1), static_cast<std::uint8_t>(1 + rank));
                    Bytes to(kBytes);
                    const Buffers buffers = buffers_at(from.data(), to.data(), members, kBytes, kBytes);
                    for (const int kind : {SHMEMX_GROUP_ALLREDUCE, SHMEMX_GROUP_REDUCE, SHMEMX_GROUP_REDUCE_SCATTER}) {
                      const shmemx_group_call_t call = buffers.call(kind, kBytes, 0);
                      const std::uint64_t before = statistics(group).staged_bytes;
                      if (shmemx_group_run(group, &call) != 0) {
                        return shmemx_error_text();
                      }
                      const std::uint64_t copied = statistics(group).staged_bytes - before;
                      const std::uint64_t needed =
                          kind == SHMEMX_GROUP_REDUCE_SCATTER ? kBytes * others : kBytes * others / (others + 1);
                      if (copied + kRounding < needed || copied > needed + kRounding) {
                        return "kind " + std::to_string(kind) + ": copied " + std::to_string(copied);
                      }
                      const auto sum = static_cast<std::uint8_t>(members * (members + 1) / 2);
                      if ((kind != SHMEMX_GROUP_REDUCE || rank == 0) && to != Bytes(kBytes, sum)) {
                        return "kind " + std::to_string(kind) + ": wrong sums";
                      }
                      std::fill(to.begin(), to.end(), std::uint8_t{0});
                    }
                    return "";
                  }))
        << size;
  }
}

TEST(GroupMemory, LongMessagesFromItAreCopiedOnce) {
  EXPECT_EQ("", run_ranks(2, [](shmemx_group_t* group, int rank, int size) -> std::string {
              constexpr std::size_t kBytes = 1'000'001;
              constexpr std::size_t kShort = 100'000;
              const Memory memory = allocate(group, kRoom);
              std::array<Bytes, 4> data{filled(rank, 1, kBytes), filled(rank, 2, kBytes), filled(rank, 3, kShort),
                                        filled(rank, 4, kBytes)};
              std::array<Mail, 4> sent;
              std::uint8_t* at = bytes_of(memory);
              for (int i = 0; i < 4; ++i) {
                const Bytes& one = data[static_cast<std::size_t>(i)];
                std::copy(one.begin(), one.end(), at);
                const int to = i == 3 ? rank : (rank + 1) % size;
                Mail& mail = sent[static_cast<std::size_t>(i)];
                shmemx_group_send(group, at, one.size(), to, i, 120'000'000'000, Mail::count, &mail, &mail.message);
                at += one.size() + 3;
              }
              // The first one comes before anybody has asked for it.
              for (const int i : {1, 0, 2, 3}) {
                const Bytes& mine = data[static_cast<std::size_t>(i)];
                const int from = i == 3 ? rank : 1 - rank;
                Bytes got(mine.size());
                Mail received;
                received.receive(group, got, from, i);
                if (shmemx_group_message_wait(received.message) != 0) {
                  return shmemx_error_text();
                }
                if (got != filled(from, i + 1, mine.size())) {
                  return "wrong data of message " + std::to_string(i);
                }
              }
              for (const Mail& mail : sent) {
                if (shmemx_group_message_wait(mail.message) != 0) {
                  return shmemx_error_text();
                }
              }
              const std::uint64_t direct = statistics(group).direct_messages;
              return direct == 3 ? "" : std::to_string(direct) + " messages were direct";
            }));
}

TEST(GroupMemory, DifferentSizesAreAnErrorAndTheGroupGoesOn) {
  EXPECT_EQ("", run_ranks(2, [](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
              shmemx_group_memory_t* memory = nullptr;
              const int error = shmemx_group_allocate(group, rank == 1 ? 4096 : 8192, kLimit, &memory);
              const std::string text = shmemx_error_text();
              if (error != -EINVAL || text.find("rank 1 for 4096") == std::string::npos) {
                return std::to_string(error) + text;
              }
              if (shmemx_group_allocate(group, std::size_t{1} << 60, kLimit, &memory) != -ENOMEM) {
                return "an exbibyte was allocated";
              }
              return allocate(group, 4096) ? "" : shmemx_error_text();
            }));
}

/// KiB of memory that this process has mapped, or that exists in its shared mappings.
std::size_t shared_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "RssShmem:") {
      std::size_t kib = 0;
      status >> kib;
      return kib;
    }
  }
  return 0;
}
std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    ++count;
  }
  return count;
}

TEST(GroupMemory, FreedMemoryGoesBackAndOutlivesItsGroup) {
  SharedStore second;
  EXPECT_EQ("", run_ranks(2, [&](shmemx_group_t* group, int rank, int size) -> std::string {
              static_cast<void>(allocate(group, kRoom));
              const std::size_t before = shared_kib();
              const std::size_t maps = mappings();
              for (int i = 0; i < 20; ++i) {
                const Memory memory = allocate(group, kRoom);
                std::memset(bytes_of(memory), 1, kRoom);
              }
              if (shared_kib() > before + (kRoom >> 10) || mappings() > maps + 8) {
                return "memory is left: " + std::to_string(before) + " and now " + std::to_string(shared_kib()) +
                       " KiB, mappings " + std::to_string(maps) + " and now " + std::to_string(mappings());
              }
              shmemx_group_t* other = nullptr;
              const shmemx_group_store_t calls = second.calls();
              if (shmemx_group_create(&calls, rank, size, &other) != 0) {
                return shmemx_error_text();
              }
              const Memory outlives = allocate(other, 4096);
              // A forked process has a copy of it, which it may drop.
              bytes_of(outlives)[0] = 5;
              const pid_t child = ::fork();
              if (child == 0) {
                shmemx_group_memory_free(outlives.get());
                ::_exit(0);
              }
              ::waitpid(child, nullptr, 0);
              shmemx_group_destroy(other);
              return bytes_of(outlives)[0] == 5 ? "" : "the memory went with a forked process";
            }));
}

/// Writes to the memory of the next rank, and waits for the store of the one before; rank 2 dies instead.
TEST(GroupMemory, MembersReadAndWriteTheMemoryOfEachOtherAndSeeThatOneHasDied) {
  const std::string all = run_ranks(3, [](shmemx_group_t* group, int rank, int size) -> std::string {
    const Memory memory = allocate(group, 4096);
    if (!memory || shmemx_group_memory_of(memory.get(), rank) != bytes_of(memory) ||
        shmemx_group_memory_of(memory.get(), -1) != nullptr || shmemx_group_memory_of(memory.get(), 3) != nullptr) {
      return "wrong addresses";
    }
    if (shmemx_group_check(group, 3) != -EINVAL || shmemx_group_check(group, rank) != 0) {
      return std::string("check: ") + shmemx_error_text();
    }
    if (rank == 2) {
      ::raise(SIGKILL);
    }
    auto* const next = static_cast<std::atomic<int>*>(shmemx_group_memory_of(memory.get(), (rank + 1) % size));
    const auto* const mine = reinterpret_cast<std::atomic<int>*>(bytes_of(memory));
    next->store(1 + rank);
    const int before = (rank + size - 1) % size;
    int error = 0;
    while (mine->load() == 0 && error == 0) {
      error = shmemx_group_check(group, before);
    }
    const std::string text = error != 0 ? shmemx_error_text() : "";
    if (before == 2) {
      return error == -EOWNERDEAD && text.find("rank 2") != std::string::npos ? "" : std::to_string(error) + text;
    }
    return mine->load() == 1 + before ? "" : text;
  });
  EXPECT_EQ("rank 2:  (status 9)\n", all);
}

TEST(GroupMemory, ARankThatDiesIsNamed) {
  const std::string all = run_ranks(3, [](shmemx_group_t* group, int rank, int size) -> std::string {
    const Memory memory = allocate(group, kRoom);
    const Buffers buffers = buffers_at(bytes_of(memory), bytes_of(memory), size, kRoom, 0);
    const shmemx_group_call_t call = buffers.call(SHMEMX_GROUP_ALLREDUCE, kRoom, 0);
    if (shmemx_group_run(group, &call) != 0) {
      return shmemx_error_text();
    }
    if (rank == 2) {
      ::raise(SIGKILL);
    }
    const int error = shmemx_group_run(group, &call);
    const std::string text = shmemx_error_text();
    shmemx_group_memory_t* more = nullptr;
    const int later = shmemx_group_allocate(group, 4096, kLimit, &more);
    const bool good = (error == -EOWNERDEAD || error == -ECANCELED) && text.find("rank 2") != std::string::npos;
    return good && later == error ? "" : text;
  });
  EXPECT_EQ("rank 2:  (status 9)\n", all);
}

}  // namespace
