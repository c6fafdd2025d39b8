// SPDX-License-Identifier: Apache-2.0
// The work of the start of a group: each member looks a few times at each other one, not at all of them for each key.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/syscall.h>

#include <cstdarg>

#include "tests/integration/shmem/group_ranks.hpp"

namespace {

std::atomic<int> looks{0};  // at processes
int looks_in_steps = 0;     // until the end of the last step of the store; waits look as well, as long as they last

}  // namespace

/// In the place of the C library's, also for libshmem.
extern "C" [[gnu::visibility("default")]] long syscall(long number, ...) noexcept {
  using Call = long (*)(long, long, long, long, long, long, long);
  static const Call next = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, "syscall"));
  std::va_list list;
  va_start(list, number);
  std::array<long, 6> arguments{};
  for (long& argument : arguments) {
    argument = va_arg(list, long);
  }
  va_end(list);
  looks += number == SYS_pidfd_open ? 1 : 0;
  return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

namespace {

using namespace group_ranks;

TEST(GroupStart, AMemberLooksAFewTimesAtEachOtherOne) {
  ::syscall(SYS_pidfd_open, ::getpid(), 0);
  ASSERT_EQ(looks, 1);  // they are counted
  SharedStore store;
  EXPECT_EQ("", run_ranks(24, [&](shmemx_group_t* /*group*/, int rank, int size) -> std::string {
              shmemx_group_store_t calls = store.calls();
              calls.get = [](void* self, const char* key, void* value, std::size_t bytes) {
                const int error = static_cast<SharedStore*>(self)->calls().get(self, key, value, bytes);
                looks_in_steps = looks;
                return error;
              };
              looks = 0;
              shmemx_group_t* group = nullptr;
              if (shmemx_group_create(&calls, rank, size, &group) != 0) {
                return shmemx_error_text();
              }
              shmemx_group_destroy(group);
              return looks_in_steps <= 2 * size ? "" : std::to_string(looks_in_steps) + " looks";
            }));
}

}  // namespace
