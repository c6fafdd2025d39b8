// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/uid_room.hpp"

#include <algorithm>

#include "shmem/bootstrap/pe_list.hpp"
#include "shmem/bootstrap/seconds_text.hpp"

namespace shmem {

namespace {

/// More are counted only: a port scan must not fill the memory.
constexpr std::size_t kMostRefusedNames = 8;

/// Without a look at where they differ, so that the time does not tell how much of it was right.
bool same(const Secret& one, const Secret& other) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) difference |= static_cast<unsigned>(one[i] ^ other[i]);
  return difference == 0;
}

std::string name_of(const Hello& hello, const std::string& from) {
  const auto* end = std::find(hello.host.begin(), hello.host.end(), '\0');
  std::string host(hello.host.begin(), end);
  for (char& character : host) {
    if (character < ' ' || character > '~') character = '?';  // it goes to terminals
  }
  return "host " + host + ", process " + std::to_string(hello.process) + ", from " + from;
}

std::string pes(int number) {
  return std::to_string(number) + (number == 1 ? " PE" : " PEs");
}

}  // namespace

UidRoom::UidRoom(Job job, Time now)
    : job_(std::move(job)), members_(static_cast<std::size_t>(job_.size)), shortest_(job_.limit) {
  deadline_ = now + job_.limit;
}

std::string UidRoom::who(int pe) const {
  return "PE " + std::to_string(pe) + " (" + members_[static_cast<std::size_t>(pe)].name + ")";
}

std::optional<std::string> UidRoom::misfit(const Hello& hello, const std::string& name) const {
  const std::string newcomer = "PE " + std::to_string(hello.rank) + " (" + name + ")";
  const std::string server = "PE " + std::to_string(job_.server);
  if (hello.size != job_.size) {
    return newcomer + " was told that the job has " + pes(hello.size) + ", " + server + " that it has " +
           pes(job_.size) + "; give all of them the same number";
  }
  if (hello.rank < 0 || hello.rank >= job_.size) {
    return newcomer + " is none of the job's " + pes(job_.size) + ", 0 to " + std::to_string(job_.size - 1);
  }
  if (members_[static_cast<std::size_t>(hello.rank)].presence != Presence::kAbsent) {
    return "PE " + std::to_string(hello.rank) + " came twice: " + members_[static_cast<std::size_t>(hello.rank)].name +
           "; and " + name + "; give each PE a number of its own";
  }
  return std::nullopt;
}

Result<int> UidRoom::enter(const Hello& hello, const std::string& from, Time now) {
  if (!same(hello.secret, job_.secret)) {
    refuse(from, "it has not the secret of this job");
    return fail(std::errc::permission_denied,
                "shmem: refused by the job at " + job_.place + ": this process (PE " + std::to_string(hello.rank) +
                    ") has not the secret of that job; is the unique id, or SHMEM_UID_SECRET, that of another job?");
  }
  const std::string name = name_of(hello, from);
  if (auto wrong = misfit(hello, name)) {
    // A job that is complete goes on.
    if (!complete()) fail_all({std::errc::invalid_argument, "shmem: " + *wrong});
    return fail(std::errc::invalid_argument, "shmem: refused by the job at " + job_.place + ": " + *wrong);
  }
  if (end_) return tl::make_unexpected(*end_);
  members_[static_cast<std::size_t>(hello.rank)] = {Presence::kHere, name, std::nullopt};
  ++come_;
  messages_.push_back({hello.rank, encode(FrameType::kAccepted, 0, std::as_bytes(std::span(&job_.server, 1)))});
  shortest_ = std::min(shortest_, std::chrono::milliseconds(hello.limit));
  wait_until(now + std::chrono::milliseconds(hello.limit));
  if (complete()) {
    send_all(encode(FrameType::kWelcome, 0, {}));
    deadline_.reset();
    step_ = 1;
  }
  return hello.rank;
}

void UidRoom::refuse(const std::string& from, const std::string& why) {
  if (refused_.size() < kMostRefusedNames) refused_.push_back(from + " (" + why + ")");
  ++refusals_;
}

void UidRoom::receive(int pe, const Frame& frame, Time now) {
  if (end_) return;
  switch (frame.type) {
    case FrameType::kGather:
      return gather(pe, frame, now);
    case FrameType::kLeave:
      members_[static_cast<std::size_t>(pe)].presence = Presence::kLeft;
      if (offered_ > 0) fail_all(left_behind(pe));
      return;
    case FrameType::kAbort:
      if (const auto head = frame.head<AbortHead>()) {
        const AbortHead told{pe, head->status};
        const std::string reason = frame.text(sizeof(AbortHead));
        end({std::errc::operation_canceled, "shmem: the job was ended: " + reason},
            encode(FrameType::kAborted, told, reason));
      }
      return;
    default:
      return fail_all({std::errc::bad_message, "shmem: " + who(pe) + " said what no PE says (type " +
                                                   std::to_string(static_cast<int>(frame.type)) +
                                                   "); do all PEs use the same libshmem?"});
  }
}

void UidRoom::gather(int pe, const Frame& frame, Time now) {
  Member& member = members_[static_cast<std::size_t>(pe)];
  const auto head = frame.head<GatherHead>();
  if (!head || frame.step != step_ || member.offering || member.presence != Presence::kHere) {
    return fail_all({std::errc::bad_message, "shmem: " + who(pe) + " is in step " + std::to_string(frame.step) +
                                                 " of the job's bootstrap, the others are in " +
                                                 std::to_string(step_)});
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
  if (offered_ == job_.size) finish_step();
}

void UidRoom::finish_step() {
  const std::size_t each = members_[0].offering->size();
  std::vector<std::byte> all;
  all.reserve(each * members_.size());
  for (std::size_t pe = 0; pe < members_.size(); ++pe) {
    const auto& offering = *members_[pe].offering;
    if (offering.size() != each) {
      return fail_all(
          {std::errc::invalid_argument, "shmem: the PEs are not in the same step of the job's bootstrap: PE 0 has " +
                                            std::to_string(each) + " bytes to tell, PE " + std::to_string(pe) +
                                            " has " + std::to_string(offering.size())});
    }
    all.insert(all.end(), offering.begin(), offering.end());
  }
  send_all(encode(FrameType::kGathered, step_, all));
  for (Member& member : members_) member.offering.reset();
  offered_ = 0;
  deadline_.reset();
  ++step_;
}

void UidRoom::lose(int pe, const std::string& why) {
  Member& member = members_[static_cast<std::size_t>(pe)];
  if (member.presence == Presence::kLeft) return;
  member.presence = Presence::kLost;
  fail_all({std::errc::owner_dead, "shmem: " + who(pe) + " is lost: " + why});
}

Error UidRoom::left_behind(int pe) const {
  return {std::errc::owner_dead, "shmem: " + who(pe) + " has left the job while others wait for it"};
}

void UidRoom::fail_all(Error why) {
  if (end_) return;
  const FrameBytes bytes = encode(why);
  end(std::move(why), bytes);
}

void UidRoom::expire(Time now) {
  if (!deadline_ || now < *deadline_) return;
  const std::string where = "the job's bootstrap at " + job_.place;
  const std::string what = step_ > 0 ? where + ", step " + std::to_string(step_)
                                     : where + (job_.how.empty() ? "" : "; " + job_.how) +
                                           "; SHMEM_UID_SOCK_IFNAME or SHMEM_UID_SESSION_ID choose another place";
  fail_all({std::errc::timed_out, "shmem: " + pe_list(awaited()) + " did not come within " + seconds_text(shortest_) +
                                      " (" + what + ")" + refused_text()});
}

void UidRoom::end(Error why, const FrameBytes& bytes) {
  end_ = std::move(why);
  deadline_.reset();
  send_all(bytes);
}

void UidRoom::send_all(const FrameBytes& bytes) {
  for (std::size_t pe = 0; pe < members_.size(); ++pe) {
    if (members_[pe].presence == Presence::kHere) messages_.push_back({static_cast<int>(pe), bytes});
  }
}

void UidRoom::wait_until(Time deadline) {
  deadline_ = deadline_ ? std::min(*deadline_, deadline) : deadline;
}

std::vector<int> UidRoom::awaited() const {
  std::vector<int> pes;
  for (std::size_t pe = 0; pe < members_.size(); ++pe) {
    const Member& member = members_[pe];
    if (step_ == 0 ? member.presence == Presence::kAbsent : !member.offering) pes.push_back(static_cast<int>(pe));
  }
  return pes;
}

std::string UidRoom::refused_text() const {
  if (refused_.empty()) return "";
  std::string text = "; refused meanwhile: ";
  for (std::size_t i = 0; i < refused_.size(); ++i) text += (i > 0 ? ", " : "") + refused_[i];
  if (refusals_ > refused_.size()) text += " and " + std::to_string(refusals_ - refused_.size()) + " more";
  return text;
}

}  // namespace shmem
