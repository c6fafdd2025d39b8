// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/growth/counted_job.hpp"

#include <algorithm>
#include <limits>
#include <thread>

namespace growth {

void Most::include(const Most& other) {
  stored = std::max(stored, other.stored);
  read = std::max(read, other.read);
  signals = std::max(signals, other.signals);
}

std::ostream& operator<<(std::ostream& out, const Most& most) {
  return out << most.stored << " / " << most.read << " / " << most.signals;
}

/// Every member maps the memory at another address.
class CountedJob::Lines final : public accesses::Observer {
 public:
  explicit Lines(CountedJob& counted)
      : counted_(counted),
        work_(counted.jobs_.size()),
        heaps_size_(counted.job(0).memory.heap_size() * work_.size()),
        areas_size_((shmem::kMetadataSize + shmem::kBoardShare) * work_.size()) {
    for (const auto& job : counted.jobs_) {
      begins_.emplace_back(reinterpret_cast<std::uintptr_t>(job->memory.heap(0)),
                           reinterpret_cast<std::uintptr_t>(job->memory.metadata(0)));
    }
  }

  void access(const void* address, std::size_t size, accesses::Kind kind) override {
    const int member = counted_.fibers_.current();
    if (member == incoherent::Fibers::kCaller || size == 0) {
      return;
    }
    const auto first = line_of(member, address);
    if (first == kPrivate) {
      return;
    }
    const auto last = line_of(member, static_cast<const std::byte*>(address) + size - 1);
    for (std::uint64_t line = first; line <= last; ++line) {
      note(member, line, kind);
    }
  }
  void renew(int member, const void* address, std::size_t size) {
    const auto last = line_of(member, static_cast<const std::byte*>(address) + size - 1);
    for (std::uint64_t line = line_of(member, address); line <= last; ++line) {
      writers_[line] = member;
    }
  }
  /// Of the calls since the last time.
  Most take() {
    Most most;
    for (Work& work : work_) {
      most.include({distinct(work.stored), distinct(work.read), work.signals});
      work.signals = 0;
    }
    return most;
  }

 private:
  struct Work {
    std::vector<std::uint64_t> stored, read;
    int signals = 0;
  };
  static constexpr std::uint64_t kPrivate = std::numeric_limits<std::uint64_t>::max();

  /// Empties `lines`, and returns how many different ones there were.
  static int distinct(std::vector<std::uint64_t>& lines) {
    std::ranges::sort(lines);
    const auto different = std::unique(lines.begin(), lines.end()) - lines.begin();
    lines.clear();
    return static_cast<int>(different);
  }
  /// The same on all members.
  [[nodiscard]] std::uint64_t line_of(int member, const void* address) const {
    constexpr std::uint64_t kLine = 64;
    const auto& [heaps, areas] = begins_[static_cast<std::size_t>(member)];
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    if (place - heaps < heaps_size_) {
      return (place - heaps) / kLine;
    }
    return place - areas < areas_size_ ? (heaps_size_ + place - areas) / kLine : kPrivate;
  }
  void note(int member, std::uint64_t line, accesses::Kind kind) {
    Work& work = work_[static_cast<std::size_t>(member)];
    // Another member has not run since this one has read the line.
    if (kind == accesses::Kind::kRead && member == last_member_ && line == last_line_) {
      return;
    }
    last_member_ = member;
    last_line_ = line;
    if (kind != accesses::Kind::kWrite) {
      const auto writer = writers_.find(line);
      if (writer != writers_.end() && writer->second != member) {
        work.read.push_back(line);
      }
    }
    if (kind != accesses::Kind::kRead) {
      work.stored.push_back(line);
      writers_[line] = member;
    }
    work.signals += kind == accesses::Kind::kSignal ? 1 : 0;
  }

  CountedJob& counted_;
  std::vector<Work> work_;
  std::unordered_map<std::uint64_t, int> writers_;
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> begins_;  // by member: where it maps heaps, and areas
  std::size_t heaps_size_, areas_size_;
  int last_member_ = incoherent::Fibers::kCaller;
  std::uint64_t last_line_ = 0;
};

/// A member that waits lets the others run.
class CountedJob::Switch final : public shmem::Background {
 public:
  explicit Switch(incoherent::Fibers& fibers) : fibers_(fibers) {}
  bool advance() override {
    if (fibers_.current() != incoherent::Fibers::kCaller) {
      fibers_.switch_to(incoherent::Fibers::kCaller);
    }
    return false;
  }

 private:
  incoherent::Fibers& fibers_;
};

CountedJob::CountedJob(int members)
    : rendezvous_(members),
      jobs_(static_cast<std::size_t>(members)),
      teams_(jobs_.size()),
      switch_(std::make_unique<Switch>(fibers_)),
      done_(jobs_.size()),
      fibers_(members, [this](int member) { run(member); }) {
  std::vector<std::thread> threads;
  threads.reserve(jobs_.size());
  for (int pe = 0; pe < members; ++pe) {
    threads.emplace_back([this, pe, members] {
      auto bootstrap = std::make_unique<shmem_test::ThreadBootstrap>(rendezvous_, pe);
      auto memory = shmem::NodeMemory::create(*bootstrap, std::size_t{2} << 20).value();
      // Waits spin forever: each turn lets the other members run.
      const shmem::WaitPolicy policy{.spins = std::numeric_limits<unsigned>::max(), .background = switch_.get()};
      jobs_[static_cast<std::size_t>(pe)].reset(
          new shmem::Job{{}, std::move(bootstrap), std::move(memory), pe, members, policy});
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    teams_[i] = std::make_unique<shmem::LocalTeam>(*jobs_[i], shmem::TeamMap{0, 1, members}, kOtherSlots, 0);
  }
  lines_ = std::make_unique<Lines>(*this);
}

CountedJob::~CountedJob() = default;

void CountedJob::run(int member) {
  for (;;) {
    (*call_)(member);
    done_[static_cast<std::size_t>(member)] = true;
    fibers_.switch_to(incoherent::Fibers::kCaller);
  }
}

void CountedJob::renew(int member, const void* address, std::size_t bytes) {
  lines_->renew(member, address, bytes);
}

Most CountedJob::count(int times, const Call& call) {
  Most most;
  call_ = &call;
  for (int i = 0; i < times; ++i) {
    done_.assign(jobs_.size(), false);
    accesses::report_to(lines_.get());
    while (!std::ranges::all_of(done_, [](bool done) { return done; })) {
      for (int member = 0; member < size(); ++member) {
        if (!done_[static_cast<std::size_t>(member)]) {
          fibers_.switch_to(member);
        }
      }
    }
    accesses::report_to(nullptr);
    most.include(lines_->take());
  }
  return most;
}

}  // namespace growth
