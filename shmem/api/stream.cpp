// SPDX-License-Identifier: Apache-2.0
// Streams: calls that are made later, in order, by a thread of the library.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "shmem/api/peer.hpp"
#include "shmem/api/stream.hpp"
#include "shmem/api/waiting.hpp"
#include "shmem/log.hpp"
#include "shmem/memory/copy.hpp"
#include "shmem_device.h"

using shmem::Context;
using shmem::Team;
namespace api = shmem::api;

struct shmemx_stream_t {
  shmem::Stream stream;
};

namespace {

/// The caller's stream, or the library's own. Ends the job where a thread for that cannot be had.
shmem::Stream& stream_of(Context& context, const char* call, shmemx_stream_t* stream) {
  if (stream != nullptr) {
    return stream->stream;
  }
  try {
    return context.default_stream();
  } catch (const std::system_error& error) {
    api::end_job(context, call, std::string("no thread for the library's stream: ") + error.what());
  }
}

/// Ends the job where there is no memory to write the work down.
void give(const Context& context, const char* call, shmem::Stream& stream, shmem::Stream::Work work) {
  try {
    stream.give(std::move(work));
  } catch (const std::bad_alloc&) {
    api::end_job(context, call, "out of memory");
  }
}

}  // namespace

void api::give_to_stream(const char* call, shmemx_stream_t* stream, shmem::Stream::Work work) {
  Context& context = api::running(call);
  give(context, call, stream_of(context, call, stream), std::move(work));
}

namespace {

/// Work that needs no library, where the stream is the program's own.
void give(shmemx_stream_t* stream, const char* call, shmem::Stream::Work work) {
  if (stream != nullptr) {
    stream->stream.give(std::move(work));
    return;
  }
  Context& context = api::running(call);
  give(context, call, stream_of(context, call, nullptr), std::move(work));
}

}  // namespace

extern "C" {

int shmemx_stream_create(shmemx_stream_t** stream) noexcept {
  if (stream == nullptr) {
    return api::report({std::errc::invalid_argument, "shmem: shmemx_stream_create: stream is NULL"});
  }
  *stream = nullptr;
  try {
    *stream = new shmemx_stream_t;
    return 0;
  } catch (const std::exception& error) {
    return api::report({std::errc::resource_unavailable_try_again,
                        std::string("shmem: shmemx_stream_create: no thread for a stream: ") + error.what()});
  }
}

void shmemx_stream_destroy(shmemx_stream_t* stream) noexcept {
  delete stream;
}

int shmemx_stream_synchronize(shmemx_stream_t* stream) noexcept {
  constexpr const char* kCall = "shmemx_stream_synchronize";
  // A stream of the program's own may be there longer than the library runs.
  shmem::Stream& waited = stream != nullptr ? stream->stream : stream_of(api::running(kCall), kCall, nullptr);
  const std::errc error = waited.synchronize();
  return error == std::errc{}
             ? 0
             : api::report({error, std::string("shmem: ") + kCall +
                                       ": work of the stream failed: " + std::make_error_code(error).message()});
}

void shmemx_barrier_on_stream(shmem_team_t team, shmemx_stream_t* stream) noexcept {
  constexpr const char* kCall = "shmemx_barrier_on_stream";
  Context& context = api::running(kCall);
  Team& found = api::valid_team(context, kCall, team);
  give(context, kCall, stream_of(context, kCall, stream), [&found] {
    api::quiet();
    auto ok = found.sync();
    if (!ok) {
      shmem::log(shmem::LogLevel::kError, "%s", ok.error().text.c_str());
    }
    return ok ? std::errc{} : ok.error().code;
  });
}

void shmemx_quiet_on_stream(shmemx_stream_t* stream) noexcept {
  constexpr const char* kCall = "shmemx_quiet_on_stream";
  Context& context = api::running(kCall);
  give(context, kCall, stream_of(context, kCall, stream), [] {
    api::quiet();
    return std::errc{};
  });
}

void shmemx_putmem_on_stream(void* dest, const void* source, size_t bytes, int pe, shmemx_stream_t* stream) noexcept {
  constexpr const char* kCall = "shmemx_putmem_on_stream";
  Context& context = api::running(kCall);
  std::byte* theirs = api::remote(context, kCall, dest, bytes, pe);
  give(context, kCall, stream_of(context, kCall, stream), [&context, dest, theirs, source, bytes, pe] {
    const api::Peer peer({context, kCall, pe});
    if (peer.is_far()) {
      api::far_put(peer, dest, source, bytes);
    } else {
      shmem::copy_bytes(theirs, source, bytes);
      peer.wake();
    }
    return std::errc{};
  });
}

void shmemx_getmem_on_stream(void* dest, const void* source, size_t bytes, int pe, shmemx_stream_t* stream) noexcept {
  constexpr const char* kCall = "shmemx_getmem_on_stream";
  Context& context = api::running(kCall);
  const std::byte* theirs = api::remote(context, kCall, source, bytes, pe);
  give(context, kCall, stream_of(context, kCall, stream), [&context, dest, source, theirs, bytes, pe] {
    if (theirs == nullptr) {
      api::far_get(api::Peer({context, kCall, pe}), dest, source, bytes);
    } else if (bytes != 0) {
      std::memcpy(dest, theirs, bytes);
    }
    return std::errc{};
  });
}

void shmemx_memcpy_on_stream(void* dest, const void* source, size_t bytes, shmemx_stream_t* stream) noexcept {
  constexpr const char* kCall = "shmemx_memcpy_on_stream";
  give(stream, kCall, [dest, source, bytes] {
    if (bytes != 0) {
      std::memcpy(dest, source, bytes);
    }
    return std::errc{};
  });
}

void shmemx_memset_on_stream(void* dest, int value, size_t bytes, shmemx_stream_t* stream) noexcept {
  constexpr const char* kCall = "shmemx_memset_on_stream";
  give(stream, kCall, [dest, value, bytes] {
    if (bytes != 0) {
      std::memset(dest, value, bytes);
    }
    return std::errc{};
  });
}

void shmemx_launch_on_stream(int cores, shmemx_kernel_t kernel, void* argument, shmemx_stream_t* stream) noexcept {
  constexpr const char* kCall = "shmemx_launch_on_stream";
  Context& context = api::running(kCall);
  give(context, kCall, stream_of(context, kCall, stream), [cores, kernel, argument] {
    const int error = shmemx_launch(cores, kernel, argument);
    if (error == -EINVAL || error == -EBUSY || error == -EAGAIN) {  // it has said the others
      shmem::log(shmem::LogLevel::kError, "%s", shmemx_error_text());
    }
    return std::errc{-error};
  });
}

void shmemx_signal32_op_on_stream(int32_t* sig_addr, int32_t signal, int sig_op, int pe,
                                  shmemx_stream_t* stream) noexcept {
  constexpr const char* kCall = "shmemx_signal32_op_on_stream";
  Context& context = api::running(kCall);
  api::check_aligned(context, kCall, sig_addr);
  api::remote(context, kCall, sig_addr, sizeof *sig_addr, pe);
  if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD) {
    api::end_job(context, kCall, std::to_string(sig_op) + " is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD");
  }
  give(context, kCall, stream_of(context, kCall, stream), [=] {
    shmemx_signal32_op(sig_addr, signal, sig_op, pe);
    return std::errc{};
  });
}

void shmemx_signal32_wait_until_on_stream(int32_t* sig_addr, int cmp, int32_t cmp_value,
                                          shmemx_stream_t* stream) noexcept {
  constexpr const char* kCall = "shmemx_signal32_wait_until_on_stream";
  Context& context = api::running(kCall);
  api::check_cmp(context, kCall, cmp);
  api::check_aligned(context, kCall, sig_addr);
  api::remote(context, kCall, sig_addr, sizeof *sig_addr, context.my_pe());
  give(context, kCall, stream_of(context, kCall, stream), [=, &context] {
    const std::atomic_ref<int32_t> word(*sig_addr);
    shmem::TimedWatch watch(context.job());
    // Acquire: what was put before the signal is visible to the work behind this.
    const auto reached = [&] { return api::compare(word.load(std::memory_order_acquire), cmp, cmp_value); };
    const std::errc error = shmem::wait_parked(context.job(), reached, [&watch] { return watch(); });
    if (error != std::errc{}) {
      shmem::log(shmem::LogLevel::kError, "shmem: PE %d: %s: the wait %s; there is %s", context.my_pe(), kCall,
                 watch.explain(error).c_str(),
                 api::unmet(word.load(std::memory_order_relaxed), cmp, cmp_value).c_str());
    }
    return error;
  });
}

void* shmemx_heap_base() noexcept {
  const Context& context = api::running("shmemx_heap_base");
  return context.job().memory.heap(context.job().me);
}
}
