// SPDX-License-Identifier: Apache-2.0
#include "wire/ucx/calls.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <ucm/api/ucm.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>

#include <array>
#include <cstdlib>

#include "base/signals_blocked.hpp"

namespace wire {

namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, UcxCalls& calls) {
  bool all = true;
#define SHMEM_UCX_FIND(prefix, name) all = all && find(library, #prefix "_" #name, calls.name);
  SHMEM_UCX_CALLS(SHMEM_UCX_FIND)
#undef SHMEM_UCX_FIND
  return all;
}

bool user_has_set(const char* variable) {
  return std::getenv(variable) != nullptr;
}

void be_silent(void* library) {
  decltype(&::ucs_global_opts_set_value) set_option = nullptr;
  if (!user_has_set("UCX_LOG_LEVEL") && find(library, "ucs_global_opts_set_value", set_option)) {
    set_option("LOG_LEVEL", "fatal");
  }
}

/// The program's signal handlers, restored after UCX was loaded.
class SignalsKept {
 public:
  SignalsKept() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
    }
    ::sigaltstack(nullptr, &stack_);
  }

  /// UCX forgets its handlers too, so that it does not install them again when the process ends.
  void restore(void* library) const {
    decltype(&::ucs_debug_disable_signal) disable = nullptr;
    const bool forget = find(library, "ucs_debug_disable_signal", disable);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      struct sigaction now {};
      ::sigaction(kSignals[i], nullptr, &now);
      if (now.sa_handler == before_[i].sa_handler) {
        continue;
      }
      if (forget) {
        disable(kSignals[i]);
      }
      ::sigaction(kSignals[i], &before_[i], nullptr);
    }
    stack_t now{};
    ::sigaltstack(nullptr, &now);
    if (now.ss_sp != stack_.ss_sp) {
      ::sigaltstack(&stack_, nullptr);
    }
  }

 private:
  // The signals that UCX 1.13 handles by UCX_ERROR_SIGNALS and UCX_DEBUG_SIGNO.
  static constexpr std::array<int, 6> kSignals{SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
  stack_t stack_{};
};

/// For its cache of registrations (InfiniBand), UCX would write jumps into mmap() and similar functions while it is
/// loaded, although other threads may be running them. libucm does that once, when it first gets options. So it gets
/// ours before libucp is loaded, and again afterwards, because loading sets the default.
void leave_memory_functions_alone() {
  if (user_has_set("UCX_MEM_EVENTS")) {
    return;
  }
  // Lazy: it calls libucs, which is not there yet.
  void* library = ::dlopen("libucm.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    return;  // libucp says what is missing
  }
  decltype(&::ucm_set_global_opts) set_options = nullptr;
  ucm_global_config_t* options = nullptr;
  if (!find(library, "ucm_global_opts", options) || !find(library, "ucm_set_global_opts", set_options)) {
    return;
  }
  options->enable_events = 0;
  set_options(options);
}

}  // namespace

Result<UcxCalls> load_ucx(const std::string& library) {
  leave_memory_functions_alone();
  const SignalsKept signals;
  const base::SignalsBlocked blocked;  // for threads that it may start
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  UcxCalls calls{};
  if (handle == nullptr || !find_all(handle, calls)) {
    const char* why = ::dlerror();
    return fail(std::errc::not_supported,
                fmt::format("the UCX library {} cannot be used: {}; install UCX 1.13 or later on this node (Debian: "
                            "libucx0)",
                            library, why == nullptr ? "no reason given" : why));
  }
  be_silent(handle);
  if (!user_has_set("UCX_ERROR_SIGNALS") && !user_has_set("UCX_HANDLE_ERRORS")) {
    signals.restore(handle);
  }
  leave_memory_functions_alone();
  return calls;
}

std::string ucx_version(const UcxCalls& calls) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  calls.get_version(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace wire
