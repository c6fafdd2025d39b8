// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/driver/fake_kernel.hpp"

namespace gba::test {

using testing::AnyNumber;

MockSystemCalls::MockSystemCalls(FakeKernel& kernel) {
  EXPECT_CALL(*this, open).Times(AnyNumber()).WillRepeatedly([&](auto... a) { return kernel.open(a...); });
  EXPECT_CALL(*this, close).Times(AnyNumber()).WillRepeatedly([&](auto... a) { return kernel.close(a...); });
  EXPECT_CALL(*this, dup3).Times(AnyNumber()).WillRepeatedly([&](auto... a) { return kernel.dup3(a...); });
  EXPECT_CALL(*this, ioctl).Times(AnyNumber()).WillRepeatedly([&](auto... a) { return kernel.ioctl(a...); });
  EXPECT_CALL(*this, pread).Times(AnyNumber()).WillRepeatedly([&](auto... a) { return kernel.pread(a...); });
  EXPECT_CALL(*this, pwrite).Times(AnyNumber()).WillRepeatedly([&](auto... a) { return kernel.pwrite(a...); });
  EXPECT_CALL(*this, mmap).Times(AnyNumber()).WillRepeatedly([&](auto... a) { return kernel.mmap(a...); });
  EXPECT_CALL(*this, eventfd).Times(AnyNumber()).WillRepeatedly([&](auto... a) { return kernel.eventfd(a...); });
  EXPECT_CALL(*this, epoll_create1).Times(AnyNumber()).WillRepeatedly([&](auto... a) {
    return kernel.epoll_create1(a...);
  });
  EXPECT_CALL(*this, epoll_ctl).Times(AnyNumber()).WillRepeatedly([&](auto... a) { return kernel.epoll_ctl(a...); });
  EXPECT_CALL(*this, getrlimit).Times(AnyNumber()).WillRepeatedly([&](auto... a) { return kernel.getrlimit(a...); });
  EXPECT_CALL(*this, effective_capabilities).Times(AnyNumber()).WillRepeatedly([&] {
    return kernel.effective_capabilities();
  });
}

}  // namespace gba::test
