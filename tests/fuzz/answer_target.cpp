// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "shmem/net/expected_answers.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/targets.hpp"

namespace fuzz {
namespace {

using shmem::Answer;
using shmem::ExpectedAnswers;
using Expected = ExpectedAnswers::Expected;

constexpr std::uint64_t kJob = 0;
constexpr std::byte kGuard{0x5a};

enum class AnswerStep : std::uint8_t {
  kGet,      // u8 length, u8: 1: waited for
  kAsk,      // a request that is answered by a value, waited for
  kAnswer,   // u8 which request, u8 flags, u8 offset, u8 length: an answer to it as a PE of the job gives them
  kForget,   // u8 which request
  kGiveUp,   // u8 PE: all that was started there
  kHostile,  // i8 length of the header less that of an Answer, the header, u8 length of the bytes, the bytes
};
constexpr unsigned kAnswerSteps = 6;

/// One PE's requests, each with its own memory between guards.
class Asking {
 public:
  void get(std::size_t bytes, bool waited_for) { expect(bytes, waited_for); }
  void ask() { expect(0, true); }

  void answer(Input& input) {
    const auto which = input.take<std::uint8_t>();
    const auto flags = input.take<std::uint8_t>();
    Answer answer{.number = 0,
                  .value = input.take<std::uint8_t>(),
                  .refused = static_cast<shmem::Refusal>(flags & 1U),
                  .job = kJob};
    std::vector<std::byte> bytes(input.take<std::uint8_t>(), std::byte{0x11});
    if (!requests_.empty()) {
      answer.number = requests_[which % requests_.size()].number;
    }
    answer.number += std::uint64_t{(flags & 2U) != 0} << 32;
    take(std::as_bytes(std::span(&answer, 1)), bytes);
  }
  void hostile(Input& input) {
    const int length = static_cast<int>(sizeof(Answer)) + input.take<std::int8_t>();
    const auto header = input.take_bytes(static_cast<std::size_t>(std::max(length, 0)));
    take(header, input.take_bytes(input.take<std::uint8_t>()));
  }
  void forget(std::uint8_t which) {
    if (requests_.empty()) {
      return;
    }
    Request& request = requests_[which % requests_.size()];
    if (request.waited_for && !request.over) {
      answers_.forget(*request.expected);
      end(request);
    }
  }
  void give_up(int pe) {
    answers_.forget_started(pe);
    for (Request& request : requests_) {
      if (!request.waited_for && request.pe == pe && !request.over) {
        end(request);
      }
    }
  }

 private:
  static constexpr int kPes = 3;
  struct Request {
    Expected* expected;
    std::uint64_t number;
    int pe;
    bool waited_for;
    std::vector<std::byte> memory;  // 16 guards, the bytes, 16 guards
    bool over = false;              // its memory is the program's again
    bool done = false;
    std::uint64_t value = 0;
    bool refused = false;
    std::vector<std::byte> last{};  // its memory when it was over
  };

  void expect(std::size_t bytes, bool waited_for) {
    const int pe = static_cast<int>(requests_.size()) % kPes;
    std::vector<std::byte> memory(16 + bytes + 16, kGuard);
    Expected& expected = answers_.expect(pe, std::span(memory).subspan(16, bytes), waited_for);
    requests_.push_back({&expected, expected.number, pe, waited_for, std::move(memory)});
  }
  static void end(Request& request) {
    request.over = true;
    request.last = request.memory;
  }

  void take(std::span<const std::byte> header, std::span<const std::byte> bytes) {
    lost_ = -1;
    answers_.take(header, bytes);
    for (Request& request : requests_) {
      const auto is_guard = [](std::byte byte) { return byte == kGuard; };
      check(std::all_of(request.memory.begin(), request.memory.begin() + 16, is_guard) &&
                std::all_of(request.memory.end() - 16, request.memory.end(), is_guard),
            "only expected bytes are written");
      check(!request.over || request.memory == request.last, "nothing is written when a request is over");
      check_waited_for(request);
    }
  }
  void check_waited_for(Request& request) const {
    if (!request.waited_for || request.over || !request.expected->done.load(std::memory_order_relaxed)) {
      return;
    }
    const Expected& expected = *request.expected;
    if (!request.done) {
      request.done = true;
      request.value = expected.value;
      request.refused = expected.refused;
      request.last = request.memory;
      check(!expected.refused || lost_ == request.pe, "a refusal is told");
    }
    check(request.value == expected.value && request.refused == expected.refused && request.memory == request.last,
          "an answer that is done belongs to the program");
  }

  int lost_ = -1;
  ExpectedAnswers answers_{kJob, [this](int pe, shmem::Refusal /*why*/) {
                             check(pe >= 0 && pe < kPes, "a PE that was asked is lost");
                             lost_ = pe;
                           }};
  std::deque<Request> requests_;
};

}  // namespace

// Steps, until the end of the input or the 64th request.
void run_answer(std::span<const std::byte> bytes) {
  Input input(bytes);
  Asking asking;
  for (int asked = 0; !input.empty() && asked < 64;) {
    switch (input.choose<AnswerStep>(kAnswerSteps)) {
      case AnswerStep::kGet: {
        const auto length = input.take<std::uint8_t>();
        asking.get(std::max<std::size_t>(length, 1), input.take<std::uint8_t>() == 1);
        ++asked;
        break;
      }
      case AnswerStep::kAsk:
        asking.ask();
        ++asked;
        break;
      case AnswerStep::kAnswer:
        asking.answer(input);
        break;
      case AnswerStep::kForget:
        asking.forget(input.take<std::uint8_t>());
        break;
      case AnswerStep::kGiveUp:
        asking.give_up(input.take<std::uint8_t>() % 3);
        break;
      case AnswerStep::kHostile:
        asking.hostile(input);
        break;
    }
  }
}

}  // namespace fuzz
