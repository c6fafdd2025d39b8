// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx_calls.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <ucm/api/ucm.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>

#include <array>
#include <cstdlib>

namespace shmem {

namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, UcxCalls& calls) {
  return find(library, "ucp_get_version", calls.get_version) && find(library, "ucp_config_read", calls.config_read) &&
         find(library, "ucp_config_modify", calls.config_modify) &&
         find(library, "ucp_config_release", calls.config_release) &&
         find(library, "ucp_init_version", calls.init_version) && find(library, "ucp_cleanup", calls.cleanup) &&
         find(library, "ucp_context_print_info", calls.context_print_info) &&
         find(library, "ucp_worker_create", calls.worker_create) &&
         find(library, "ucp_worker_destroy", calls.worker_destroy) &&
         find(library, "ucp_worker_query", calls.worker_query) &&
         find(library, "ucp_worker_release_address", calls.worker_release_address) &&
         find(library, "ucp_worker_get_efd", calls.worker_get_efd) &&
         find(library, "ucp_worker_arm", calls.worker_arm) && find(library, "ucp_worker_signal", calls.worker_signal) &&
         find(library, "ucp_worker_progress", calls.worker_progress) &&
         find(library, "ucp_ep_create", calls.ep_create) && find(library, "ucp_ep_close_nbx", calls.ep_close_nbx) &&
         find(library, "ucp_ep_flush_nbx", calls.ep_flush_nbx) &&
         find(library, "ucp_ep_rkey_unpack", calls.ep_rkey_unpack) && find(library, "ucp_rkey_pack", calls.rkey_pack) &&
         find(library, "ucp_rkey_buffer_release", calls.rkey_buffer_release) &&
         find(library, "ucp_rkey_destroy", calls.rkey_destroy) && find(library, "ucp_mem_map", calls.mem_map) &&
         find(library, "ucp_mem_unmap", calls.mem_unmap) && find(library, "ucp_put_nbx", calls.put_nbx) &&
         find(library, "ucp_get_nbx", calls.get_nbx) && find(library, "ucp_atomic_op_nbx", calls.atomic_op_nbx) &&
         find(library, "ucp_worker_set_am_recv_handler", calls.worker_set_am_recv_handler) &&
         find(library, "ucp_am_send_nbx", calls.am_send_nbx) && find(library, "ucp_tag_send_nbx", calls.tag_send_nbx) &&
         find(library, "ucp_tag_recv_nbx", calls.tag_recv_nbx) &&
         find(library, "ucp_request_check_status", calls.request_check_status) &&
         find(library, "ucp_request_cancel", calls.request_cancel) &&
         find(library, "ucp_request_free", calls.request_free) &&
         find(library, "ucs_status_string", calls.status_string);
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

/// What a program has said of its signals, to be said again after UCX was loaded.
class SignalsKept {
 public:
  SignalsKept() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], nullptr, &before_[i]);
    ::sigaltstack(nullptr, &stack_);
  }

  /// UCX forgets its handlers too, so that it does not bring any back at the end of the process.
  void restore(void* library) const {
    decltype(&::ucs_debug_disable_signal) disable = nullptr;
    const bool forget = find(library, "ucs_debug_disable_signal", disable);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      struct sigaction now {};
      ::sigaction(kSignals[i], nullptr, &now);
      if (now.sa_handler == before_[i].sa_handler) continue;
      if (forget) disable(kSignals[i]);
      ::sigaction(kSignals[i], &before_[i], nullptr);
    }
    stack_t now{};
    ::sigaltstack(nullptr, &now);
    if (now.ss_sp != stack_.ss_sp) ::sigaltstack(&stack_, nullptr);
  }

 private:
  // Those that UCX 1.13 takes by UCX_ERROR_SIGNALS and UCX_DEBUG_SIGNO.
  static constexpr std::array<int, 6> kSignals{SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
  stack_t stack_{};
};

/// While it is loaded, UCX would write jumps into mmap() and its like, under the feet of other threads, for the sake of
/// its cache of registrations (InfiniBand). libucm does that once, when it first hears of options: therefore it hears
/// of ours before libucp, which brings it, is loaded, and again afterwards, since that has told it the default.
void leave_memory_functions_alone() {
  if (user_has_set("UCX_MEM_EVENTS")) return;
  // Lazy: it calls libucs, which is not there yet.
  void* library = ::dlopen("libucm.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return;  // libucp says what is missing
  decltype(&::ucm_set_global_opts) set_options = nullptr;
  ucm_global_config_t* options = nullptr;
  if (!find(library, "ucm_global_opts", options) || !find(library, "ucm_set_global_opts", set_options)) return;
  options->enable_events = 0;
  set_options(options);
}

}  // namespace

Result<UcxCalls> load_ucx(const std::string& library) {
  leave_memory_functions_alone();
  const SignalsKept signals;
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  UcxCalls calls{};
  if (handle == nullptr || !find_all(handle, calls)) {
    const char* why = ::dlerror();
    return fail(std::errc::not_supported, "the UCX library " + library +
                                              " cannot be used: " + (why == nullptr ? "no reason given" : why) +
                                              "; install UCX 1.13 or later on this node (Debian: libucx0)");
  }
  be_silent(handle);
  if (!user_has_set("UCX_ERROR_SIGNALS") && !user_has_set("UCX_HANDLE_ERRORS")) signals.restore(handle);
  leave_memory_functions_alone();
  return calls;
}

std::string ucx_version(const UcxCalls& calls) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  calls.get_version(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

}  // namespace shmem
