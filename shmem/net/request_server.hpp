// SPDX-License-Identifier: Apache-2.0
// Serves the requests of other PEs, by any transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "shmem/net/requests.hpp"

namespace shmem {

/// Reads the header of a message. False: the message is not one of ours.
template <typename Header>
bool read_header(Header& header, std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof header) {
    return false;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  return true;
}

/// Takes any bytes as a request. A PE whose request is invalid is refused with its next answer, and counts as lost for
/// this PE: both end the job. So is a PE whose requests arrive in another order than it has sent them, or not all of
/// them: then none is carried out any more. Used by one thread at a time.
class RequestServer {
 public:
  /// The way back to the requesting PE.
  class Replies {
   public:
    Replies() = default;
    Replies(const Replies&) = delete;
    Replies& operator=(const Replies&) = delete;
    /// The answer has a number. `bytes` are part of a segment.
    virtual void answer(const Answer& answer, std::span<const std::byte> bytes) = 0;
    /// PE `pe` has sent an invalid request, or one in the wrong place. Called before its answer.
    virtual void refuse(int pe, Refusal why) = 0;
    /// A request is not of this job; any program can send one, as if from PE `pe`. Called once; it and others like it
    /// have no answer.
    virtual void report_foreign(int pe) = 0;

   protected:
    ~Replies() = default;
  };

  /// Answers carry up to `longest` bytes each. `job`: JobAddresses::job.
  RequestServer(const std::vector<std::span<std::byte>>& segments, std::vector<bool> is_remote, std::size_t longest,
                std::uint64_t job);

  void serve(std::span<const std::byte> header, std::span<const std::byte> bytes, Replies& replies);

  // By any thread: see RequestedMemory.
  void add(Segment segment, std::span<std::byte> memory) { memory_.add(segment, memory); }
  void remove(Segment segment) { memory_.remove(segment); }

 private:
  void serve(const Request& request, std::span<const std::byte> bytes, Replies& replies);
  void reply(Replies& replies, Answer answer, std::span<const std::byte> bytes = {}) const;
  void answer_get(const Request& request, Replies& replies);
  /// UCX does not promise the order of its active messages.
  [[nodiscard]] bool is_next(const Request& request);
  void refuse(const Request& request, Refusal why, Replies& replies);
  [[nodiscard]] Refusal refused(const Request& request) const { return peers_[request.from].refused; }

  RequestedMemory memory_;
  const std::vector<bool> is_remote_;
  const std::size_t longest_;
  const std::uint64_t job_;
  struct Peer {
    std::uint16_t next = 0;  // the sequence number of its next request
    Refusal refused = Refusal::kNone;
  };
  std::vector<Peer> peers_;
  bool foreign_reported_ = false;
};

}  // namespace shmem
