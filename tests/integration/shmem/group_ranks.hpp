// SPDX-License-Identifier: Apache-2.0
// Ranks of a group as forked processes, with a store in shared memory.
#pragma once

#include <shmemx.h>
#include <shmemx_group.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace group_ranks {

/// A key-value store that forked processes share: enough for the start of a few groups.
class SharedStore {
 public:
  SharedStore() {
    void* memory = ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    table_ = new (memory) Table{};  // NOLINT(cppcoreguidelines-owning-memory)
  }
  SharedStore(const SharedStore&) = delete;
  SharedStore& operator=(const SharedStore&) = delete;
  ~SharedStore() { ::munmap(table_, sizeof(Table)); }

  [[nodiscard]] shmemx_group_store_t calls() {
    return {this,
            [](void* self, const char* key, const void* value, std::size_t size) {
              Table& table = *static_cast<SharedStore*>(self)->table_;
              Entry& entry = table.entries[table.used.fetch_add(1)];
              std::strncpy(entry.key.data(), key, entry.key.size() - 1);
              std::memcpy(entry.value.data(), value, size);
              entry.there.store(true);
              return 0;
            },
            [](void* self, const char* key, void* value, std::size_t size) {
              return static_cast<SharedStore*>(self)->wait_for(key, value, size, std::chrono::seconds(120))
                         ? 0
                         : -ETIMEDOUT;
            }};
  }
  bool wait_for(const char* key, void* value, std::size_t size, std::chrono::milliseconds limit) const {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    do {  // at least once: a key that is there is found
      for (const Entry& entry : table_->entries) {
        if (entry.there.load() && std::strcmp(entry.key.data(), key) == 0) {
          std::memcpy(value, entry.value.data(), size);
          return true;
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    } while (std::chrono::steady_clock::now() < deadline);
    return false;
  }

 private:
  struct Entry {
    std::atomic<bool> there;
    std::array<char, 56> key;
    std::array<char, 4096> value;
  };
  struct Table {
    std::atomic<std::size_t> used;
    std::array<Entry, 512> entries;
  };
  Table* table_;
};

/// A count that forked processes share.
class SharedCount {
 public:
  SharedCount() {
    void* memory = ::mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    count_ = new (memory) Count{};  // NOLINT(cppcoreguidelines-owning-memory)
  }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;
  ~SharedCount() { ::munmap(count_, sizeof(Count)); }
  void add() const { count_->fetch_add(1); }
  [[nodiscard]] int get() const { return count_->load(); }

 private:
  using Count = std::atomic<int>;
  Count* count_;
};

using Bytes = std::vector<std::uint8_t>;

/// What a rank does; "" if all went well.
using Body = std::function<std::string(shmemx_group_t* group, int rank, int size)>;

/// One process for each rank. Returns what they found wrong, or how they ended. `hosts`: where ranks take themselves to
/// be, in turn; none: all on one node.
inline std::string run_ranks(int size, const Body& body, const std::vector<const char*>& hosts = {}) {
  SharedStore store;
  std::vector<std::pair<pid_t, int>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) {
      return "no pipe";
    }
    const pid_t pid = ::fork();
    if (pid == 0) {
      if (!hosts.empty()) {
        ::setenv("SHMEM_HOST_ID", hosts[static_cast<std::size_t>(rank) % hosts.size()], 1);
      }
      shmemx_group_t* group = nullptr;
      const shmemx_group_store_t calls = store.calls();
      std::string text;
      if (shmemx_group_create(&calls, rank, size, &group) != 0) {
        text = std::string("create: ") + shmemx_error_text();
      } else {
        text = body(group, rank, size);
        shmemx_group_destroy(group);
      }
      static_cast<void>(::write(pipe[1], text.data(), text.size()));
      ::_exit(0);
    }
    ::close(pipe[1]);
    ranks.emplace_back(pid, pipe[0]);
  }
  std::string all;
  for (int rank = 0; rank < size; ++rank) {
    const auto [pid, end] = ranks[static_cast<std::size_t>(rank)];
    std::array<char, 2048> text{};
    std::string said;
    for (ssize_t got = 0; (got = ::read(end, text.data(), text.size())) > 0;) {
      said.append(text.data(), static_cast<std::size_t>(got));
    }
    ::close(end);
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (!said.empty() || status != 0) {
      all += "rank " + std::to_string(rank) + ": " + said + " (status " + std::to_string(status) + ")\n";
    }
  }
  return all;
}

inline shmemx_group_call_t call_of(int kind) {
  shmemx_group_call_t call{};
  call.kind = kind;
  call.type = SHMEMX_GROUP_UINT8;
  call.timeout_ns = 120'000'000'000;
  return call;
}

inline std::uint8_t pattern(int rank, int block, std::size_t at) {
  return static_cast<std::uint8_t>(rank * 31 + block * 7 + static_cast<int>(at % 251));
}

inline Bytes filled(int rank, int block, std::size_t bytes) {
  Bytes data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = pattern(rank, block, i);
  }
  return data;
}

}  // namespace group_ranks
