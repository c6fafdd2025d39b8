// SPDX-License-Identifier: Apache-2.0
// Checks the guarantee of barriers on cores that are threads, in memory of this process or shared with others.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <mutex>

#include "shmem/cores/core_group.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/barrier_property.hpp"

namespace shmem_test {

constexpr auto kTeamSizes =
    std::to_array({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33, 64, 708});

/// The number of barriers for each algorithm and size, over all numbers of cores. Threads and processes do as many
/// each: in total, an algorithm does 100,000 with 1 to 4 PEs and 1,000 with 5 to 17. Sanitizers check every step, so
/// they need fewer. An emulator takes many times as long.
inline int barriers_for(int pes) {
  if (test_support::kEmulated) {
    return test_support::repeats(pes <= 4 ? 100 : pes <= 17 ? 10 : pes <= 64 ? 4 : 1, 1'000);
  }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kFew = 500;
#else
  constexpr int kFew = 12'500;
#endif
  if (pes <= 4) {
    return test_support::repeats(kFew, 100'000);
  }
  if (pes <= 17) {
    return test_support::repeats(40, 100'000);
  }
  if (pes <= 64) {
    return test_support::repeats(pes < 64 ? 20 : 100, 100'000);
  }
  return test_support::repeats(5, 1'000);
}

/// Algorithm i, or none, which mixes them, after the last.
inline std::optional<shmem::Algorithm> algorithm_or_mixed(std::size_t i) {
  return i < shmem::kAlgorithms.size() ? std::optional(shmem::kAlgorithms[i].algorithm) : std::nullopt;
}

/// The sync memory of a team in this process.
struct TeamMemory {
  explicit TeamMemory(int pes) : sync(static_cast<std::size_t>(pes)), rounds(static_cast<std::size_t>(pes)) {}
  std::vector<shmem::TeamSync> sync;
  std::vector<shmem::RoundWords> rounds;
};

/// The interface of SyncView, over TeamMemory.
class MemoryView {
 public:
  MemoryView(TeamMemory& memory, int me) : memory_(memory), me_(me) {}
  [[nodiscard]] int size() const { return static_cast<int>(memory_.sync.size()); }
  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] shmem::TeamSync& member(int i) const { return memory_.sync[static_cast<std::size_t>(i)]; }
  [[nodiscard]] shmem::TeamSync& mine() const { return member(me_); }
  [[nodiscard]] shmem::SyncWord& round(int member, int i) const {
    return memory_.rounds[static_cast<std::size_t>(member)][static_cast<std::size_t>(i)];
  }

 private:
  TeamMemory& memory_;
  int me_;
};

/// The first error on any thread. It ends the waits of the other threads, and so does a deadline.
class FirstWrong {
 public:
  /// `others_ended`: whether another process has failed.
  explicit FirstWrong(std::function<bool()> others_ended = [] { return false; })
      : others_ended_(std::move(others_ended)) {}
  void say(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    if (text_.empty()) {
      text_ = text;
    }
    wrong_ = wrong_ || !text.empty();
  }
  [[nodiscard]] std::errc check() const {
    if (wrong_ || others_ended_()) {
      return std::errc::operation_canceled;
    }
    return shmem::Clock::now() < deadline_ ? std::errc{} : std::errc::timed_out;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::function<bool()> others_ended_;
  shmem::Clock::time_point deadline_ = shmem::Clock::now() + std::chrono::seconds{3600};
  std::mutex mutex_;
  std::string text_;
  std::atomic<bool> wrong_{false};
};

/// Runs all cores of one PE of `run`: the calling thread, and more threads for more cores. Errors go to `wrong`.
template <typename View>
void check_pe(const View& view, const BarrierRun& run, const Cells& cells, FirstWrong& wrong) {
  const auto check = [&wrong] { return wrong.check(); };
  const auto seed = [&](int core) { return static_cast<unsigned>(1 + view.me() * run.cores + core + run.barriers); };
  int cores = 0;
  for (int pe = 0; pe < run.pes; ++pe) {
    cores += run.cores_of(pe);
  }
  const auto policy = shmem::wait_policy(cores);
  const int mine = run.cores_of(view.me());
  if (mine == 1) {
    WithData solo{shmem::SoloCore(policy, check)};
    DawdlingCore core(solo, seed(0));
    wrong.say(check_barriers(core, view, run, cells));
    return;
  }
  const auto group = shmem::CoreGroup::create(mine, policy).value();
  group->run(
      [&](shmem::ThreadCore& thread) {
        WithData with_data{thread};
        DawdlingCore core(with_data, seed(thread.index()));
        const std::string text = check_barriers(core, view, run, cells);
        wrong.say(text);
        return text.empty() ? std::errc{} : std::errc::operation_canceled;
      },
      check);
}

/// Runs all PEs of `run` as threads of this process. Returns the first error, or "".
inline std::string check_as_threads(const BarrierRun& run) {
  TeamMemory memory(run.pes);
  std::vector<Cell> data(Cells::needed(run));
  const Cells cells(data, run);
  FirstWrong wrong;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(run.pes));
  for (int pe = 0; pe < run.pes; ++pe) {
    threads.emplace_back([&, pe] { check_pe(MemoryView(memory, pe), run, cells, wrong); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return wrong.text();
}

}  // namespace shmem_test
