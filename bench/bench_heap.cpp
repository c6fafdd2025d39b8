// SPDX-License-Identifier: Apache-2.0
// The time of one call of the symmetric heap's allocator (without its barrier), compared with malloc of the C library
// and a best-fit allocator with boundary tags, like dlmalloc. N blocks are live; each step frees a random one and
// allocates another.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "shmem/memory/heap.hpp"

#ifdef BENCH_BOOST_INTERPROCESS
#include <boost/interprocess/indexes/iset_index.hpp>
#include <boost/interprocess/managed_external_buffer.hpp>
#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>
#endif

namespace {

constexpr std::size_t kLargest = 4096;

/// Room for `blocks` blocks of the mean size that fill half of the heap.
std::size_t heap_size(std::size_t blocks) {
  return (blocks + 64) * kLargest;
}

class SymmetricHeapAllocator {
 public:
  using Block = std::size_t;
  explicit SymmetricHeapAllocator(std::size_t size) : heap_(size) {}
  Block allocate(std::size_t size) { return heap_.allocate(size).value_or(0); }
  void release(Block block) { heap_.release(block); }

 private:
  shmem::Heap heap_;
};

class CLibraryAllocator {
 public:
  using Block = void*;
  explicit CLibraryAllocator(std::size_t /*size*/) {}
  static Block allocate(std::size_t size) { return std::malloc(size); }  // NOLINT: malloc is measured
  static void release(Block block) { std::free(block); }                 // NOLINT
};

#ifdef BENCH_BOOST_INTERPROCESS
class BestFitAllocator {
  using Segment = boost::interprocess::basic_managed_external_buffer<
      char, boost::interprocess::rbtree_best_fit<boost::interprocess::null_mutex_family>,
      boost::interprocess::iset_index>;

 public:
  using Block = void*;
  explicit BestFitAllocator(std::size_t size)
      : memory_(size / sizeof(std::max_align_t)),
        segment_(boost::interprocess::create_only, memory_.data(), memory_.size() * sizeof(std::max_align_t)) {}
  Block allocate(std::size_t size) { return segment_.allocate(size, std::nothrow); }
  void release(Block block) { segment_.deallocate(block); }

 private:
  std::vector<std::max_align_t> memory_;
  Segment segment_;
};
#endif

template <typename Allocator>
void replace_random_block(benchmark::State& state) {
  const auto blocks = static_cast<std::size_t>(state.range(0));
  std::mt19937 random(1);  // NOLINT: the same steps for all allocators
  const auto size = [&] { return 1 + random() % kLargest; };
  Allocator allocator(heap_size(blocks));
  std::vector<typename Allocator::Block> live(blocks);
  for (auto& block : live) {
    block = allocator.allocate(size());
  }
  const auto step = [&] {
    auto& block = live[random() % blocks];
    allocator.release(block);
    block = allocator.allocate(size());
    benchmark::DoNotOptimize(block);
  };
  for (std::size_t i = 0; i < 4 * blocks; ++i) {
    step();  // until the heap is as fragmented as it stays
  }
  for (auto _ : state) {
    step();
  }
  state.counters["per call"] =
      benchmark::Counter(2, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  for (auto& block : live) {
    allocator.release(block);
  }
}

BENCHMARK_TEMPLATE(replace_random_block, SymmetricHeapAllocator)->RangeMultiplier(10)->Range(100, 100'000);
BENCHMARK_TEMPLATE(replace_random_block, CLibraryAllocator)->RangeMultiplier(10)->Range(100, 100'000);
#ifdef BENCH_BOOST_INTERPROCESS
BENCHMARK_TEMPLATE(replace_random_block, BestFitAllocator)->RangeMultiplier(10)->Range(100, 100'000);
#endif

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
#ifndef BENCH_BOOST_INTERPROCESS
  std::puts(
      "Boost.Interprocess (libboost-dev) was not installed at build time: best fit with boundary tags is skipped");
#endif
  benchmark::RunSpecifiedBenchmarks();
}
