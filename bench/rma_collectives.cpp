// SPDX-License-Identifier: Apache-2.0
#include <shmem.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/clock.hpp"
#include "bench/rma_items.hpp"
#include "bench/rma_library.hpp"

namespace bench {
namespace {

constexpr std::size_t kLarge = (std::size_t{1} << 20) / sizeof(long);

/// Memory that goes with the job.
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
  };
  // From every PE in turn, so that each call waits for the one before.
  item("broadcast",
       [b, words, pes] { b->collectives.broadcast(b->to, b->from, words, static_cast<int>(b->calls++ % pes)); });
  item("collect", [b, words] { b->collectives.collect(b->to, b->from, words); });
  item("fcollect", [b, words] { b->collectives.fcollect(b->to, b->from, words); });
  // What a PE gives to all together has the size, but each of them gets a word.
  item("alltoall",
       [b, block = std::max<std::size_t>(words / pes, 1)] { b->collectives.alltoall(b->to, b->from, block); });
  item(sum, [b, words] { b->collectives.sum(b->to, b->from, words); });
}

}  // namespace

std::vector<Item> collective_items() {
  const auto buffers = std::make_shared<Buffers>(kLarge * static_cast<std::size_t>(shmem_n_pes()));
  std::vector<Item> items;
  items.push_back({"barrier_all", together([] { shmem_barrier_all(); }), together([] { shmem_sync_all(); }), 10'000});
  add(items, buffers, 1, "8 B");
  add(items, buffers, kLarge, "1 MiB");
  return items;
}

std::vector<Item> tuning_items() {
  const auto buffers = std::make_shared<Buffers>(kLarge * static_cast<std::size_t>(shmem_n_pes()));
  std::vector<Item> items;
  for (const std::size_t bytes : {8, 16, 32, 64, 96, 256, 1024, 4096, 16384, 65536, 262144, 1048576}) {
    add(items, buffers, bytes / sizeof(long), std::to_string(bytes), "reduce");
  }
  return items;
}

}  // namespace bench
