// SPDX-License-Identifier: Apache-2.0
#include "bench/conductor.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace bench {
namespace {

constexpr std::chrono::microseconds kNap{200};
constexpr std::chrono::seconds kPatience{60};
constexpr std::uint64_t kWarmUp = 1'000;

Score* map_score(const char* file) {
  const int fd = ::open(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    throw std::system_error(errno, std::generic_category(), file);
  }
  void* memory = ::mmap(nullptr, sizeof(Score), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), std::string("mmap of ") + file);
  }
  return static_cast<Score*>(memory);
}

template <typename Done, typename Pause>
void wait_until(Done done, Pause pause) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) {
      throw std::runtime_error("the other processes of the job have not come for a minute");
    }
    pause();
  }
}

/// Asleep between two looks: whoever waits does not disturb what is measured meanwhile.
template <typename Done>
void nap_until(Done done) {
  wait_until(done, [] { std::this_thread::sleep_for(kNap); });
}

/// Returns the processors that there are to choose from.
cpu_set_t pin_to_own_processor(int me) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  const int processors = CPU_COUNT(&allowed);
  int wanted = me % processors;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ::sched_setaffinity(0, sizeof one, &one);
      break;
    }
  }
  return allowed;
}

}  // namespace

Player::Player(const char* file, int me, int size)
    : score_(map_score(file)), me_(me), size_(size), allowed_(pin_to_own_processor(me)) {}

Player::~Player() {
  ::munmap(score_, sizeof *score_);
}

void Player::begin(Step step, std::uint32_t count, std::uint32_t item) {
  score_->step = step;
  score_->count = count;
  score_->item = item;
  score_->number.store(++number_, std::memory_order_release);  // pairs with next()
}

void Player::finish() {
  const auto all = number_ * (static_cast<std::uint64_t>(size_) - 1);
  nap_until([&] { return score_->done.load(std::memory_order_acquire) == all; });
}

Step Player::next(std::uint32_t& count, std::uint32_t* item) {
  ++number_;
  nap_until([&] { return score_->number.load(std::memory_order_acquire) == number_; });
  count = score_->count;
  if (item != nullptr) {
    *item = score_->item;
  }
  return score_->step;
}

void Player::step_done() {
  score_->done.fetch_add(1, std::memory_order_release);
}

void Player::unpin() const {
  ::sched_setaffinity(0, sizeof allowed_, &allowed_);
}

void Player::meet() {
  if (me_ == 0) {
    ping(score_->meeting, 1);
  } else {
    echo(score_->meeting, 1);
  }
}

void Player::meet_giving_way() {
  auto& mine = me_ == 0 ? score_->slow_meeting.request : score_->slow_meeting.reply;
  auto& other = me_ == 0 ? score_->slow_meeting.reply : score_->slow_meeting.request;
  const auto meetings = mine.fetch_add(1, std::memory_order_acq_rel) + 1;  // pairs with the other's load
  wait_until([&] { return other.load(std::memory_order_acquire) >= meetings; }, [] { ::sched_yield(); });
}

double Player::raw() {
  if (me_ == 0) {
    ping(score_->lines, kWarmUp);
    return ping(score_->lines);
  }
  if (me_ == 1) {
    echo(score_->lines, kWarmUp);
    echo(score_->lines);
  }
  return 0;
}

}  // namespace bench
