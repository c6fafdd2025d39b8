// SPDX-License-Identifier: Apache-2.0
// Members and strangers on other nodes that do not answer.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/unit/kv/exchange_insider.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about

using ExchangeNodesSilent = InsiderTest;

/// The numbers of this process's descriptors.
std::size_t descriptors() {
  std::size_t count = 0;
  for (int fd = 0; fd < 2048; ++fd) {
    count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  }
  return count;
}

TEST_F(ExchangeNodesSilent, StrangersThatComeAtOnceDoNotTakeAllDescriptors) {
  constexpr int kStrangers = 500;
  constexpr std::size_t kMostAtATime = 32 + 8;  // strangers that have not proved themselves, and what else is going on
  owner_ = connected_member(exchange_name(733), "node 1");
  const auto place = *shmem::parse_endpoint(address_of(*owner_));
  const std::size_t before = descriptors();
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < kStrangers; ++i) {
      const int stranger = ::socket(place.family(), SOCK_STREAM | SOCK_NONBLOCK, 0);
      ::connect(stranger, place.get(), place.size);
    }
    ::usleep(300'000);
    ::_exit(0);
  }
  std::size_t most = 0;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    most = std::max(most, descriptors());
  }
  EXPECT_LE(most, before + kMostAtATime);
}

}  // namespace
