// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/copied.hpp"

#include "shmem/layout/peers.hpp"

namespace shmem::api {
namespace {

/// Where the other process has the same byte. REQUIRES: as put_copied().
struct ThereAt {
  const ProcessMemory& process;
  std::uint64_t address;
};
ThereAt there_at(const Peer& peer, const void* mine) {
  const RegisteredMemory& registered = *peer.runtime.job().registered;
  const auto found = registered.find(mine);
  const Registration::Copy& copy = *registered.copied(*found, peer.number);
  return {*copy.process, copy.address + found->offset};
}

void check(const Peer& peer, std::errc error) {
  if (error != std::errc{}) {
    end_job(peer.runtime, peer.call, copy_failure(peer.runtime.job(), peer.number, error));
  }
}

}  // namespace

Error copy_failure(const Job& job, int pe, std::errc error) {
  const std::string whose = fmt::format("the kernel cannot copy registered memory of {}: ", describe_pe(job, pe));
  switch (error) {
    case std::errc::owner_dead: {
      // It may have ended because it heard earlier than this PE that the job was ended.
      const auto reason = job.bootstrap->aborted();
      return {error, whose + "its process has ended" + (reason ? "; the job was ended: " + *reason : "")};
    }
    case std::errc::bad_address:
      return {error, whose + "it is not mapped any more; unregister memory before it is given back"};
    case std::errc::permission_denied:
      return {error, whose + copy_advice()};
    default:
      return {error, whose + std::make_error_code(error).message()};
  }
}

void put_copied(const Peer& peer, const void* dest, const void* source, const CopyBlocks& blocks) {
  const ThereAt there = there_at(peer, dest);
  check(peer, there.process.write(there.address, source, blocks));
  peer.wake();
}

void get_copied(const Peer& peer, void* dest, const void* source, const CopyBlocks& blocks) {
  const ThereAt there = there_at(peer, source);
  check(peer, there.process.read(dest, there.address, blocks));
  progress(peer.runtime);
}

}  // namespace shmem::api
