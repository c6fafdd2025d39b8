// SPDX-License-Identifier: Apache-2.0
// A process that ignored SIGBUS before it opened a device: the handler is installed once, so this has an entry of its
// own.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver/bar_mapping.hpp"
#include "tests/unit/driver/end_of_child.hpp"
#include "tests/unit/driver/fake_backend.hpp"

namespace gba::test {
namespace {

TEST(IgnoredBusError, StaysIgnoredUnlessAnAccessRaisesIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers install handlers of their own";
#endif
  ASSERT_NE(::signal(SIGBUS, SIG_IGN), SIG_ERR);
  const auto state = std::make_shared<FakeState>();
  state->control_file = base::UniqueFd(::memfd_create("control", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(state->control_file.get(), GBA_BAR0_SIZE), 0);
  state->regions[GBA_REGION_CONTROL].mappable = true;
  FakeBackend backend(state);
  const auto mapping = BarMapping::make(backend, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  ASSERT_TRUE(mapping) << mapping.error().text;

  EXPECT_EQ(end_of_child([] {
              ::kill(::getpid(), SIGBUS);
              ::raise(SIGBUS);
            }),
            0);
  // The kernel does not let a process ignore this one.
  const base::UniqueFd file(::memfd_create("other", MFD_CLOEXEC));
  void* const other = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_EQ(end_of_child([&] { *static_cast<volatile char*>(other) = 1; }), SIGBUS);
  ::munmap(other, 4096);
}

}  // namespace
}  // namespace gba::test
