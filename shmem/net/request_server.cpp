// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/request_server.hpp"

#include <algorithm>
#include <utility>

namespace shmem {

RequestServer::RequestServer(const std::vector<std::span<std::byte>>& segments, std::vector<bool> is_remote,
                             std::size_t longest, std::uint64_t job)
    : memory_(segments), is_remote_(std::move(is_remote)), longest_(longest), job_(job), peers_(is_remote_.size()) {}

void RequestServer::reply(Replies& replies, Answer answer, std::span<const std::byte> bytes) const {
  if (answer.number != 0) {
    answer.job = job_;
    replies.answer(answer, bytes);
  }
}

void RequestServer::serve(std::span<const std::byte> header, std::span<const std::byte> bytes, Replies& replies) {
  Request request;
  if (!read_header(request, header) || request.from >= is_remote_.size() || !is_remote_[request.from]) {
    return;  // not from a PE on another node
  }
  if (request.job != job_) {
    if (!std::exchange(foreign_reported_, true)) {
      replies.report_foreign(request.from);
    }
    return;
  }
  if (is_next(request)) {
    return serve(request, bytes, replies);
  }
  refuse(request, Refusal::kOrder, replies);
  reply(replies, {request.number, 0, refused(request)});
}

bool RequestServer::is_next(const Request& request) {
  Peer& peer = peers_[request.from];
  if (peer.refused == Refusal::kOrder || request.sequence != peer.next) {
    return false;
  }
  ++peer.next;
  return true;
}

void RequestServer::serve(const Request& request, std::span<const std::byte> bytes, Replies& replies) {
  switch (request.kind) {
    case RequestKind::kPut:
      if (!memory_.put(request, bytes)) {
        refuse(request, Refusal::kMemory, replies);
      }
      return;
    case RequestKind::kGet:
      return answer_get(request, replies);
    case RequestKind::kAtomic: {
      const auto before = memory_.change(request);
      if (!before) {
        refuse(request, Refusal::kMemory, replies);
      }
      return reply(replies, {request.number, before.value_or(0), refused(request)});
    }
    case RequestKind::kFlush:
      return reply(replies, {request.number, 0, refused(request)});
  }
  refuse(request, Refusal::kMemory, replies);
  reply(replies, {request.number, 0, refused(request)});
}

void RequestServer::answer_get(const Request& request, Replies& replies) {
  const auto wanted = memory_.get(request);
  if (!wanted) {
    refuse(request, Refusal::kMemory, replies);
    return reply(replies, {request.number, 0, refused(request)});
  }
  for (std::size_t at = 0; at < wanted->size(); at += longest_) {
    reply(replies, {request.number, at, Refusal::kNone}, wanted->subspan(at, std::min(longest_, wanted->size() - at)));
  }
}

void RequestServer::refuse(const Request& request, Refusal why, Replies& replies) {
  peers_[request.from].refused = why;
  replies.refuse(request.from, why);
}

}  // namespace shmem
