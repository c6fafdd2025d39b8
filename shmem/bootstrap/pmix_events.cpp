// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/pmix_events.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <type_traits>

#include "base/within.hpp"
#include "shmem/config/failure.hpp"

namespace shmem {

namespace {

/// Where the handler finds the PmixEvents, under the mutex: libpmix may still call the handler while it is
/// deregistered. Never destroyed, because libpmix may also call it while the process exits.
struct Listener {
  std::mutex mutex;
  PmixEvents* events = nullptr;
};
static_assert(std::is_trivially_destructible_v<Listener>);
Listener& listener() {
  static Listener only;
  return only;
}

void set_listener(PmixEvents* events) {
  const std::scoped_lock lock(listener().mutex);
  listener().events = events;
}

/// The limit for libpmix to register a handler.
constexpr std::chrono::seconds kRegisterLimit{5};

}  // namespace

Result<std::unique_ptr<PmixEvents>> PmixEvents::start(const std::shared_ptr<const PmixClient>& client, int rank,
                                                      std::chrono::milliseconds grace) {
  std::unique_ptr<PmixEvents> self(new PmixEvents(client, rank));
  set_listener(self.get());
  auto thread = base::HelperThread::start([events = self.get(), grace] { events->end_process_unless_it_ends(grace); });
  if (!thread) {
    return thread.error();
  }
  self->thread_ = *std::move(thread);
  struct Registered {
    pmix_status_t status;
    std::size_t id;
  };
  const auto registered = base::within(kRegisterLimit, [client] {
    Registered got{};
    got.status = client->listen(handle, got.id);
    return got;
  });
  if (!registered) {
    return registered.error();
  }
  // Without events the launcher can still start jobs.
  self->handled_ = *registered && (*registered)->status == PMIX_SUCCESS;
  if (self->handled_) {
    self->handler_ = (*registered)->id;
  }
  return self;
}

PmixEvents::~PmixEvents() {
  leave();
  thread_.join();
}

void PmixEvents::leave() {
  {
    const std::scoped_lock lock(mutex_);
    if (going_) {
      return;
    }
    going_ = true;
  }
  changed_.notify_all();
  set_listener(nullptr);
  // A forked process has no libpmix threads that would answer.
  if (handled_ && thread_.runs_here()) {
    static_cast<void>(base::within(kRegisterLimit, [client = client_, handler = handler_] {
      client->unlisten(handler);
      return true;
    }));
  }
}

void PmixEvents::handle(std::size_t /*id*/, pmix_status_t status, const pmix_proc_t* source, pmix_info_t* /*info*/,
                        std::size_t /*infos*/, pmix_info_t* /*results*/, std::size_t /*result_count*/,
                        pmix_event_notification_cbfunc_fn_t done, void* done_data) {
  {
    const std::scoped_lock lock(listener().mutex);
    if (listener().events != nullptr) {
      try {
        listener().events->hear(status, source);
      } catch (const std::bad_alloc&) {       // libpmix, which calls this, is written in C
        listener().events->end("no memory");  // a text that needs none
      }
    }
  }
  if (done != nullptr) {
    done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, done_data);
  }
}

void PmixEvents::hear(pmix_status_t status, const pmix_proc_t* source) {
  if (status == PMIX_ERR_LOST_CONNECTION) {
    {
      const std::scoped_lock lock(mutex_);
      orphaned_ = true;
    }
    changed_.notify_all();
    end("the launcher is gone");
    return;
  }
  if (source == nullptr || !client_->is_of_this_job(*source) || source->rank == static_cast<pmix_rank_t>(rank_)) {
    return;
  }
  end(fmt::format("the launcher reports of PE {}: {}", source->rank, client_->text(status)));
}

void PmixEvents::end_process_unless_it_ends(std::chrono::milliseconds grace) {
  if (errors_return()) {
    return;  // its waits fail
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return going_ || orphaned_; });
  if (changed_.wait_for(lock, grace, [this] { return going_; })) {
    return;
  }
  end_process_for({std::errc::operation_canceled, fmt::format("shmem: PE {} ends: the launcher is gone", rank_)},
                  EXIT_FAILURE);
}

}  // namespace shmem
