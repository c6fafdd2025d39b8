// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/pmix_bootstrap.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "base/within.hpp"
#include "shmem/bootstrap/allgather.hpp"
#include "shmem/bootstrap/message_text.hpp"
#include "shmem/bootstrap/pmix.hpp"

namespace shmem {

namespace {

using std::chrono::milliseconds;
using Bytes = std::vector<std::byte>;

/// The most bytes of all PEs in one exchange. Launchers keep them in segments of 4 MiB.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;
/// libpmix ends a call that was given up this much after the limit.
constexpr std::chrono::seconds kLater{2};
/// For libpmix to tell which PEs have arrived.
constexpr std::chrono::seconds kMissingLimit{5};
/// For all PEs to join again: until then, PEs that have left the previous job are not taken for exited.
constexpr std::chrono::seconds kRejoin{10};
/// For telling the server that this PE ends or leaves the job.
constexpr std::chrono::seconds kLeaveLimit{5};

/// `whole`, the bytes of the whole collective, and then a PE's part of it. A mismatch of `whole` means that the PEs are
/// in different steps.
Bytes encode_part(std::uint64_t whole, std::span<const std::byte> part) {
  const auto head = std::as_bytes(std::span(&whole, 1));
  Bytes bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

/// libpmix keeps what this process has put until the process ends, so keys must not repeat.
std::uint64_t next_join() {
  static std::atomic<std::uint64_t> joins{0};
  return ++joins;
}

}  // namespace

PmixBootstrap::PmixBootstrap(std::shared_ptr<const PmixClient> client, PmixClient::JobRank place, const Limits& limits)
    : client_(std::move(client)), place_(place), limits_(limits), joined_(next_join()), owner_(::getpid()) {}

Result<std::unique_ptr<PmixBootstrap>> PmixBootstrap::join(const PmixCalls& calls, const Limits& limits) {
  struct Start {
    std::shared_ptr<PmixClient> client;
    PmixClient::JobRank place;
    pmix_status_t status = PMIX_SUCCESS;
  };
  const auto started = base::within(limits.step, [calls] {
    Start start{std::make_shared<PmixClient>(calls), {}};
    start.status = start.client->init(start.place);
    return start;
  });
  if (!started) {
    return started.error();
  }
  if (!*started) {
    return fail(std::errc::timed_out, fmt::format("shmem: the launcher's PMIx server did not answer for {} (PMIx_Init)",
                                                  seconds_text(limits.step)));
  }
  const Start& start = **started;
  if (start.status != PMIX_SUCCESS) {
    return fail(
        std::errc::connection_refused,
        fmt::format("shmem: cannot join the job of the PMIx launcher: PMIx_Init: {}; has the launcher ended, or is "
                    "this a program that a PE started (unset PMIX_RANK for it)?",
                    start.client->text(start.status)));
  }
  std::unique_ptr<PmixBootstrap> self(new PmixBootstrap(start.client, start.place, limits));
  auto events = PmixEvents::start(start.client, start.place.rank, limits.grace);
  if (!events) {
    return events.error();
  }
  self->events_ = *std::move(events);
  return self;
}

PmixBootstrap::~PmixBootstrap() {
  if (::getpid() == owner_) {
    leave();
  }
}

void PmixBootstrap::leave() {
  if (left_) {
    return;
  }
  left_ = true;
  if (events_) {
    events_->leave();
  }
  // Launchers treat a process that ends without this as failed.
  static_cast<void>(base::within(kLeaveLimit, [client = client_] { return client->finalize(); }));
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
    if (!parts) {
      return parts.error();
    }
    for (std::size_t pe = 0; pe < pes && part > 0; ++pe) {
      std::memcpy(all.data() + each * pe + done, parts->data() + part * pe, part);
    }
    done += part;
  } while (done < each);
  return all;
}

Result<std::vector<std::byte>> PmixBootstrap::exchange(std::span<const std::byte> part, std::size_t whole) {
  if (auto ok = put_and_fence(encode_part(whole, part), true); !ok) {
    return ok.error();
  }
  Bytes answer;
  if (rank() == 0) {
    answer = encode_answer(collect(part.size(), whole));
  }
  if (auto ok = put_and_fence(std::move(answer), true); !ok) {
    return ok.error();
  }
  const auto answers = read(1);
  if (!answers) {
    return give_up(answers.error());
  }
  auto all = decode_answer(answers->front(), part.size() * static_cast<std::size_t>(size()));
  return all ? all : give_up(all.error());
}

Result<std::vector<std::byte>> PmixBootstrap::collect(std::size_t part, std::size_t whole) {
  const auto parts = read(size());
  if (!parts) {
    return parts.error();
  }
  Bytes all;
  for (std::size_t pe = 0; pe < parts->size(); ++pe) {
    const Bytes& theirs = (*parts)[pe];
    std::uint64_t their_whole = 0;
    std::memcpy(&their_whole, theirs.data(), theirs.size() < sizeof(their_whole) ? 0 : sizeof(their_whole));
    if (their_whole != whole || theirs.size() != sizeof(their_whole) + part) {
      return different_steps(0, whole, pe, their_whole);
    }
    all.insert(all.end(), theirs.begin() + sizeof(their_whole), theirs.end());
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
  if (!outcome) {
    return outcome.error();
  }
  if (outcome->status == PMIX_SUCCESS) {
    return std::move(outcome->bytes);
  }
  return fail(std::errc::io_error,
              fmt::format("shmem: PE {} cannot read what PE {} told the PMIx launcher: PMIx_Get: {}", rank(),
                          outcome->bytes.size() - 1, client_->text(outcome->status)));
}

Result<void> PmixBootstrap::barrier() {
  return put_and_fence({}, false);
}

Result<void> PmixBootstrap::put_and_fence(Bytes bytes, bool collect) {
  if (failure_) {
    return *failure_;
  }
  ++step_;
  const auto seconds = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(limits_.step + kLater).count());
  // libpmix's server (up to 5.0 at least) may miss that a process of the job has called PMIx_Finalize, and counts one
  // fewer of its node from then on. A fence of the whole job then never ends, or too soon. Processes that are named are
  // counted one by one, as long as the server knows of one.
  const int each = joined_ > 1 ? size() : 0;
  // Puts even empty bytes: missing() looks for the key.
  const auto fence = [client = client_, name = key(), bytes = std::move(bytes), collect, seconds, each, pes = size()] {
    auto done = client->put(name, bytes);
    if (done == PMIX_SUCCESS) {
      done = client->commit();
    }
    return done == PMIX_SUCCESS && pes > 1 ? client->fence(collect, seconds, each) : done;
  };
  auto status = ask("PMIx_Fence", fence);
  // The fence fails on all PEs while one of them has left the previous job and not yet joined this one.
  const auto give_up_at = std::chrono::steady_clock::now() + kRejoin;
  while (joined_ > 1 && status && *status == PMIX_ERR_PARTIAL_SUCCESS &&
         std::chrono::steady_clock::now() < give_up_at) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    status = ask("PMIx_Fence", fence);
  }
  if (!status) {
    return give_up(status.error());
  }
  if (*status == PMIX_ERR_TIMEOUT) {
    return give_up(timed_out("PMIx_Fence"));
  }
  if (*status == PMIX_SUCCESS) {
    return {};
  }
  const std::vector<int> absent = *status == PMIX_ERR_PARTIAL_SUCCESS ? missing() : std::vector<int>{};
  if (!absent.empty()) {
    return give_up({std::errc::owner_dead, fmt::format("shmem: PE {} waits for {}: exited", rank(), pe_list(absent))});
  }
  return give_up(
      {std::errc::connection_reset,
       fmt::format(
           "shmem: PE {} cannot synchronise with the other PEs: PMIx_Fence: {}; have PEs or the launcher ended?",
           rank(), client_->text(*status))});
}

template <typename Call>
Result<std::invoke_result_t<Call>> PmixBootstrap::ask(const char* what, Call call) {
  auto outcome = base::within(limits_.step, std::move(call), [this] { return events_->reason().get().has_value(); });
  if (!outcome) {
    return outcome.error();
  }
  if (*outcome) {
    return **std::move(outcome);
  }
  if (const auto ended = aborted()) {
    return fail(std::errc::operation_canceled, fmt::format("shmem: PE {}: the job was ended: {}", rank(), *ended));
  }
  return timed_out(what);
}

std::vector<int> PmixBootstrap::missing() const {
  const auto found = base::within(kMissingLimit, [client = client_, name = key(), pes = size()] {
    std::vector<int> without;
    Bytes bytes;
    for (int pe = 0; pe < pes; ++pe) {
      if (client->get(pe, name, true, bytes) != PMIX_SUCCESS) {
        without.push_back(pe);
      }
    }
    return without;
  });
  return found && *found ? **found : std::vector<int>{};
}

Error PmixBootstrap::timed_out(const char* what) const {
  const std::vector<int> pes = missing();
  return {std::errc::timed_out,
          fmt::format("shmem: PE {} waited {} for {} (step {} of the job's bootstrap by PMIx)", rank(),
                      seconds_text(limits_.step),
                      pes.empty() ? fmt::format("the launcher ({})", what) : pe_list(pes) + " to come", step_)};
}

Error PmixBootstrap::give_up(Error error) {
  failure_ = std::move(error);
  return *failure_;
}

std::string PmixBootstrap::key() const {
  return fmt::format("libshmem.{}.{}", joined_, step_);
}

int PmixBootstrap::abort(int status, const std::string& reason) {
  events_->end(reason);
  events_->leave();
  // The launcher ends this process now. Some launchers crash or hang if the process calls PMIx_Finalize meanwhile.
  left_ = true;
  static_cast<void>(
      base::within(kLeaveLimit, [client = client_, status, reason] { return client->abort(status, reason); }));
  return status;
}

Result<std::unique_ptr<Bootstrap>> join_pmix_job(milliseconds limit) {
  const auto calls = load_pmix();
  if (!calls) {
    return calls.error();
  }
  return PmixBootstrap::join(*calls, {.step = limit});
}

}  // namespace shmem
