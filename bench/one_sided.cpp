// SPDX-License-Identifier: Apache-2.0
// Puts, gets and atomics of PE 0 in the memory of PE 1, on one node.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bench/library.hpp"
#ifdef BENCH_OURS
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace bench {
namespace {

constexpr std::size_t kMost = std::size_t{4} << 20;
constexpr std::size_t kSizes[] = {8, 64, 512, 4096, 32768, 262144, 1048576, kMost};
/// A message rate is measured with messages to many places.
constexpr std::size_t kPlaces = 1024;
constexpr int kPeer = 1;

int most_calls(std::size_t size) {
  return static_cast<int>(std::clamp<std::size_t>((std::size_t{64} << 20) / size, 5, 100'000));
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

/// Symmetric memory, and private memory of one process. It lasts as long as the job.
struct Memory {
  char* bytes = symmetric_memory(kMost, 1);
  char* from = symmetric_memory(kMost, 2);
  long* words = reinterpret_cast<long*>(bytes);
  std::vector<char> own_to = std::vector<char>(kMost, 3);
  std::vector<char> own_from = std::vector<char>(kMost, 4);
};

/// `bytes` of PE 1, as PE 0 sees them.
char* there(char* bytes) {
  auto* mapped = static_cast<char*>(shmem_ptr(bytes, kPeer));
  if (mapped == nullptr) {
    throw std::runtime_error("shmem_ptr does not reach PE 1");
  }
  return mapped;
}

/// Both PEs act at once.
template <typename Action>
Figure both(Worker& worker, Action action) {
  return [&worker, action](int count) {
    worker.synchronise();
    return time_each(count, action);
  };
}

/// PE 1 changes lines, then PE 0 reads them one after the other, each at the address in the previous one: a chain of
/// cache misses.
template <typename Change, typename Read>
Figure misses(Worker& worker, Change change, Read read) {
  return [&worker, change, read](int count) {
    constexpr std::size_t kLines = 256;
    double time = 0;
    std::size_t next = 0;
    for (int round = 0; round < count; ++round) {
      for (std::size_t i = 0; Library::me() == kPeer && i < kLines; ++i) {
        change(i, (i * 37 + 61) % kLines);
      }
      worker.synchronise();
      if (Library::me() == 0) {
        time += time_each(kLines, [&] { next = read(next); });
      }
      worker.synchronise();
    }
    return time / count;
  };
}

void add_words(Worker& worker, const Memory& memory, Items& items) {
  Words& plain = worker.words();
  long* word = memory.words;
  char* from = memory.from;
  const auto store = alone([&plain] { plain_store(plain[0].value, 7); });
  const auto store_and_fence = alone([&plain] { plain_store_and_fence(plain[0].value, 7); });
  const auto load = alone([&plain] { plain_load(plain[0].value); });
  const auto put = [word, from] { shmem_putmem(word, from, sizeof *word, kPeer); };
  items.push_back({"p", alone([word] { shmem_long_p(word, 7, kPeer); }), store});
  items.push_back({"p + quiet", alone([word] {
                     shmem_long_p(word, 7, kPeer);
                     shmem_quiet();
                   }),
                   store_and_fence});
  items.push_back({"put 8 B", alone(put), store});
  items.push_back({"put 8 B + quiet", alone([put] {
                     put();
                     shmem_quiet();
                   }),
                   store_and_fence});
  items.push_back({"put_nbi 8 B, 1024 places in turn", alone([word, from, i = std::size_t{0}]() mutable {
                     shmem_putmem_nbi(word + i++ % kPlaces, from, sizeof *word, kPeer);
                   }),
                   alone([&plain, i = std::size_t{0}]() mutable { plain_store(plain[i++ % kPlaces].value, 7); })});
  items.push_back({"g", alone([word] { shmem_long_g(word, kPeer); }), load});
  items.push_back({"get 8 B", alone([word, from] { shmem_getmem(from, word, sizeof *word, kPeer); }), load});
  constexpr std::size_t kLine = 8;  // words
  items.push_back({"get 8 B that its PE has just written",
                   misses(
                       worker, [word](std::size_t i, std::size_t next) { word[i * kLine] = static_cast<long>(next); },
                       [word](std::size_t i) {
                         long next = 0;
                         shmem_getmem(&next, word + i * kLine, sizeof next, kPeer);
                         return static_cast<std::size_t>(next);
                       }),
                   misses(
                       worker, [&plain](std::size_t i, std::size_t next) { plain[i].value = next; },
                       [&plain](std::size_t i) { return plain[i].value.load(std::memory_order_relaxed); }),
                   20});
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it

void add_copies(Worker& worker, Memory& memory, Items& items) {
  const auto put = [to = memory.bytes, from = memory.from](std::size_t size) {
    return [to, from, size] {
      shmem_putmem(to, from, size, kPeer);
      shmem_quiet();
    };
  };
  for (const std::size_t size : kSizes) {
    const auto copy =
        alone([to = memory.own_to.data(), from = memory.own_from.data(), size] { plain_copy(to, from, size); });
    const auto get = [to = memory.from, from = memory.bytes, size] { shmem_getmem(to, from, size, kPeer); };
    items.push_back({"put + quiet " + size_text(size), alone(put(size)), copy, most_calls(size)});
    items.push_back({"get " + size_text(size), alone(get), copy, most_calls(size)});
  }
  for (const std::size_t size : {std::size_t{32768}, std::size_t{1048576}}) {
    const auto copy = [to = there(memory.bytes), from = memory.from, size] { plain_copy(to, from, size); };
    const auto nothing = [] {};
    items.push_back({"put + quiet " + size_text(size) + ", read by its PE each time",
                     read_in_between(worker, put(size), nothing, memory.bytes, size),
                     read_in_between(worker, copy, nothing, memory.bytes, size), 20});
  }
}

void add_atomics(Worker& worker, const Memory& memory, Items& items) {
  auto& plain = worker.words()[0].value;
  const auto add = [word = memory.words] { shmem_long_atomic_add(word, 1, kPeer); };
  const auto fetch_add = [word = memory.words] { shmem_long_atomic_fetch_add(word, 1, kPeer); };
  const auto swap = [word = memory.words] { shmem_long_atomic_compare_swap(word, 1, 2, kPeer); };
  const auto plain_add = [&plain] { plain_fetch_add(plain, 1); };
  const auto plain_swap = [&plain] { plain_compare_swap(plain, 1, 2); };
  items.push_back({"atomic add", alone(add), alone(plain_add)});
  items.push_back({"atomic fetch_add", alone(fetch_add), alone(plain_add)});
  items.push_back({"atomic compare_swap", alone(swap), alone(plain_swap)});
  items.push_back({"atomic add, both PEs at once", both(worker, add), both(worker, plain_add)});
  items.push_back({"atomic fetch_add, both PEs at once", both(worker, fetch_add), both(worker, plain_add)});
  items.push_back({"atomic compare_swap, both PEs at once", both(worker, swap), both(worker, plain_swap)});
}

#ifdef BENCH_OURS
/// Memory of the program that it registers, compared with memcpy() in a process.
void add_registered(const char* kind, char* to, Memory& memory, Items& items) {
  if (shmemx_memory_register(to, kMost, -1, 0) != 0) {
    throw std::runtime_error(shmemx_error_text());
  }
  for (const std::size_t size : {std::size_t{8}, std::size_t{4096}, std::size_t{1048576}}) {
    const auto copy =
        alone([own = memory.own_to.data(), from = memory.own_from.data(), size] { plain_copy(own, from, size); });
    const std::string text = size_text(size) + " of registered memory, " + kind;
    char* from = memory.from;
    items.push_back(
        {"put " + text, alone([to, from, size] { shmem_putmem(to, from, size, kPeer); }), copy, most_calls(size)});
    items.push_back(
        {"get " + text, alone([to, from, size] { shmem_getmem(from, to, size, kPeer); }), copy, most_calls(size)});
  }
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it

char* shared_mapping() {
  const int memfd = ::memfd_create("bench", MFD_CLOEXEC);
  void* shared = ::mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  if (memfd < 0 || ::ftruncate(memfd, kMost) != 0 || shared == MAP_FAILED) {
    throw std::runtime_error("no memfd");
  }
  std::memset(shared, 5, kMost);
  return static_cast<char*>(shared);
}
#endif

const Part kOneSided("one-sided", [](Worker& worker, const Arguments& /*arguments*/) {
  static Memory memory;
  Items items;
  add_words(worker, memory, items);
  add_copies(worker, memory, items);
  add_atomics(worker, memory, items);
#ifdef BENCH_OURS
  static std::vector<char> registered(kMost);
  add_registered("shared", shared_mapping(), memory, items);
  add_registered("private", registered.data(), memory, items);
#endif
  return items;
});

#ifdef BENCH_OURS

/// For bench_all.
const Part kPuts("puts", [](Worker& worker, const Arguments& /*arguments*/) {
  constexpr int kSmallPuts = 100'000;
  constexpr int kLargePuts = 20;
  char* const here = symmetric_memory(kMebibyte);
  char* const source = symmetric_memory(kMebibyte);
  char* const mapped = there(here);
  const auto store = [mapped] {
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(mapped)).store(7, std::memory_order_relaxed);
  };
  const auto put_small = [here, value = std::uint64_t{7}] { shmem_putmem(here, &value, sizeof value, kPeer); };
  const auto copy = [mapped, source] { std::memcpy(mapped, source, kMebibyte); };
  const auto put = [here, source] {
    shmem_putmem(here, source, kMebibyte, kPeer);
    shmem_quiet();
  };
  const auto nothing = [] {};
  return Items{
      {"put 8 B", alone(put_small), alone(store), kSmallPuts, kSmallPuts},
      {"put 1 MiB, destination not read in between", alone(put), alone(copy), kLargePuts, kLargePuts},
      {"put 1 MiB, destination read by its owner each time", read_in_between(worker, put, nothing, here, kMebibyte),
       read_in_between(worker, copy, nothing, here, kMebibyte), kLargePuts, kLargePuts}};
});

#endif

}  // namespace
}  // namespace bench
