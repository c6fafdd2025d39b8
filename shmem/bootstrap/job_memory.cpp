// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/job_memory.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/memfd.hpp"

namespace shmem {

namespace {

std::size_t size_for(int pes) {
  return sizeof(JobHeader) + static_cast<std::size_t>(pes) * sizeof(PeSlot);
}

/// The state, after giving a writer time to finish, so that all PEs report the same status and reason.
std::uint32_t settled(const std::atomic<std::uint32_t>& word) {
  std::uint32_t state = word.load(std::memory_order_acquire);  // pairs with the store in end(), as does the next one
  for (int pause = 0; state == JobEndWord::kWriting && pause < 1000; ++pause) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    state = word.load(std::memory_order_acquire);
  }
  return state;
}

}  // namespace

Result<JobMemory> JobMemory::create(int pes, int processors) {
  const std::size_t size = size_for(pes);
  auto fd = base::create_memfd("oshrun-job", size);
  if (!fd) {
    return fd.error();
  }
  auto mapping = base::Mapping::share(fd->get(), size);
  if (!mapping) {
    return mapping.error();
  }
  JobMemory memory(std::move(*fd), std::move(*mapping));
  JobHeader& header = memory.header();
  header.magic = kJobMagic;
  header.version = kJobVersion;
  header.size = size;
  header.pes = pes;
  header.processors = processors;
  return memory;
}

Result<JobMemory> JobMemory::attach(int fd, int pes) {
  const std::size_t size = size_for(pes);
  if (auto sound = base::check_memfd(fd, size); !sound) {
    return sound.error();
  }
  auto mapping = base::Mapping::share(fd, size);
  if (!mapping) {
    return mapping.error();
  }
  JobMemory memory(base::UniqueFd(), std::move(*mapping));
  const JobHeader& header = memory.header();
  if (header.magic != kJobMagic) {
    return fail(std::errc::invalid_argument, "it is not the memory of a job");
  }
  if (header.version != kJobVersion) {
    return fail(
        std::errc::protocol_not_supported,
        fmt::format("oshrun speaks version {}, this libshmem version {}; use the oshrun that came with this libshmem",
                    header.version, kJobVersion));
  }
  if (header.pes != pes || header.size != size) {
    return fail(std::errc::invalid_argument, fmt::format("it is for {} PEs, not {}", header.pes, pes));
  }
  return memory;
}

void JobMemory::end(std::int32_t pe, std::int32_t status, std::string_view reason) const {
  if (set_end(header().end, {pe, status, std::string(reason)})) {
    futex_wake_all(header().round.value);
  }
}

std::optional<JobEnd> JobMemory::ended() const {
  return read_end(header().end);
}

bool set_end(JobEndWord& word, const JobEnd& end) {
  std::uint32_t state = JobEndWord::kNone;
  // Relaxed: this only chooses the writer; kSet publishes the rest.
  if (!word.state.compare_exchange_strong(state, JobEndWord::kWriting, std::memory_order_relaxed)) {
    return false;
  }
  word.pe = end.pe;
  word.status = end.status;
  end.reason.copy(word.reason.data(), word.reason.size() - 1);
  word.state.store(JobEndWord::kSet, std::memory_order_release);  // pairs with the load in read_end()
  futex_wake_all(word.state);
  return true;
}

std::optional<JobEnd> read_end(const JobEndWord& word) {
  const std::uint32_t state = settled(word.state);
  if (state == JobEndWord::kNone) {
    return std::nullopt;
  }
  // The writer was killed while writing: the job still ends.
  if (state == JobEndWord::kWriting) {
    return JobEnd{kLauncher, 1, "the job is being ended"};
  }
  return JobEnd{word.pe, word.status, word.reason.data()};
}

}  // namespace shmem
