// SPDX-License-Identifier: Apache-2.0
#include "kv/service/disposal.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace shmem::exchange {
namespace {

/// Between two looks for calls that still use a peer.
constexpr std::chrono::milliseconds kLookAgain{20};

}  // namespace

Disposal::~Disposal() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Disposal::add(std::shared_ptr<Peer> peer) {
  const std::lock_guard lock(mutex_);
  peers_.push_back(std::move(peer));
  changed_.notify_all();
  if (!thread_.runs_here()) {
    if (auto thread = HelperThread::start([this] { run(); })) {
      thread_ = *std::move(thread);
    }  // else the destructor ends the peers, or the thread that a later one starts
  }
}

void Disposal::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto unused =
        std::partition(peers_.begin(), peers_.end(), [](const auto& peer) { return peer.use_count() > 1; });
    if (unused != peers_.end()) {
      std::vector<std::shared_ptr<Peer>> ended(std::make_move_iterator(unused), std::make_move_iterator(peers_.end()));
      peers_.erase(unused, peers_.end());
      lock.unlock();
      ended.clear();
      lock.lock();
    } else if (peers_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, kLookAgain);
    }
  }
}

}  // namespace shmem::exchange
