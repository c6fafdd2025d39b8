// SPDX-License-Identifier: Apache-2.0
// Programs that connect to a job's server and are no PEs of it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/unit/shmem/bootstrap/uid_job.hpp"
#include "tests/unit/shmem/text_of.hpp"

namespace shmem {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Matches;
using ::testing::Not;
using testing::text_of;
using uid_test::Clock;
using uid_test::in_threads;
using uid_test::kJoinLimit;
using uid_test::milliseconds;

class UidStrangers : public uid_test::Trouble {};
INSTANTIATE_TEST_SUITE_P(Here, UidStrangers, ::testing::Values("127.0.0.1:0"));

TEST_P(UidStrangers, ThatAreSilentDoNotBlockTheJob) {
  std::vector<base::UniqueFd> strangers;
  strangers.reserve(100);
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(knock());
  }
  expect_a_good_job();
  EXPECT_EQ(read_all(strangers[0]), "");
}

TEST_P(UidStrangers, ThatSendDataDoNotBlockTheJob) {
  const base::UniqueFd browser = knock();
  say(browser, std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n")));
  const base::UniqueFd zeros = knock();
  say(zeros, std::vector<std::byte>(1000));
  const base::UniqueFd half = knock();
  say(half, std::span(*hello(1, 3)).first(40));
  const base::UniqueFd huge = knock();
  say(huge, *encode(UidFrame::kHello, 0, std::vector<std::byte>(100'000)));
  const base::UniqueFd wrong_start = knock();
  say(wrong_start, *encode(UidFrame::kLeave, 0, std::vector<std::byte>(sizeof(Hello))));
  const base::UniqueFd wrong_secret = knock();
  say(wrong_secret, *hello(1, 3));
  say(wrong_secret, *encode(UidFrame::kProof, 0, std::vector<std::byte>(sizeof(Proof))));
  const base::UniqueFd declines = knock();
  say(declines, *hello(1, 3));
  say(declines, *encode(UidFrame::kDecline, 0, {}));
  { const base::UniqueFd gone = knock(); }
  expect_a_good_job();
  EXPECT_THAT(read_all(wrong_secret), HasSubstr("does not have the secret of that job"));
  EXPECT_THAT(read_all(declines), Not(HasSubstr("does not have the secret of that job")));
  for (const base::UniqueFd* stranger : {&browser, &zeros, &half, &huge, &wrong_start}) {
    EXPECT_EQ(read_all(*stranger), "");
  }
}

TEST_P(UidStrangers, NamesPesThatDoNotComeAndRefusedConnections) {
  const auto join_two = [&](int limit) {
    listen();
    const base::UniqueFd browser = knock();
    say(browser, std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n")));
    return in_threads(2, [&](int pe) { return text_of(join(pe * 2, 4, std::chrono::seconds(limit))); });
  };
  const auto named = Each(AllOf(ContainsRegex("PEs 1, 3 did not arrive within [0-9]+ s"),
                                HasSubstr("refused meanwhile: "), HasSubstr("not a message of libshmem")));
  EXPECT_THAT(test_support::with_timeouts(join_two, Matches(named)), named);
}

/// Connects again and again, with more connections at a time than the server keeps; each ends when the server drops it.
/// Ends with the object.
class Flood {
 public:
  Flood(const Endpoint& server, const char* from, FrameBytes says)
      : server_(server), says_(std::move(says)), thread_([this, from] { run(from); }) {}
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  ~Flood() {
    stop_ = true;
    thread_.join();
  }
  /// Waits until the server has dropped `more` connections.
  void await_drops(int more) {
    std::unique_lock lock(mutex_);
    const int enough = drops_ + more;
    EXPECT_TRUE(changed_.wait_for(lock, kJoinLimit, [&] { return drops_ >= enough; }));
  }

 private:
  static constexpr std::size_t kAtATime = 100;  // more than the server keeps
  static constexpr std::size_t kBurst = 50;

  void run(const char* from) {
    sockaddr_in source{};
    source.sin_family = AF_INET;
    ::inet_pton(AF_INET, from, &source.sin_addr);
    std::vector<base::UniqueFd> connections;
    while (!stop_) {
      base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      // Leaves no TIME_WAIT: a later connection from such a port waits a second for the second answer to its SYN.
      const linger reset{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&source), sizeof(source)) != 0 ||
          ::connect(socket.get(), server_.get(), server_.size) != 0) {
        continue;
      }
      if (says_) {
        static_cast<void>(wire::send_all(socket.get(), *says_, Clock::now() + kJoinLimit));
      }
      connections.push_back(std::move(socket));
      if (connections.size() == kAtATime + kBurst) {
        while (!stop_ && connections.size() > kAtATime) {
          let_go_of_dropped(connections);
        }
      }
    }
  }
  /// Looks at all of them after a pause: the server does not choose the oldest of all, and where other processes
  /// compute, to be woken by each end takes a time slice.
  void let_go_of_dropped(std::vector<base::UniqueFd>& connections) {
    std::this_thread::sleep_for(milliseconds(2));
    const auto is_dropped = [](const base::UniqueFd& connection) {
      std::array<char, 200> heard{};
      const ssize_t bytes = ::recv(connection.get(), heard.data(), heard.size(), MSG_DONTWAIT);
      return bytes == 0 || (bytes < 0 && errno != EAGAIN);
    };
    const auto dropped = static_cast<int>(std::erase_if(connections, is_dropped));
    const std::scoped_lock lock(mutex_);
    drops_ += dropped;
    changed_.notify_all();
  }

  const Endpoint server_;
  const FrameBytes says_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  int drops_ = 0;  // guarded by mutex_
  std::thread thread_;
};

TEST_P(UidStrangers, AFloodDoesNotDropAPeThatIsSlowToProveItself) {
  // A flood of connections from the PE's own address that say nothing; one from elsewhere that begins as PEs do.
  for (const bool is_silent : {true, false}) {
    SCOPED_TRACE(is_silent ? "silent" : "greets");
    listen();
    const auto texts = in_threads(2, [&](int pe) -> std::string {
      if (pe == 0) {
        const auto bootstrap = join(0, 2);
        return bootstrap ? "" : bootstrap.error().text;
      }
      Flood flood(id_.place, is_silent ? "127.0.0.1" : "127.0.0.2", is_silent ? nullptr : hello(1, 2));
      flood.await_drops(10);
      for (int i = 0; i < 20; ++i) {
        const auto begin = Clock::now();
        const base::UniqueFd socket = knock();
        say(socket, *hello(1, 2));
        const auto challenge = await_challenge(socket);
        if (!challenge) {
          continue;  // it was one of those that say nothing until the server had read what it says
        }
        flood.await_drops(100);  // more than there are at a time
        if (Clock::now() - begin > milliseconds(3000)) {
          continue;  // a PE has 5 s, which were too few on this machine now
        }
        const Proof proof = prove(id_.secret, Prover::kPe, hello_of(1, 2), *challenge);
        say(socket, *encode(UidFrame::kProof, 0, std::as_bytes(std::span(&proof, 1))));
        // Until PE 0 has left, and the server with it.
        return read_all(socket).empty() ? "the PE was dropped" : "";
      }
      return "this machine is too slow";
    });
    EXPECT_THAT(texts, Each(IsEmpty()));
  }
}

TEST_P(UidStrangers, AFloodThatBeginsAsPesDoKeepsNoPeOut) {
  const Flood flood(id_.place, "127.0.0.1", hello(1, 3));
  expect_a_good_job();
}

TEST_P(UidStrangers, APeThatIsDroppedBeforeItHasProvedItselfTriesAgain) {
  // No PE has taken this process's listener yet: this test is the server until PE 0 comes.
  const int port = listener_->socket.get();
  std::atomic<bool> dropped{false};
  const auto texts = in_threads(2, [&](int pe) -> std::string {
    if (pe == 1) {
      const auto bootstrap = join(1, 2);
      return bootstrap ? "" : bootstrap.error().text;
    }
    for (int i = 0; i < 3; ++i) {
      pollfd poll{port, POLLIN, 0};
      EXPECT_EQ(::poll(&poll, 1, 60'000), 1);
      const base::UniqueFd victim(::accept(port, nullptr, nullptr));
      // The second has said hello, which then has not been read; the third has been heard.
      pollfd said{victim.get(), POLLIN, 0};
      EXPECT_TRUE(i == 0 || ::poll(&said, 1, 60'000) == 1);
      std::array<char, 200> heard{};
      EXPECT_TRUE(i < 2 || ::recv(victim.get(), heard.data(), heard.size(), 0) > 0);
    }
    const auto bootstrap = join(0, 2);
    return bootstrap ? "" : bootstrap.error().text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_P(UidStrangers, ThatComeAtOnceDoNotTakeAllDescriptors) {
  constexpr int kAtOnce = 500;
  constexpr std::size_t kMostAtATime = 2 + 64 + 8;  // PEs, strangers, and what else is going on
  const auto descriptors = [] {
    std::size_t count = 0;
    for (int fd = 0; fd < 2048; ++fd) {
      count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    }
    return count;
  };
  const std::size_t before = descriptors();
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < kAtOnce; ++i) {
      const int stranger = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      ::connect(stranger, id_.place.get(), id_.place.size);
    }
    ::usleep(300'000);
    ::_exit(0);
  }
  std::size_t most = 0;
  const auto texts = in_threads(2, [&](int pe) -> std::string {
    if (pe == 0) {
      const auto bootstrap = join(0, 2);
      return bootstrap ? "" : bootstrap.error().text;
    }
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      most = std::max(most, descriptors());
    }
    const auto bootstrap = join(1, 2);
    return bootstrap ? "" : bootstrap.error().text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
  EXPECT_LE(most, before + kMostAtATime);
}

}  // namespace
}  // namespace shmem
