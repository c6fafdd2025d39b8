// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/uid_protocol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "shmem/bootstrap/message_text.hpp"

namespace shmem {

FrameBytes encode(const Error& error) {
  return encode(UidFrame::kFailed, FailedHead{static_cast<std::int32_t>(error.code)}, error.text);
}

Proof prove(const Secret& secret, Prover prover, const Hello& hello, const Challenge& challenge) {
  std::vector<std::uint8_t> message;
  const auto add = [&message](std::span<const std::byte> bytes) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    message.insert(message.end(), first, first + bytes.size());
  };
  static_assert(std::has_unique_object_representations_v<Hello>);
  add(std::as_bytes(std::span(std::string_view("libshmem: start of a job"))));
  add(std::as_bytes(std::span(&prover, 1)));
  add(std::as_bytes(std::span(&hello, 1)));
  add(std::as_bytes(std::span(challenge.nonce)));
  add(std::as_bytes(std::span(&challenge.size, 1)));
  add(std::as_bytes(std::span(&challenge.server, 1)));
  return wire::authenticate(secret, message);
}

Seals seals_of(const Secret& secret, Prover side, const Hello& hello, const Challenge& challenge) {
  return {secret, side == Prover::kServer ? "libshmem: frames of a job's server" : "libshmem: frames of a PE",
          prove(secret, side, hello, challenge)};
}

namespace {

/// Further refusals are only counted, so that a port scan does not fill the memory.
constexpr std::size_t kMostRefusedNames = 8;

std::string name_of(const Hello& hello, const std::string& from) {
  const auto* end = std::find(hello.host.begin(), hello.host.end(), '\0');
  std::string host(hello.host.begin(), end);
  for (char& character : host) {
    if (character < ' ' || character > '~') {
      character = '?';  // the name is printed to terminals
    }
  }
  return fmt::format("host {}, process {}, from {}", host, hello.process, from);
}

std::string pes(int number) {
  return fmt::format("{}{}", number, number == 1 ? " PE" : " PEs");
}

}  // namespace

std::string foreign_secret_text(const std::string& place, const Hello& pe, int size) {
  std::string text = fmt::format(
      "shmem: refused by the job at {}: this process (PE {}) does not have the secret of that job (is the unique id, "
      "or "
      "SHMEM_UID_SECRET, that of another job?), or the program that listens there is not of this job",
      place, pe.rank);
  if (pe.size != size) {
    text += fmt::format("; that job has {}, and this process was told of {}: SHMEM_UID_SIZE is a part of the secret",
                        pes(size), pe.size);
  }
  return text;
}

UidJobState::UidJobState(Job job, Time now)
    : job_(std::move(job)), members_(static_cast<std::size_t>(job_.size)), shortest_(job_.limit) {
  deadline_ = now + job_.limit;
}

std::string UidJobState::name_of_pe(int pe) const {
  return fmt::format("PE {} ({})", pe, members_[static_cast<std::size_t>(pe)].name);
}

std::optional<std::string> UidJobState::mismatch(const Hello& hello, const std::string& name) const {
  const std::string newcomer = fmt::format("PE {} ({})", hello.rank, name);
  const std::string server = job_.server < 0 ? "oshrun" : fmt::format("PE {}", job_.server);
  if (hello.size != job_.size) {
    return fmt::format("{} was told that the job has {}, {} that it has {}; give all of them the same number", newcomer,
                       pes(hello.size), server, pes(job_.size));
  }
  if (hello.rank < 0 || hello.rank >= job_.size) {
    return fmt::format("{} is not one of the job's {}, 0 to {}", newcomer, pes(job_.size), job_.size - 1);
  }
  if (members_[static_cast<std::size_t>(hello.rank)].presence != Presence::kAbsent) {
    return fmt::format("PE {} joined twice: {}; and {}; give each PE its own number", hello.rank,
                       members_[static_cast<std::size_t>(hello.rank)].name, name);
  }
  return std::nullopt;
}

Challenge UidJobState::challenge(const Hello& hello, const Nonce& nonce) const {
  Challenge challenge{.nonce = nonce, .size = job_.size, .server = job_.server, .proof = {}};
  challenge.proof = prove(job_.secret, Prover::kServer, hello, challenge);
  return challenge;
}

Result<void> UidJobState::admit(const Hello& hello, const Challenge& challenge, const Proof& proof,
                                const std::string& from) {
  if (same(proof, prove(job_.secret, Prover::kPe, hello, challenge))) {
    return {};
  }
  refuse_stranger(hello, from);
  return fail(std::errc::permission_denied, foreign_secret_text(job_.place, hello, job_.size));
}

void UidJobState::refuse_stranger(const Hello& hello, const std::string& from) {
  refuse(from,
         "it does not have the secret of this job" +
             (hello.size == job_.size ? "" : fmt::format(", and was told of {}, not {}", pes(hello.size), job_.size)));
}

Result<int> UidJobState::join(const Hello& hello, const std::string& from, Time now) {
  std::string name = name_of(hello, from);
  if (auto wrong = mismatch(hello, name)) {
    // A complete job goes on.
    if (!complete()) {
      fail_all({std::errc::invalid_argument, "shmem: " + *wrong});
    }
    return fail(std::errc::invalid_argument, fmt::format("shmem: refused by the job at {}: {}", job_.place, *wrong));
  }
  if (end_) {
    return *end_;
  }
  // What needs memory comes first: a process that has joined has been answered.
  const FrameBytes accepted = encode(UidFrame::kAccepted, 0, std::as_bytes(std::span(&job_.server, 1)));
  const FrameBytes welcome = encode(UidFrame::kWelcome, 0, {});
  messages_.reserve(messages_.size() + 1 + members_.size());
  members_[static_cast<std::size_t>(hello.rank)] = {Presence::kHere, std::move(name), hello.process, std::nullopt};
  ++come_;
  messages_.push_back({hello.rank, accepted});
  shortest_ = std::min(shortest_, std::chrono::milliseconds(hello.limit));
  wait_until(now + std::chrono::milliseconds(hello.limit));
  if (complete()) {
    send_all(welcome);
    deadline_.reset();
    step_ = 1;
  }
  return hello.rank;
}

bool UidJobState::is_early(const Hello& hello) const {
  if (!may_start_again() || !complete() || hello.size != job_.size || hello.rank < 0 || hello.rank >= job_.size) {
    return false;
  }
  const Member& before = members_[static_cast<std::size_t>(hello.rank)];
  return before.presence == Presence::kLeft ||
         (before.presence == Presence::kHere && before.process == hello.process);  // its kLeave is still to come
}

bool UidJobState::start_again() {
  const auto has_left = [](const Member& member) { return member.presence == Presence::kLeft; };
  if (!may_start_again() || !complete() || !std::all_of(members_.begin(), members_.end(), has_left)) {
    return false;
  }
  members_.assign(members_.size(), {});
  come_ = 0;
  offered_ = 0;
  step_ = 0;
  shortest_ = job_.limit;
  deadline_.reset();
  return true;
}

void UidJobState::refuse(const std::string& from, const std::string& why) {
  if (refused_.size() < kMostRefusedNames) {
    refused_.push_back(from + " (" + why + ")");
  }
  ++refusals_;
}

void UidJobState::receive(int pe, const Frame& frame, Time now) {
  // A PE that computes does not see that the job has failed. It ends when another PE has, and says so.
  if (end_ && (aborted_ || frame.type != UidFrame::kAbort)) {
    return;
  }
  switch (frame.type) {
    case UidFrame::kGather:
      return gather(pe, frame, now);
    case UidFrame::kLeave:
      members_[static_cast<std::size_t>(pe)].presence = Presence::kLeft;
      if (offered_ > 0) {
        fail_all(left_behind(pe));
      }
      return;
    case UidFrame::kAbort:
      if (const auto head = frame.head<AbortHead>()) {
        abort(pe, head->status, frame.text(sizeof(AbortHead)));
      }
      return;
    default:
      return fail_all({std::errc::bad_message,
                       fmt::format("shmem: {} sent an invalid frame (type {}); do all PEs use the same libshmem?",
                                   name_of_pe(pe), static_cast<int>(frame.type))});
  }
}

void UidJobState::gather(int pe, const Frame& frame, Time now) {
  Member& member = members_[static_cast<std::size_t>(pe)];
  const auto head = frame.head<GatherHead>();
  if (!head || frame.step != step_ || member.offering || member.presence != Presence::kHere) {
    return fail_all(
        {std::errc::bad_message, fmt::format("shmem: {} is in step {} of the job's bootstrap, the others are in {}",
                                             name_of_pe(pe), frame.step, step_)});
  }
  for (std::size_t other = 0; other < members_.size(); ++other) {
    if (members_[other].presence == Presence::kLeft) {
      return fail_all(left_behind(static_cast<int>(other)));
    }
  }
  member.offering.emplace(frame.payload.begin() + sizeof(GatherHead), frame.payload.end());
  ++offered_;
  const std::chrono::milliseconds limit(head->limit);
  shortest_ = offered_ == 1 ? limit : std::min(shortest_, limit);
  wait_until(now + limit);
  if (offered_ == job_.size) {
    finish_step();
  }
}

void UidJobState::finish_step() {
  const std::size_t each = members_[0].offering->size();
  std::vector<std::byte> all;
  all.reserve(each * members_.size());
  for (std::size_t pe = 0; pe < members_.size(); ++pe) {
    const auto& offering = *members_[pe].offering;
    if (offering.size() != each) {
      return fail_all({std::errc::invalid_argument, fmt::format("shmem: the PEs are not in the same step of the job's "
                                                                "bootstrap: PE 0 sends {} bytes, PE {} sends {}",
                                                                each, pe, offering.size())});
    }
    all.insert(all.end(), offering.begin(), offering.end());
  }
  send_all(encode(UidFrame::kGathered, step_, all));
  for (Member& member : members_) {
    member.offering.reset();
  }
  offered_ = 0;
  deadline_.reset();
  ++step_;
}

void UidJobState::lose(int pe, const std::string& why) {
  Member& member = members_[static_cast<std::size_t>(pe)];
  if (member.presence == Presence::kLeft) {
    return;
  }
  member.presence = Presence::kLost;
  fail_all({std::errc::owner_dead, fmt::format("shmem: {} is lost: {}", name_of_pe(pe), why)});
}

Error UidJobState::left_behind(int pe) const {
  return {std::errc::owner_dead, fmt::format("shmem: {} has left the job while others wait for it", name_of_pe(pe))};
}

void UidJobState::abort(std::int32_t pe, std::int32_t status, const std::string& reason) {
  if (aborted_) {
    return;
  }
  // The others make their own text; this one is for a PE that joins too late.
  end({std::errc::operation_canceled,
       fmt::format("shmem: the job was ended by {}: {}", pe < 0 ? "oshrun" : name_of_pe(pe), reason)},
      encode(UidFrame::kAborted, AbortHead{pe, status}, reason));
  aborted_ = true;
}

void UidJobState::fail_all(Error why) {
  if (end_) {
    return;
  }
  const FrameBytes bytes = encode(why);
  end(std::move(why), bytes);
}

void UidJobState::expire(Time now) {
  if (!deadline_ || now < *deadline_) {
    return;
  }
  const std::string where = "the job's bootstrap at " + job_.place;
  const std::string what = step_ > 0 ? fmt::format("{}, step {}", where, step_)
                                     : fmt::format(
                                           "{}{}{}; SHMEM_UID_SOCK_IFNAME or SHMEM_UID_SESSION_ID choose another "
                                           "address",
                                           where, job_.how.empty() ? "" : "; ", job_.how);
  fail_all({std::errc::timed_out, fmt::format("shmem: {} did not arrive within {} ({}){}", pe_list(awaited()),
                                              seconds_text(shortest_), what, refused_text())});
}

void UidJobState::end(Error why, const FrameBytes& bytes) {
  send_all(bytes);  // without memory nothing changes
  if (!end_) {
    end_ = std::move(why);
  }
  deadline_.reset();
}

void UidJobState::send_all(const FrameBytes& bytes) {
  messages_.reserve(messages_.size() + members_.size());
  for (std::size_t pe = 0; pe < members_.size(); ++pe) {
    if (members_[pe].presence == Presence::kHere) {
      messages_.push_back({static_cast<int>(pe), bytes});
    }
  }
}

void UidJobState::wait_until(Time deadline) {
  deadline_ = deadline_ ? std::min(*deadline_, deadline) : deadline;
}

std::vector<int> UidJobState::awaited() const {
  std::vector<int> pes;
  for (std::size_t pe = 0; pe < members_.size(); ++pe) {
    const Member& member = members_[pe];
    if (step_ == 0 ? member.presence == Presence::kAbsent : !member.offering) {
      pes.push_back(static_cast<int>(pe));
    }
  }
  return pes;
}

std::string UidJobState::refused_text() const {
  if (refused_.empty()) {
    return "";
  }
  std::string text = "; refused meanwhile: ";
  for (std::size_t i = 0; i < refused_.size(); ++i) {
    text += (i > 0 ? ", " : "") + refused_[i];
  }
  if (refusals_ > refused_.size()) {
    text += fmt::format(" and {} more", refusals_ - refused_.size());
  }
  return text;
}

}  // namespace shmem
