// SPDX-License-Identifier: Apache-2.0
#include "shmem/group/message_places.hpp"

#include <sys/random.h>
#include <unistd.h>

#include "shmem/memory/copy.hpp"

namespace shmem {

MessagePlaces::MessagePlaces(const Job& job, const SymmetricMemories& memories, std::atomic<std::uint64_t>& proof)
    : job_(job),
      memories_(memories),
      processes_(static_cast<std::size_t>(job.size)),
      // As a rule a launcher has started all members. Others copy through shared memory, as do orphans: the descendants
      // of process 1 are all processes.
      permission_(job.size > 1 && ::getppid() > 1 ? ::getppid() : pid_t{0}) {
  if (::getrandom(&proof_, sizeof proof_, 0) != static_cast<ssize_t>(sizeof proof_)) {
    proof_ = 0;  // proves nothing
  }
  proof.store(proof_, std::memory_order_relaxed);  // seen by who sees a later message
}

MessagePlace MessagePlaces::place_of(const void* data, std::size_t size, Reads reads) const {
  if (const auto symmetric = memories_.find(data, size)) {
    return {*symmetric};
  }
  const auto address = [](const void* where) { return reinterpret_cast<std::uintptr_t>(where); };
  switch (reads) {
    case Reads::kUnknown:
      return {{MessagePlace::kInlineWithProof, address(&proof_)}};
    case Reads::kYes:
      return {{MessagePlace::kPrivate, address(data)}};
    case Reads::kNo:
      break;
  }
  return {};
}

const ProcessMemory* MessagePlaces::process(int member) {
  auto& process = processes_[static_cast<std::size_t>(member)];
  if (!process) {
    auto opened = ProcessMemory::open(job_.metadata(member).pid.load(std::memory_order_relaxed));
    if (!opened) {
      return nullptr;
    }
    process = *std::move(opened);
  }
  return &*process;
}

// The number of the process may be that of another one here, if it is in another PID namespace.
Reads MessagePlaces::try_proof(int member, std::uint64_t address, std::uint64_t proof) {
  const ProcessMemory* const memory = process(member);
  std::uint64_t read = 0;
  const bool is_proved = memory != nullptr && proof != 0 &&
                         memory->read(&read, address, {.block = sizeof read}) == std::errc{} && read == proof;
  return is_proved ? Reads::kYes : Reads::kNo;
}

std::errc MessagePlaces::copy(int member, const MessagePlace& place, std::byte* to, std::size_t size) {
  if (place.memory == MessagePlace::kPrivate) {
    const ProcessMemory* const memory = process(member);
    return memory != nullptr ? memory->read(to, place.offset, {.block = size}) : std::errc::owner_dead;
  }
  const std::byte* const from = memories_.address(place, member, size);
  if (from == nullptr) {
    return std::errc::bad_address;
  }
  copy_bytes(to, from, size);
  return {};
}

}  // namespace shmem
