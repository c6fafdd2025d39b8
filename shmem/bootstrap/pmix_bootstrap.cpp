// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/pmix_bootstrap.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "shmem/bootstrap/pe_list.hpp"
#include "shmem/bootstrap/pmix.hpp"
#include "shmem/bootstrap/seconds_text.hpp"
#include "shmem/bootstrap/within.hpp"

namespace shmem {

namespace {

using std::chrono::milliseconds;
using Bytes = std::vector<std::byte>;

/// What all PEs say in one exchange. Launchers keep it in segments of 4 MiB.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;
/// libpmix ends a call that nobody waits for any longer after this much more than the limit.
constexpr std::chrono::seconds kLater{2};
/// For libpmix to say who has come.
constexpr std::chrono::seconds kWhoLimit{5};
/// For all to have joined once more: so long after the first one PEs are not taken for gone.
constexpr std::chrono::seconds kRejoin{2};
/// For the server to hear that this PE ends the job, or leaves it.
constexpr std::chrono::seconds kLeaveLimit{5};

/// In front of what a PE says.
struct PartHead {
  std::uint64_t whole;  // bytes of the whole collective; a mismatch means that the PEs are not in the same one
};
/// In front of what PE 0 makes of it.
struct AllHead {
  std::int64_t error;  // 0, and everybody's parts follow; else a std::errc, and a text does
};

template <typename Head>
Bytes message(const Head& head, std::span<const std::byte> rest) {
  Bytes bytes(sizeof(Head) + rest.size());
  std::memcpy(bytes.data(), &head, sizeof(Head));
  std::copy(rest.begin(), rest.end(), bytes.begin() + sizeof(Head));
  return bytes;
}

/// All zero where there is none.
template <typename Head>
Head head_of(const Bytes& bytes) {
  Head head{};
  std::memcpy(&head, bytes.data(), bytes.size() < sizeof(Head) ? 0 : sizeof(Head));
  return head;
}

Bytes failure_message(std::errc code, const std::string& text) {
  return message(AllHead{static_cast<int>(code)}, std::as_bytes(std::span(text)));
}

/// libpmix keeps what this process has put until the process ends, and so must we.
std::uint64_t next_join() {
  static std::atomic<std::uint64_t> joins{0};
  return ++joins;
}

}  // namespace

PmixBootstrap::PmixBootstrap(std::shared_ptr<const PmixClient> client, PmixClient::Place place, const Limits& limits)
    : client_(std::move(client)), place_(place), limits_(limits), joined_(next_join()), owner_(::getpid()) {}

Result<std::unique_ptr<PmixBootstrap>> PmixBootstrap::join(const PmixCalls& calls, const Limits& limits) {
  struct Start {
    std::shared_ptr<PmixClient> client;
    PmixClient::Place place;
    pmix_status_t status = PMIX_SUCCESS;
  };
  const auto started = within(limits.step, [calls] {
    Start start{std::make_shared<PmixClient>(calls), {}};
    start.status = start.client->init(start.place);
    return start;
  });
  if (!started) return tl::make_unexpected(started.error());
  if (!*started) {
    return fail(std::errc::timed_out,
                "shmem: the launcher's PMIx server did not answer for " + seconds_text(limits.step) + " (PMIx_Init)");
  }
  const Start& start = **started;
  if (start.status != PMIX_SUCCESS) {
    return fail(std::errc::connection_refused,
                "shmem: cannot join the job of the PMIx launcher: PMIx_Init: " + start.client->text(start.status) +
                    "; has the launcher ended, or is this a program that a PE started (unset PMIX_RANK for it)?");
  }
  std::unique_ptr<PmixBootstrap> self(new PmixBootstrap(start.client, start.place, limits));
  auto events = PmixEvents::start(start.client, start.place.rank, limits.grace);
  if (!events) return tl::make_unexpected(events.error());
  self->events_ = *std::move(events);
  return self;
}

PmixBootstrap::~PmixBootstrap() {
  if (::getpid() == owner_) leave();
}

void PmixBootstrap::leave() {
  if (left_) return;
  left_ = true;
  if (events_) events_->leave();
  // A launcher takes it for a failure when a process ends without this.
  static_cast<void>(within(kLeaveLimit, [client = client_] { return client->finalize(); }));
}

Result<std::vector<std::byte>> PmixBootstrap::allgather(std::span<const std::byte> mine) {
  const std::size_t each = mine.size();
  const auto pes = static_cast<std::size_t>(size());
  const std::size_t room = std::max<std::size_t>(kMostAtOnce / pes, 1);
  Bytes all(each * pes);
  std::size_t done = 0;
  do {
    const std::size_t part = std::min(each - done, room);
    const auto parts = exchange(mine.subspan(done, part), each);
    if (!parts) return tl::make_unexpected(parts.error());
    for (std::size_t pe = 0; pe < pes && part > 0; ++pe) {
      std::memcpy(all.data() + each * pe + done, parts->data() + part * pe, part);
    }
    done += part;
  } while (done < each);
  return all;
}

Result<std::vector<std::byte>> PmixBootstrap::exchange(std::span<const std::byte> part, std::size_t whole) {
  if (auto met = meet(message(PartHead{whole}, part), true); !met) return tl::make_unexpected(met.error());
  Bytes mine;
  if (rank() == 0) mine = collect(part.size(), whole);
  if (auto met = meet(std::move(mine), true); !met) return tl::make_unexpected(met.error());
  auto read_back = read(1);
  if (!read_back) return give_up(read_back.error());
  Bytes& all = read_back->front();
  const auto head = head_of<AllHead>(all);
  const auto rest = std::span(all).subspan(std::min(all.size(), sizeof(AllHead)));
  if (head.error != 0) {
    return give_up({std::errc{static_cast<int>(head.error)},
                    std::string(reinterpret_cast<const char*>(rest.data()), rest.size())});
  }
  if (rest.size() != part.size() * static_cast<std::size_t>(size())) {
    return give_up({std::errc::bad_message, "shmem: PE 0 told " + std::to_string(rest.size()) + " bytes of " +
                                                std::to_string(size()) + " PEs that have " +
                                                std::to_string(part.size()) + " each"});
  }
  return Bytes(rest.begin(), rest.end());
}

std::vector<std::byte> PmixBootstrap::collect(std::size_t part, std::size_t whole) {
  const auto parts = read(size());
  if (!parts) return failure_message(parts.error().code, parts.error().text);
  Bytes all = message(AllHead{0}, {});
  all.reserve(sizeof(AllHead) + part * parts->size());
  for (std::size_t pe = 0; pe < parts->size(); ++pe) {
    const Bytes& theirs = (*parts)[pe];
    const auto head = head_of<PartHead>(theirs);
    if (head.whole != whole || theirs.size() != sizeof(head) + part) {
      return failure_message(std::errc::invalid_argument,
                             "shmem: the PEs are not in the same step of the job's bootstrap: PE 0 has " +
                                 std::to_string(whole) + " bytes to tell, PE " + std::to_string(pe) + " has " +
                                 std::to_string(head.whole));
    }
    all.insert(all.end(), theirs.begin() + sizeof(head), theirs.end());
  }
  return all;
}

Result<std::vector<Bytes>> PmixBootstrap::read(int pes) {
  struct Outcome {
    std::vector<Bytes> bytes;
    pmix_status_t status = PMIX_SUCCESS;
  };
  auto outcome = ask("PMIx_Get", [client = client_, name = key(), pes] {
    Outcome got;
    for (int pe = 0; pe < pes && got.status == PMIX_SUCCESS; ++pe) {
      got.status = client->get(pe, name, false, got.bytes.emplace_back());
    }
    return got;
  });
  if (!outcome) return tl::make_unexpected(outcome.error());
  if (outcome->status == PMIX_SUCCESS) return std::move(outcome->bytes);
  return fail(std::errc::io_error, "shmem: PE " + std::to_string(rank()) + " cannot read what PE " +
                                       std::to_string(outcome->bytes.size() - 1) +
                                       " told the PMIx launcher: PMIx_Get: " + client_->text(outcome->status));
}

Result<void> PmixBootstrap::barrier() {
  return meet({}, false);
}

Result<void> PmixBootstrap::meet(Bytes bytes, bool collect) {
  if (failure_) return tl::make_unexpected(*failure_);
  ++step_;
  const auto seconds = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(limits_.step + kLater).count());
  // Puts something where there is nothing to tell, too: missing() looks for it.
  const auto fence = [client = client_, name = key(), bytes = std::move(bytes), collect, seconds] {
    auto status = client->put(name, bytes);
    if (status == PMIX_SUCCESS) status = client->commit();
    return status == PMIX_SUCCESS ? client->fence(collect, seconds) : status;
  };
  auto met = ask("PMIx_Fence", fence);
  // A PE that has left the job of before and is about to join this one counts as gone, and all who are in the fence are
  // told so.
  const auto give_up_at = std::chrono::steady_clock::now() + kRejoin;
  while (joined_ > 1 && met && *met == PMIX_ERR_PARTIAL_SUCCESS && std::chrono::steady_clock::now() < give_up_at) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    met = ask("PMIx_Fence", fence);
  }
  if (!met) return give_up(met.error());
  if (*met == PMIX_ERR_TIMEOUT) return give_up(nobody_came("PMIx_Fence"));
  if (*met == PMIX_SUCCESS) return {};
  const std::vector<int> absent = *met == PMIX_ERR_PARTIAL_SUCCESS ? missing() : std::vector<int>{};
  if (!absent.empty()) {
    return give_up({std::errc::owner_dead,
                    "shmem: PE " + std::to_string(rank()) + " waits in vain for " + pe_list(absent) + ": exited"});
  }
  return give_up({std::errc::connection_reset, "shmem: PE " + std::to_string(rank()) +
                                                   " cannot meet the others: PMIx_Fence: " + client_->text(*met) +
                                                   "; have PEs or the launcher ended?"});
}

template <typename Call>
Result<std::invoke_result_t<Call>> PmixBootstrap::ask(const char* what, Call call) {
  auto outcome = within(limits_.step, std::move(call), [this] { return events_->ended().has_value(); });
  if (!outcome) return tl::make_unexpected(outcome.error());
  if (*outcome) return **std::move(outcome);
  if (const auto ended = aborted()) {
    return fail(std::errc::operation_canceled, "shmem: the job was ended: " + *ended);
  }
  return tl::make_unexpected(nobody_came(what));
}

std::vector<int> PmixBootstrap::missing() const {
  const auto found = within(kWhoLimit, [client = client_, name = key(), pes = size()] {
    std::vector<int> without;
    Bytes bytes;
    for (int pe = 0; pe < pes; ++pe) {
      if (client->get(pe, name, true, bytes) != PMIX_SUCCESS) without.push_back(pe);
    }
    return without;
  });
  return found && *found ? **found : std::vector<int>{};
}

Error PmixBootstrap::nobody_came(const char* what) const {
  const std::vector<int> pes = missing();
  return {std::errc::timed_out,
          "shmem: PE " + std::to_string(rank()) + " waited " + seconds_text(limits_.step) + " for " +
              (pes.empty() ? std::string("the launcher (") + what + ")" : pe_list(pes) + " to come") + " (step " +
              std::to_string(step_) + " of the job's bootstrap by PMIx)"};
}

tl::unexpected<Error> PmixBootstrap::give_up(Error error) {
  failure_ = std::move(error);
  return tl::make_unexpected(*failure_);
}

std::string PmixBootstrap::key() const {
  return "libshmem." + std::to_string(joined_) + "." + std::to_string(step_);
}

int PmixBootstrap::abort(int status, const std::string& reason) {
  events_->end(reason);
  events_->leave();
  // The launcher ends this process now. Some crash or hang if it says good-bye at the same time.
  left_ = true;
  static_cast<void>(within(kLeaveLimit, [client = client_, status, reason] { return client->abort(status, reason); }));
  return status;
}

std::optional<std::string> PmixBootstrap::aborted() const {
  return events_->ended();
}

Result<std::unique_ptr<Bootstrap>> join_pmix_job(milliseconds limit) {
  const auto calls = load_pmix();
  if (!calls) return tl::make_unexpected(calls.error());
  return PmixBootstrap::join(*calls, {.step = limit});
}

}  // namespace shmem
