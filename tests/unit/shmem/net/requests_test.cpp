// SPDX-License-Identifier: Apache-2.0
// Requests for memory that a PE does not have: nothing beyond its memory is accessed, and the job ends.
#include "shmem/net/requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "shmem/net/request_server.hpp"
#include "shmem/net/ucx/network.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/shmem/network_processes.hpp"

namespace shmem {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::heap_of;
using testing::NetworkPe;
using ::testing::Not;
using testing::problem_of;
using testing::text_of;
using testing::with_network;

using NetworkRequestsTest = testing::NetworkTest;

/// Two segments between bytes that must not be written.
class Memory {
 private:
  static std::array<std::byte, 64> filled() {
    std::array<std::byte, 64> bytes{};
    bytes.fill(std::byte{0x5a});
    return bytes;
  }
  alignas(8) std::array<std::byte, 64> bytes_ = filled();

 public:
  RequestedMemory requested{{{bytes_.data() + 8, 24}, {bytes_.data() + 40, 8}}};
  [[nodiscard]] bool is_untouched() const {
    return std::all_of(bytes_.begin(), bytes_.end(), [](std::byte byte) { return byte == std::byte{0x5a}; });
  }
};

Request at(Segment segment, std::uint64_t offset) {
  Request request;
  request.segment = segment;
  request.offset = offset;
  return request;
}

constexpr std::uint64_t kFarOff = ~std::uint64_t{0} - 3;

TEST(RequestedMemory, HasSegmentsThatComeAndGo) {
  Memory memory;
  std::array<std::byte, 16> more{};
  const std::array<std::byte, 16> bytes{std::byte{7}};
  const Segment segment = registered_segment(3);
  EXPECT_FALSE(memory.requested.put(at(segment, 0), bytes));
  memory.requested.add(segment, more);
  EXPECT_FALSE(memory.requested.put(at(segment, 1), bytes));
  EXPECT_FALSE(memory.requested.put(at(registered_segment(2), 0), bytes));
  EXPECT_TRUE(memory.requested.put(at(segment, 0), bytes));
  EXPECT_EQ(more, bytes);
  memory.requested.remove(segment);
  EXPECT_FALSE(memory.requested.put(at(segment, 0), bytes));
  EXPECT_TRUE(memory.is_untouched());
}

TEST(RequestedMemory, WritesNothingBeyondASegment) {
  const Memory memory;
  const std::array<std::byte, 32> bytes{};
  for (const Request& request : {at(Segment::kHeap, 24), at(Segment::kHeap, 17), at(Segment::kHeap, kFarOff),
                                 at(Segment::kGlobals, 1), at(Segment::kBoard, 0), at(Segment{200}, 0)}) {
    EXPECT_FALSE(memory.requested.put(request, std::span(bytes).first(8))) << request.offset;
  }
  EXPECT_FALSE(memory.requested.put(at(Segment::kHeap, 0), bytes));
  EXPECT_TRUE(memory.is_untouched());
  EXPECT_TRUE(memory.requested.put(at(Segment::kHeap, 16), std::span(bytes).first(8)));
  EXPECT_TRUE(memory.requested.put(at(Segment::kHeap, 24), {}));
}

TEST(RequestedMemory, ReadsNothingBeyondASegment) {
  const Memory memory;
  for (const auto& [offset, bytes] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 25}, {24, 1}, {kFarOff, 8}, {8, kFarOff}, {kFarOff, kFarOff}}) {
    Request request = at(Segment::kHeap, offset);
    request.operand = bytes;
    EXPECT_FALSE(memory.requested.get(request)) << offset << ' ' << bytes;
  }
  Request all = at(Segment::kHeap, 0);
  all.operand = 24;
  EXPECT_EQ(memory.requested.get(all).value().size(), 24U);
}

TEST(RequestedMemory, ChangesOnlyWordsByValidOperations) {
  const Memory memory;
  const auto change = [&memory](std::uint64_t offset, int size, int operation) {
    Request request = at(Segment::kHeap, offset);
    request.word_size = static_cast<std::uint8_t>(size);
    request.operation = static_cast<AtomicOperation>(operation);
    request.operand = 1;
    return memory.requested.change(request);
  };
  constexpr int kSwap = static_cast<int>(AtomicOperation::kSwap);
  for (const int size : {0, 1, 2, 3, 16}) {
    EXPECT_FALSE(change(0, size, kSwap)) << size;
  }
  EXPECT_FALSE(change(4, 8, kSwap));
  EXPECT_FALSE(change(2, 4, kSwap));
  EXPECT_FALSE(change(24, 8, kSwap));
  EXPECT_FALSE(change(0, 8, 8));
  EXPECT_FALSE(change(0, 8, 255));
  EXPECT_TRUE(memory.is_untouched());
  EXPECT_EQ(change(16, 8, kSwap).value(), 0x5a5a5a5a5a5a5a5a);
  EXPECT_EQ(change(16, 4, kSwap).value(), 1U);
}

/// What a server says to the requests of PE 1.
class Answers final : public RequestServer::Replies {
 public:
  void answer(const Answer& answer, std::span<const std::byte> /*bytes*/) override {
    refused.push_back(answer.refused);
  }
  void refuse(int pe, Refusal why) override { refusals.emplace_back(pe, why); }
  void report_foreign(int /*pe*/) override {}

  std::vector<Refusal> refused;
  std::vector<std::pair<int, Refusal>> refusals;
};

/// Serves an addition of 1 for each sequence number, in this order, and returns the sum.
std::uint64_t add_in_order(const std::vector<int>& sequences, Answers& answers) {
  alignas(8) std::array<std::byte, 8> heap{};
  RequestServer server({heap}, {false, true}, 64, 0);
  for (const int sequence : sequences) {
    Request request = at(Segment::kHeap, 0);
    request.kind = RequestKind::kAtomic;
    request.operation = AtomicOperation::kAdd;
    request.word_size = 8;
    request.operand = 1;
    request.number = 1;
    request.from = 1;
    request.sequence = static_cast<std::uint16_t>(sequence);
    server.serve(std::as_bytes(std::span(&request, 1)), {}, answers);
  }
  return std::bit_cast<std::uint64_t>(heap);
}

TEST(RequestServer, CarriesOutNothingAfterAGapOrARepetition) {
  const std::pair<std::vector<int>, std::uint64_t> cases[] = {
      {{0, 1, 3, 2, 4}, 2}, {{0, 1, 1, 2}, 2}, {{1, 0}, 0}, {{0, 65535, 1}, 1}};
  for (const auto& [sequences, carried_out] : cases) {
    Answers answers;
    EXPECT_EQ(add_in_order(sequences, answers), carried_out);
    std::vector<Refusal> expected(sequences.size(), Refusal::kOrder);
    std::fill_n(expected.begin(), carried_out, Refusal::kNone);
    EXPECT_EQ(answers.refused, expected);
    EXPECT_THAT(answers.refusals, ::testing::Each(std::pair(1, Refusal::kOrder)));
    EXPECT_EQ(answers.refusals.size(), sequences.size() - carried_out);
  }
}

TEST(RequestServer, CountsOnAfterTheLargestSequenceNumber) {
  std::vector<int> sequences(70000);
  std::iota(sequences.begin(), sequences.end(), 0);
  Answers answers;
  EXPECT_EQ(add_in_order(sequences, answers), sequences.size());
}

/// Connects PEs that take the heaps of the others for twice as large. PE 0 adds `other_job` to the job's number, and
/// waits for up to `limit`.
std::string connect_wrongly(NetworkPe& me, std::uint64_t other_job = 0,
                            std::chrono::seconds limit = std::chrono::seconds{60}) {
  NetworkSettings settings = me.settings();
  if (me.pe == 0) {
    settings.limit = limit;
  }
  const auto calls = load_ucx(settings.library);
  if (!calls) {
    return calls.error().text;
  }
  auto worker = UcxWorker::create(*calls, 1);
  if (!worker) {
    return worker.error().text;
  }
  auto memory = std::make_unique<UcxMemory>();
  std::string text = problem_of(memory->add(**worker, settings.segments));
  PeAddress mine;
  mine.address = (*worker)->address();
  for (std::size_t segment : {0U, 1U}) {
    mine.segments[segment] = {0, 2 * settings.segments[segment].size(), memory->key(segment)};
  }
  auto addresses = exchange_addresses(*me.world, mine, settings.names);
  if (!addresses) {
    return text + addresses.error().text;
  }
  addresses->job += me.pe == 0 ? other_job : 0;
  me.network =
      std::make_unique<UcxNetwork>(*me.world, std::move(*worker), std::move(memory), std::move(*addresses), settings);
  return text;
}

/// PE 0 has the number of another job, and waits for answers of PE 1 for up to `limit`. The results of the PEs.
std::vector<std::string> request_of_another_job(bool with_answer, std::chrono::seconds limit) {
  return with_network(3,
                      [=](NetworkPe& me) -> std::string {
                        if (std::string problem = connect_wrongly(me, 1, limit); !problem.empty()) {
                          return problem;
                        }
                        if (me.pe == 1) {
                          ::testing::internal::CaptureStderr();
                        }
                        me.barrier();
                        std::string text;
                        if (me.pe == 0) {
                          std::uint64_t word = 7;
                          text += text_of(me.network->put(heap_of(1, 64), &word, sizeof word)) + "; ";
                          text += text_of(me.network->post_atomic(heap_of(1, 128), 8, AtomicOperation::kAdd, 5)) + "; ";
                          if (with_answer) {
                            text +=
                                text_of(me.network->fetch_atomic(heap_of(1, 192), 8, AtomicOperation::kAdd, 5)) + "; ";
                            text += text_of(me.network->get(&word, heap_of(1, 64), sizeof word));
                          } else {
                            text += text_of(me.network->quiet());
                          }
                          me.rendezvous.flag.store(1);
                          return text;
                        }
                        me.serve([&me] { return me.rendezvous.flag.load() == 1; });
                        if (me.pe == 2) {  // a PE of the job is still served
                          const std::uint64_t word = 9;
                          text = problem_of(me.network->put(heap_of(1, 256), &word, sizeof word));
                          text += problem_of(me.network->quiet());
                          me.rendezvous.arrived.fetch_add(1);
                          return text;
                        }
                        me.serve([&me] { return me.rendezvous.arrived.load() == 4; });
                        for (const std::size_t offset : {64U, 128U, 192U}) {
                          text += me.word<std::uint64_t>(offset).load() == 0 ? "" : "changed; ";
                        }
                        text += me.word<std::uint64_t>(256).load() == 9 ? "" : "not served; ";
                        return text + ::testing::internal::GetCapturedStderr();
                      },
                      false, {});
}

/// PE 1 ignores the requests without an answer, prints a warning, and continues.
TEST_F(NetworkRequestsTest, OfAnotherJobAreIgnored) {
  constexpr const char* kWarning = "not of this job";
  for (const bool with_answer : {false, true}) {
    // PE 0 has to connect in its time, although it gets no answer.
    const auto texts = test_support::with_timeouts(
        [=](int limit) { return request_of_another_job(with_answer, std::chrono::seconds{limit}); },
        [](const auto& all) { return all[1].find(kWarning) != std::string::npos; });
    EXPECT_THAT(texts[0], HasSubstr("timed out"));
    EXPECT_THAT(texts[1], AllOf(HasSubstr("a message that is not of this job"), HasSubstr("PE 0 (on kiwi)")));
    EXPECT_THAT(texts[1], Not(AnyOf(HasSubstr("changed"), HasSubstr("not served"))));
    EXPECT_EQ(texts[1].find(kWarning), texts[1].rfind(kWarning)) << "warned more than once";
    EXPECT_EQ(texts[2], "");
  }
}

/// PE 0 has the number of another job: PE 1 takes nothing that it sends for a message of PE 0, and goes on.
TEST_F(NetworkRequestsTest, MessagesOfAnotherJobAreNotReceived) {
  const auto texts =
      with_network(3,
                   [](NetworkPe& me) -> std::string {
                     if (std::string problem = connect_wrongly(me, 0x123456789abcdef); !problem.empty()) {
                       return problem;
                     }
                     constexpr std::uint64_t kTag = 7;
                     std::uint64_t word = me.pe == 1 ? 0 : 5 + static_cast<std::uint64_t>(me.pe);
                     me.barrier();
                     if (me.pe != 1) {
                       const auto sent = me.network->start_send(1, kTag, &word, sizeof word);
                       std::string text = problem_of(sent);
                       text += sent ? problem_of(me.network->wait(*sent)) : "";
                       me.rendezvous.flag.fetch_add(1);
                       me.serve([&me] { return me.rendezvous.flag.load() == 3; });
                       return text;
                     }
                     me.serve([&me] { return me.rendezvous.flag.load() == 2; });
                     const auto receive = [&](int pe, std::chrono::milliseconds limit) {
                       const auto started = me.network->start_receive(pe, kTag, &word, sizeof word);
                       return started ? me.network->wait(*started, limit) : started.error();
                     };
                     std::string text = text_of(receive(0, std::chrono::milliseconds{300}));
                     text += " " + std::to_string(word) + "; ";
                     text += text_of(receive(2, std::chrono::seconds{60}));
                     text += " " + std::to_string(word);
                     me.rendezvous.flag.fetch_add(1);
                     return text;
                   },
                   false, {});
  EXPECT_EQ(texts[0], "");
  EXPECT_THAT(texts[1], AllOf(HasSubstr("timed out"), HasSubstr("between? 0; went well 7")));
  EXPECT_EQ(texts[2], "");
}

/// PE 0 does what a program can do that has no key of PE 1's memory, but knows an address: UCX's own put by messages.
TEST_F(NetworkRequestsTest, OfUcxItselfAreNotCarriedOut) {
  if (UCP_API_MINOR >= 23) {
    GTEST_SKIP() << "UCX 1." << UCP_API_MINOR << " does not send such a put";
  }
  const auto texts = with_network(
      2,
      [](NetworkPe& me) -> std::string {
        NetworkSettings settings = me.settings();
        settings.limit = std::chrono::milliseconds{300};  // nobody answers it
        settings.direct = me.pe == 0;
        const auto calls = load_ucx(settings.library);
        auto worker = UcxWorker::create(*calls, 1, settings.direct);
        auto memory = std::make_unique<UcxMemory>();
        std::string text = problem_of(memory->add(**worker, settings.segments));
        PeAddress mine;
        mine.address = (*worker)->address();
        mine.segments[0] = {reinterpret_cast<std::uintptr_t>(me.heap.data()), me.heap.size(), memory->key(0)};
        auto addresses = exchange_addresses(*me.world, mine, settings.names);
        addresses->pes[1].segments[0].key = memory->key(0);
        me.network = std::make_unique<UcxNetwork>(*me.world, std::move(*worker), std::move(memory),
                                                  std::move(*addresses), settings);
        me.barrier();
        if (me.pe == 0) {
          const std::uint64_t word = 7;
          static_cast<void>(me.network->put(heap_of(1, 64), &word, sizeof word));
          static_cast<void>(me.network->quiet());
          static_cast<void>(me.network->fetch_atomic(heap_of(1, 128), 8, AtomicOperation::kAdd, 5));
          me.rendezvous.flag.store(1);
          return text;
        }
        me.serve([&me] { return me.rendezvous.flag.load() == 1; });
        text += std::to_string(me.word<std::uint64_t>(64).load()) + " ";
        return text + std::to_string(me.word<std::uint64_t>(128).load());
      },
      false, {});
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(texts[1], "0 0");
}

/// PE 0 connects a second time, and counts its requests from 0 again.
TEST_F(NetworkRequestsTest, OutOfOrderEndTheJobAndSayWhy) {
  const auto texts = with_network(
      2,
      [](NetworkPe& me) -> std::string {
        const NetworkSettings settings = me.settings();
        const auto calls = load_ucx(settings.library).value();
        auto worker = UcxWorker::create(calls, 1).value();
        PeAddress mine;
        mine.address = worker->address();
        mine.segments[0] = {0, settings.segments[0].size(), {}};
        auto addresses = exchange_addresses(*me.world, mine, settings.names).value();
        me.network = std::make_unique<UcxNetwork>(*me.world, std::move(worker), std::make_unique<UcxMemory>(),
                                                  addresses, settings);
        me.barrier();
        const std::uint64_t word = 7;
        if (me.pe == 1) {
          me.serve([&me] { return me.rendezvous.flag.load() != 0; });
          return text_of(me.network->put(heap_of(0, 0), &word, sizeof word));
        }
        std::string text = problem_of(me.network->put(heap_of(1, 0), &word, sizeof word));
        text += problem_of(me.network->quiet());
        auto again = std::make_unique<UcxNetwork>(*me.world, UcxWorker::create(calls, 1).value(),
                                                  std::make_unique<UcxMemory>(), addresses, settings);
        text += problem_of(again->put(heap_of(1, 0), &word, sizeof word));
        text += text_of(again->quiet(PeChoice()));
        me.rendezvous.flag.store(1);
        static_cast<void>(again.release());
        return text;
      },
      false);
  EXPECT_THAT(texts[0], HasSubstr("lost: this PE's requests came to it in another order than they were sent"));
  EXPECT_THAT(texts[1], HasSubstr("lost: its requests came in another order than it sent them"));
}

TEST_F(NetworkRequestsTest, EndTheJobWhenTheyAreRefused) {
  struct Call {
    const char* name;
    std::function<Result<void>(Network&, const RemotePlace&)> make;
  };
  const Call calls[] = {{"put",
                         [](Network& network, const RemotePlace& place) {
                           std::array<std::byte, 64> bytes{};
                           auto put = network.put(place, bytes.data(), bytes.size());
                           return put ? network.quiet() : put;
                         }},
                        {"get",
                         [](Network& network, const RemotePlace& place) {
                           std::array<std::byte, 64> bytes{};
                           return network.get(bytes.data(), place, bytes.size());
                         }},
                        {"start_get",
                         [](Network& network, const RemotePlace& place) {
                           std::array<std::byte, 64> bytes{};
                           auto got = network.start_get(bytes.data(), place, bytes.size());
                           return got ? network.quiet() : got;
                         }},
                        {"fetch",
                         [](Network& network, const RemotePlace& place) {
                           const auto fetched = network.fetch_atomic(place, 8, AtomicOperation::kAdd, 1);
                           return fetched ? Result<void>() : fetched.error();
                         }},
                        {"post", [](Network& network, const RemotePlace& place) {
                           auto posted = network.post_atomic(place, 8, AtomicOperation::kAdd, 1);
                           return posted ? network.quiet() : posted;
                         }}};
  for (const Call& call : calls) {
    SCOPED_TRACE(call.name);
    const auto texts = with_network(
        2,
        [&call](NetworkPe& me) -> std::string {
          if (std::string problem = connect_wrongly(me); !problem.empty()) {
            return problem;
          }
          me.barrier();
          std::string text;
          if (me.pe == 0) {
            text = text_of(call.make(*me.network, heap_of(1, NetworkPe::kHeapBytes)));
            me.rendezvous.flag.store(1);
          } else {
            me.serve([&me] { return me.rendezvous.flag.load() != 0; });
            // This PE treats the PE that made an invalid request as lost.
            text = text_of(me.network->put(heap_of(0, 0), &me, 8));
          }
          return text;
        },
        false);
    EXPECT_THAT(texts[0],
                HasSubstr("PE 1 (on kiwi), which is lost: it does not have the memory that this PE asked for"));
    EXPECT_THAT(texts[1], HasSubstr("PE 0 (on kiwi), which is lost: it asked for memory that this PE does not have"));
  }
}

}  // namespace
}  // namespace shmem
