// SPDX-License-Identifier: Apache-2.0
// The bootstrap over TCP with real sockets; PEs are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "shmem/bootstrap/tcp.hpp"
#include "tests/support/relay.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/bootstrap/uid_job.hpp"
#include "tests/unit/shmem/text_of.hpp"

namespace shmem {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::text_of;
using uid_test::Clock;
using uid_test::gather;
using uid_test::in_threads;
using uid_test::kJoinLimit;
using uid_test::Tcp;
using uid_test::Trouble;

TEST_P(Tcp, GathersTheBytesOfAllPesInRankOrder) {
  const auto texts = in_threads(5, [&](int pe) {
    auto bootstrap = join(pe, 5);
    if (!bootstrap) {
      return bootstrap.error().text;
    }
    std::string text;
    for (const std::size_t size : {1U, 8U, 0U, 5000U, 2000000U}) {
      text += gather(**bootstrap, size);
    }
    (*bootstrap)->leave();
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_P(Tcp, LetsNoPeLeaveABarrierBeforeAllHaveEntered) {
  std::atomic<int> entered{0};
  const auto texts = in_threads(4, [&](int pe) -> std::string {
    auto bootstrap = join(pe, 4).value();
    for (int round = 1; round <= 50; ++round) {
      entered.fetch_add(1);
      if (auto met = bootstrap->barrier(); !met) {
        return met.error().text;
      }
      if (entered.load() < round * 4) {
        return "left barrier " + std::to_string(round) + " early";
      }
    }
    bootstrap->leave();
    return "";
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_P(Tcp, ServesManyPes) {
  const int pes = test_support::repeats(50, 400);
  const auto texts = in_threads(pes, [&](int pe) {
    auto bootstrap = join(pe, pes);
    if (!bootstrap) {
      return bootstrap.error().text;
    }
    std::string text = gather(**bootstrap, 400);
    (*bootstrap)->leave();
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(Families, Tcp, ::testing::Values("127.0.0.1:0", "[::1]:0"),
                         [](const auto& test) { return test.index == 0 ? "IPv4" : "IPv6"; });

INSTANTIATE_TEST_SUITE_P(Here, Trouble, ::testing::Values("127.0.0.1:0"));

TEST_P(Trouble, APeThatDoesNotReadDoesNotBlockTheOthers) {
  std::atomic<int> joined{0};
  std::atomic<int> done{0};  // completed steps
  const auto texts = in_threads(3, [&](int pe) -> std::string {
    if (pe == 1) {
      std::optional<Seals> seals;
      const base::UniqueFd deaf = enter_by_hand(1, 3, &seals);
      while (joined < 2) {  // it would be told that all have joined
        std::this_thread::sleep_for(milliseconds(1));
      }
      const GatherHead head{60'000};
      const std::vector<std::byte> bytes(std::size_t{1} << 20, std::byte{1});
      for (std::uint32_t step = 1; step <= 8; ++step) {
        while (done < static_cast<int>(step) - 1) {
          std::this_thread::sleep_for(milliseconds(1));
        }
        const FrameBytes frame = encode(UidFrame::kGather, step, std::as_bytes(std::span(&head, 1)), bytes);
        say(deaf, *frame);
        say(deaf, *encode(seals->next(*frame)));
      }
      while (done < 8) {
        std::this_thread::sleep_for(milliseconds(1));
      }
      return "";
    }
    const auto bootstrap = join(pe, 3);
    ++joined;
    if (!bootstrap) {
      done = 8;
      return bootstrap.error().text;
    }
    const std::vector<std::byte> bytes(std::size_t{1} << 20, std::byte{1});
    std::string text;
    for (int step = 0; step < 8; ++step) {
      const auto all = (*bootstrap)->allgather(bytes);
      text += all ? "" : all.error().text;
      if (pe == 2) {
        ++done;
      }
    }
    (*bootstrap)->leave();
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

/// A proxy that forwards bytes both ways in pieces of a few bytes until both sides have closed.
void hand_on_slowly(const base::UniqueFd& door, const Endpoint& target) {
  pollfd guest{door.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&guest, 1, 60'000), 1);
  const base::UniqueFd near(::accept(door.get(), nullptr, nullptr));
  const base::UniqueFd far = wire::connect_to(target, Clock::now() + kJoinLimit).value();
  const std::array<std::pair<int, int>, 2> ways{{{near.get(), far.get()}, {far.get(), near.get()}}};
  std::array<bool, 2> open{true, true};
  std::size_t piece = 1;
  while (open[0] || open[1]) {
    std::array<pollfd, 2> polls{{{open[0] ? near.get() : -1, POLLIN, 0}, {open[1] ? far.get() : -1, POLLIN, 0}}};
    ASSERT_GT(::poll(polls.data(), polls.size(), 60'000), 0);
    for (std::size_t way = 0; way < 2; ++way) {
      if (polls[way].revents == 0) {
        continue;
      }
      std::array<std::byte, 8> buffer{};
      const ssize_t got = ::recv(ways[way].first, buffer.data(), piece, 0);
      piece = piece % buffer.size() + 1;
      open[way] = got > 0;
      if (got <= 0) {
        ::shutdown(ways[way].second, SHUT_WR);
      } else {
        static_cast<void>(wire::send_all(ways[way].second, std::span(buffer).first(static_cast<std::size_t>(got)),
                                         Clock::now() + kJoinLimit));
      }
    }
  }
}

TEST_P(Trouble, AssemblesAnswersThatComeInSmallPieces) {
  Endpoint middle = wire::parse_endpoint("127.0.0.1:0").value();
  const base::UniqueFd door = wire::listen_at(middle).value();
  std::thread proxy([&] { hand_on_slowly(door, id_.place); });
  const UniqueId detour{id_.secret, middle};
  const auto texts = in_threads(3, [&](int pe) {
    auto bootstrap = join_at(pe == 1 ? detour : id_, place(pe, 3));
    if (!bootstrap) {
      return bootstrap.error().text;
    }
    std::string text;
    for (const std::size_t size : {1U, 0U, 1000U}) {
      text += gather(**bootstrap, size);
    }
    (*bootstrap)->leave();
    return text;
  });
  proxy.join();
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST_P(Trouble, NamesALostPe) {
  const auto texts = in_threads(3, [&](int pe) {
    auto bootstrap = join(pe, 3).value();
    if (pe == 1) {
      return std::string();  // ends without leave()
    }
    const auto met = bootstrap->barrier();
    EXPECT_TRUE(bootstrap->aborted());
    EXPECT_EQ(text_of(bootstrap->barrier()), text_of(met));  // the failure is permanent
    return text_of(met);
  });
  for (const std::size_t pe : {0U, 2U}) {
    EXPECT_THAT(texts[pe], AllOf(HasSubstr("PE 1 (host "), HasSubstr("is lost")));
  }
}

TEST_P(Trouble, NamesAPeThatSendsInvalidMessages) {
  std::atomic<int> joined{0};
  const auto texts = in_threads(3, [&](int pe) -> std::string {
    if (pe == 1) {
      const base::UniqueFd mad = enter_by_hand(1, 3);
      while (joined.load() < 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
      }
      say(mad, std::vector<std::byte>(100, std::byte{7}));
      return read_all(mad);
    }
    auto bootstrap = join(pe, 3);
    ++joined;
    return bootstrap ? text_of((*bootstrap)->barrier()) : bootstrap.error().text;
  });
  for (const std::size_t pe : {0U, 2U}) {
    EXPECT_THAT(texts[pe], AllOf(HasSubstr("PE 1 (host "), HasSubstr("not a message of libshmem")));
  }
}

TEST_P(Trouble, EndsAllPesWhenOneEndsTheJob) {
  const auto texts = in_threads(4, [&](int pe) -> std::string {
    auto bootstrap = join(pe, 4).value();
    if (pe == 3) {  // polls, without waiting in a step
      while (!bootstrap->aborted()) {
        std::this_thread::sleep_for(milliseconds(5));
      }
      return *bootstrap->aborted() + std::to_string(bootstrap->abort(9, "a second reason"));
    }
    if (pe != 2) {
      return text_of(bootstrap->barrier());
    }
    const int status = bootstrap->abort(5, "out of patience");
    return status == 5 ? "" : "status " + std::to_string(status);
  });
  EXPECT_EQ(texts[0], "shmem: PE 0: the job was ended: out of patience");
  EXPECT_EQ(texts[1], "shmem: PE 1: the job was ended: out of patience");
  EXPECT_EQ(texts[2], "");
  EXPECT_EQ(texts[3], "out of patience5");
}

TEST_P(Trouble, ReportsPesInDifferentSteps) {
  const auto texts = in_threads(2, [&](int pe) {
    auto bootstrap = join(pe, 2).value();
    return text_of(bootstrap->allgather(std::vector<std::byte>(pe == 0 ? 8 : 16)));
  });
  EXPECT_THAT(texts, Each(HasSubstr("PE 0 sends 8 bytes, PE 1 sends 16")));
}

TEST_P(Trouble, StopsListeningWhenAllHaveCome) {
  const auto texts = in_threads(2, [&](int pe) {
    auto bootstrap = join(pe, 2).value();
    static_cast<void>(bootstrap->barrier());
    std::string text = pe == 1 ? text_of(TcpBootstrap::join(id_, place(1, 2))) : "";
    static_cast<void>(bootstrap->barrier());
    bootstrap->leave();
    return text;
  });
  EXPECT_THAT(texts[1], AllOf(HasSubstr("cannot reach the job at " + id_.place.text()), HasSubstr("Connection refused"),
                              HasSubstr("SHMEM_UID_SOCK_IFNAME")));
}

TEST_P(Trouble, ReportsThatNoServerListens) {
  listener_.reset();
  EXPECT_THAT(text_of(TcpBootstrap::join(id_, place(1, 2))), HasSubstr("Connection refused"));
}

TEST_P(Trouble, GivesUpOnAServerThatDoesNotAnswer) {
  // The listener exists, but no server accepts its connections.
  EXPECT_THAT(text_of(TcpBootstrap::join(id_, place(1, 2, milliseconds(200)))), HasSubstr("PE 1 had no answer from"));
}

/// Plays a program that has taken PE 0's port: sends `answer` to a PE and returns all that the PE sends.
std::string squat(const base::UniqueFd& port, std::span<const std::byte> answer) {
  pollfd poll{port.get(), POLLIN, 0};
  if (::poll(&poll, 1, 60'000) != 1) {
    return "<no connection>";
  }
  const base::UniqueFd victim(::accept(port.get(), nullptr, nullptr));
  std::string got;
  std::array<char, 4000> buffer{};
  for (bool answered = false;;) {
    pollfd readable{victim.get(), POLLIN, 0};
    // Stops if the PE waits for more than this answer.
    if (::poll(&readable, 1, answered ? 1000 : 60'000) != 1) {
      return got;
    }
    const ssize_t bytes = ::recv(victim.get(), buffer.data(), buffer.size(), 0);
    if (bytes <= 0) {
      return got;
    }
    got.append(buffer.data(), static_cast<std::size_t>(bytes));
    if (!answered) {
      static_cast<void>(wire::send_all(victim.get(), answer, Clock::now() + kJoinLimit));
      answered = true;
    }
  }
}

TEST_P(Trouble, AFalseServerLearnsNothingThatTheJobAccepts) {
  const std::string secret(reinterpret_cast<const char*>(id_.secret.data()), id_.secret.size());
  const std::int32_t pe = 0;
  const FrameBytes accepted = encode(UidFrame::kAccepted, 0, std::as_bytes(std::span(&pe, 1)));
  const FrameBytes ended = encode(UidFrame::kAborted, AbortHead{0, 77}, "the false server's word");
  const FrameBytes failed = encode(Error{std::errc::io_error, "the false server's word"});
  const FrameBytes guess = encode(UidFrame::kChallenge, 0, std::vector<std::byte>(sizeof(Challenge)));
  // The true server's answer to the first message of another PE.
  Challenge of_another{.nonce = {5}, .size = 3, .server = 0, .proof = {}};
  of_another.proof = prove(id_.secret, Prover::kServer, hello_of(1, 3), of_another);
  const FrameBytes replay = encode(UidFrame::kChallenge, 0, std::as_bytes(std::span(&of_another, 1)));
  std::string heard;
  for (const FrameBytes& answer : {accepted, ended, failed, guess, replay}) {
    Endpoint taken = wire::parse_endpoint("127.0.0.1:0").value();
    const base::UniqueFd port = wire::listen_at(taken).value();
    std::thread squatter([&] { heard = squat(port, *answer); });
    const auto joined = TcpBootstrap::join({id_.secret, taken}, place(1, 3));
    squatter.join();
    EXPECT_THAT(text_of(joined), AllOf(HasSubstr("at " + taken.text()), HasSubstr("not of this job")));
    EXPECT_THAT(text_of(joined), Not(HasSubstr("false server's word")));
    EXPECT_GT(heard.size(), sizeof(wire::FrameHeader));
    EXPECT_EQ(heard.find(secret), std::string::npos) << "the secret was sent";
  }
  const base::UniqueFd replayed = knock();
  say(replayed, std::as_bytes(std::span(heard)));
  expect_a_good_job();
}

/// What PE 1 gathers with PE 0, through a program that changes a byte: the truth, or an error.
std::string gather_through(std::optional<test_support::Relay::Change> change, bool& was_changed) {
  auto listener = open_listener({.session = "127.0.0.1:0"}).value();
  UniqueId id = listener.id;
  test_support::Relay relay(id.place.port(), change);
  // In case of an error only PE 0 waits for as long.
  constexpr milliseconds kShort{300};
  const TcpPlace first{
      .rank = 0, .size = 2, .limit = change ? kShort : kJoinLimit, .retries = false, .grace = kJoinLimit};
  TcpPlace second = first;
  second.rank = 1;
  std::thread other([&] {
    const auto bootstrap = TcpBootstrap::join(id, first, std::move(listener));
    if (bootstrap) {
      static_cast<void>(gather(**bootstrap, 8));
      (*bootstrap)->leave();
    }
  });
  UniqueId there = id;
  there.place.set_port(relay.port());
  std::string text;
  if (const auto bootstrap = TcpBootstrap::join(there, second)) {
    text = gather(**bootstrap, 8);
    (*bootstrap)->leave();
  } else {
    text = bootstrap.error().text;
  }
  other.join();
  was_changed = relay.has_changed();
  return text;
}

TEST(UidRelay, AProgramBetweenAPeAndTheServerCanOnlyPassOnWhatTheySay) {
  bool was_changed = false;
  EXPECT_EQ(gather_through(std::nullopt, was_changed), "");
  constexpr std::size_t kHeader = sizeof(wire::FrameHeader);
  constexpr std::size_t kBytesToServer = kHeader + sizeof(Hello) + kHeader + sizeof(Proof);
  constexpr std::size_t kBytesToPe = kHeader + sizeof(Challenge) + kHeader + sizeof(std::int32_t) + sizeof(Seal);
  // The random numbers, the proofs, and the first sealed frames, with their seals.
  const std::vector<test_support::Relay::Change> changes{{false, kHeader + 3},
                                                         {false, kHeader + 33},
                                                         {false, kBytesToServer - 3},
                                                         {false, kBytesToServer + 12},
                                                         {false, kBytesToServer + kHeader + 4},
                                                         {false, kBytesToServer + kHeader + 20},
                                                         {true, kHeader + 5},
                                                         {true, kHeader + 34},
                                                         {true, kHeader + 50},
                                                         {true, kBytesToPe - 1},
                                                         {true, kBytesToPe - 33},
                                                         {true, kBytesToPe + kHeader + 1}};
  std::vector<std::thread> trials;
  trials.reserve(changes.size());
  for (const auto& change : changes) {
    trials.emplace_back([change] {
      bool changed = false;
      const std::string text = gather_through(change, changed);
      EXPECT_THAT(text, Not(HasSubstr("wrong bytes")));
      EXPECT_TRUE(!changed || !text.empty()) << change.is_to_client << " " << change.offset;
    });
  }
  for (std::thread& trial : trials) {
    trial.join();
  }
}

TEST_P(Trouble, RefusesAJobThatTheLimitOnOpenFilesDoesNotAllow) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 200, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const std::string text = text_of(join(0, 300));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(text, AllOf(HasSubstr("a job of 300 PEs takes 332 open files"), HasSubstr("limit of 200 (ulimit -n)")));
}

TEST_P(Trouble, RefusesAPortThatIsTaken) {
  const auto second = open_listener({.session = id_.place.text()});
  EXPECT_THAT(text_of(second), AllOf(HasSubstr("cannot listen at " + id_.place.text()), HasSubstr("in use"),
                                     HasSubstr("SHMEM_UID_SESSION_ID")));
  EXPECT_THAT(text_of(open_listener({.session = "192.0.2.1:0"})), HasSubstr("cannot listen at 192.0.2.1:0"));
}

}  // namespace
}  // namespace shmem
