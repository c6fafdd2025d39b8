// SPDX-License-Identifier: Apache-2.0
// A client whose descriptors are closed late.
#include "fake_device/session.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/fd.hpp"

namespace {

using fake_device::Closer;
using fake_device::Session;
using fake_device::Time;

std::atomic<bool> may_close{true};
void close_when_allowed(int fd) {
  while (!may_close.load()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ::close(fd);
}

class Host final : public fake_device::SessionHost {
 public:
  /// It may open so many files.
  explicit Host(std::size_t files) : closer_(files, close_when_allowed) {}

  Time time = 1'000'000;

  fake_device::Engine& engine() override { return engine_; }
  const fake_device::Log& log() override { return log_; }
  fake_device::InterruptQueue& interrupts() override { return interrupts_; }
  Closer& closer() override { return closer_; }
  fake_device::DmaPool& dma_pool() override { return dma_pool_; }
  [[nodiscard]] Time now() const override { return time; }
  void wants_attention(int /*socket*/) override {}

 private:
  fake_device::Log log_{fake_device::LogLevel::kError};
  fake_device::EventSignaller signaller_;
  fake_device::InterruptQueue interrupts_{signaller_, [] { return Time{0}; }};
  Closer closer_;
  fake_device::DmaPool dma_pool_;
  fake_device::Engine engine_{fake_device::gba_profile(), 1};
};

class SessionTest : public ::testing::Test {
 protected:
  explicit SessionTest(std::size_t files = 100'000) : host_(files) {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    client_ = base::UniqueFd(ends[1]);
    account_ = std::make_shared<fake_device::FdAccount>();
    session_.emplace(fake_device::Given(host_.closer(), account_, base::UniqueFd(ends[0])), account_, host_, ports_,
                     host_.now() + fake_device::kSilenceLimit);
    const vfio_user_version version{.major = VFIO_USER_MAJOR, .minor = VFIO_USER_MINOR};
    send(VFIO_USER_VERSION, std::as_bytes(std::span(&version, 1)), -1);
    serve();
    EXPECT_TRUE(session_->opened());
  }
  ~SessionTest() override { may_close.store(true); }

  void send(std::uint16_t command, std::span<const std::byte> payload, int fd) {
    const vfio_user_header header{.msg_id = 1,
                                  .command = command,
                                  .msg_size = static_cast<std::uint32_t>(sizeof header + payload.size()),
                                  .flags = 0,
                                  .error = 0};
    std::vector<std::byte> bytes(sizeof header + payload.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    std::copy(payload.begin(), payload.end(), bytes.begin() + sizeof header);
    const std::array fds{fd};
    EXPECT_EQ(fake_device::send_some(client_.get(), bytes, std::span(fds).first(fd >= 0 ? 1 : 0)),
              static_cast<ssize_t>(bytes.size()));
  }
  /// As a server does at this time. True if there was a reply.
  bool serve() {
    if (!session_->ended() && session_->wants_read()) {
      session_->on_readable(host_.now());
    }
    std::array<std::byte, 4096> replies{};
    bool any = false;
    while (::recv(client_.get(), replies.data(), replies.size(), MSG_DONTWAIT) > 0) {
      any = true;
    }
    return any;
  }
  /// A message that is refused, so that its descriptor is to be closed.
  void send_fd() { send(VFIO_USER_DMA_MAP, {}, client_.get()); }

  Host host_;
  fake_device::PortPool ports_{0, 1};
  base::UniqueFd client_;
  std::shared_ptr<fake_device::FdAccount> account_;
  std::optional<Session> session_;
};

/// Nothing is closed until the client has waited for a while.
TEST_F(SessionTest, AClientThatIsTooFastForTheCloserWaits) {
  constexpr int kMany = 3000;
  may_close.store(false);
  for (int sent = 0; sent < kMany; ++sent) {
    send_fd();
    for (int turns = 0; !serve(); ++turns) {
      ASSERT_FALSE(session_->ended()) << sent;
      host_.time += fake_device::kSecond / 1000;
      if (turns > 100) {
        may_close.store(true);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
  EXPECT_TRUE(may_close.load());
}

TEST_F(SessionTest, AClientWhoseDescriptorsCannotBeClosedIsDropped) {
  constexpr int kMore = 500;  // than are received
  may_close.store(false);
  const Time begin = host_.now();
  std::size_t most = 0;
  for (int sent = 0; !session_->ended() && host_.now() - begin < 3 * fake_device::kSilenceLimit;
       host_.time += fake_device::kSecond / 1000) {
    if (sent < kMore) {
      send_fd();
      ++sent;
    }
    serve();
    most = std::max<std::size_t>(most, account_->open);
  }
  EXPECT_TRUE(session_->ended());
  EXPECT_GE(host_.now() - begin, fake_device::kSilenceLimit);
  EXPECT_LT(most, static_cast<std::size_t>(kMore));
}

class FewFilesSessionTest : public SessionTest {
 protected:
  FewFilesSessionTest() : SessionTest(400) {}

  /// More than the part of one user.
  std::vector<fake_device::Given> connections_of_the_same_user() {
    const auto account = std::make_shared<fake_device::FdAccount>(account_->user);
    std::vector<fake_device::Given> all;
    while (!host_.closer().overfull(*account_->user)) {
      all.emplace_back(host_.closer(), account, base::UniqueFd(::dup(client_.get())), /*is_connection=*/true);
    }
    return all;
  }
};

/// Connections were dropped, and the closer gets no processor.
TEST_F(FewFilesSessionTest, AClientWaitsWhileConnectionsOfItsUserAreClosedLate) {
  may_close.store(false);
  connections_of_the_same_user();
  send_fd();
  for (int turns = 0; turns < 1000; ++turns) {
    ASSERT_FALSE(serve());
    ASSERT_FALSE(session_->ended());
    host_.time += fake_device::kSecond / 1000;
  }
  may_close.store(true);
  while (!host_.closer().done(1000)) {
  }
  host_.time = std::max(host_.time, session_->resumes());
  EXPECT_TRUE(serve());
  EXPECT_FALSE(session_->ended());
}

TEST_F(FewFilesSessionTest, AClientIsDroppedIfItsUserKeepsThemOpen) {
  const auto kept = connections_of_the_same_user();
  send_fd();
  EXPECT_FALSE(serve());
  EXPECT_TRUE(session_->ended());
}

}  // namespace
