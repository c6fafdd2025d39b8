// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/kv/played_pes.hpp"

#include <cstring>
#include <thread>

namespace kv_test {
namespace {

std::size_t round_to_line(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

PlayedPes::PlayedPes(int pes, int cores, const CacheShape& shape)
    : pes_(pes),
      shape_(shape),
      cache_bytes_(round_to_line(shmem::kv::cache_size(shape)->bytes())),
      part_bytes_(2 * cache_bytes_ + KvShuffle::flag_count(pes, cores) * sizeof(shmem::SyncWord)),
      memory_(new (std::align_val_t{64}) std::byte[part_bytes_ * static_cast<std::size_t>(pes)]) {
  for (int pe = 0; pe < pes; ++pe) {
    for (std::size_t i = 0; i < KvShuffle::flag_count(pes, cores); ++i) {
      new (flags(pe) + i) shmem::SyncWord{};
    }
    operators_.push_back(*KvShuffle::create(site(pe, cores), cores, flags(pe)));
  }
  fill(1);
}

shmem::kv::Site PlayedPes::site(int pe, int cores) {
  const auto translate = [this, pe](const void* mine, int other) -> std::byte* {
    const auto offset = reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(k(pe));
    return offset < part_bytes_ ? k(other) + offset : nullptr;
  };
  const auto watch = [this](int /*partner*/) {
    const auto end = shmem::Clock::now() + time_limit;
    return [end] { return shmem::Clock::now() < end ? std::errc{} : std::errc::timed_out; };
  };
  return {pe, pes_, shmem::wait_policy(pes_ * cores), translate, watch};
}

void PlayedPes::fill(unsigned seed) {
  std::mt19937 random{seed};
  for (int pe = 0; pe < pes_; ++pe) {
    for (std::size_t i = 0; i < 2 * cache_bytes_; ++i) {
      k(pe)[i] = static_cast<std::byte>(random());
    }
  }
}

std::vector<std::byte> PlayedPes::caches(int pe) {
  return {k(pe), k(pe) + 2 * cache_bytes_};
}

Call PlayedPes::call(int pe, const std::vector<std::int64_t>& pairs, const Blocks& blocks) {
  return {k(pe),
          v(pe),
          shape_,
          pairs.data(),
          blocks.source.data(),
          blocks.destination.data(),
          static_cast<std::int64_t>(blocks.source.size())};
}

shmem::Error PlayedPes::run_one(int pe, const Call& call) {
  auto ok = operators_[static_cast<std::size_t>(pe)]->run(call);
  return ok ? shmem::Error{} : ok.error();
}

std::vector<shmem::Error> PlayedPes::run(const std::vector<std::int64_t>& pairs, const std::vector<Blocks>& blocks,
                                         const std::function<void(int pe, Call&)>& change) {
  std::vector<shmem::Error> errors(static_cast<std::size_t>(pes_));
  std::vector<std::thread> threads;
  threads.reserve(errors.size());
  for (int pe = 0; pe < pes_; ++pe) {
    threads.emplace_back([&, pe] {
      const auto index = static_cast<std::size_t>(pe);
      Call mine = call(pe, pairs, blocks[index]);
      if (change) {
        change(pe, mine);
      }
      errors[index] = run_one(pe, mine);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return errors;
}

}  // namespace kv_test
