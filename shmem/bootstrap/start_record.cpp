// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/start_record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/mapping.hpp"
#include "base/memfd.hpp"

namespace shmem {
namespace {

constexpr std::uint64_t kRecordMagic = 0x54524154534d4853;  // "SHMSTART"

struct RecordHead {
  std::uint64_t magic;
  std::uint64_t steps;
  std::uint64_t bytes;  // in all
  std::int32_t heaps, areas;
};

Result<base::UniqueFd> open_file_of(pid_t owner, int fd) {
  base::UniqueFd file(::open(fmt::format("/proc/{}/fd/{}", owner, fd).c_str(), O_RDWR | O_CLOEXEC));
  return file ? Result<base::UniqueFd>(std::move(file))
              : fail_errno(errno, fmt::format("cannot open a file of process {}", owner));
}

}  // namespace

void StartRecord::add(std::span<const std::byte> all) {
  steps_.emplace_back(all.begin(), all.end());
}

Result<base::UniqueFd> StartRecord::write(int heaps, int areas) const {
  RecordHead head{kRecordMagic, steps_.size(), sizeof(RecordHead), heaps, areas};
  for (const auto& step : steps_) {
    head.bytes += sizeof(std::uint64_t) + step.size();
  }
  auto file = base::create_memfd("shmem-start", head.bytes);
  if (!file) {
    return file.error();
  }
  auto mapping = base::Mapping::share(file->get(), head.bytes);
  if (!mapping) {
    return mapping.error();
  }
  std::byte* at = mapping->data();
  const auto put = [&at](const void* from, std::size_t bytes) {
    if (bytes != 0) {
      std::memcpy(at, from, bytes);
    }
    at += bytes;
  };
  put(&head, sizeof head);
  for (const auto& step : steps_) {
    const std::uint64_t size = step.size();
    put(&size, sizeof size);
    put(step.data(), step.size());
  }
  return file;
}

Result<StartRecord> StartRecord::read(pid_t owner, int fd) {
  auto file = open_file_of(owner, fd);
  if (!file) {
    return file.error();
  }
  if (auto sound = base::check_memfd(file->get(), sizeof(RecordHead)); !sound) {
    return sound.error();
  }
  RecordHead head{};
  if (::pread(file->get(), &head, sizeof head, 0) != sizeof head || head.magic != kRecordMagic) {
    return fail(std::errc::bad_message, fmt::format("process {} has no record of the job's start", owner));
  }
  if (head.bytes < sizeof head || !base::check_memfd(file->get(), head.bytes)) {
    return fail(std::errc::bad_message, fmt::format("the record of process {} is not whole", owner));
  }
  std::vector<std::byte> bytes(head.bytes - sizeof head);
  if (::pread(file->get(), bytes.data(), bytes.size(), sizeof head) != static_cast<ssize_t>(bytes.size())) {
    return fail_errno(errno, fmt::format("cannot read the record of process {}", owner));
  }
  StartRecord record;
  std::span<const std::byte> rest(bytes);
  for (std::uint64_t i = 0; i < head.steps && rest.size() >= sizeof(std::uint64_t); ++i) {
    std::uint64_t size = 0;
    std::memcpy(&size, rest.data(), sizeof size);
    rest = rest.subspan(sizeof size);
    size = std::min<std::uint64_t>(size, rest.size());
    record.add(rest.first(size));
    rest = rest.subspan(size);
  }
  auto heaps = open_file_of(owner, head.heaps);
  auto areas = open_file_of(owner, head.areas);
  if (!heaps || !areas) {
    return heaps ? areas.error() : heaps.error();
  }
  record.files_ = {*std::move(heaps), *std::move(areas)};
  return record;
}

Result<std::vector<std::byte>> StartRecord::next(std::size_t bytes) {
  if (next_ == steps_.size() || steps_[next_].size() != bytes) {
    return fail(std::errc::protocol_error,
                fmt::format("step {} of the start gave no {} bytes to the other PEs: does this process run the same "
                            "program with the same environment?",
                            next_, bytes));
  }
  return steps_[next_++];
}

}  // namespace shmem
