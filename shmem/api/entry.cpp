// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/entry.hpp"

#include <cstdio>
#include <cstdlib>

namespace shmem::api {
namespace {

std::string& error_text() {
  static thread_local std::string text;
  return text;
}

}  // namespace

Context& running(const char* call) {
  Context* context = Context::current();
  if (context == nullptr) {
    std::fprintf(stderr, "shmem: %s was called before shmem_init or after shmem_finalize\n", call);
    std::exit(EXIT_FAILURE);  // NOLINT(concurrency-mt-unsafe)
  }
  return *context;
}

int report(const Error& error) {
  error_text() = error.text;
  return -static_cast<int>(error.code);
}

int report_loudly(const Error& error) {
  std::fprintf(stderr, "%s\n", error.text.c_str());
  return report(error);
}

void end_job(const Context& context, const char* call, const std::string& problem) {
  context.end_job(EXIT_FAILURE, "shmem: PE " + std::to_string(context.my_pe()) + ": " + call + ": " + problem);
}

void check_pe(const Context& context, const char* call, int pe) {
  if (pe < 0 || pe >= context.n_pes()) {
    end_job(context, call,
            "there is no PE " + std::to_string(pe) + " in this job of " + std::to_string(context.n_pes()));
  }
}

std::byte* remote(const Context& context, const char* call, const void* mine, std::size_t bytes, int pe) {
  check_pe(context, call, pe);
  std::byte* theirs = context.job().translate(mine, pe);
  if (theirs == nullptr || bytes > context.job().room_at(mine)) {
    end_job(context, call,
            std::to_string(bytes) +
                " bytes at the given address are not inside the symmetric heap (shmem_malloc gives "
                "memory that is)");
  }
  return theirs;
}

Team& valid_team(Context& context, const char* call, shmem_team_t team) {
  Team* found = context.teams().find(team);
  if (found == nullptr) {
    end_job(context, call, std::to_string(team) + " is not a team of this PE");
  }
  return *found;
}

}  // namespace shmem::api

extern "C" const char* shmemx_error_text() noexcept {
  return shmem::api::error_text().c_str();
}
