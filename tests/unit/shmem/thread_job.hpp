// SPDX-License-Identifier: Apache-2.0
// A job whose PEs are threads of the test: real node memory, mapped once per PE, and a bootstrap without a launcher.
#pragma once

#include <atomic>
#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "shmem/layout/job.hpp"

namespace shmem_test {

/// The state that the PEs of one job share.
struct Rendezvous {
  explicit Rendezvous(int size) : slots(static_cast<std::size_t>(size)), door(size) {}
  std::vector<std::vector<std::byte>> slots;
  std::barrier<> door;
  std::atomic<std::uint32_t> aborted{0};
};

class ThreadBootstrap : public shmem::Bootstrap {
 public:
  ThreadBootstrap(Rendezvous& rendezvous, int rank) : rendezvous_(rendezvous), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(rendezvous_.slots.size()); }

  shmem::Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override {
    rendezvous_.slots[static_cast<std::size_t>(rank_)].assign(mine.begin(), mine.end());
    rendezvous_.door.arrive_and_wait();
    std::vector<std::byte> all;
    for (const auto& slot : rendezvous_.slots) {
      all.insert(all.end(), slot.begin(), slot.end());
    }
    rendezvous_.door.arrive_and_wait();
    return all;
  }
  shmem::Result<void> barrier() override {
    rendezvous_.door.arrive_and_wait();
    return {};
  }
  int abort(int status, const std::string& /*reason*/) override {
    rendezvous_.aborted = 1;
    shmem::futex_wake_all(rendezvous_.aborted);
    return status;
  }
  [[nodiscard]] std::optional<std::string> aborted() const override {
    return rendezvous_.aborted != 0 ? std::optional<std::string>("the test ended it") : std::nullopt;
  }
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override { return &rendezvous_.aborted; }
  void leave() override {}

 private:
  Rendezvous& rendezvous_;
  int rank_;
};

/// Runs `body` once per PE, each on a thread with a Job of its own and in new memory, and returns when all are done.
inline void run_job(int size, const std::function<void(shmem::Job&)>& body, const shmem::Options& options = {}) {
  Rendezvous rendezvous(size);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(size));
  for (int pe = 0; pe < size; ++pe) {
    threads.emplace_back([&, pe] {
      auto bootstrap = std::make_unique<ThreadBootstrap>(rendezvous, pe);
      auto memory = shmem::NodeMemory::create(*bootstrap, std::size_t{4} << 20).value();
      shmem::WaitPolicy policy = shmem::wait_policy(size);
      policy.alarm = bootstrap->alarm();
      shmem::Job job{options, std::move(bootstrap), std::move(memory), pe, size, policy};
      job.metadata(pe).process_space = 1;  // the processes of all PEs are visible, unless a test says otherwise
      body(job);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

}  // namespace shmem_test
