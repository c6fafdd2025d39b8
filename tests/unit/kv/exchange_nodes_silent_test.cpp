// SPDX-License-Identifier: Apache-2.0
// Members and strangers on other nodes that do not answer.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "tests/unit/kv/exchange_insider.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about
using shmem::exchange::FoundItem;
using shmem::exchange::RemoteKind;

constexpr std::uint32_t kAnswerMs = 500;

/// What an owner says that has no blocks; or one block, of 8 bytes, under any key.
PortMessage answer_of(const RemoteHead& request, bool has_block = false) {
  RemoteHead head = request;
  if (request.kind == RemoteKind::kDescribe) {
    head.kind = RemoteKind::kDescribed;
    return Insider::message_of(head, {});
  }
  FoundItem item;
  item.epoch = has_block ? 2 : 0;
  item.bytes = has_block ? 8 : 0;
  item.status = has_block ? 0 : -ENOENT;
  head.kind = RemoteKind::kFound;
  return Insider::message_of(head, std::as_bytes(std::span(&item, 1)));
}

class ExchangeNodesSilent : public InsiderTest {
 protected:
  /// Whether a find has waited for an answer that did not come.
  bool waits_in_vain() {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(reader_->find("key").status, -ENOENT);
    return std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(kAnswerMs - 50);
  }
};

TEST_F(ExchangeNodesSilent, AMemberThatDoesNotAnswerCostsOneCall) {
  make_beside(730, kAnswerMs);
  EXPECT_TRUE(waits_in_vain());
  ASSERT_TRUE(insider_->is_ended());
  // Time for the next link.
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
       std::chrono::steady_clock::now() < end;) {
    EXPECT_FALSE(waits_in_vain());
    ::usleep(10'000);
  }
  EXPECT_EQ(reader_->stats().members, 0U);
}

TEST_F(ExchangeNodesSilent, AMemberThatAnswersAgainIsAskedAgain) {
  make_beside(731, kAnswerMs);
  EXPECT_TRUE(waits_in_vain());
  insider_->answer_with([](RemoteHead request) { return answer_of(request, true); });
  for (int i = 0; i < 20'000 && reader_->stats().members == 0; ++i) {
    ::usleep(1000);
  }
  EXPECT_EQ(reader_->stats().members, 1U);
  EXPECT_EQ(reader_->find("key").status, 0);
}

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
