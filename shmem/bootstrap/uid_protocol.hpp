// SPDX-License-Identifier: Apache-2.0
// The protocol of PEs and server over TCP, in frames (wire/frames.hpp). No I/O and no threads; the time is passed in.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shmem/result.hpp"
#include "wire/frames.hpp"

namespace shmem {

using wire::derive_from_public;
using wire::derive_secret;
using wire::encode;
using wire::fill_randomly;
using wire::Frame;
using wire::FrameBytes;
using wire::FrameReader;
using wire::FrameType;
using wire::Nonce;
using wire::Proof;
using wire::same;
using wire::Seal;
using wire::Seals;
using wire::Secret;

/// The types of frames.
struct UidFrame {
  // From a PE to the server.
  static constexpr FrameType kHello{1};    // Hello: the first of a connection
  static constexpr FrameType kGather{2};   // GatherHead, then the PE's bytes
  static constexpr FrameType kLeave{3};    // the connection will be closed, and that is not a failure
  static constexpr FrameType kAbort{4};    // AbortHead, then the reason
  static constexpr FrameType kProof{5};    // Proof: the answer to a kChallenge
  static constexpr FrameType kDecline{6};  // the kChallenge is not of this PE's job: the connection will be closed
  // From the server to a PE.
  static constexpr FrameType kAccepted{
      16};  // int32: the PE whose process is the server; this PE has joined, others have not yet
  static constexpr FrameType kWelcome{17};    // all have joined
  static constexpr FrameType kGathered{18};   // the bytes of all PEs, in rank order
  static constexpr FrameType kFailed{19};     // FailedHead, then the text: no further frame is answered
  static constexpr FrameType kAborted{20};    // AbortHead, then the reason: a PE has ended the job
  static constexpr FrameType kChallenge{21};  // Challenge: the answer to a kHello
};

/// The first message of a PE.
struct Hello {
  Nonce nonce;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t process;
  std::uint32_t limit;  // how long this PE waits in a step, in ms
  std::array<char, 64> host;
};
static_assert(sizeof(Hello) == 112);

/// The server's answer. The server proves itself first: a PE sends its proof to no other program.
struct Challenge {
  Nonce nonce;
  std::int32_t size;    // of the server's job
  std::int32_t server;  // the PE whose process the server is
  Proof proof;
};
static_assert(sizeof(Challenge) == 72);

/// A side's proof is of no use to the other side.
enum class Prover : std::uint8_t { kServer = 1, kPe = 2 };

/// The proof of `prover` for this exchange, which includes all of `hello` and all of `challenge` but its proof.
Proof prove(const Secret& secret, Prover prover, const Hello& hello, const Challenge& challenge);
/// Those of this side's frames after the proofs.
Seals seals_of(const Secret& secret, Prover side, const Hello& hello, const Challenge& challenge);

struct GatherHead {
  std::uint32_t limit;  // as in Hello
};

struct FailedHead {
  std::int32_t code;  // std::errc
};

struct AbortHead {
  std::int32_t pe;
  std::int32_t status;
};

/// A kFailed frame.
FrameBytes encode(const Error& error);
/// What a PE is told whose secret is not that of the server at `place`, which serves a job of `size` PEs.
std::string foreign_secret_text(const std::string& place, const Hello& pe, int size);

/// The state of a job's server: which PEs have joined, what each has sent in the open step, how the job ends. After a
/// failure all PEs are notified and no further frame is answered.
class UidJobState {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Job {
    Secret secret;
    int size;
    int server;                       // the PE whose process this is; -1: oshrun
    std::chrono::milliseconds limit;  // how long the server's own PE waits for the others
    std::string place;                // the server's address, for messages
    std::string how = {};             // how it was chosen, for messages
  };
  struct Message {
    int pe;
    FrameBytes bytes;
  };

  UidJobState(Job job, Time now);

  /// The answer to a process that identifies itself. `nonce` is a new one.
  [[nodiscard]] Challenge challenge(const Hello& hello, const Nonce& nonce) const;
  /// Makes the seals of the frames that `side` sends afterwards.
  [[nodiscard]] Seals seals(Prover side, const Hello& hello, const Challenge& challenge) const {
    return seals_of(job_.secret, side, hello, challenge);
  }
  /// Whether a process at `from` knows the secret. If not, it is remembered, and the Error is the answer to it.
  Result<void> admit(const Hello& hello, const Challenge& challenge, const Proof& proof, const std::string& from);
  /// A process that has been admitted joins. Returns its PE number, or the Error to answer. A PE of this job with other
  /// settings ends the job for all.
  Result<int> join(const Hello& hello, const std::string& from, Time now);
  /// Remembers, for messages, a process that does not know the secret.
  void refuse_stranger(const Hello& hello, const std::string& from);
  /// Remembers, for messages, a process that has sent an invalid frame or nothing.
  void refuse(const std::string& from, const std::string& why);

  /// A frame of a PE that has joined.
  void receive(int pe, const Frame& frame, Time now);
  /// The connection of a PE that has joined has ended.
  void lose(int pe, const std::string& why);
  /// Ends the job for all PEs. `pe`: the one that wants this, or -1: oshrun.
  void abort(std::int32_t pe, std::int32_t status, const std::string& reason);
  /// Ends all waits.
  void fail_all(Error why);
  /// Fails the step whose time has passed.
  void expire(Time now);

  /// When expire() should be called next.
  [[nodiscard]] std::optional<Time> deadline() const { return deadline_; }
  /// All PEs have joined: the server can stop listening, unless they may_start_again().
  [[nodiscard]] bool complete() const { return come_ == job_.size; }
  [[nodiscard]] bool failed() const { return end_.has_value(); }
  /// Why the job has failed. REQUIRES: failed().
  [[nodiscard]] const Error& failure() const { return *end_; }

  /// PEs may end the library and start it again. oshrun's server is there for all their starts, a PE's for one.
  [[nodiscard]] bool may_start_again() const { return job_.server < 0 && !failed(); }
  /// A process that has been admitted is a PE of the last start and starts again: it joins after start_again().
  [[nodiscard]] bool is_early(const Hello& hello) const;
  /// True if all PEs of the last start have left: now they join again.
  bool start_again();
  /// The messages to send since the last call, in this order.
  std::vector<Message> take_messages() { return std::exchange(messages_, {}); }

 private:
  enum class Presence { kAbsent, kHere, kLeft, kLost };
  struct Member {
    Presence presence = Presence::kAbsent;
    std::string name;  // "host kiwi, process 1234, from 192.0.2.1:4711"
    std::int32_t process = 0;
    std::optional<std::vector<std::byte>> offering;
  };

  [[nodiscard]] std::optional<std::string> mismatch(const Hello& hello, const std::string& name) const;
  void gather(int pe, const Frame& frame, Time now);
  void finish_step();
  void end(Error why, const FrameBytes& bytes);
  void send_all(const FrameBytes& bytes);
  void wait_until(Time deadline);
  [[nodiscard]] std::string name_of_pe(int pe) const;
  [[nodiscard]] Error left_behind(int pe) const;
  [[nodiscard]] std::vector<int> awaited() const;
  [[nodiscard]] std::string refused_text() const;

  Job job_;
  std::vector<Member> members_;
  int come_ = 0;
  int offered_ = 0;
  std::uint32_t step_ = 0;              // 0: PEs are joining
  std::chrono::milliseconds shortest_;  // the shortest limit of the PEs that wait in this step
  std::optional<Time> deadline_;
  std::optional<Error> end_;  // set: no further frame is answered but the first kAbort
  bool aborted_ = false;
  std::vector<std::string> refused_;
  std::size_t refusals_ = 0;
  std::vector<Message> messages_;
};

}  // namespace shmem
