// SPDX-License-Identifier: Apache-2.0
// Waits for words of this PE, on the host and on cores: comparisons, and what ends a wait.
#pragma once

#include <array>
#include <string>

#include "shmem/api/kernel_core.hpp"
#include "shmem/barrier/timed_watch.hpp"
#include "shmem/memory/parking.hpp"

namespace shmem::api {

/// Ends the job if `cmp` is none of SHMEM_CMP_*.
inline void check_cmp(const Context& context, const char* call, int cmp) {
  if (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE) {
    end_job(context, call, std::to_string(cmp) + " is no comparison (SHMEM_CMP_EQ ... SHMEM_CMP_LE)");
  }
}

/// REQUIRES: a valid `cmp`.
template <typename T>
bool compare(T value, int cmp, T with) {
  switch (cmp) {
    case SHMEM_CMP_EQ:
      return value == with;
    case SHMEM_CMP_NE:
      return value != with;
    case SHMEM_CMP_GT:
      return value > with;
    case SHMEM_CMP_GE:
      return value >= with;
    case SHMEM_CMP_LT:
      return value < with;
    default:
      return value <= with;
  }
}

/// "3, which is not GE 5"
template <typename T>
std::string unmet(T value, int cmp, T with) {
  constexpr std::array kNames{"EQ", "NE", "GT", "GE", "LT", "LE"};
  return std::to_string(value) + ", which is not " + kNames[static_cast<std::size_t>(cmp)] + " " + std::to_string(with);
}

/// Waits until done(), which reads words of this PE that others change. False, on a core only: the wait failed, as
/// earlier ones of this core have or with an error that the core keeps. On the host that ends the job. `describe` says
/// what is not so yet.
template <std::predicate Done, typename Describe>
bool wait_here(const Context& context, const char* call, Done done, Describe describe) {
  const Job& job = context.job();
  TimedWatch watch(job);
  shmemx_core_t* core = current_core();
  if (core == nullptr) {
    const std::errc error = wait_parked(job, done, [&watch] { return watch(); });
    if (error != std::errc{}) {
      end_job(context, call, "the wait " + watch.explain(error) + "; there is " + describe());
    }
    return true;
  }
  if (core->error != std::errc{}) {
    return false;
  }
  const std::errc error = wait_parked(job, done, WatchedCheck(core->core.check(), watch));
  if (error == std::errc{}) {
    return true;
  }
  core->keep(fail(error, said_by(*core, call) + "the wait " + watch.explain(error) + "; there is " + describe()));
  return false;
}

}  // namespace shmem::api
