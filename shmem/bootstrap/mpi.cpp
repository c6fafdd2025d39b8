// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/mpi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "shmem/bootstrap/allgather.hpp"
#include "shmem/bootstrap/message_text.hpp"
#include "shmem/bootstrap/mpi_plugin.hpp"
#include "shmem/cores/wait.hpp"

namespace shmem {

namespace {

using std::chrono::milliseconds;
using Bytes = std::vector<std::byte>;

/// PE 0 ends a step that takes too long, with an Error that names the missing PEs. The others allow it this much more.
constexpr milliseconds kFirstDelay{10'000};
/// For telling the other PEs that a step has failed.
constexpr milliseconds kTellLimit{1000};
/// Between two tests of MPI's progress.
constexpr milliseconds kLongestPause{1};
/// The most bytes of all PEs in a step: MPI counts by int.
constexpr std::size_t kMostOfAll = std::size_t{1} << 30;
}  // namespace

Result<std::unique_ptr<MpiBootstrap>> MpiBootstrap::join(const shmem_mpi_plugin& plugin, const void* communicator,
                                                         milliseconds limit) {
  if (plugin.version != SHMEM_MPI_PLUGIN_VERSION) {
    return fail(std::errc::not_supported, fmt::format("shmem: the MPI plug-in has version {}, libshmem needs {}",
                                                      plugin.version, SHMEM_MPI_PLUGIN_VERSION));
  }
  shmem_mpi_job* job = nullptr;
  std::array<char, 512> text{};
  if (plugin.open(communicator, &job, text.data(), text.size()) != 0) {
    return fail(std::errc::invalid_argument, std::string("shmem: cannot start by MPI: ") + text.data());
  }
  std::unique_ptr<MpiBootstrap> self(new MpiBootstrap(plugin, job, limit));
  if (auto opened = self->open(); !opened) {
    return opened.error();
  }
  return self;
}

Result<void> MpiBootstrap::open() {
  int done = 0;
  int status = 0;
  const auto deadline = Clock::now() + limit_;
  const auto why = wait_polling(
      wait_policy(1), kLongestPause,
      [&] {
        status = plugin_.opened(job_, &done);
        return status != 0 || done != 0;
      },
      [&] { return Clock::now() < deadline ? std::errc{} : std::errc::timed_out; });
  if (status != 0) {
    return failed("MPI_Comm_idup", status);
  }
  if (why != std::errc{}) {
    return fail(std::errc::timed_out,
                fmt::format("shmem: waited {} for all processes of the communicator to start libshmem (MPI cannot tell "
                            "which did not)",
                            seconds_text(limit_)));
  }
  unfinished_ = false;
  plugin_.place(job_, &rank_, &size_);
  return {};
}

MpiBootstrap::~MpiBootstrap() {
  leave();
}

void MpiBootstrap::leave() {
  if (job_ == nullptr) {
    return;
  }
  plugin_.close(job_, unfinished_ ? 1 : 0);
  job_ = nullptr;
  if (!unfinished_) {
    return;
  }
  // MPI may write to the transfers as long as the process lives, so they are never destroyed.
  struct Kept {
    std::mutex mutex;
    std::vector<std::unique_ptr<Transfers>> transfers;
  };
  static Kept& kept = *new Kept;  // NOLINT(cppcoreguidelines-owning-memory)
  const std::scoped_lock lock(kept.mutex);
  kept.transfers.push_back(std::move(transfers_));
}

Result<std::vector<std::byte>> MpiBootstrap::allgather(std::span<const std::byte> mine) {
  if (failure_) {
    return *failure_;
  }
  if (mine.size() > kMostOfAll / static_cast<std::size_t>(size_)) {
    return fail(
        std::errc::message_size,
        fmt::format("shmem: {} bytes of each of {} PEs are too much for the job's bootstrap", mine.size(), size_));
  }
  ++step_;
  auto all = rank_ == 0 ? gather(mine) : send_to_first(mine);
  if (!all) {
    return give_up(all.error());
  }
  return all;
}

Result<Bytes> MpiBootstrap::gather(std::span<const std::byte> mine) {
  auto all = receive_all(mine);
  auto answered = answer_all(encode_answer(all));
  return all && !answered ? answered.error() : all;
}

Result<Bytes> MpiBootstrap::receive_all(std::span<const std::byte> mine) {
  std::vector<Transfer*> parts;
  for (int pe = 1; pe < size_; ++pe) {
    auto part = receive(pe, mine.size());
    if (!part) {
      return part.error();
    }
    parts.push_back(*part);
  }
  if (auto finished = finish(Clock::now() + limit_); !finished) {
    return finished.error();
  }
  Bytes all(mine.begin(), mine.end());
  for (const Transfer* part : parts) {
    if (part->bytes.size() != mine.size()) {
      return different_steps(0, mine.size(), static_cast<std::size_t>(part->pe), part->bytes.size());
    }
    all.insert(all.end(), part->bytes.begin(), part->bytes.end());
  }
  transfers_->clear();
  return all;
}

Result<void> MpiBootstrap::answer_all(const Bytes& answer) {
  for (int pe = 1; pe < size_; ++pe) {
    if (auto sent = send(pe, answer); !sent) {
      return sent.error();
    }
  }
  // After a failed step some transfers never end, but the other PEs should still get the Error.
  auto finished = finish(Clock::now() + (unfinished_ ? kTellLimit : limit_));
  if (finished) {
    transfers_->clear();
  }
  return finished;
}

Result<Bytes> MpiBootstrap::send_to_first(std::span<const std::byte> mine) {
  if (auto sent = send(0, Bytes(mine.begin(), mine.end())); !sent) {
    return sent.error();
  }
  const std::size_t whole = mine.size() * static_cast<std::size_t>(size_);
  auto received = receive(0, sizeof(std::int64_t) + std::max(whole, kMostAnswerText));
  if (!received) {
    return received.error();
  }
  if (auto finished = finish(Clock::now() + limit_ + kFirstDelay); !finished) {
    return finished.error();
  }
  const Bytes answer = std::move((*received)->bytes);
  transfers_->clear();
  return decode_answer(answer, whole);
}

Result<MpiBootstrap::Transfer*> MpiBootstrap::send(int pe, Bytes bytes) {
  Transfer& transfer = transfers_->emplace_back();
  transfer.pe = pe;
  transfer.bytes = std::move(bytes);
  const int status = plugin_.send(job_, pe, transfer.bytes.data(), transfer.bytes.size(), &transfer.state);
  if (status != 0) {
    return failed("MPI_Isend", status);
  }
  return &transfer;
}

Result<MpiBootstrap::Transfer*> MpiBootstrap::receive(int pe, std::size_t room) {
  Transfer& transfer = transfers_->emplace_back();
  transfer.pe = pe;
  transfer.bytes.resize(room);
  const int status = plugin_.receive(job_, pe, transfer.bytes.data(), room, &transfer.state);
  if (status != 0) {
    return failed("MPI_Irecv", status);
  }
  return &transfer;
}

Result<void> MpiBootstrap::finish(Clock::time_point deadline) {
  int status = 0;
  int whose = 0;
  const auto all_done = [&] {
    bool done = true;
    for (Transfer& transfer : *transfers_) {
      if (transfer.done) {
        continue;
      }
      int one = 0;
      std::size_t size = 0;
      status = plugin_.test(job_, &transfer.state, &one, &size);
      if (status != 0) {
        whose = transfer.pe;
        return true;
      }
      transfer.done = one != 0;
      if (transfer.done && size < transfer.bytes.size()) {
        transfer.bytes.resize(size);
      }
      done = done && transfer.done;
    }
    return done;
  };
  unfinished_ = true;
  const auto why = wait_polling(wait_policy(size_), kLongestPause, all_done,
                                [&] { return Clock::now() < deadline ? std::errc{} : std::errc::timed_out; });
  if (status != 0) {
    return failed(fmt::format("MPI_Test of a message to or from PE {} (are all in the same step?)", whose), status);
  }
  if (why == std::errc{}) {
    unfinished_ = false;
    return {};
  }
  std::vector<int> pes;
  for (const Transfer& transfer : *transfers_) {
    if (!transfer.done && (pes.empty() || pes.back() != transfer.pe)) {
      pes.push_back(transfer.pe);
    }
  }
  return waited_for(pe_list(pes));
}

Error MpiBootstrap::waited_for(const std::string& missing) const {
  return {std::errc::timed_out,
          fmt::format("shmem: PE {} waited {} for {} to come (step {} of the job's bootstrap by MPI)", rank_,
                      seconds_text(limit_), missing, step_)};
}

Error MpiBootstrap::failed(const std::string& what, int status) const {
  std::array<char, 512> text{};
  plugin_.text(status, text.data(), text.size());
  return fail(std::errc::io_error,
              fmt::format("shmem: PE {} cannot talk to the others: {}: {}", rank_, what, text.data()));
}

Error MpiBootstrap::give_up(Error error) {
  failure_ = std::move(error);
  return *failure_;
}

int MpiBootstrap::abort(int status, const std::string& reason) {
  reason_.set(reason);
  plugin_.abort(job_, status);
  return status;
}

void MpiBootstrap::give_up_start(const std::string& reason) {
  reason_.set(reason);
  static_cast<void>(give_up({std::errc::operation_canceled, reason}));
}

Result<std::unique_ptr<Bootstrap>> join_mpi_job(const std::string& plugin, const void* communicator,
                                                std::chrono::milliseconds limit) {
  auto loaded = load_mpi_plugin(plugin);
  if (!loaded) {
    return loaded.error();
  }
  return MpiBootstrap::join(**loaded, communicator, limit);
}

}  // namespace shmem
