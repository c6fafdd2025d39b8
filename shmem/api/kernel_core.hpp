// SPDX-License-Identifier: Apache-2.0
// The vector core that a thread is while a kernel runs on it, for calls without a core in their arguments.
#pragma once

#include <array>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "shmem/api/entry.hpp"

namespace shmem::api {

/// Shared by the cores of one launch: the first message of a wait that failed.
class LaunchErrors {
 public:
  void keep(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (text_.empty()) {
      text_ = text;
    }
  }
  /// REQUIRES: the kernel has ended on all cores.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::mutex mutex_;
  std::string text_;
};

/// Shared by the cores of one launch: how often each core has set each of its flags, by the way it was set.
class LaunchFlags {
 public:
  static constexpr int kFlags = 16;
  static constexpr int kModes = 3;
  using Count = std::atomic<std::uint32_t>;

  explicit LaunchFlags(int cores) : cores_(cores) {}

  /// Once, before the other calls; thread-safe. False: out of memory. Most kernels set no flag.
  bool make() {
    std::call_once(made_, [this] {
      try {
        cores_have_set_ = std::vector<OfCore>(static_cast<std::size_t>(cores_));
      } catch (const std::bad_alloc&) {  // left empty
      }
    });
    return !cores_have_set_.empty();
  }
  Count& count(int core, int mode, int flag) {
    return cores_have_set_[static_cast<std::size_t>(core)][static_cast<std::size_t>(mode)]
                          [static_cast<std::size_t>(flag)];
  }
  /// Changes after each change of a count of this flag.
  SyncWord& changes(int flag) { return changes_[static_cast<std::size_t>(flag)]; }

 private:
  using OfCore = std::array<std::array<Count, kFlags>, kModes>;

  const int cores_;
  std::once_flag made_;
  std::vector<OfCore> cores_have_set_;
  std::array<SyncWord, kFlags> changes_{};
};

}  // namespace shmem::api

/// What a kernel gets as its handle. Used by the core's thread only.
struct shmemx_core_t {
  shmem::ThreadCore& core;
  shmem::Runtime& runtime;
  const shmem::CoreState& state;
  shmem::api::LaunchErrors& errors;
  shmem::api::LaunchFlags& flags;
  std::uint64_t ffts_config = 0;
  std::errc error{};  // the first error of a call of this core; its later waits return it at once
  std::array<std::uint32_t, shmem::api::LaunchFlags::kFlags>
      awaited_flags{};  // how often this core has waited for each

  /// 0, or the negative errno.
  int keep(const shmem::Result<void>& now) {
    if (now) {
      return 0;
    }
    if (error == std::errc{}) {
      error = now.error().code;
      errors.keep(now.error().text);
    }
    return -static_cast<int>(now.error().code);
  }
  [[nodiscard]] int failed() const { return -static_cast<int>(error); }
};

namespace shmem::api {

// Initial-exec: a load instead of a call in every barrier of the host.
extern constinit thread_local shmemx_core_t* running_core __attribute__((tls_model("initial-exec")));

/// The core that the calling thread is; nullptr outside of kernels and on other threads.
inline shmemx_core_t* current_core() {
  return running_core;
}

[[noreturn]] void refuse_on_core(const char* call);
/// The running library, for calls that a kernel may not make: ends the job if called on a core.
inline Runtime& running_on_host(const char* call) {
  if (running_core != nullptr) [[unlikely]] {
    refuse_on_core(call);
  }
  return running(call);
}

/// Ends the job unless `core` is the calling thread's, with a message that names `call`.
shmemx_core_t& valid_core(const char* call, const shmemx_core_t* core);
/// The calling thread's core. Ends the job if the thread is not a core.
shmemx_core_t& valid_core(const char* call);

/// Collective over the cores of all members: all have arrived. 0 or a negative errno, which the core keeps.
int sync_team_on(shmemx_core_t& core, const char* call, shmem_team_t team);

/// "shmem: PE 1, core 0: CALL: "
std::string said_by(const shmemx_core_t& core, const char* call);

}  // namespace shmem::api
