// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/driver/barrier_job.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

namespace barrier_test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint32_t first_behind_port(Shape shape, std::uint32_t member) {
  return shape == Shape::kShared ? member / 2 * 2 : member;
}

}  // namespace

Member::Member(Job& job, std::uint32_t me) : job_(job), me_(me), sharer_(me + 1) {
  const bool holds = first_behind_port(job.shape_, me) == me;
  if (holds) {
    gba_barrier_port* port = nullptr;
    EXPECT_EQ(gba_barrier_port_open(nullptr, &port), 0);
    port_.reset(port);
  }
  Job::Memory& mine = job.members_[me];
  gba_barrier_config config{};
  config.size = sizeof config;
  config.members = job.size_;
  config.member = me;
  config.word = mine.word;
  config.port = port_.get();
  config.retry_ns = job.retry_ns_;
  config.context = this;
  config.offer = job.recovers_ ? &job.offer_ : nullptr;
  if (job.shape_ == Shape::kNetwork) {
    config.read = read;
    config.raise = raise;
    config.alarm = &mine.alarm;
  } else {
    config.words = job.members_[0].word;
    config.stride = sizeof(Job::Memory);
  }
  if (job.shape_ == Shape::kShared) {
    config.alarm = &job.alarm_;
    config.released = &job.members_[first_behind_port(job.shape_, me)].released;
    config.group_members = (job.size_ + 1) / 2;
    config.group_member = me / 2;
    config.sharers = &sharer_;
    config.sharer_count = holds && sharer_ < job.size_ ? 1 : 0;
  }
  gba_barrier* barrier = nullptr;
  EXPECT_EQ(gba_barrier_create(&config, &barrier), 0);
  barrier_.reset(barrier);
}

int Member::read(void* context, std::uint32_t member, std::uint64_t k, std::uint64_t* word) {
  Job& job = static_cast<Member*>(context)->job_;
  if (job.lost_ == static_cast<int>(member)) {
    return -EHOSTUNREACH;
  }
  *word = __atomic_load_n(&job.members_[member].word[k & 1], __ATOMIC_ACQUIRE);
  return 0;
}

int Member::raise(void* context, std::uint64_t k) {
  auto& self = *static_cast<Member*>(context);
  for (auto& other : self.job_.members_) {
    if (&other != &self.job_.members_[self.me_]) {
      __atomic_store_n(&other.alarm, k, __ATOMIC_RELEASE);
    }
  }
  return 0;
}

gba_barrier_status Member::status() const {
  gba_barrier_status status{};
  EXPECT_EQ(gba_barrier_get_status(barrier(), &status), 0);
  return status;
}

bool Member::agree(std::uint64_t sequence) {
  if (me_ == 0) {
    job_.members_[0].joined = gba_barrier_offer(barrier(), sequence, &job_.offer_) == 0 ? 1 : -1;
  }
  job_.sync();
  const bool offered = job_.members_[0].joined > 0;
  job_.sync();
  if (offered) {
    job_.members_[me_].joined = gba_barrier_join(barrier(), &job_.offer_) == 0 ? 2 : -1;
  }
  job_.sync();
  for (const auto& member : job_.members_) {
    if (member.joined != 2) {
      gba_barrier_leave(barrier());
      job_.sync();
      gba_barrier_free(barrier());
      return false;
    }
  }
  gba_barrier_begin(barrier(), sequence);
  return true;
}

void Member::enter(std::uint64_t k) {
  // Relaxed, here and in check_all_entered(): the barrier under test has to order these accesses.
  job_.members_[me_].entered.store(k, std::memory_order_relaxed);
  gba_barrier_arrive(barrier(), k);
}

void Member::check_all_entered(std::uint64_t k) {
  for (const auto& member : job_.members_) {
    if (member.entered.load(std::memory_order_relaxed) < k) {
      ++job_.early_;
    }
  }
}

int Member::barrier(std::uint64_t k) {
  enter(k);
  gba_barrier_waiting waiting{};
  waiting.spins = 20;
  waiting.yields = 20;
  const int result = gba_barrier_wait(barrier(), &waiting, 30 * kSecond);
  check_all_entered(k);
  EXPECT_GE(result, 0) << "member " << me_ << ", barrier " << k;
  return result;
}

int Member::barrier_by_polling(std::uint64_t k) {
  enter(k);
  int result = -EAGAIN;
  while ((result = gba_barrier_poll(barrier())) == -EAGAIN) {
    std::this_thread::yield();
  }
  check_all_entered(k);
  EXPECT_GE(result, 0) << "member " << me_ << ", barrier " << k;
  return result;
}

void Member::give_back() {
  gba_barrier_disable(barrier());
  job_.sync();
  gba_barrier_leave(barrier());
  job_.sync();
  gba_barrier_free(barrier());
}

Job::Job(Shape shape, std::uint32_t size, bool recovers, std::uint64_t retry_ns)
    : shape_(shape), size_(size), recovers_(recovers), retry_ns_(retry_ns), members_(size), sync_(size) {}

void Job::run(const std::function<void(Member&)>& body) {
  std::vector<std::jthread> threads;
  for (std::uint32_t me = 0; me < size_; ++me) {
    threads.emplace_back([this, me, &body] {
      Member member(*this, me);
      body(member);
      const auto status = member.status();
      by_device_ += status.by_device;
      in_software_ += status.in_software;
    });
  }
}

}  // namespace barrier_test
