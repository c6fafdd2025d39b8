// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/mpi.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "shmem/bootstrap/pe_list.hpp"
#include "shmem/bootstrap/seconds_text.hpp"
#include "shmem/cores/wait.hpp"

namespace shmem {

namespace {

using std::chrono::milliseconds;
using Bytes = std::vector<std::byte>;

/// PE 0 ends a step that takes too long and says for whom it waited; only when it does not is this added.
constexpr milliseconds kFirstDelay{10'000};
/// For others to be told that a step has failed.
constexpr milliseconds kTellLimit{1000};
/// Between two looks at what MPI has done.
constexpr milliseconds kLongestNap{1};
/// What all PEs can say in a step: MPI counts by int.
constexpr std::size_t kMostOfAll = std::size_t{1} << 30;
/// The most that an error says to the others.
constexpr std::size_t kTextRoom = 1024;

/// In front of what PE 0 answers.
struct AnswerHead {
  std::int64_t error;  // 0, and everybody's bytes follow; else a std::errc, and a text does
};

Bytes answer(std::int64_t error, std::span<const std::byte> rest) {
  const AnswerHead head{error};
  Bytes bytes(sizeof(head) + rest.size());
  std::memcpy(bytes.data(), &head, sizeof(head));
  std::copy(rest.begin(), rest.end(), bytes.begin() + sizeof(head));
  return bytes;
}

Bytes answer(const Error& error) {
  const auto text = std::as_bytes(std::span(error.text));
  return answer(static_cast<int>(error.code), text.first(std::min(text.size(), kTextRoom)));
}

}  // namespace

Result<std::unique_ptr<MpiBootstrap>> MpiBootstrap::join(const shmem_mpi_plugin& plugin, const void* communicator,
                                                         milliseconds limit) {
  if (plugin.version != SHMEM_MPI_PLUGIN_VERSION) {
    return fail(std::errc::not_supported, "shmem: the MPI plug-in has version " + std::to_string(plugin.version) +
                                              ", libshmem needs " + std::to_string(SHMEM_MPI_PLUGIN_VERSION));
  }
  shmem_mpi_job* job = nullptr;
  std::array<char, 512> text{};
  if (plugin.open(communicator, &job, text.data(), text.size()) != 0) {
    return fail(std::errc::invalid_argument, std::string("shmem: cannot start by MPI: ") + text.data());
  }
  std::unique_ptr<MpiBootstrap> self(new MpiBootstrap(plugin, job, limit));
  if (auto opened = self->open(); !opened) return tl::make_unexpected(opened.error());
  return self;
}

Result<void> MpiBootstrap::open() {
  int done = 0;
  int status = 0;
  const auto deadline = Clock::now() + limit_;
  const auto why = wait_polling(
      wait_policy(1), kLongestNap,
      [&] {
        status = plugin_.opened(job_, &done);
        return status != 0 || done != 0;
      },
      [&] { return Clock::now() < deadline ? std::errc{} : std::errc::timed_out; });
  if (status != 0) return failed("MPI_Comm_idup", status);
  if (why != std::errc{}) {
    return fail(std::errc::timed_out, "shmem: waited " + seconds_text(limit_) +
                                          " for all processes of the communicator to start libshmem (MPI cannot tell "
                                          "who did not)");
  }
  unfinished_ = false;
  plugin_.place(job_, &rank_, &size_);
  return {};
}

MpiBootstrap::~MpiBootstrap() {
  leave();
}

void MpiBootstrap::leave() {
  if (job_ == nullptr) return;
  plugin_.close(job_, unfinished_ ? 1 : 0);
  job_ = nullptr;
  if (!unfinished_) return;
  // MPI may write there as long as the process lives; so this is never destroyed.
  struct Kept {
    std::mutex mutex;
    std::vector<std::unique_ptr<Transfers>> transfers;
  };
  static Kept& kept = *new Kept;  // NOLINT(cppcoreguidelines-owning-memory)
  const std::scoped_lock lock(kept.mutex);
  kept.transfers.push_back(std::move(transfers_));
}

Result<std::vector<std::byte>> MpiBootstrap::allgather(std::span<const std::byte> mine) {
  if (failure_) return tl::make_unexpected(*failure_);
  if (mine.size() > kMostOfAll / static_cast<std::size_t>(size_)) {
    return fail(std::errc::message_size, "shmem: " + std::to_string(mine.size()) + " bytes of each of " +
                                             std::to_string(size_) + " PEs are too much for the job's bootstrap");
  }
  ++step_;
  auto all = rank_ == 0 ? gather(mine) : tell_first(mine);
  if (!all) return give_up(all.error());
  return all;
}

Result<void> MpiBootstrap::barrier() {
  const auto all = allgather({});
  if (!all) return tl::make_unexpected(all.error());
  return {};
}

Result<Bytes> MpiBootstrap::gather(std::span<const std::byte> mine) {
  Bytes all;
  auto heard = hear_all(mine, all);
  auto answered = answer_all(heard ? answer(0, all) : answer(heard.error()));
  if (!heard) return tl::make_unexpected(heard.error());
  if (!answered) return tl::make_unexpected(answered.error());
  return all;
}

Result<void> MpiBootstrap::hear_all(std::span<const std::byte> mine, Bytes& all) {
  std::vector<Transfer*> parts;
  for (int pe = 1; pe < size_; ++pe) {
    auto part = receive(pe, mine.size());
    if (!part) return tl::make_unexpected(part.error());
    parts.push_back(*part);
  }
  if (auto finished = finish(Clock::now() + limit_); !finished) return finished;
  all.assign(mine.begin(), mine.end());
  for (const Transfer* part : parts) {
    if (part->bytes.size() != mine.size()) {
      return fail(std::errc::invalid_argument,
                  "shmem: the PEs are not in the same step of the job's bootstrap: PE 0 has " +
                      std::to_string(mine.size()) + " bytes to tell, PE " + std::to_string(part->pe) + " has " +
                      std::to_string(part->bytes.size()));
    }
    all.insert(all.end(), part->bytes.begin(), part->bytes.end());
  }
  transfers_->clear();
  return {};
}

Result<void> MpiBootstrap::answer_all(const Bytes& answer) {
  for (int pe = 1; pe < size_; ++pe) {
    if (auto sent = send(pe, answer); !sent) return tl::make_unexpected(sent.error());
  }
  // Where the step has failed some transfers never end; the others should be told all the same.
  auto finished = finish(Clock::now() + (unfinished_ ? kTellLimit : limit_));
  if (finished) transfers_->clear();
  return finished;
}

Result<Bytes> MpiBootstrap::tell_first(std::span<const std::byte> mine) {
  if (auto sent = send(0, Bytes(mine.begin(), mine.end())); !sent) return tl::make_unexpected(sent.error());
  const std::size_t whole = mine.size() * static_cast<std::size_t>(size_);
  auto received = receive(0, sizeof(AnswerHead) + std::max(whole, kTextRoom));
  if (!received) return tl::make_unexpected(received.error());
  if (auto finished = finish(Clock::now() + limit_ + kFirstDelay); !finished) {
    return tl::make_unexpected(finished.error());
  }
  const Bytes all = std::move((*received)->bytes);
  transfers_->clear();
  AnswerHead head{};
  if (all.size() < sizeof(head)) return fail(std::errc::bad_message, "shmem: PE 0 answered nothing");
  std::memcpy(&head, all.data(), sizeof(head));
  const auto rest = std::span(all).subspan(sizeof(head));
  if (head.error != 0) {
    return fail(std::errc{static_cast<int>(head.error)},
                std::string(reinterpret_cast<const char*>(rest.data()), rest.size()));
  }
  if (rest.size() != whole) {
    return fail(std::errc::bad_message,
                "shmem: PE 0 answered " + std::to_string(rest.size()) + " bytes, not " + std::to_string(whole));
  }
  return Bytes(rest.begin(), rest.end());
}

Result<MpiBootstrap::Transfer*> MpiBootstrap::send(int pe, Bytes bytes) {
  Transfer& transfer = transfers_->emplace_back();
  transfer.pe = pe;
  transfer.bytes = std::move(bytes);
  const int status = plugin_.send(job_, pe, transfer.bytes.data(), transfer.bytes.size(), &transfer.state);
  if (status != 0) return failed("MPI_Isend", status);
  return &transfer;
}

Result<MpiBootstrap::Transfer*> MpiBootstrap::receive(int pe, std::size_t room) {
  Transfer& transfer = transfers_->emplace_back();
  transfer.pe = pe;
  transfer.bytes.resize(room);
  const int status = plugin_.receive(job_, pe, transfer.bytes.data(), room, &transfer.state);
  if (status != 0) return failed("MPI_Irecv", status);
  return &transfer;
}

Result<void> MpiBootstrap::finish(Clock::time_point deadline) {
  int status = 0;
  int whose = 0;
  const auto all_done = [&] {
    bool done = true;
    for (Transfer& transfer : *transfers_) {
      if (transfer.done) continue;
      int one = 0;
      std::size_t size = 0;
      status = plugin_.test(job_, &transfer.state, &one, &size);
      if (status != 0) {
        whose = transfer.pe;
        return true;
      }
      transfer.done = one != 0;
      if (transfer.done && size < transfer.bytes.size()) transfer.bytes.resize(size);
      done = done && transfer.done;
    }
    return done;
  };
  unfinished_ = true;
  const auto why = wait_polling(wait_policy(size_), kLongestNap, all_done,
                                [&] { return Clock::now() < deadline ? std::errc{} : std::errc::timed_out; });
  if (status != 0) {
    return failed("MPI_Test of a message to or from PE " + std::to_string(whose) + " (are all in the same step?)",
                  status);
  }
  if (why == std::errc{}) {
    unfinished_ = false;
    return {};
  }
  std::vector<int> pes;
  for (const Transfer& transfer : *transfers_) {
    if (!transfer.done && (pes.empty() || pes.back() != transfer.pe)) pes.push_back(transfer.pe);
  }
  return tl::make_unexpected(waited_for(pe_list(pes)));
}

Error MpiBootstrap::waited_for(const std::string& whom) const {
  return {std::errc::timed_out, "shmem: PE " + std::to_string(rank_) + " waited " + seconds_text(limit_) + " for " +
                                    whom + " to come (step " + std::to_string(step_) +
                                    " of the job's bootstrap by MPI)"};
}

tl::unexpected<Error> MpiBootstrap::failed(const std::string& what, int status) const {
  std::array<char, 512> text{};
  plugin_.text(status, text.data(), text.size());
  return fail(std::errc::io_error,
              "shmem: PE " + std::to_string(rank_) + " cannot talk to the others: " + what + ": " + text.data());
}

tl::unexpected<Error> MpiBootstrap::give_up(Error error) {
  failure_ = std::move(error);
  return tl::make_unexpected(*failure_);
}

int MpiBootstrap::abort(int status, const std::string& reason) {
  if (ended_.load(std::memory_order_relaxed) == 0) {  // only this thread writes it
    reason_ = reason;
    ended_.store(1, std::memory_order_release);  // pairs with the load in aborted()
    futex_wake_all(ended_);
  }
  plugin_.abort(job_, status);
  return status;
}

std::optional<std::string> MpiBootstrap::aborted() const {
  if (ended_.load(std::memory_order_acquire) == 0) return std::nullopt;
  return reason_;
}

}  // namespace shmem
