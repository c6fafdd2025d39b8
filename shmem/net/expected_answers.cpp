// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/expected_answers.hpp"

#include "shmem/memory/cached_copy.hpp"
#include "shmem/net/request_server.hpp"

namespace shmem {
namespace {

// A number has the record's place, from 1, because number 0 means "no answer", in its low half, and how often the place
// was used in the other one.
constexpr std::uint64_t kPlace = 0xffffffff;
constexpr std::uint64_t kTurn = kPlace + 1;

}  // namespace

ExpectedAnswers::Expected& ExpectedAnswers::expect(int pe, std::span<std::byte> to, bool waited_for) {
  const std::scoped_lock held(mutex_);
  Expected& expected = expected_.take();
  if (expected.number == 0) {
    expected.number = expected_.all().size();
  }
  expected.number += kTurn;
  expected.used = true;
  expected.waited_for = waited_for;
  expected.pe = pe;
  expected.to = to.data();
  expected.bytes = expected.left = to.size();
  expected.refused = false;
  expected.done.store(false, std::memory_order_relaxed);
  return expected;
}

void ExpectedAnswers::release(Expected& expected) {
  expected.used = false;
  expected_.give_back(expected);
}

void ExpectedAnswers::forget(Expected& expected) {
  const std::scoped_lock held(mutex_);
  release(expected);
}

bool ExpectedAnswers::forget_started(int pe) {
  const std::scoped_lock held(mutex_);
  bool any = false;
  for (Expected& expected : expected_.all()) {
    if (expected.used && !expected.waited_for && expected.pe == pe) {
      release(expected);
      any = true;
    }
  }
  return any;
}

ExpectedAnswers::Expected* ExpectedAnswers::find(std::uint64_t number) {
  const std::uint64_t place = number & kPlace;
  if (place == 0 || place > expected_.all().size()) {
    return nullptr;
  }
  Expected& expected = expected_.all()[place - 1];
  return expected.used && expected.number == number ? &expected : nullptr;
}

void ExpectedAnswers::take(std::span<const std::byte> header, std::span<const std::byte> bytes) {
  Answer answer;
  if (!read_header(answer, header) || answer.job != job_) {
    return;  // it answers nothing that this PE asked
  }
  const std::scoped_lock held(mutex_);
  Expected* expected = find(answer.number);
  if (expected == nullptr || expected->done.load(std::memory_order_relaxed)) {
    return;  // the caller has given up, or the answer was sent twice and is the waiting thread's already
  }
  const bool fits = bytes.size() <= expected->left && answer.value <= expected->bytes - bytes.size();
  if (answer.refused != Refusal::kNone || (expected->bytes > 0 && !fits)) {
    lose_(expected->pe, answer.refused);
    expected->refused = true;
    expected->left = 0;
  } else if (expected->bytes > 0 && !bytes.empty()) {  // there may be no address either
    copy_cached(expected->to + answer.value, bytes.data(), bytes.size());
    expected->left -= bytes.size();
  }
  if (expected->left > 0) {
    return;
  }
  if (!expected->waited_for) {
    return release(*expected);
  }
  expected->value = answer.value;
  expected->done.store(true, std::memory_order_release);  // pairs with the waiting thread's load
}

}  // namespace shmem
