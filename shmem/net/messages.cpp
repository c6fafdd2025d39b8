// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/messages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shmem/bootstrap/message_text.hpp"

namespace shmem {
namespace {

std::string text_of(int pe, bool sent) {
  return fmt::format("{}{}", sent ? "message to PE " : "message from PE ", pe);
}

}  // namespace

void Messages::give_up() {
  for (const Message& message : under_way_) {
    if (message.request) {
      network_.cancel(*message.request);
    }
  }
  under_way_.clear();
}

Error Messages::fail_all(const Message& message, const Error& error) {
  give_up();
  // The call adds the prefix.
  failed_ = fail(error.code, fmt::format("{}: {}", text_of(message.pe, message.sent), without_prefix(error.text)));
  return *failed_;
}

template <typename Start>
void Messages::begin(int pe, bool sent, Start start) {
  if (failed_) {
    return;
  }
  under_way_.push_back({.request = {}, .pe = pe, .sent = sent});  // first: no request is lost for want of memory
  const Result<std::uint64_t> request = start();
  if (request) {
    under_way_.back().request = *request;
    return;
  }
  const Message message = under_way_.back();
  under_way_.pop_back();
  fail_all(message, request.error());
}

void Messages::send(int pe, const void* from, std::size_t bytes) {
  begin(pe, true, [&] { return network_.start_send(pe, tag_, from, bytes); });
}

void Messages::receive(int pe, void* to, std::size_t bytes) {
  begin(pe, false, [&] { return network_.start_receive(pe, tag_, to, bytes); });
}

Result<void> Messages::wait_first() {
  if (failed_) {
    return *failed_;
  }
  // Its number is invalid after the wait, even if that fails.
  const Message message = under_way_.front();
  under_way_.pop_front();
  std::optional<std::chrono::nanoseconds> limit;
  if (deadline_) {
    limit = std::max(*deadline_ - std::chrono::steady_clock::now(), std::chrono::nanoseconds(0));
  }
  const auto ok = network_.wait(*message.request, limit);
  return ok ? ok : fail_all(message, ok.error());
}

Result<void> Messages::wait(std::size_t left) {
  while (under_way_.size() > left) {
    if (auto ok = wait_first(); !ok) {
      return ok;
    }
  }
  return outcome();
}

Result<bool> Messages::test() {
  while (!under_way_.empty()) {
    const Message message = under_way_.front();
    const auto done = network_.test(*message.request);
    if (done && !*done) {
      return false;
    }
    under_way_.pop_front();
    if (!done) {
      return fail_all(message, done.error());
    }
  }
  return failed_ ? Result<bool>(*failed_) : true;
}

std::string Messages::first() const {
  return text_of(under_way_.front().pe, under_way_.front().sent);
}

}  // namespace shmem
