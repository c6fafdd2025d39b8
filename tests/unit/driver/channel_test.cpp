// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio_user_channel.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>
#include <thread>

#include "tests/support/sanitized.hpp"
#include "tests/unit/driver/scripted_server.hpp"

namespace gba::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

const vfio_user_device_info kInfo{.argsz = 16, .flags = 2, .num_regions = 9, .num_irqs = 5};

Result<Reply> ask(VfioUserChannel& channel) {
  return channel.request(VFIO_USER_DEVICE_GET_INFO, wire_bytes(kInfo), sizeof(kInfo));
}

/// A request fails, and the channel stays broken.
void expect_broken(VfioUserChannel& channel, std::string_view text, Loss loss = Loss::kGarbled) {
  const auto reply = ask(channel);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, code_of(loss));
  EXPECT_THAT(reply.error().text, HasSubstr("gba: lost the device vfio-user:/x in DEVICE_GET_INFO: "));
  EXPECT_THAT(reply.error().text, HasSubstr(std::string(text)));
  EXPECT_EQ(channel.broken(), loss);
  EXPECT_EQ(ask(channel).error().text, loss_error(loss, "vfio-user:/x").text);
  EXPECT_EQ(channel.post(VFIO_USER_REGION_WRITE, {}).error().code, code_of(loss));
}

TEST(VfioUserChannel, SendsARequestInOnePieceAndTakesTheReply) {
  ScriptedServer server([](const ServerEnd& end) {
    const Received request = end.receive();
    EXPECT_EQ(request.header.command, VFIO_USER_DEVICE_GET_INFO);
    EXPECT_EQ(request.header.msg_size, 32U);
    EXPECT_EQ(request.header.flags, VFIO_USER_TYPE_COMMAND);
    EXPECT_EQ(request.get<vfio_user_device_info>().num_regions, 9U);
    end.reply(request, wire_bytes(kInfo));
  });
  const auto channel = server.channel();
  const auto reply = ask(*channel);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->get<vfio_user_device_info>().num_irqs, 5U);
}

TEST(VfioUserChannel, AcceptsAReplyThatComesByteByByte) {
  ScriptedServer server([](const ServerEnd& end) {
    const Received request = end.receive();
    const auto bytes = ServerEnd::message(ServerEnd::reply_header(request), wire_bytes(kInfo));
    for (const std::byte& byte : bytes) {
      end.send_raw(std::span(&byte, 1));
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(ask(*server.channel(std::chrono::seconds{60})));
}

TEST(VfioUserChannel, AcceptsMoreDataThanItAskedFor) {
  ScriptedServer server([](const ServerEnd& end) {
    const std::vector<std::byte> longer(100);
    end.reply(end.receive(), longer);
    end.reply(end.receive(), wire_bytes(kInfo));
  });
  const auto channel = server.channel();
  EXPECT_TRUE(ask(*channel));
  EXPECT_TRUE(ask(*channel));
}

TEST(VfioUserChannel, ErrorReplyBecomesAnErrnoAndTheNextRequestWorks) {
  ScriptedServer server([](const ServerEnd& end) {
    end.reply_error(end.receive(), EINVAL);
    end.reply(end.receive(), wire_bytes(kInfo));
  });
  const auto channel = server.channel();
  const auto refused = ask(*channel);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, std::errc::invalid_argument);
  EXPECT_EQ(refused.error().text, "gba: vfio-user:/x refused DEVICE_GET_INFO: invalid argument");
  EXPECT_TRUE(ask(*channel));
}

TEST(VfioUserChannel, ErrorReplyMayCarryAPayload) {
  ScriptedServer server([](const ServerEnd& end) {
    const std::vector<std::byte> payload(20);
    end.reply_error(end.receive(), EPERM, payload);
    end.reply(end.receive(), wire_bytes(kInfo));
  });
  const auto channel = server.channel();
  EXPECT_EQ(ask(*channel).error().code, std::errc::operation_not_permitted);
  EXPECT_TRUE(ask(*channel));
}

TEST(VfioUserChannel, ErrorReplyWithoutAnErrnoIsAnIoError) {
  ScriptedServer server([](const ServerEnd& end) { end.reply_error(end.receive(), 0); });
  EXPECT_EQ(ask(*server.channel()).error().code, std::errc::io_error);
}

TEST(VfioUserChannel, EndOfTheConnectionIsALostDevice) {
  ScriptedServer server([](const ServerEnd& end) { (void)end.receive(); });
  expect_broken(*server.channel(), "connection closed", Loss::kClosed);
}

TEST(VfioUserChannel, EndInTheMiddleOfAReplyIsALostDevice) {
  ScriptedServer server([](const ServerEnd& end) {
    const auto bytes = ServerEnd::message(ServerEnd::reply_header(end.receive()), wire_bytes(kInfo));
    end.send_raw(std::span(bytes).first(20));
  });
  expect_broken(*server.channel(), "connection closed", Loss::kClosed);
}

TEST(VfioUserChannel, SendingToAClosedConnectionRaisesNoSignal) {
  ScriptedServer server([](const ServerEnd&) {});
  const auto channel = server.channel();
  pollfd end{.fd = channel->socket(), .events = POLLRDHUP, .revents = 0};
  ASSERT_EQ(::poll(&end, 1, -1), 1);
  expect_broken(*channel, "connection closed", Loss::kClosed);
}

TEST(VfioUserChannel, ServerThatDoesNotAnswerInTimeIsLostAndDisconnected) {
  ScriptedServer server([](const ServerEnd& end) {
    (void)end.receive();
    EXPECT_EQ(end.receive().header.msg_size, 0U);  // returns when the client disconnects
  });
  expect_broken(*server.channel(milliseconds{20}), "no answer in time", Loss::kSilent);
}

TEST(VfioUserChannel, ServerThatStopsInTheMiddleOfAReplyIsLost) {
  ScriptedServer server([](const ServerEnd& end) {
    const auto bytes = ServerEnd::message(ServerEnd::reply_header(end.receive()), wire_bytes(kInfo));
    end.send_raw(std::span(bytes).first(5));
    (void)end.receive();
  });
  expect_broken(*server.channel(milliseconds{20}), "no answer in time", Loss::kSilent);
}

/// The process that makes the socket which clients connect to: the server, or a service manager that then sleeps.
enum class Listens { kServer, kManager };

/// A server in a process of its own, which answers VERSION and then plays `script`.
class ServerProcess {
 public:
  explicit ServerProcess(void (*script)(const ServerEnd&), Listens listens = Listens::kServer) {
    int ready[2] = {-1, -1};
    EXPECT_EQ(::pipe2(static_cast<int*>(ready), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int listener = listen_at(ready[1]);
      if (listens == Listens::kManager && ::fork() != 0) {
        ::pause();
      }
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      serve(listener, script);
      ::_exit(0);
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  /// `timeout` is the limit for a server that is busy, not stopped or asleep.
  [[nodiscard]] std::unique_ptr<VfioUserChannel> channel(std::chrono::nanoseconds timeout) const {
    auto socket = connect_unix(name_, "vfio-user:/x", Deadline::after(std::chrono::seconds{30}));
    auto channel = std::make_unique<VfioUserChannel>(*std::move(socket), "vfio-user:/x", timeout);
    EXPECT_TRUE(channel->negotiate());
    return channel;
  }

 private:
  [[nodiscard]] int listen_at(int ready) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path, name_.size());
    address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(listener, 1) != 0 ||
        ::write(ready, "r", 1) != 1) {
      ::_exit(1);
    }
    return listener;
  }

  static void serve(int listener, void (*script)(const ServerEnd&)) {
    const ServerEnd end(::accept(listener, nullptr, nullptr));
    const vfio_user_version version{.major = VFIO_USER_MAJOR, .minor = VFIO_USER_MINOR};
    end.reply(end.receive(), wire_bytes(version));
    script(end);
  }

  // The server of a manager that was killed ends, and gives its name back, a little later.
  inline static int made_ = 0;
  const std::string name_ = "@gba-channel-test-" + std::to_string(::getpid()) + "-" + std::to_string(++made_);
  pid_t pid_ = -1;
};

/// Longer than the time limit of a test.
constexpr std::chrono::hours kForAnyTime{1};

TEST(VfioUserChannel, StoppedServerIsLostBeforeTheTimeout) {
  const ServerProcess server([](const ServerEnd& end) {
    (void)end.receive();
    ::raise(SIGSTOP);
  });
  expect_broken(*server.channel(kForAnyTime), "no answer in time", Loss::kSilent);
}

#if !defined(__SANITIZE_THREAD__)  // TSan's own thread in the server never sleeps
TEST(VfioUserChannel, ServerThatSleepsOnARequestIsLostBeforeTheTimeout) {
  const ServerProcess server([](const ServerEnd& end) {
    (void)end.receive();
    ::pause();
  });
  expect_broken(*server.channel(kForAnyTime), "no answer in time", Loss::kSilent);
}
#endif

void work_for(std::clock_t ms) {
  const std::clock_t begin = std::clock();
  while (std::clock() - begin < ms * CLOCKS_PER_SEC / 1000) {
  }
}

void answer_after_a_while(const ServerEnd& end) {
  const Received request = end.receive();
  work_for(4 * VfioUserChannel::kLongestIdle.count());
  end.reply(request, wire_bytes(kInfo));
}

/// From now on this process gets a three hundredth of a processor, which a child of it uses.
void starve() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  ::sched_setaffinity(0, sizeof one, &one);
  if (::fork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile bool runs = true; runs;) {
    }
  }
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_IDLE, &none);
}

TEST(VfioUserChannel, ServerThatWaitsForAProcessorHasMoreTime) {
  const ServerProcess server([](const ServerEnd& end) {
    const Received request = end.receive();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{2};
    starve();
    while (std::chrono::steady_clock::now() < until) {
    }
    end.reply(request, wire_bytes(kInfo));
  });
  EXPECT_TRUE(ask(*server.channel(std::chrono::seconds{1})));
}

TEST(VfioUserChannel, ServerHasTheTimeInWhichTheClientHadNoProcessor) {
  const ServerProcess server([](const ServerEnd& end) {
    const Received request = end.receive();
    ::kill(::getppid(), SIGSTOP);
    work_for(1500);
    ::kill(::getppid(), SIGCONT);
    work_for(300);
    end.reply(request, wire_bytes(kInfo));
  });
  EXPECT_TRUE(ask(*server.channel(std::chrono::seconds{1})));
}

TEST(VfioUserChannel, BusyServerOfASleepingServiceManagerMayUseTheWholeTimeout) {
  const ServerProcess server(answer_after_a_while, Listens::kManager);
  EXPECT_TRUE(ask(*server.channel(kForAnyTime)));
}

TEST(VfioUserChannel, StoppedServerOfAServiceManagerIsLostBeforeTheTimeout) {
  const ServerProcess server(
      [](const ServerEnd& end) {
        (void)end.receive();
        ::raise(SIGSTOP);
      },
      Listens::kManager);
  expect_broken(*server.channel(kForAnyTime), "no answer in time", Loss::kSilent);
}

int answering_end = -1;

// As after SIGSTOP and SIGCONT: the handler runs longer than the limit, and the answer comes meanwhile.
TEST(VfioUserChannel, AnswerThatCameWhileThisProcessDidNotRunIsThere) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, static_cast<int*>(ends)), 0);
  const base::UniqueFd waiting(ends[0]);
  const base::UniqueFd answering(ends[1]);
  answering_end = answering.get();
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) {
    const timespec past_the_limit{.tv_sec = 0, .tv_nsec = 700'000'000};
    ::nanosleep(&past_the_limit, nullptr);
    [[maybe_unused]] const auto sent = ::write(answering_end, "a", 1);
  };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const pthread_t waiter = ::pthread_self();
  std::jthread signaller([waiter] {
    std::this_thread::sleep_for(milliseconds{100});
    ::pthread_kill(waiter, SIGUSR1);
  });
  EXPECT_TRUE(await_input(waiting.get(), Deadline::after(milliseconds{500})));
  signaller.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(VfioUserChannel, BusyServerMayUseTheWholeTimeout) {
  const ServerProcess server(answer_after_a_while);
  EXPECT_TRUE(ask(*server.channel(kForAnyTime)));
}

struct Spoiled {
  const char* text;
  void (*spoil)(vfio_user_header&);
};

class BadReplies : public testing::TestWithParam<Spoiled> {};

TEST_P(BadReplies, BreakTheChannel) {
  ScriptedServer server([](const ServerEnd& end) {
    auto bytes = ServerEnd::message(ServerEnd::reply_header(end.receive()), wire_bytes(kInfo));
    vfio_user_header header{};
    std::memcpy(&header, bytes.data(), sizeof(header));
    GetParam().spoil(header);
    std::memcpy(bytes.data(), &header, sizeof(header));
    end.send_raw(bytes);
    (void)end.receive();
  });
  expect_broken(*server.channel(), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadReplies,
    testing::Values(Spoiled{"the reply to another message", [](vfio_user_header& h) { ++h.msg_id; }},
                    Spoiled{"the reply to another message", [](vfio_user_header& h) { ++h.command; }},
                    Spoiled{"a message that is not a reply", [](vfio_user_header& h) { h.flags = 0; }},
                    Spoiled{"a message of 15 bytes", [](vfio_user_header& h) { h.msg_size = 15; }},
                    Spoiled{"a message of 4294967295 bytes", [](vfio_user_header& h) { h.msg_size = UINT32_MAX; }},
                    Spoiled{"a reply that is too short", [](vfio_user_header& h) { h.msg_size = 31; }}));

TEST(VfioUserChannel, FileDescriptorsGoBothWaysAndCloseOnExec) {
  ScriptedServer server([](const ServerEnd& end) {
    const Received request = end.receive();
    ASSERT_EQ(request.fds.size(), 1U);
    ::eventfd_write(request.fds[0].get(), 3);
    const base::UniqueFd one(::eventfd(1, 0));
    const base::UniqueFd two(::eventfd(2, 0));
    end.reply(request, wire_bytes(kInfo), std::array{one.get(), two.get()});
  });
  const base::UniqueFd mine(::eventfd(0, EFD_NONBLOCK));
  const auto channel = server.channel();
  const auto reply = channel->request(VFIO_USER_DEVICE_SET_IRQS, wire_bytes(kInfo), 0, std::array{mine.get()});
  ASSERT_TRUE(reply);
  eventfd_t value = 0;
  ASSERT_EQ(::eventfd_read(mine.get(), &value), 0);
  EXPECT_EQ(value, 3U);
  ASSERT_EQ(reply->fds.size(), 2U);
  ASSERT_EQ(::eventfd_read(reply->fds[1].get(), &value), 0);
  EXPECT_EQ(value, 2U);
  EXPECT_NE(::fcntl(reply->fds[1].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(VfioUserChannel, MoreFileDescriptorsThanAgreedBreakIt) {
  if (test_support::kEmulated) {
    GTEST_SKIP() << "qemu-user does not say that descriptors were cut off";
  }
  ScriptedServer server([](const ServerEnd& end) {
    const Received request = end.receive();
    const base::UniqueFd one(::eventfd(0, 0));
    std::array<int, 9> many{};
    many.fill(one.get());
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(many))> control{};
    auto bytes = ServerEnd::message(ServerEnd::reply_header(request), wire_bytes(kInfo));
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(many));
    std::memcpy(CMSG_DATA(header), many.data(), sizeof(many));
    end.send_message(message);
    (void)end.receive();
  });
  expect_broken(*server.channel(), "more file descriptors than fit");
}

TEST(VfioUserChannel, PostAsksForNoReplyAndWaitsForNone) {
  ScriptedServer server([](const ServerEnd& end) {
    EXPECT_EQ(end.receive().header.flags, VFIO_USER_TYPE_COMMAND | VFIO_USER_NO_REPLY);
    end.reply(end.receive(), wire_bytes(kInfo));
  });
  const auto channel = server.channel();
  EXPECT_TRUE(channel->post(VFIO_USER_REGION_WRITE, wire_bytes(kInfo)));
  EXPECT_TRUE(ask(*channel));
}

TEST(VfioUserChannel, ThreadsTakeTurns) {
  constexpr int kThreads = 4;
  constexpr int kRequests = 100;
  ScriptedServer server([](const ServerEnd& end) {
    for (int i = 0; i < kThreads * kRequests; ++i) {
      const Received request = end.receive();
      end.reply(request, request.payload);
    }
  });
  const auto channel = server.channel();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint32_t i = 0; i < kRequests; ++i) {
        const vfio_user_irq_info mine{.argsz = thread, .flags = i, .index = 0, .count = 0};
        const auto reply = channel->request(VFIO_USER_DEVICE_GET_IRQ_INFO, wire_bytes(mine), sizeof(mine));
        const auto echo = reply ? reply->get<vfio_user_irq_info>() : vfio_user_irq_info{};
        if (echo.argsz == thread && echo.flags == i) {
          ++good;
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(good, kThreads * kRequests);
}

TEST(VfioUserChannel, ShutDownWakesAThreadThatWaitsForAReply) {
  std::atomic<bool> asked{false};
  ScriptedServer server([&](const ServerEnd& end) {
    (void)end.receive();
    asked = true;
    (void)end.receive();
  });
  const auto channel = server.channel();
  std::thread other([&] {
    while (!asked) {
      std::this_thread::yield();
    }
    channel->shut_down(Loss::kClosed);
  });
  expect_broken(*channel, "connection closed", Loss::kClosed);
  other.join();
}

/// The error of negotiate() with a server that plays `script`.
Error negotiate(std::function<void(const ServerEnd&)> script,
                std::chrono::nanoseconds timeout = VfioUserChannel::kReplyTimeout) {
  ScriptedServer server(std::move(script));
  const auto channel = server.channel(timeout);
  const auto result = channel->negotiate();
  return result ? Error{} : result.error();
}

TEST(VfioUserNegotiation, ProposesVersionZeroWithTerminatedJson) {
  const Error error = negotiate([](const ServerEnd& end) {
    const Received request = end.receive();
    EXPECT_EQ(request.header.command, VFIO_USER_VERSION);
    EXPECT_EQ(request.get<vfio_user_version>().major, 0U);
    EXPECT_EQ(request.payload.back(), std::byte{0});
    const std::string json(reinterpret_cast<const char*>(request.payload.data()) + sizeof(vfio_user_version));
    EXPECT_THAT(json, HasSubstr("\"max_msg_fds\":8"));
    EXPECT_EQ(sizeof(vfio_user_version) + json.size() + 1, request.payload.size());
    end.reply(request, wire_bytes(vfio_user_version{}));
  });
  EXPECT_EQ(error.text, "");
}

TEST(VfioUserNegotiation, NamesWhatWentWrong) {
  const Error busy = negotiate([](const ServerEnd& end) { end.reply_error(end.receive(), EBUSY); });
  EXPECT_EQ(busy.code, std::errc::device_or_resource_busy);
  EXPECT_EQ(busy.text, "gba: cannot open vfio-user:/x: it has no free port");

  const Error refused = negotiate([](const ServerEnd& end) { end.reply_error(end.receive(), EINVAL); });
  EXPECT_EQ(refused.code, std::errc::protocol_error);
  EXPECT_THAT(refused.text, HasSubstr("it refused vfio-user 0.0: invalid argument"));

  const Error other = negotiate(
      [](const ServerEnd& end) { end.reply(end.receive(), wire_bytes(vfio_user_version{.major = 7, .minor = 3})); });
  EXPECT_EQ(other.code, std::errc::protocol_error);
  EXPECT_THAT(other.text, HasSubstr("it speaks vfio-user 7.3, not 0"));

  const Error closed = negotiate([](const ServerEnd& end) { (void)end.receive(); });
  EXPECT_EQ(closed.code, std::errc::no_such_device);
  EXPECT_THAT(closed.text, HasSubstr("it closed the connection"));

  const Error short_reply = negotiate([](const ServerEnd& end) { end.reply(end.receive(), {}); });
  EXPECT_EQ(short_reply.code, std::errc::protocol_error);

  const auto silence = [](const ServerEnd& end) {
    (void)end.receive();
    (void)end.receive();
  };
  const Error silent = negotiate(silence, milliseconds{20});
  EXPECT_EQ(silent.code, std::errc::timed_out);
  EXPECT_THAT(silent.text, HasSubstr("does not answer"));
}

}  // namespace
}  // namespace gba::test
