// SPDX-License-Identifier: Apache-2.0
// A process that had no descriptor left when it made its first private one: what forks need is made once, so this has
// an entry of its own.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "base/private_fd.hpp"

namespace {

/// All descriptors that this process may have are open, as long as it lives.
class NoneLeft {
 public:
  NoneLeft() {
    constexpr rlim_t kFew = 64;
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = std::min(kFew, few.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) {
      taken_.emplace_back(fd);
    }
  }
  NoneLeft(const NoneLeft&) = delete;
  NoneLeft& operator=(const NoneLeft&) = delete;
  ~NoneLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<base::UniqueFd> taken_;
};

TEST(NoDescriptor, AForkedChildKeepsNoPrivateOneNevertheless) {
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const base::UniqueFd reading(ends[0]);
  base::UniqueFd writing(ends[1]);
  base::PrivateFd mine;
  {
    const NoneLeft none;
    mine = base::PrivateFd(std::move(writing));
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  mine.reset();
  char byte = 0;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0) << "the child has the other end";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
