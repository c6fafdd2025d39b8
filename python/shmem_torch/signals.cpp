// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/signals.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace shmem_torch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kSpins = 2000;
constexpr unsigned kYields = 200;
constexpr std::chrono::microseconds kLongestNap{500};
constexpr std::chrono::milliseconds kLookEach{20};

/// Acquire and release: what a rank wrote before its signal can be read by the one that takes it, and that rank's reads
/// come before the next signal.
bool try_change(SignalWord& word, std::uint32_t from, std::uint32_t to) {
  std::uint32_t seen = word.load(std::memory_order_relaxed);  // waits without taking the cache line from its writer
  return seen == from && word.compare_exchange_strong(seen, to, std::memory_order_acq_rel, std::memory_order_relaxed);
}

}  // namespace

void SignalWait::change(SignalWord& word, std::uint32_t from, std::uint32_t to, int peer) const {
  until([&word, from, to] { return try_change(word, from, to); }, peer);
}

void SignalWait::until(const std::function<bool()>& done, int peer) const {
  for (unsigned turn = 0; turn < kSpins; ++turn) {
    if (done()) {
      return;
    }
  }
  auto next_look = Clock::now() + kLookEach;
  std::chrono::microseconds nap{20};
  for (unsigned turn = 0;; ++turn) {
    // Before the last look at the word: this thread may not have run for a while.
    const auto now = Clock::now();
    const std::string why = is_late(now) || now >= next_look ? problem(peer) : "";
    if (done()) {
      return;
    }
    if (!why.empty()) {
      throw std::runtime_error(why);
    }
    next_look = now >= next_look ? now + kLookEach : next_look;
    if (turn < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(nap);
      nap = std::min(2 * nap, kLongestNap);
    }
  }
}

bool SignalWait::is_late(Clock::time_point now) const {
  return timeout_.count() != 0 && now - begin_ >= timeout_;
}

std::string SignalWait::problem(int peer) const {
  if (shmemx_group_check(group_.get(), peer) != 0) {
    return text(" waited for rank " + std::to_string(peer) + ": " + shmemx_error_text());
  }
  return is_late(Clock::now()) ? text(" timed out after " + std::to_string(timeout_.count()) +
                                      " ms; it waited for rank " + std::to_string(peer))
                               : "";
}

std::string SignalWait::text(const std::string& why) const {
  return std::string("shmem_torch: ") + call_ + std::to_string(number_) + ")" + why;
}

}  // namespace shmem_torch
