// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/group_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <stdexcept>
#include <thread>

#include "python/core/without_python.hpp"

namespace shmem_torch {
namespace {

/// The store with its last exception, which no C interface lets through.
struct StoreContext {
  using Clock = std::chrono::steady_clock;
  const Store& store;
  std::string failure;
  std::string awaited;  // the last key
  Clock::time_point since{};
};

template <typename Body>
int without_exceptions(void* context, Body body) {
  auto& store = *static_cast<StoreContext*>(context);
  try {
    return body(store);
  } catch (const std::exception& error) {
    store.failure = text_of(error);
    return -EIO;
  }
}

int store_set(void* context, const char* key, const void* value, std::size_t size) {
  return without_exceptions(context, [&](const StoreContext& here) {
    const auto* bytes = static_cast<const std::uint8_t*>(value);
    here.store.set(key, {bytes, bytes + size});
    return 0;
  });
}

/// Waits for the key for a moment, so that libshmem can look for members that have died: get() waits for all of the
/// store's timeout. True: it is there.
bool wait_for(StoreContext& here, const char* key) {
  using Clock = StoreContext::Clock;
  constexpr std::chrono::milliseconds kMoment{100};
  constexpr std::chrono::microseconds kLongestPause{5000};
  const auto begin = Clock::now();
  if (here.awaited != key) {
    here.awaited = key;
    here.since = begin;
  }
  for (std::chrono::microseconds pause{50}; !here.store.has(key); pause = std::min(2 * pause, kLongestPause)) {
    if (Clock::now() - begin > kMoment) {
      return false;
    }
    std::this_thread::sleep_for(pause);
  }
  return true;
}

int store_get(void* context, const char* key, void* value, std::size_t size) {
  return without_exceptions(context, [&](StoreContext& here) {
    if (!wait_for(here, key)) {
      return StoreContext::Clock::now() - here.since < here.store.timeout ? -EAGAIN : -ETIMEDOUT;
    }
    const std::vector<std::uint8_t> bytes = here.store.get(key);
    if (bytes.size() != size) {
      return -EBADMSG;
    }
    std::copy(bytes.begin(), bytes.end(), static_cast<std::uint8_t*>(value));
    return 0;
  });
}

}  // namespace

GroupHandle::GroupHandle(const Store& store, int rank, int size) : size_(size) {
  StoreContext context{store, {}, {}, {}};
  const shmemx_group_store_t calls{&context, &store_set, &store_get};
  if (shmemx_group_create(&calls, rank, size, &group_) != 0) {
    throw std::runtime_error(shmemx_error_text() + (context.failure.empty() ? "" : ": " + context.failure));
  }
}

GroupHandle::~GroupHandle() {
  const shmem_python::WithoutPython released;  // a thread of the group may be letting go of a tensor
  shmemx_group_destroy(group_);
}

int GroupHandle::outcome(int error) const {
  note(error);
  if (error == -ENOMEM) {
    int none = 0;
    failure_.compare_exchange_strong(none, error, std::memory_order_relaxed);
  }
  return error;
}

void GroupHandle::abort(const std::string& reason) const {
  shmemx_group_abort(group_, reason.c_str());
}

void GroupHandle::note(int error) const {
  constexpr std::array kFatal{-ETIMEDOUT, -EOWNERDEAD, -ECONNRESET, -ECANCELED};
  int none = 0;
  if (std::find(kFatal.begin(), kFatal.end(), error) != kFatal.end()) {
    failure_.compare_exchange_strong(none, error, std::memory_order_relaxed);
  }
}

std::string GroupHandle::missing() const {
  std::array<char, 512> text{};
  if (shmemx_group_missing(group_, text.data(), text.size()) != 0) {
    return "";
  }
  return text[0] != '\0' ? std::string("it waits for ") + text.data() : "all ranks have begun it";
}

namespace {

using Said = std::array<char, 160>;  // ends with a zero unless it is full

/// "rank 0: Float [2, 3]; rank 1: Float [3, 2]": the first rank of each text, up to a few. "": all say the same.
std::string different_texts(const std::vector<Said>& all) {
  constexpr std::size_t kMost = 6;
  std::vector<std::string> texts;
  std::string different;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::string text(all[rank].begin(), std::find(all[rank].begin(), all[rank].end(), '\0'));
    if (texts.size() < kMost && std::find(texts.begin(), texts.end(), text) == texts.end()) {
      different += (texts.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " + (text.empty() ? "none" : text);
      texts.push_back(std::move(text));
    }
  }
  return texts.size() > 1 ? different : "";
}

int run_allgather(const GroupHandle& group, const void* mine, std::size_t bytes, void* to,
                  std::chrono::milliseconds timeout) {
  std::vector<void*> parts;
  for (int rank = 0; rank < group.size(); ++rank) {
    parts.push_back(static_cast<char*>(to) + static_cast<std::size_t>(rank) * bytes);
  }
  shmemx_group_call_t call{};
  call.kind = SHMEMX_GROUP_ALLGATHER;
  call.type = SHMEMX_GROUP_BYTES;
  call.bytes = bytes;
  call.timeout_ns = nanoseconds(timeout);
  call.from = &mine;
  call.to = parts.data();
  return group.run(call, 0);
}

/// Collective: after a call that was refused on all ranks, what each of them says of its own. An addition to a message
/// in parentheses.
std::string said_of_calls(const GroupHandle& group, std::chrono::milliseconds timeout, const Describe& describe) {
  const std::string mine = describe ? describe() : "";
  Said said{};
  mine.copy(said.data(), said.size());
  std::vector<Said> all(static_cast<std::size_t>(group.size()));
  const bool heard = run_allgather(group, said.data(), said.size(), all.data(), timeout) == 0;
  const std::string others = heard ? different_texts(all) : "";
  const std::string here = mine.empty() ? "" : "here " + mine;
  const std::string text = here + (here.empty() || others.empty() ? "" : "; ") + others;
  return text.empty() ? "" : " (" + text + ")";
}

}  // namespace

std::string failure_on_all(const GroupHandle& group, const char* name, int error, std::chrono::milliseconds timeout,
                           const Describe& describe) {
  const std::string text = failure_text(name, error, timeout);
  return error == -EINVAL ? text + said_of_calls(group, timeout, describe) : text;
}

void KnownMemories::add(const std::shared_ptr<GroupMemory>& memory, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  known_.erase(std::remove_if(known_.begin(), known_.end(), [](const Known& one) { return one.memory.expired(); }),
               known_.end());
  known_.push_back({memory, bytes, ++count_});
}

std::optional<FoundMemory> KnownMemories::find(const void* address) {
  const std::scoped_lock lock(mutex_);
  for (const Known& one : known_) {
    if (auto memory = one.memory.lock()) {
      const auto* begin = static_cast<const char*>(memory->address());
      const auto* at = static_cast<const char*>(address);
      if (begin <= at && at < begin + one.bytes) {
        return FoundMemory{std::move(memory), one.number, static_cast<std::uint64_t>(at - begin)};
      }
    }
  }
  return std::nullopt;
}

std::string allocate(const GroupHandle& group, const char* name, std::size_t bytes, std::chrono::milliseconds timeout,
                     std::shared_ptr<GroupMemory>& memory) {
  shmemx_group_memory_t* made = nullptr;
  if (const int error = shmemx_group_allocate(group.get(), bytes, nanoseconds(timeout), &made); error != 0) {
    group.note(error);
    const auto describe = [bytes] { return std::to_string(bytes) + " bytes of symmetric memory"; };
    return failure_on_all(group, name, error, timeout, describe);
  }
  memory = std::make_shared<GroupMemory>(made);
  return "";
}

std::string allgather(const GroupHandle& group, const char* name, const void* mine, std::size_t bytes, void* to,
                      std::chrono::milliseconds timeout) {
  const int error = run_allgather(group, mine, bytes, to, timeout);
  return error == 0 ? "" : failure_on_all(group, name, error, timeout, {});
}

std::string barrier(const GroupHandle& group, const char* name, std::chrono::milliseconds timeout) {
  shmemx_group_call_t call{};
  call.kind = SHMEMX_GROUP_BARRIER;
  call.type = SHMEMX_GROUP_BYTES;
  call.timeout_ns = nanoseconds(timeout);
  const int error = group.run(call, 0);
  return error == 0 ? "" : failure_on_all(group, name, error, timeout, {});
}

std::string text_of(const std::exception& error) {
  const std::string text = error.what();
  return text.empty() ? "an exception without a text" : text.substr(0, text.find("\nException raised from"));
}

std::string failure_text(const char* name, int error, std::chrono::milliseconds timeout) {
  const std::string limit = error == -ETIMEDOUT ? " Timed out after " + std::to_string(timeout.count()) + " ms:" : "";
  return std::string(name) + ":" + limit + " " + shmemx_error_text();
}

}  // namespace shmem_torch
