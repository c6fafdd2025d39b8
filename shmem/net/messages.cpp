// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/messages.hpp"

#include <algorithm>
#include <string_view>

namespace shmem {
namespace {

std::string text_of(int pe, bool sent) {
  return (sent ? "message to PE " : "message from PE ") + std::to_string(pe);
}

}  // namespace

void Messages::give_up() {
  for (const Message& message : under_way_) {
    network_.cancel(message.request);
  }
  under_way_.clear();
}

tl::unexpected<Error> Messages::failure(const Message& message, const Error& error) {
  give_up();
  constexpr std::string_view kWhose = "shmem: ";  // the call says it
  const std::size_t begin = error.text.starts_with(kWhose) ? kWhose.size() : 0;
  return fail(error.code, text_of(message.pe, message.sent) + ": " + error.text.substr(begin));
}

Result<void> Messages::begin(Message message, const Result<std::uint64_t>& request) {
  if (!request) return failure(message, request.error());
  message.request = *request;
  under_way_.push_back(message);
  return {};
}

Result<void> Messages::send(int pe, const void* from, std::size_t bytes) {
  return begin({.request = 0, .pe = pe, .sent = true}, network_.start_send(pe, tag_, from, bytes));
}

Result<void> Messages::receive(int pe, void* to, std::size_t bytes) {
  return begin({.request = 0, .pe = pe, .sent = false}, network_.start_receive(pe, tag_, to, bytes));
}

Result<void> Messages::wait_first() {
  // It has no number any more after the wait, whatever comes of it.
  const Message message = under_way_.front();
  under_way_.pop_front();
  std::optional<std::chrono::nanoseconds> limit;
  if (deadline_) limit = std::max(*deadline_ - std::chrono::steady_clock::now(), std::chrono::nanoseconds(0));
  const auto ok = network_.wait(message.request, limit);
  if (!ok) return failure(message, ok.error());
  return {};
}

Result<void> Messages::wait(std::size_t left) {
  while (under_way_.size() > left) {
    if (auto ok = wait_first(); !ok) return ok;
  }
  return {};
}

Result<bool> Messages::test() {
  while (!under_way_.empty()) {
    const Message message = under_way_.front();
    const auto done = network_.test(message.request);
    if (done && !*done) return false;
    under_way_.pop_front();
    if (!done) return failure(message, done.error());
  }
  return true;
}

std::string Messages::first() const {
  return text_of(under_way_.front().pe, under_way_.front().sent);
}

}  // namespace shmem
