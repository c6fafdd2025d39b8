// SPDX-License-Identifier: Apache-2.0
#include "bench/pe_pair.hpp"

#include <shmem.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <stdexcept>

namespace bench {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kWarmUp = 1'000;

/// Keeps the compiler from dropping a sum.
std::atomic<std::uint64_t> sink;

bool is_first_of_two() {
  if (shmem_n_pes() != 2) {
    throw std::runtime_error("bench_pes measures between two PEs; run it with oshrun -n 2");
  }
  return shmem_my_pe() == 0;
}

}  // namespace

void* allocate_symmetric(std::size_t size) {
  void* memory = shmem_align(kPage, size);
  if (memory == nullptr) {
    throw std::runtime_error("no symmetric memory for " + std::to_string(size) + " bytes");
  }
  std::memset(memory, 0, size);
  return memory;
}

Pair::Pair()
    : measures_(is_first_of_two()), meeting_(static_cast<Meeting*>(shmem_ptr(allocate_symmetric(sizeof(Meeting)), 0))) {
  shmem_barrier_all();
}

double Pair::raw() {
  if (measures_) {
    ping(meeting_->lines, kWarmUp);
    return ping(meeting_->lines);
  }
  echo(meeting_->lines, kWarmUp);
  echo(meeting_->lines);
  return 0;
}

void Pair::meet() {
  if (measures_) {
    ping(meeting_->lines, 1);
  } else {
    echo(meeting_->lines, 1);
  }
}

bool Pair::agree(bool mine) {
  if (measures_) {
    meeting_->verdict = mine;
  }
  meet();
  return meeting_->verdict;
}

void Pair::read_all(const char* bytes, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= size; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, sizeof word);
    sum += word;
  }
  sink.store(sum, std::memory_order_relaxed);
}

void Pair::print(const Series& series) const {
  if (measures_) {
    write_series(std::cout, series);
  }
}

}  // namespace bench
