// SPDX-License-Identifier: Apache-2.0
// Failures between PEs on several nodes: each call ends, and its Error names the PE.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "shmem/net/network.hpp"
#include "tests/unit/shmem/network_processes.hpp"

namespace shmem {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::heap_of;
using ::testing::IsEmpty;
using testing::NetworkPe;
using testing::problem_of;
using testing::text_of;
using testing::with_network;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongMessage = 8 << 20;  // more than sockets buffer

using NetworkFailureTest = testing::NetworkTest;
using OneSidedFailureTest = testing::OneSidedTest;

using Step = std::function<Result<void>(NetworkPe&)>;

Result<void> get_word(NetworkPe& me) {
  std::uint64_t word = 0;
  return me.network->get(&word, heap_of(1, 0), sizeof word);
}
Result<void> fetch_word(NetworkPe& me) {
  const auto fetched = me.network->fetch_atomic(heap_of(1, 0), 8, AtomicOperation::kAdd, 1);
  return fetched ? Result<void>() : fetched.error();
}
Result<void> put_large(NetworkPe& me) {
  return me.network->put(heap_of(1, 0), me.heap.data(), kLongMessage);
}
Result<void> put_and_quiet(NetworkPe& me) {
  if (auto put = me.network->put(heap_of(1, 0), me.heap.data(), 8); !put) {
    return put;
  }
  return me.network->quiet();
}
Result<void> start_get_and_quiet(NetworkPe& me) {
  if (auto started = me.network->start_get(me.heap.data(), heap_of(1, 0), 4096); !started) {
    return started;
  }
  return me.network->quiet();
}
Result<void> get_large(NetworkPe& me) {
  return me.network->get(me.heap.data(), heap_of(1, 0), kLongMessage);
}
Result<void> start_get_large_and_quiet(NetworkPe& me) {
  if (auto started = me.network->start_get(me.heap.data(), heap_of(1, 0), kLongMessage); !started) {
    return started;
  }
  return me.network->quiet();
}
Result<void> start_put_large_and_quiet(NetworkPe& me) {
  if (auto started = me.network->start_put(heap_of(1, 0), me.heap.data(), kLongMessage); !started) {
    return started;
  }
  return me.network->quiet();
}
Result<void> set_and_quiet(NetworkPe& me) {
  if (auto set = me.network->post_atomic(heap_of(1, 0), 8, AtomicOperation::kSet, 1); !set) {
    return set;
  }
  return me.network->quiet();
}
Result<void> receive(NetworkPe& me) {
  const auto started = me.network->start_receive(1, 3, me.heap.data(), 100);
  return started ? me.network->wait(*started) : started.error();
}
Result<void> send_large(NetworkPe& me) {
  const auto started = me.network->start_send(1, 3, me.heap.data(), kLongMessage);
  return started ? me.network->wait(*started) : started.error();
}

/// Connects the two PEs, however short the limit of other calls is: a small put alone completes without a connection.
std::string shake_hands(NetworkPe& me) {
  constexpr std::chrono::seconds kTimeLimit{60};
  std::uint64_t mine = 1;
  std::uint64_t other = 0;
  const auto sent = me.network->start_send(1 - me.pe, 99, &mine, sizeof mine);
  const auto received = me.network->start_receive(1 - me.pe, 99, &other, sizeof other);
  std::string text = problem_of(sent) + problem_of(received);
  if (sent) {
    text += problem_of(me.network->wait(*sent, kTimeLimit));
  }
  if (received) {
    text += problem_of(me.network->wait(*received, kTimeLimit));
  }
  me.barrier_and_serve_no_more();
  return text;
}

struct Call {
  const char* name;
  Step step;
};
const Call kCalls[] = {{"get", get_word},
                       {"fetch", fetch_word},
                       {"put", put_large},
                       {"put and quiet", put_and_quiet},
                       {"start_get and quiet", start_get_and_quiet},
                       {"set and quiet", set_and_quiet},
                       {"receive", receive},
                       {"send", send_large}};

/// Redirects the output of the process to a file, which must be empty at the end of the test.
class Quietly {
 public:
  Quietly() : file_(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
    ::dup2(file_.get(), 1);
    ::dup2(file_.get(), 2);
  }
  [[nodiscard]] std::string printed() const {
    std::string text(2000, '\0');
    const ssize_t got = ::pread(file_.get(), text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text.empty() ? "" : "printed: " + text;
  }

 private:
  base::UniqueFd file_;
};

/// The other PE is killed while this one waits for it, with and without an earlier connection.
TEST_P(OneSidedFailureTest, NamesAPeThatIsKilled) {
  for (const Call& call : kCalls) {
    for (const bool met_before : {true, false}) {
      SCOPED_TRACE(std::string(call.name) + (met_before ? ", connected" : ", not connected"));
      const auto texts = in_this_way(2, [&](NetworkPe& me) -> std::string {
        const Quietly output;
        if (met_before && me.pe == 0) {
          if (auto got = get_word(me); !got) {
            return got.error().text;
          }
        }
        if (met_before) {
          me.barrier();
        }
        if (me.pe == 1) {
          me.rendezvous.flag.store(1);  // answers no more: in the barrier it did
          std::this_thread::sleep_for(milliseconds{30});
          ::raise(SIGKILL);
        }
        while (me.rendezvous.flag.load() == 0) {
          std::this_thread::sleep_for(milliseconds{1});
        }
        const auto start = Clock::now();
        const auto result = call.step(me);
        if (result) {
          return "went well";
        }
        std::string text = result.error().text;
        if (Clock::now() - start > std::chrono::seconds{50}) {  // less than the limit
          text += " after a long time";
        }
        const auto again = get_word(me);
        if (again || again.error().text.find("is lost") == std::string::npos) {
          text += " but " + text_of(again);
        }
        const auto quiet = me.network->quiet();
        if (call.name != std::string("receive") && call.name != std::string("send") && quiet) {
          text += " but quiet";
        }
        if (!me.network->lost()) {
          text += " but nobody is lost";
        }
        return text + output.printed();
      });
      EXPECT_THAT(texts[0], AllOf(HasSubstr("PE 1 (on kiwi), which is lost: "), HasSubstr("PE 0 (on kiwi) cannot"),
                                  Not(HasSubstr("but")), Not(HasSubstr("long")), Not(HasSubstr("printed"))));
      EXPECT_EQ(texts[1], "<killed by signal 9>");
    }
  }
}

TEST_F(NetworkFailureTest, NamesAPeThatWasKilledBefore) {
  for (const Call& call : kCalls) {
    SCOPED_TRACE(call.name);
    const auto texts = with_network(2, [&](NetworkPe& me) -> std::string {
      if (me.pe == 1) {
        ::raise(SIGKILL);
      }
      std::this_thread::sleep_for(milliseconds{30});
      return text_of(call.step(me));
    });
    EXPECT_THAT(texts[0], HasSubstr("PE 1 (on kiwi), which is lost: "));
  }
}

/// Gives this process a network of its own that drops all packets to the other PE. False if that fails.
bool hide_behind_a_firewall(int pe) {
  constexpr int kOwn = CLONE_NEWNET | CLONE_NEWNS;
  if (::unshare(kOwn) != 0 && ::unshare(CLONE_NEWUSER | kOwn) != 0) {
    return false;
  }
  const std::string me = "10.9.0." + std::to_string(1 + pe);
  const std::string other = "10.9.0." + std::to_string(2 - pe);
  const std::string commands =
      "exec 2> /dev/null; mount --make-rprivate / && mount -t sysfs sysfs /sys &&"
      "ip link add out type veth peer name nowhere && ip addr add " +
      me +
      "/24 dev out &&"
      "ip link set out up && ip link set nowhere up &&"
      "ip neigh add " +
      other +
      " lladdr 02:00:00:00:00:02 dev out &&"
      // The kernel finds that the other end is up some time later.
      "for i in $(seq 1000); do grep -q up /sys/class/net/out/operstate && exit 0; sleep 0.01; done; exit 1";
  return std::system(commands.c_str()) == 0;
}

TEST_F(NetworkFailureTest, TimesOutForANodeBehindAFirewall) {
  for (const Call& call : {kCalls[0], kCalls[1], kCalls[3]}) {  // the other calls end like one of these
    SCOPED_TRACE(call.name);
    const auto texts = with_network(
        2,
        [&](NetworkPe& me) -> std::string {
          const bool hidden = hide_behind_a_firewall(me.pe);
          if (!hidden) {
            me.rendezvous.flag.store(1);
          }
          if (!me.world->barrier() || me.rendezvous.flag.load() != 0) {
            return "not here";
          }
          NetworkSettings settings = me.settings();
          settings.limit = milliseconds{150};
          if (std::string problem = me.connect(std::move(settings)); !problem.empty()) {
            return problem;
          }
          const auto start = Clock::now();
          std::string text = me.pe == 0 ? text_of(call.step(me)) : "";
          if (Clock::now() - start > std::chrono::seconds{20}) {
            text += " too late";
          }
          (void)me.world->barrier();
          return text;
        },
        false);
    if (texts[0] == "not here") {
      GTEST_SKIP() << "network namespaces or iproute2 are not available";
    }
    EXPECT_THAT(texts[0], AllOf(HasSubstr("PE 0 (on kiwi) waited to "),
                                HasSubstr("PE 1 (on kiwi) and timed out after 0.150 s"), Not(HasSubstr("too late"))));
    EXPECT_EQ(texts[1], "");
  }
}

/// PE 1 is lost; PE 2 still works.
TEST_F(NetworkFailureTest, StillReachesTheOtherPes) {
  const auto texts = with_network(3, [](NetworkPe& me) -> std::string {
    if (me.pe == 1) {
      me.serve([&] { return me.rendezvous.flag.load() == 1; });
      ::raise(SIGKILL);
    }
    if (me.pe == 2) {
      me.serve([&] { return me.rendezvous.flag.load() == 2; });
      return me.word<std::uint64_t>(0).load() == 77 ? "" : "nothing came";
    }
    std::string text = problem_of(put_and_quiet(me));
    me.rendezvous.flag.store(1);
    while (get_word(me)) {
      continue;
    }
    const std::uint64_t value = 77;
    text += problem_of(me.network->put(heap_of(2, 0), &value, sizeof value));
    std::uint64_t back = 0;
    text += problem_of(me.network->get(&back, heap_of(2, 0), sizeof back));
    if (const auto lost = me.network->lost(); !lost || lost->text.find("PE 1") == std::string::npos) {
      text += "not lost";
    }
    me.rendezvous.flag.store(2);
    return back == 77 ? text : text + "not what was put";
  });
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(texts[2], "");
}

/// The other PE is alive, but makes no progress while this one waits.
TEST_P(OneSidedFailureTest, WaitsNoLongerThanItsLimit) {
  for (const Call& call : kCalls) {
    SCOPED_TRACE(call.name);
    const auto texts = in_this_way(
        2,
        [&](NetworkPe& me) -> std::string {
          if (me.pe == 1) {
            while (me.rendezvous.flag.load() == 0) {
              std::this_thread::sleep_for(milliseconds{1});
            }
            return "";
          }
          const auto start = Clock::now();
          const auto result = call.step(me);
          const auto took = Clock::now() - start;
          me.rendezvous.flag.store(1);
          std::string text = text_of(result);
          if (!result && result.error().code != std::errc::timed_out) {
            text += " with another code";
          }
          if (took < milliseconds{150}) {
            text += " too early";
          }
          if (took > std::chrono::seconds{20}) {
            text += " too late";
          }
          return text;
        },
        milliseconds{150});
    EXPECT_THAT(texts[0],
                AllOf(HasSubstr("PE 0 (on kiwi) waited to "), HasSubstr("PE 1 (on kiwi) and timed out after 0.150 s"),
                      Not(HasSubstr("another code")), Not(HasSubstr(" too "))));
    EXPECT_EQ(texts[1], "");
  }
}

/// As after a shrink, which leaves out a PE that hangs, and may be lost later.
TEST_P(OneSidedFailureTest, DoesNotWaitForWhatWasBegunOnAPeThatIsLeftOut) {
  for (const Call& call : {Call{"fetch", fetch_word}, Call{"put and quiet", put_and_quiet},
                           Call{"start_put", start_put_large_and_quiet}, Call{"set and quiet", set_and_quiet}}) {
    SCOPED_TRACE(call.name);
    const auto texts = in_this_way(
        2,
        [&](NetworkPe& me) -> std::string {
          std::string text = shake_hands(me);
          if (me.pe == 1) {
            while (me.rendezvous.flag.load() == 0) {
              std::this_thread::sleep_for(milliseconds{1});
            }
            return text;
          }
          if (call.step(me)) {
            text += "done too early; ";
          }
          me.network->leave_out(1);
          text += problem_of(me.network->quiet());
          me.rendezvous.flag.store(1);
          return text;
        },
        milliseconds{150});
    EXPECT_THAT(texts, Each(IsEmpty()));
  }
}

/// A late answer is dropped: the memory belongs to the caller again.
TEST_P(OneSidedFailureTest, WritesNothingAfterAGetThatFailed) {
  for (const Call& call : {Call{"get", get_large}, Call{"start_get and quiet", start_get_large_and_quiet}}) {
    SCOPED_TRACE(call.name);
    const auto texts = in_this_way(
        2,
        [&call](NetworkPe& me) -> std::string {
          std::memset(me.heap.data(), me.pe == 0 ? 0x11 : 0x22, kLongMessage);
          std::string text = shake_hands(me);
          if (me.pe == 1) {
            while (me.rendezvous.flag.load() == 0) {
              std::this_thread::sleep_for(milliseconds{1});
            }
            me.serve([&] { return me.rendezvous.flag.load() == 2; });
            return text;
          }
          if (call.step(me)) {
            text += "got too early; ";
          }
          me.rendezvous.flag.store(1);
          const auto end = Clock::now() + milliseconds{100};
          me.serve([&] { return Clock::now() > end; });
          me.rendezvous.flag.store(2);
          return *me.heap_at(0) == std::byte{0x11} && *me.heap_at(kLongMessage - 1) == std::byte{0x11} ? text
                                                                                                       : "written";
        },
        milliseconds{100});
    EXPECT_THAT(texts, Each(IsEmpty()));
  }
}

/// After a failed put the caller reuses its memory. The new contents must not reach the other PE.
TEST_P(OneSidedFailureTest, ReadsNothingAfterAPutThatFailed) {
  for (const Call& call : {Call{"put", put_large}, Call{"start_put and quiet", start_put_large_and_quiet}}) {
    SCOPED_TRACE(call.name);
    const auto texts = in_this_way(
        2,
        [&call](NetworkPe& me) -> std::string {
          std::memset(me.heap.data(), me.pe == 0 ? 0x11 : 0x22, kLongMessage);
          std::string text = shake_hands(me);
          if (me.pe == 0) {
            if (call.step(me)) {
              text += "put too early; ";
            }
            std::memset(me.heap.data(), 0x33, kLongMessage);
            me.rendezvous.flag.store(1);
            me.serve([&] { return me.rendezvous.flag.load() == 2; });
            return text;
          }
          while (me.rendezvous.flag.load() == 0) {
            std::this_thread::sleep_for(milliseconds{1});
          }
          const auto end = Clock::now() + milliseconds{200};
          me.serve([&] { return Clock::now() > end; });
          me.rendezvous.flag.store(2);
          return std::find(me.heap.begin(), me.heap.end(), std::byte{0x33}) == me.heap.end() ? text : "read too late";
        },
        milliseconds{100});
    EXPECT_THAT(texts, Each(IsEmpty()));
  }
}

INSTANTIATE_TEST_SUITE_P(By, OneSidedFailureTest, ::testing::Bool(), testing::name_of_way);

/// A receive and a quiet that timed out can be tried again; a late message goes to the next receive.
TEST_F(NetworkFailureTest, LosesNoPeByATimedOutReceiveOrQuiet) {
  const auto short_limit = [](NetworkSettings& settings) { settings.limit = milliseconds{100}; };
  const auto texts = with_network(
      2,
      [](NetworkPe& me) -> std::string {
        std::uint64_t value = 9;
        std::string text = shake_hands(me);
        if (me.pe == 1) {
          while (me.rendezvous.flag.load() == 0) {
            std::this_thread::sleep_for(milliseconds{1});
          }
          const auto sent = me.network->start_send(0, 3, &value, sizeof value);
          text += sent ? problem_of(me.network->wait(*sent)) : sent.error().text;
          me.barrier();
          return text;
        }
        value = 0;
        const auto early = me.network->start_receive(1, 3, &value, sizeof value);
        if (me.network->wait(*early, milliseconds{20})) {
          text += "received too early; ";
        }
        if (me.network->wait(*early)) {
          text += "its number is still of use; ";
        }
        if (put_and_quiet(me)) {
          text += "quiet too early; ";
        }
        me.rendezvous.flag.store(1);
        const auto late = me.network->start_receive(1, 3, &value, sizeof value);
        text += problem_of(me.network->wait(*late, std::chrono::seconds{60}));
        while (!me.network->quiet()) {
          if (me.network->lost()) {
            return text + "lost";
          }
        }
        me.barrier();
        return value == 9 ? text : text + "wrong value";
      },
      true, short_limit);
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_F(NetworkFailureTest, EndsWhenTheJobIsEnded) {
  const auto for_ever = [](NetworkSettings& settings) { settings.limit = milliseconds{0}; };
  for (const Call& call : kCalls) {
    SCOPED_TRACE(call.name);
    const auto texts = with_network(
        2,
        [&](NetworkPe& me) -> std::string {
          if (me.pe == 0) {
            const auto result = call.step(me);
            me.rendezvous.flag.store(1);
            if (!result && result.error().code != std::errc::operation_canceled) {
              return "code: " + text_of(result);
            }
            return text_of(result);
          }
          std::this_thread::sleep_for(milliseconds{50});
          me.world->abort(5, "out of patience");
          while (me.rendezvous.flag.load() == 0) {
            std::this_thread::sleep_for(milliseconds{1});
          }
          return "";
        },
        true, for_ever);
    EXPECT_THAT(texts[0],
                AllOf(HasSubstr("PE 1 (on kiwi): the job was ended: out of patience"), Not(HasSubstr("code:"))));
  }
}

TEST_F(NetworkFailureTest, RefusesPlacesOutsideSegmentsOrOnThisPe) {
  const auto texts = with_network(2, [](NetworkPe& me) -> std::string {
    std::string text;
    std::array<std::byte, 64> bytes{};
    const auto refused = [&text](const auto& result, const char* what) {
      if (result) {
        text += std::string(what) + " went well; ";
      }
      if (!result && result.error().code != std::errc::invalid_argument) {
        text += what + result.error().text;
      }
    };
    const int other = 1 - me.pe;
    constexpr std::uint64_t kEnd = NetworkPe::kHeapBytes;
    text += problem_of(me.network->put(heap_of(other, kEnd), bytes.data(), 0));
    refused(me.network->put(heap_of(other, kEnd - 63), bytes.data(), 64), "put");
    refused(me.network->get(bytes.data(), heap_of(other, kEnd - 63), 64), "get");
    refused(me.network->start_put(heap_of(other, kEnd + 1), bytes.data(), 0), "start_put");
    refused(me.network->start_get(bytes.data(), heap_of(other, ~std::uint64_t{0}), 2), "start_get");
    refused(me.network->put({other, Segment::kBoard, 0}, bytes.data(), 1), "no board");
    refused(me.network->put({other, Segment{9}, 0}, bytes.data(), 1), "no segment");
    refused(me.network->put(heap_of(me.pe, 0), bytes.data(), 8), "not remote");
    refused(me.network->put(heap_of(2, 0), bytes.data(), 8), "no such PE");
    refused(me.network->put(heap_of(-1, 0), bytes.data(), 8), "no such PE");
    refused(me.network->fetch_atomic(heap_of(other, 4), 8, AtomicOperation::kAdd, 1), "unaligned");
    refused(me.network->fetch_atomic(heap_of(other, 0), 2, AtomicOperation::kAdd, 1), "2 bytes");
    refused(me.network->fetch_atomic(heap_of(other, kEnd), 8, AtomicOperation::kAdd, 1), "word outside");
    refused(me.network->post_atomic(heap_of(other, 0), 8, AtomicOperation::kCompareSwap, 1), "posted compare");
    refused(me.network->start_send(other, std::uint64_t{1} << 48, bytes.data(), 8), "large tag");
    refused(me.network->start_receive(me.pe, 0, bytes.data(), 8), "receive from myself");
    refused(me.network->wait(12345), "wait");
    refused(me.network->test(12345), "test");
    me.barrier();
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

}  // namespace
}  // namespace shmem
