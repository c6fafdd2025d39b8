// SPDX-License-Identifier: Apache-2.0
// One PE of a job that measures remote memory access, atomics and collectives of libshmem or, built by Open MPI's
// compiler with BENCH_OPENMPI_SHMEM, of Open MPI.
//
//   rma_worker FILE REPEATS PART     REPEATS: measurements of each; PART: one-sided (two PEs), collective,
//                                    followed, small or tuning
#include <shmem.h>
#ifndef BENCH_OPENMPI_SHMEM
#include <shmemx.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/library.hpp"
#include "bench/worker.hpp"

namespace bench {
namespace {

constexpr std::size_t kMost = std::size_t{4} << 20;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kSizes[] = {8, 64, 512, 4096, 32768, 262144, 1048576, kMost};
/// A message rate is measured with messages to many places.
constexpr std::size_t kPlaces = 1024;
constexpr int kPeer = 1;

std::uint32_t most_calls(std::size_t size) {
  return static_cast<std::uint32_t>(std::clamp<std::size_t>((std::size_t{64} << 20) / size, 5, 100'000));
}

// A minimal call: a function that is not inlined, with one instruction for the work.
#if defined(__clang__)
#define MINIMAL_CALL [[gnu::noinline]]
#else
#define MINIMAL_CALL [[gnu::noipa]]
#endif

MINIMAL_CALL void plain_store(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  word.store(value, std::memory_order_relaxed);
}
MINIMAL_CALL void plain_store_and_fence(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  word.store(value, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
MINIMAL_CALL std::uint64_t plain_load(const std::atomic<std::uint64_t>& word) {
  return word.load(std::memory_order_relaxed);
}
MINIMAL_CALL std::uint64_t plain_fetch_add(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  return word.fetch_add(value);
}
MINIMAL_CALL std::uint64_t plain_compare_swap(std::atomic<std::uint64_t>& word, std::uint64_t expected,
                                              std::uint64_t value) {
  word.compare_exchange_strong(expected, value);
  return expected;
}
MINIMAL_CALL void plain_copy(void* to, const void* from, std::size_t size) {
  std::memcpy(to, from, size);
}

void read_all(const char* bytes, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < size; i += sizeof sum) {
    sum += *reinterpret_cast<const std::uint64_t*>(bytes + i);
  }
  asm volatile("" : : "r"(sum));
}

/// Memory of both PEs, and private memory of one process.
class OneSided {
 public:
  explicit OneSided(Worker& worker)
      : worker_(worker),
        bytes_(static_cast<char*>(shmem_align(kPage, kMost))),
        from_(static_cast<char*>(shmem_align(kPage, kMost))),
        own_to_(std::make_unique<char[]>(kMost)),
        own_from_(std::make_unique<char[]>(kMost)) {
    if (bytes_ == nullptr || from_ == nullptr) {
      throw std::runtime_error("no symmetric memory for " + size_text(2 * kMost));
    }
    std::memset(bytes_, 1, kMost);
    std::memset(from_, 2, kMost);
    std::memset(own_to_.get(), 3, kMost);
    std::memset(own_from_.get(), 4, kMost);
    words_ = reinterpret_cast<long*>(bytes_);
  }

  static bool first() { return shmem_my_pe() == 0; }

  /// Only PE 0 acts.
  template <typename Action>
  static auto alone(Action action) {
    return [action](std::uint32_t count) mutable { return first() ? time_each(static_cast<int>(count), action) : 0.0; };
  }
  /// Both act at once.
  template <typename Action>
  auto both(Action action) {
    return [this, action](std::uint32_t count) {
      worker_.synchronise();
      return time_each(static_cast<int>(count), action);
    };
  }

  /// PE 1 changes lines, then PE 0 reads them one after the other, each at the address in the previous one: a chain of
  /// cache misses.
  template <typename Change, typename Read>
  auto misses(Change change, Read read) {
    return [this, change, read](std::uint32_t count) {
      constexpr std::size_t kLines = 256;
      double time = 0;
      std::size_t next = 0;
      for (std::uint32_t round = 0; round < count; ++round) {
        if (!first()) {
          for (std::size_t i = 0; i < kLines; ++i) {
            change(i, (i * 37 + 61) % kLines);
          }
        }
        worker_.synchronise();
        if (first()) {
          time += time_each(kLines, [&] { next = read(next); });
        }
        worker_.synchronise();
      }
      return time / count;
    };
  }

  /// Measures each copy by itself; PE 1 then reads the bytes that arrived.
  template <typename Copy>
  auto read_in_between(Copy copy, std::size_t size) {
    return [this, copy, size](std::uint32_t count) {
      double time = 0;
      for (std::uint32_t round = 0; round < count; ++round) {
        worker_.synchronise();
        if (first()) {
          time += time_each(1, copy);
        }
        worker_.synchronise();
        if (!first()) {
          read_all(bytes_, size);
        }
        worker_.synchronise();
      }
      return time / count;
    };
  }

  void add_words(std::vector<Item>& items);
  void add_copies(std::vector<Item>& items);
  void add_atomics(std::vector<Item>& items);
#ifndef BENCH_OPENMPI_SHMEM
  void add_registered(std::vector<Item>& items);
#endif

 private:
  Worker& worker_;
  char* bytes_;
  char* from_;
  long* words_ = nullptr;
  std::unique_ptr<char[]> own_to_;
  std::unique_ptr<char[]> own_from_;
#ifndef BENCH_OPENMPI_SHMEM
  const int memfd_ = ::memfd_create("bench", MFD_CLOEXEC);
  const std::unique_ptr<char[]> own_registered_ = std::make_unique<char[]>(kMost);
#endif
};

void OneSided::add_words(std::vector<Item>& items) {
  Words& plain = worker_.words();
  long* word = words_;
  const auto store = alone([&plain] { plain_store(plain[0].value, 7); });
  const auto store_and_fence = alone([&plain] { plain_store_and_fence(plain[0].value, 7); });
  items.push_back({"p", alone([word] { shmem_long_p(word, 7, kPeer); }), store});
  items.push_back({"p + quiet", alone([word] {
                     shmem_long_p(word, 7, kPeer);
                     shmem_quiet();
                   }),
                   store_and_fence});
  items.push_back({"put 8 B", alone([word, from = from_] { shmem_putmem(word, from, sizeof *word, kPeer); }), store});
  items.push_back({"put 8 B + quiet", alone([word, from = from_] {
                     shmem_putmem(word, from, sizeof *word, kPeer);
                     shmem_quiet();
                   }),
                   store_and_fence});
  items.push_back({"put_nbi 8 B, 1024 places in turn", alone([word, from = from_, i = std::size_t{0}]() mutable {
                     shmem_putmem_nbi(word + i++ % kPlaces, from, sizeof *word, kPeer);
                   }),
                   alone([&plain, i = std::size_t{0}]() mutable { plain_store(plain[i++ % kPlaces].value, 7); })});
  const auto load = alone([&plain] { plain_load(plain[0].value); });
  items.push_back({"g", alone([word] { shmem_long_g(word, kPeer); }), load});
  items.push_back({"get 8 B", alone([word, to = from_] { shmem_getmem(to, word, sizeof *word, kPeer); }), load});
  constexpr std::size_t kLine = 8;  // words
  items.push_back({"get 8 B that its PE has just written",
                   misses([word](std::size_t i, std::size_t next) { word[i * kLine] = static_cast<long>(next); },
                          [word](std::size_t i) {
                            long next = 0;
                            shmem_getmem(&next, word + i * kLine, sizeof next, kPeer);
                            return static_cast<std::size_t>(next);
                          }),
                   misses([&plain](std::size_t i, std::size_t next) { plain[i].value = next; },
                          [&plain](std::size_t i) { return plain[i].value.load(std::memory_order_relaxed); }),
                   20});
}

void OneSided::add_copies(std::vector<Item>& items) {
  for (const std::size_t size : kSizes) {
    const auto copy = alone([to = own_to_.get(), from = own_from_.get(), size] { plain_copy(to, from, size); });
    const auto put = [to = bytes_, from = from_, size] {
      shmem_putmem(to, from, size, kPeer);
      shmem_quiet();
    };
    items.push_back({"put + quiet " + size_text(size), alone(put), copy, most_calls(size)});
    items.push_back({"get " + size_text(size),
                     alone([to = from_, from = bytes_, size] { shmem_getmem(to, from, size, kPeer); }), copy,
                     most_calls(size)});
  }
  for (const std::size_t size : {std::size_t{32768}, std::size_t{1048576}}) {
    const auto put = [to = bytes_, from = from_, size] {
      shmem_putmem(to, from, size, kPeer);
      shmem_quiet();
    };
    auto* there = static_cast<char*>(shmem_ptr(bytes_, kPeer));
    if (there == nullptr) {
      throw std::runtime_error("shmem_ptr does not reach PE 1");
    }
    items.push_back({"put + quiet " + size_text(size) + ", read by its PE each time", read_in_between(put, size),
                     read_in_between([there, from = from_, size] { plain_copy(there, from, size); }, size), 20});
  }
}

#ifndef BENCH_OPENMPI_SHMEM
/// A mapping of the program's own, and private memory, compared with memcpy() in a process.
void OneSided::add_registered(std::vector<Item>& items) {
  const auto add = [&](const char* kind, char* to) {
    if (shmemx_memory_register(to, kMost, -1, 0) != 0) {
      throw std::runtime_error(shmemx_error_text());
    }
    for (const std::size_t size : {std::size_t{8}, std::size_t{4096}, std::size_t{1048576}}) {
      const auto copy = alone([own = own_to_.get(), from = own_from_.get(), size] { plain_copy(own, from, size); });
      const std::string text = size_text(size) + " of registered memory, " + kind;
      items.push_back({"put " + text, alone([to, from = from_, size] { shmem_putmem(to, from, size, kPeer); }), copy,
                       most_calls(size)});
      items.push_back({"get " + text, alone([to, from = from_, size] { shmem_getmem(from, to, size, kPeer); }), copy,
                       most_calls(size)});
    }
  };
  void* shared = ::mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_, 0);
  if (memfd_ < 0 || ::ftruncate(memfd_, kMost) != 0 || shared == MAP_FAILED) {
    throw std::runtime_error("no memfd");
  }
  std::memset(shared, 5, kMost);
  add("shared", static_cast<char*>(shared));
  add("private", own_registered_.get());
}
#endif

void OneSided::add_atomics(std::vector<Item>& items) {
  auto& plain = worker_.words()[0].value;
  long* word = words_;
  const auto add = [word] { shmem_long_atomic_add(word, 1, kPeer); };
  const auto fetch_add = [word] { shmem_long_atomic_fetch_add(word, 1, kPeer); };
  const auto swap = [word] { shmem_long_atomic_compare_swap(word, 1, 2, kPeer); };
  const auto plain_add = [&plain] { plain_fetch_add(plain, 1); };
  const auto plain_swap = [&plain] { plain_compare_swap(plain, 1, 2); };
  items.push_back({"atomic add", alone(add), alone(plain_add)});
  items.push_back({"atomic fetch_add", alone(fetch_add), alone(plain_add)});
  items.push_back({"atomic compare_swap", alone(swap), alone(plain_swap)});
  items.push_back({"atomic add, both PEs at once", both(add), both(plain_add)});
  items.push_back({"atomic fetch_add, both PEs at once", both(fetch_add), both(plain_add)});
  items.push_back({"atomic compare_swap, both PEs at once", both(swap), both(plain_swap)});
}

std::vector<Item> one_sided_items(Worker& worker) {
  static OneSided memory(worker);
  std::vector<Item> items;
  memory.add_words(items);
  memory.add_copies(items);
  memory.add_atomics(items);
#ifndef BENCH_OPENMPI_SHMEM
  memory.add_registered(items);
#endif
  return items;
}

constexpr std::size_t kLarge = (std::size_t{1} << 20) / sizeof(long);

/// Memory for the whole job.
struct Buffers {
  explicit Buffers(std::size_t words)
      : to(static_cast<long*>(shmem_malloc(words * sizeof(long)))),
        from(static_cast<long*>(shmem_malloc(words * sizeof(long)))),
        collectives(words) {
    if (to == nullptr || from == nullptr) {
      throw std::runtime_error("no symmetric memory for collectives");
    }
    std::memset(to, 0, words * sizeof(long));
    std::memset(from, 0, words * sizeof(long));
  }
  long* to;
  long* from;
  Collectives collectives;
  std::size_t calls = 0;
};

template <typename Action>
std::function<double(std::uint32_t)> together(Action action) {
  return [action](std::uint32_t count) {
    shmem_barrier_all();
    return time_each(static_cast<int>(count), action);
  };
}

void add(std::vector<Item>& items, const std::shared_ptr<Buffers>& b, std::size_t words, const std::string& size,
         const char* sum = "sum_reduce") {
  const auto pes = static_cast<std::size_t>(shmem_n_pes());
  const auto barrier = together([] { shmem_barrier_all(); });
  const auto most = static_cast<std::uint32_t>(std::clamp<std::size_t>(kLarge * 50 / words, 50, 10'000));
  const auto item = [&](const std::string& name, auto action) {
    items.push_back({name + " " + size, together(action), barrier, most});
  };  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it
  // From every PE in turn, so that each call waits for the previous one.
  item("broadcast",
       [b, words, pes] { b->collectives.broadcast(b->to, b->from, words, static_cast<int>(b->calls++ % pes)); });
  item("collect", [b, words] { b->collectives.collect(b->to, b->from, words); });
  item("fcollect", [b, words] { b->collectives.fcollect(b->to, b->from, words); });
  // `words` is the size of a PE's data for all PEs; each of them gets at least one word.
  item("alltoall",
       [b, block = std::max<std::size_t>(words / pes, 1)] { b->collectives.alltoall(b->to, b->from, block); });
  item(sum, [b, words] { b->collectives.sum(b->to, b->from, words); });
}

std::vector<Item> collective_items() {
  const auto buffers = std::make_shared<Buffers>(kLarge * static_cast<std::size_t>(shmem_n_pes()));
  std::vector<Item> items;
  items.push_back({"barrier_all", together([] { shmem_barrier_all(); }), together([] { shmem_sync_all(); }), 10'000});
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{64}, std::size_t{1} << 10, std::size_t{8} << 10,
                                  std::size_t{64} << 10, std::size_t{1} << 20}) {
    add(items, buffers, bytes / sizeof(long), size_text(bytes));
  }
  return items;
}

/// Calls that are timed one by one, with a barrier after each, as OSU's benchmarks do: the mean of all PEs.
std::vector<Item> followed_items() {
  const auto buffers = std::make_shared<Buffers>(kLarge);
  std::vector<Item> items;
  const auto item = [&](const std::string& name, std::size_t words, auto action) {
    const auto figure = [b = buffers, action](std::uint32_t count) {
      shmem_barrier_all();
      double total = 0;
      for (std::uint32_t i = 0; i < count; ++i) {
        total += time_each(1, action);
        shmem_barrier_all();
      }
      b->from[0] = static_cast<long>(total);
      b->collectives.sum(b->to, b->from, 1);
      return static_cast<double>(b->to[0]) / count / shmem_n_pes();
    };
    const auto most = static_cast<std::uint32_t>(std::clamp<std::size_t>(kLarge * 50 / words, 50, 10'000));
    items.push_back({name + " " + size_text(words * sizeof(long)), figure, {}, most});
  };
  for (std::size_t words = 1; words <= kLarge; words *= words < 128 ? 2 : 8) {
    item("broadcast", words, [b = buffers, words] { b->collectives.broadcast(b->to, b->from, words, 0); });
    item("sum_reduce", words, [b = buffers, words] { b->collectives.sum(b->to, b->from, words); });
  }
  return items;
}

/// Small calls in a row, compared with the raw round trip: of teams, where the library has those, and of active sets.
std::vector<Item> small_items() {
  const auto pes = static_cast<std::size_t>(shmem_n_pes());
  constexpr std::size_t kMostWords = 128;
  const auto buffers = std::make_shared<Buffers>(kMostWords * pes);
  const auto sets = std::make_shared<SetCollectives>(kMostWords * pes);
  std::vector<Item> items;
  constexpr std::uint32_t kCalls = 10'000;
  const auto add_calls = [&](const std::string& prefix, auto& calls, std::size_t words) {
    const std::string size = " " + size_text(words * sizeof(long));
    const auto item = [&](const std::string& name, auto action) {
      items.push_back({prefix + name + size, together(action), {}, kCalls});
    };
    item("broadcast", [b = buffers, &calls, words, pes] {
      calls.broadcast(b->to, b->from, words, static_cast<int>(b->calls++ % pes));
    });
    item("sum", [b = buffers, &calls, words] { calls.sum(b->to, b->from, words); });
    item("fcollect", [b = buffers, &calls, words] { calls.fcollect(b->to, b->from, words); });
    item("alltoall", [b = buffers, &calls, words] { calls.alltoall(b->to, b->from, words); });
  };
  items.push_back({"barrier_all", together([] { shmem_barrier_all(); }), {}, kCalls});
  items.push_back({"set: barrier", together([sets] { sets->barrier(); }), {}, kCalls});
  for (const std::size_t words : {std::size_t{1}, std::size_t{8}, std::size_t{32}, kMostWords}) {
#ifndef BENCH_OPENMPI_SHMEM
    add_calls("", buffers->collectives, words);
#endif
    add_calls("set: ", *sets, words);
  }
  return items;
}

std::vector<Item> tuning_items() {
  const auto buffers = std::make_shared<Buffers>(kLarge * static_cast<std::size_t>(shmem_n_pes()));
  std::vector<Item> items;
  for (const std::size_t bytes :
       std::initializer_list<std::size_t>{8, 16, 32, 64, 96, 256, 1024, 4096, 16384, 65536, 262144, 1048576}) {
    add(items, buffers, bytes / sizeof(long), std::to_string(bytes), "reduce");
  }
  return items;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::measure_items(argc, argv, [](bench::Worker& worker, const std::vector<std::string>& parts) {
    return parts[0] == "collective" ? bench::collective_items()
           : parts[0] == "followed" ? bench::followed_items()
           : parts[0] == "small"    ? bench::small_items()
           : parts[0] == "tuning"   ? bench::tuning_items()
                                    : bench::one_sided_items(worker);
  });
}
