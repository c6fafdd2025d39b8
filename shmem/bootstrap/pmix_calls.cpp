// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/pmix_calls.hpp"

#include <dlfcn.h>

#include <string>

namespace shmem {

namespace {

constexpr const char* kLibrary = "libpmix.so.2";

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Result<PmixCalls> load_pmix() {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  PmixCalls calls{};
  const bool whole = library != nullptr && find(library, "PMIx_Init", calls.init) &&
                     find(library, "PMIx_Finalize", calls.finalize) && find(library, "PMIx_Put", calls.put) &&
                     find(library, "PMIx_Commit", calls.commit) && find(library, "PMIx_Fence", calls.fence) &&
                     find(library, "PMIx_Get", calls.get) && find(library, "PMIx_Abort", calls.abort) &&
                     find(library, "PMIx_Register_event_handler", calls.register_event_handler) &&
                     find(library, "PMIx_Deregister_event_handler", calls.deregister_event_handler) &&
                     find(library, "PMIx_Error_string", calls.error_string);
  if (whole) return calls;
  const char* why = ::dlerror();
  return fail(std::errc::not_supported,
              std::string("shmem: a PMIx launcher started this process, but ") + kLibrary +
                  " cannot be used: " + (why == nullptr ? "no reason given" : why) +
                  "; install it (Debian: libpmix2), or start the job by oshrun, by a unique id, or with "
                  "SHMEM_BOOTSTRAP=local as jobs of one PE each");
}

}  // namespace shmem
