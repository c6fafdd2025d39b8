// SPDX-License-Identifier: Apache-2.0
// Streams: calls that a thread of the library makes later, in order.
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "shmem/api/copied.hpp"
#include "shmem/api/stream.hpp"
#include "shmem/api/waiting.hpp"
#include "shmem/config/log.hpp"
#include "shmem/memory/cached_copy.hpp"
#include "shmem/memory/copy.hpp"
#include "shmem_device.h"
#include "shmemx_interface.h"

using shmem::Runtime;
using shmem::Team;
namespace api = shmem::api;

struct shmemx_stream_t {
  shmem::Stream stream;
};

namespace {

/// The streams of the program that exist. Thread-safe.
class Streams {
 public:
  /// Never destroyed: streams may outlive all else.
  static Streams& all() {
    static auto* const streams = std::make_unique<Streams>().release();
    return *streams;
  }
  shmemx_stream_t* add() {
    auto made = std::make_shared<shmemx_stream_t>();
    shmemx_stream_t* const stream = made.get();
    const std::lock_guard lock(mutex_);
    streams_.emplace(stream, std::move(made));
    return stream;
  }
  /// nullptr: there is no such stream, or it was destroyed.
  std::shared_ptr<shmemx_stream_t> find(shmemx_stream_t* stream) {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    return found != streams_.end() ? found->second : nullptr;
  }
  /// It ends with the last reference to the result.
  std::shared_ptr<shmemx_stream_t> remove(shmemx_stream_t* stream) {
    const std::lock_guard lock(mutex_);
    const auto node = streams_.extract(stream);
    return node.empty() ? nullptr : node.mapped();
  }
  std::vector<std::shared_ptr<shmemx_stream_t>> list() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<shmemx_stream_t>> all;
    for (const auto& [stream, owner] : streams_) {
      all.push_back(owner);
    }
    return all;
  }

 private:
  std::mutex mutex_;
  std::map<shmemx_stream_t*, std::shared_ptr<shmemx_stream_t>> streams_;
};

shmem::Error no_such_stream(const char* call) {
  return {std::errc::invalid_argument,
          fmt::format("shmem: {}: the stream is not one of shmemx_stream_create, or was destroyed", call)};
}

/// The library's own stream. Ends the job if its thread cannot be started.
shmem::Stream& own_stream(Runtime& runtime, const char* call) {
  try {
    return runtime.default_stream();
  } catch (const std::system_error& error) {
    api::end_job(runtime, call, std::string("no thread for the library's stream: ") + error.what());
  }
}

}  // namespace

void api::await_streams() {
  for (const auto& one : Streams::all().list()) {
    one->stream.wait();
  }
}

void api::give_to_stream(const char* call, shmemx_stream_t* stream, shmem::Stream::Work work) {
  Runtime& runtime = api::running(call);
  try {
    if (stream == nullptr) {
      return own_stream(runtime, call).give(std::move(work));
    }
    const auto found = Streams::all().find(stream);
    if (found == nullptr) {
      api::end_job(runtime, call, "the stream is not one of shmemx_stream_create, or was destroyed");
    }
    found->stream.give(std::move(work));
  } catch (const std::bad_alloc&) {
    api::end_job(runtime, call, "out of memory");
  }
}

namespace {

/// Work that does not use the library, if the stream is the program's own.
void give(shmemx_stream_t* stream, const char* call, shmem::Stream::Work work) {
  if (const auto found = Streams::all().find(stream)) {
    return found->stream.give(std::move(work));
  }
  api::give_to_stream(call, stream, std::move(work));
}

}  // namespace

extern "C" {

int shmemx_stream_create(shmemx_stream_t** stream) noexcept try {
  if (stream == nullptr) {
    return api::report({std::errc::invalid_argument, "shmem: shmemx_stream_create: stream is NULL"});
  }
  *stream = nullptr;
  try {
    *stream = Streams::all().add();
    return 0;
  } catch (const std::exception& error) {
    return api::report({std::errc::resource_unavailable_try_again,
                        std::string("shmem: shmemx_stream_create: no thread for a stream: ") + error.what()});
  }
}
SHMEM_CATCH(int)

void shmemx_stream_destroy(shmemx_stream_t* stream) noexcept try {
  const auto owner = Streams::all().remove(stream);
  if (owner == nullptr && stream != nullptr) {
    api::report_loudly(no_such_stream("shmemx_stream_destroy"));
  }
}
SHMEM_CATCH(void)

int shmemx_stream_synchronize(shmemx_stream_t* stream) noexcept try {
  constexpr const char* kCall = "shmemx_stream_synchronize";
  // A program's own stream may outlive the library.
  const auto found = Streams::all().find(stream);
  if (found == nullptr && stream != nullptr) {
    return api::report(no_such_stream(kCall));
  }
  const std::errc error =
      stream == nullptr ? own_stream(api::running(kCall), kCall).synchronize() : found->stream.synchronize();
  return error == std::errc{} ? 0
                              : api::report({error, fmt::format("shmem: {}: work of the stream failed: {}", kCall,
                                                                std::make_error_code(error).message())});
}
SHMEM_CATCH(int)

void shmemx_barrier_on_stream(shmem_team_t team, shmemx_stream_t* stream) noexcept try {
  constexpr const char* kCall = "shmemx_barrier_on_stream";
  Runtime& runtime = api::running(kCall);
  Team& found = api::valid_team(runtime, kCall, team);
  api::give_to_stream(kCall, stream, [&found] {
    api::quiet();
    auto ok = found.sync();
    if (!ok) {
      shmem::log(shmem::LogLevel::kError, "%s", ok.error().text.c_str());
    }
    return ok ? std::errc{} : ok.error().code;
  });
}
SHMEM_CATCH(void)

void shmemx_quiet_on_stream(shmemx_stream_t* stream) noexcept try {
  api::give_to_stream("shmemx_quiet_on_stream", stream, [] {
    api::quiet();
    return std::errc{};
  });
}
SHMEM_CATCH(void)

void shmemx_putmem_on_stream(void* dest, const void* source, size_t bytes, int pe, shmemx_stream_t* stream) noexcept
    try {
  constexpr const char* kCall = "shmemx_putmem_on_stream";
  Runtime& runtime = api::running(kCall);
  std::byte* theirs = api::remote_if_mapped(runtime, kCall, dest, bytes, pe);
  api::give_to_stream(kCall, stream, [&runtime, dest, theirs, source, bytes, pe] {
    const api::Peer peer({runtime, kCall, pe});
    if (peer.is_remote()) {
      api::remote_put(peer, dest, source, bytes);
    } else if (theirs == nullptr) {
      api::put_copied(peer, dest, source, {.block = bytes});
    } else {
      shmem::copy_bytes(theirs, source, bytes);
      peer.wake();
    }
    return std::errc{};
  });
}
SHMEM_CATCH(void)

void shmemx_getmem_on_stream(void* dest, const void* source, size_t bytes, int pe, shmemx_stream_t* stream) noexcept
    try {
  constexpr const char* kCall = "shmemx_getmem_on_stream";
  Runtime& runtime = api::running(kCall);
  const std::byte* theirs = api::remote_if_mapped(runtime, kCall, source, bytes, pe);
  api::give_to_stream(kCall, stream, [&runtime, dest, source, theirs, bytes, pe] {
    const api::Peer peer({runtime, kCall, pe});
    if (peer.is_remote()) {
      api::remote_get(peer, dest, source, bytes);
    } else if (theirs == nullptr) {
      api::get_copied(peer, dest, source, {.block = bytes});
    } else {
      shmem::copy_cached(dest, theirs, bytes);
    }
    return std::errc{};
  });
}
SHMEM_CATCH(void)

void shmemx_memcpy_on_stream(void* dest, const void* source, size_t bytes, shmemx_stream_t* stream) noexcept try {
  give(stream, "shmemx_memcpy_on_stream", [dest, source, bytes] {
    shmem::copy_cached(dest, source, bytes);
    return std::errc{};
  });
}
SHMEM_CATCH(void)

void shmemx_memset_on_stream(void* dest, int value, size_t bytes, shmemx_stream_t* stream) noexcept try {
  give(stream, "shmemx_memset_on_stream", [dest, value, bytes] {
    if (bytes != 0) {
      std::memset(dest, value, bytes);
    }
    return std::errc{};
  });
}
SHMEM_CATCH(void)

void shmemx_launch_on_stream(int cores, shmemx_kernel_t kernel, void* argument, shmemx_stream_t* stream) noexcept try {
  api::give_to_stream("shmemx_launch_on_stream", stream, [cores, kernel, argument] {
    const int error = shmemx_launch(cores, kernel, argument);
    if (error == -EINVAL || error == -EBUSY || error == -EAGAIN) {  // it has reported the other errors
      shmem::log(shmem::LogLevel::kError, "%s", shmemx_error_text());
    }
    return std::errc{-error};
  });
}
SHMEM_CATCH(void)

void shmemx_signal32_op_on_stream(int32_t* sig_addr, int32_t signal, int sig_op, int pe,
                                  shmemx_stream_t* stream) noexcept try {
  constexpr const char* kCall = "shmemx_signal32_op_on_stream";
  Runtime& runtime = api::running(kCall);
  api::check_aligned(runtime, kCall, sig_addr);
  api::remote(runtime, kCall, sig_addr, sizeof *sig_addr, pe);
  if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD) {
    api::end_job(runtime, kCall, "{} is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD", sig_op);
  }
  api::give_to_stream(kCall, stream, [=] {
    shmemx_signal32_op(sig_addr, signal, sig_op, pe);
    return std::errc{};
  });
}
SHMEM_CATCH(void)

void shmemx_signal32_wait_until_on_stream(int32_t* sig_addr, int cmp, int32_t cmp_value,
                                          shmemx_stream_t* stream) noexcept try {
  constexpr const char* kCall = "shmemx_signal32_wait_until_on_stream";
  Runtime& runtime = api::running(kCall);
  api::check_cmp(runtime, kCall, cmp);
  api::check_aligned(runtime, kCall, sig_addr);
  const api::WordsOf whose = api::words_at(runtime.job(), sig_addr, sizeof *sig_addr);
  if (whose == api::WordsOf::kThisPe) {
    api::remote(runtime, kCall, sig_addr, sizeof *sig_addr, runtime.my_pe());
  }
  api::give_to_stream(kCall, stream, [=, &runtime] {
    const std::atomic_ref<int32_t> word(*sig_addr);
    api::WordMonitor monitor(runtime, kCall, nullptr, [&] {
      return api::unmet(runtime, sig_addr, word.load(std::memory_order_relaxed), cmp, cmp_value);
    });
    // Acquire: puts before the signal are visible to the work after this.
    const auto reached = [&] { return api::compare(word.load(std::memory_order_acquire), cmp, cmp_value); };
    const shmem::Job& job = runtime.job();
    const std::errc error = api::wait_for_words(job, whose, job.policy, reached, [&monitor] { return monitor(); });
    if (error != std::errc{}) {
      shmem::log(shmem::LogLevel::kError, "shmem: PE %d: %s: %s", runtime.my_pe(), kCall,
                 monitor.explain(error).c_str());
    }
    return error;
  });
}
SHMEM_CATCH(void)

shmemx_notify_t* shmemx_core_notify(int core) noexcept {
  static std::array<shmemx_notify_t, SHMEMX_NOTIFIES> notifies{};
  return core >= 0 && core < SHMEMX_NOTIFIES ? &notifies[static_cast<std::size_t>(core)] : nullptr;
}

void shmemx_notify_record(shmemx_notify_t* notify) noexcept try {
  api::quiet();
  // Release: pairs with the wait.
  std::atomic_ref(notify->count).fetch_add(1, std::memory_order_release);
}
SHMEM_CATCH(void)

void shmemx_notify_record_on_stream(shmemx_notify_t* notify, shmemx_stream_t* stream) noexcept try {
  api::give_to_stream("shmemx_notify_record_on_stream", stream, [notify] {
    shmemx_notify_record(notify);
    return std::errc{};
  });
}
SHMEM_CATCH(void)

void shmemx_notify_wait_on_stream(shmemx_notify_t* notify, uint32_t milliseconds, shmemx_stream_t* stream) noexcept
    try {
  constexpr const char* kCall = "shmemx_notify_wait_on_stream";
  const Runtime& runtime = api::running(kCall);
  api::give_to_stream(kCall, stream, [=, &runtime] {
    const std::atomic_ref count(notify->count);
    api::WordMonitor monitor(runtime, kCall, nullptr, [] { return "no notify"; });
    if (milliseconds != 0) {
      monitor.limit_to(std::chrono::milliseconds{milliseconds});
    }
    // Once, however often it is asked. Acquire: pairs with shmemx_notify_record.
    bool has_taken = false;
    const auto taken = [&] {
      std::uint32_t now = has_taken ? 0 : count.load(std::memory_order_relaxed);
      while (now != 0 && !count.compare_exchange_weak(now, now - 1, std::memory_order_acquire)) {
      }
      has_taken = has_taken || now != 0;
      return has_taken;
    };
    const std::errc error =
        shmem::wait_polling(runtime.job().policy, api::kNapElsewhere, taken, [&monitor] { return monitor(); });
    if (error != std::errc{}) {
      shmem::log(shmem::LogLevel::kError, "shmem: PE %d: %s: %s", runtime.my_pe(), kCall,
                 monitor.explain(error).c_str());
    }
    return error;
  });
}
SHMEM_CATCH(void)

void* shmemx_heap_base() noexcept try {
  const Runtime& runtime = api::running("shmemx_heap_base");
  return runtime.job().memory.heap(runtime.job().me);
}
SHMEM_CATCH(void*)
}
