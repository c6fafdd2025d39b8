// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/store_bootstrap.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/process_activity.hpp"

namespace shmem {

StoreBootstrap::StoreBootstrap(KeyValueStore store, int rank, int size)
    : store_(std::move(store)), rank_(rank), size_(size), senders_(static_cast<std::size_t>(size)) {
  struct stat space {};
  self_.space = ::stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
  self_.machine = base::this_machine();
  self_.pid = ::getpid();
  self_.start = base::start_of(::getpid());
  told_.pe = rank;
  told_.reason.reserve(sizeof JobEndWord::reason);
}

Result<std::vector<std::byte>> StoreBootstrap::allgather(std::span<const std::byte> mine) {
  ++step_;
  std::vector<std::byte> value(sizeof self_ + mine.size());
  std::memcpy(value.data(), &self_, sizeof self_);
  std::copy(mine.begin(), mine.end(), value.begin() + sizeof self_);
  if (auto ok = store_.set(key(rank_), value); !ok) {
    return fail(ok.error().code,
                fmt::format("shmem: PE {}: cannot write to the key-value store: {}", rank_, ok.error().text));
  }
  std::vector<std::byte> all;
  all.reserve(mine.size() * static_cast<std::size_t>(size_));
  for (int pe = 0; pe < size_; ++pe) {
    if (pe == rank_) {
      all.insert(all.end(), mine.begin(), mine.end());
      continue;
    }
    if (auto ok = get(pe, value); !ok) {
      return ok.error();
    }
    std::memcpy(&senders_[static_cast<std::size_t>(pe)], value.data(), sizeof(StoreSender));
    all.insert(all.end(), value.begin() + sizeof(StoreSender), value.end());
  }
  return all;
}

std::string StoreBootstrap::key(int pe) const {
  return fmt::format("shmem/{}/{}", step_, pe);
}

/// Whether to look for processes that have ended: only now and then, since a look takes some system calls for each PE.
bool StoreBootstrap::looks_now() {
  constexpr std::chrono::milliseconds kEach{200};
  const auto now = Clock::now();
  if (now < next_look_) {
    return false;
  }
  next_look_ = now + kEach;
  return true;
}

Result<void> StoreBootstrap::get(int pe, std::vector<std::byte>& value) {
  constexpr auto kLater = std::errc::resource_unavailable_try_again;
  for (std::optional<int> ended;;) {
    const auto ok = store_.get(key(pe), value);
    if (ok) {
      return {};
    }
    if (ok.error().code != kLater) {
      return fail(ok.error().code, fmt::format("shmem: PE {}: step {} of the start waited for {}: {}", rank_, step_,
                                               missing_from(pe, value), ok.error().text));
    }
    polls_ = true;
    if (ended) {
      const Loss loss = first_loss(*ended);
      return fail(std::errc::owner_dead, fmt::format("shmem: PE {}: in step {} of the start, PE {} (pid {}) is dead",
                                                     rank_, step_, loss.pe, loss.pid));
    }
    // One that has made all its steps may end: the store is asked once more.
    ended = looks_now() ? ended_pe() : std::nullopt;
  }
}

std::optional<int> StoreBootstrap::ended_pe() const {
  for (int pe = 0; pe < size_; ++pe) {
    const StoreSender& sender = senders_[static_cast<std::size_t>(pe)];
    const bool is_visible = sender.pid != 0 && sender.space == self_.space && sender.machine == self_.machine;
    if (is_visible && base::has_ended(sender.pid, sender.start)) {
      return pe;
    }
  }
  return std::nullopt;
}

/// The PE that has ended may have done so since it has found another one dead. This one tells which it was, too.
StoreBootstrap::Loss StoreBootstrap::first_loss(int ended) {
  const auto key_of = [](int pe) { return fmt::format("shmem/loss/{}", pe); };
  Loss loss;
  if (!store_.get(key_of(ended), std::as_writable_bytes(std::span(&loss, 1)))) {
    loss = {.pe = ended, .pid = senders_[static_cast<std::size_t>(ended)].pid};
  }
  // A store that does not take it costs no more than that others may name this PE.
  (void)store_.set(key_of(rank_), std::as_bytes(std::span(&loss, 1)));
  return loss;
}

std::string StoreBootstrap::missing_from(int pe, std::vector<std::byte>& value) const {
  constexpr int kMostLooks = 16;  // each may take as long as one call of the store
  std::string text = fmt::format("PE {}", pe);
  for (int other = pe + 1; polls_ && other < std::min(size_, pe + 1 + kMostLooks); ++other) {
    if (other != rank_ && !store_.get(key(other), value)) {
      text += fmt::format(", PE {}", other);
    }
  }
  return text;
}

int StoreBootstrap::abort(int status, const std::string& reason) {
  if (end_ != nullptr) {
    told_.status = status;
    told_.reason.assign(reason, 0, told_.reason.capacity());
    set_end(*end_, told_);
  }
  return status;
}

std::optional<std::string> StoreBootstrap::aborted() const {
  if (end_ == nullptr) {
    return std::nullopt;
  }
  const auto end = read_end(*end_);
  return end ? std::optional(end->reason) : std::nullopt;
}

}  // namespace shmem
