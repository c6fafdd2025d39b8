// SPDX-License-Identifier: Apache-2.0
// gba/barrier.h: checks pointers, calls one thing, and turns a Result into -errno. Nothing is thrown over it.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include "driver/barrier/barrier.hpp"
#include "driver/report.hpp"

using gba::barrier::Barrier;

namespace {

/// Runs `body`, which returns nothing. It can fail only for want of memory, for a text or a vote, and then nothing has
/// been published: the caller's next look goes on.
template <typename Body>
void contained(Body body) noexcept {
  gba::guarded([&] {
    body();
    return 0;
  });
}

/// Else a call without a result does nothing.
bool is_usable(const gba_barrier* barrier) {
  return barrier != nullptr && !barrier->is_inherited();
}

[[gnu::noinline]] int refuse_inherited(const char* function) noexcept {
  return gba::guarded([&] {
    return gba::report(std::errc::no_child_process,
                       std::string(function) + ": the barrier belongs to the process that this one was forked from");
  });
}

/// 0, or -errno: the call is refused.
int refusal(const char* function, const gba_barrier* barrier, bool has_others = true) {
  if (barrier == nullptr || !has_others) {
    gba::null_argument(function);
    return -EINVAL;  // what that returns; here, so that checkers of this file see that the call ends
  }
  return barrier->is_inherited() ? refuse_inherited(function) : 0;
}

}  // namespace

int gba_barrier_port_open(const char* path, gba_barrier_port** out) {
  if (out == nullptr) {
    return gba::null_argument("gba_barrier_port_open");
  }
  *out = nullptr;
  return gba::guarded([&] {
    auto port = std::make_unique<gba_barrier_port>(path);
    if (const auto opened = port->open(); !opened) {
      return gba::report(opened.error());
    }
    *out = port.release();
    return 0;
  });
}

void gba_barrier_port_close(gba_barrier_port* port) {
  const std::unique_ptr<gba_barrier_port> owner(port);
}

int gba_barrier_port_get_info(gba_barrier_port* port, gba_device_info* info) {
  if (port == nullptr || info == nullptr) {
    return gba::null_argument("gba_barrier_port_get_info");
  }
  return gba::guarded([&] {
    const auto device = port->healthy();
    return device != nullptr ? gba_device_get_info(device.get(), info)
                             : gba::report(std::errc::no_such_device, "the device is lost");
  });
}

void gba_barrier_port_mark_suspect(gba_barrier_port* port) {
  if (port != nullptr) {
    contained([&] { port->mark_suspect(); });
  }
}

void gba_barrier_port_reopen(gba_barrier_port* port) {
  if (port != nullptr) {
    contained([&] { port->reopen(); });
  }
}

int gba_barrier_port_await(gba_barrier_port* port, uint64_t max_ns) {
  if (port == nullptr) {
    return gba::null_argument("gba_barrier_port_await");
  }
  return gba::guarded([&] {
    port->await_healthy(gba::Deadline::after_ns(max_ns).left(std::chrono::hours{1}));
    return port->healthy() != nullptr ? 0 : gba::report(std::errc::no_such_device, "the device is lost");
  });
}

int gba_barrier_create(const gba_barrier_config* config, gba_barrier** out) {
  if (config == nullptr || out == nullptr) {
    return gba::null_argument("gba_barrier_create");
  }
  *out = nullptr;
  if (!Barrier::config_is_sound(*config)) {
    return gba::report(std::errc::invalid_argument,
                       "gba: gba_barrier_create: the config has another size (zero it, then set size), or says less "
                       "than its members need");
  }
  return gba::guarded([&] {
    *out = std::make_unique<gba_barrier>(*config).release();
    return 0;
  });
}

void gba_barrier_destroy(gba_barrier* barrier) {
  const std::unique_ptr<gba_barrier> owner(barrier);
}

int gba_barrier_offer(gba_barrier* barrier, uint64_t sequence, gba_group_handle* handle) {
  if (const int error = refusal("gba_barrier_offer", barrier); error != 0) {
    return error;
  }
  return gba::guarded([&] {
    const auto offered = barrier->offer(sequence);
    if (!offered) {
      return gba::report(offered.error());
    }
    if (handle != nullptr) {
      *handle = *offered;
    }
    return 0;
  });
}

int gba_barrier_join(gba_barrier* barrier, const gba_group_handle* handle) {
  const bool has_handle = handle != nullptr || (barrier != nullptr && barrier->has_record());
  if (const int error = refusal("gba_barrier_join", barrier, has_handle); error != 0) {
    return error;
  }
  return gba::guarded([&] { return gba::finish(barrier->join(handle)); });
}

void gba_barrier_begin(gba_barrier* barrier, uint64_t sequence) {
  if (is_usable(barrier)) {
    contained([&] { barrier->begin(sequence); });
  }
}

void gba_barrier_disable(gba_barrier* barrier) {
  if (is_usable(barrier)) {
    contained([&] { barrier->disable(); });
  }
}

void gba_barrier_leave(gba_barrier* barrier) {
  if (is_usable(barrier)) {
    contained([&] { barrier->leave(); });
  }
}

void gba_barrier_free(gba_barrier* barrier) {
  if (is_usable(barrier)) {
    contained([&] { barrier->free(); });
  }
}

int gba_barrier_uses_device(const gba_barrier* barrier) {
  return is_usable(barrier) && barrier->uses_device() ? 1 : 0;
}

void gba_barrier_arrive(gba_barrier* barrier, uint64_t k) {
  if (barrier != nullptr) {
    barrier->arrive(k);
  }
}

int gba_barrier_test(gba_barrier* barrier) {
  if (barrier == nullptr) {
    return gba::null_argument("gba_barrier_test");
  }
  const int result = static_cast<int>(barrier->test());
  return result == -ECHILD ? refuse_inherited("gba_barrier_test") : result;
}

int gba_barrier_poll(gba_barrier* barrier) {
  if (const int error = refusal("gba_barrier_poll", barrier); error != 0) {
    return error;
  }
  return static_cast<int>(barrier->poll());
}

int gba_barrier_sleep(gba_barrier* barrier, uint64_t max_ns) {
  if (const int error = refusal("gba_barrier_sleep", barrier); error != 0) {
    return error;
  }
  return static_cast<int>(barrier->sleep(gba::Deadline::after_ns(max_ns).left(std::chrono::hours{1})));
}

int gba_barrier_wait(gba_barrier* barrier, const gba_barrier_waiting* waiting, uint64_t timeout_ns) {
  if (const int error = refusal("gba_barrier_wait", barrier, waiting != nullptr); error != 0) {
    return error;
  }
  return static_cast<int>(barrier->wait(*waiting, timeout_ns));
}

void gba_barrier_conclude(gba_barrier* barrier) {
  if (is_usable(barrier)) {
    contained([&] { barrier->conclude(); });
  }
}

void gba_barrier_turn_off(gba_barrier* barrier, int failure, const char* trouble) {
  if (is_usable(barrier)) {
    contained([&] { barrier->turn_off(failure, trouble == nullptr ? "" : trouble); });
  }
}

int gba_barrier_missing(gba_barrier* barrier, uint64_t mask[GBA_GROUP_MASK_WORDS]) {
  if (const int error = refusal("gba_barrier_missing", barrier, mask != nullptr); error != 0) {
    return error;
  }
  return barrier->missing(mask);
}

int gba_barrier_get_status(const gba_barrier* barrier, gba_barrier_status* status) {
  if (const int error = refusal("gba_barrier_get_status", barrier, status != nullptr); error != 0) {
    return error;
  }
  *status = barrier->status();
  return 0;
}
