// SPDX-License-Identifier: Apache-2.0
// The property of barriers on cores that are threads, and on the memory of this process or shared with others.
#pragma once

#include <atomic>
#include <mutex>

#include "shmem/cores/core_group.hpp"
#include "tests/unit/shmem/barrier_property.hpp"

namespace shmem_test {

/// The sync memory of a team in this process.
struct TeamMemory {
  explicit TeamMemory(int pes) : sync(static_cast<std::size_t>(pes)), rounds(static_cast<std::size_t>(pes)) {}
  std::vector<shmem::TeamSync> sync;
  std::vector<shmem::RoundWords> rounds;
};

/// The same as SyncView.
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

/// The first thing that went wrong on any thread; the waits of the others end with it, or when it takes too long.
class FirstWrong {
 public:
  void say(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    if (text_.empty()) text_ = text;
    wrong_ = wrong_ || !text.empty();
  }
  [[nodiscard]] std::errc check() const {
    if (wrong_) return std::errc::operation_canceled;
    return shmem::Clock::now() < deadline_ ? std::errc{} : std::errc::timed_out;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  shmem::Clock::time_point deadline_ = shmem::Clock::now() + std::chrono::seconds{300};
  std::mutex mutex_;
  std::string text_;
  std::atomic<bool> wrong_{false};
};

/// All cores of one PE of `run`: the calling thread, and others if there are more than one. "" or what was wrong.
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

/// All PEs of `run` as threads of this process: "" or what was wrong first.
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
