// SPDX-License-Identifier: Apache-2.0
// What PEs exchange before they can use the network: addresses, and the keys of their memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/net/network.hpp"

namespace shmem {

struct PeAddress {
  /// The version of the network library, whose protocol depends on it: the same on all PEs.
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::vector<std::byte> address = {};
  std::array<SegmentAddress, kSegments> segments = {};
};

struct JobAddresses {
  /// A random number, the same on all PEs and sent to them by the job's bootstrap only: it stands in each message
  /// between them, so that messages of other jobs and programs are recognized.
  std::uint64_t job = 0;
  std::vector<PeAddress> pes;  // in rank order
};

/// Collective: the addresses of all PEs. An Error, the same on all, if they do not match: different
/// versions, segments of different sizes, bytes that are not an address or are too many, or an address of an earlier
/// start of the job.
Result<JobAddresses> exchange_addresses(Bootstrap& world, const PeAddress& mine, const std::vector<std::string>& names);

// Its parts, for tests.

/// Has the same size on all PEs, and gives the size of the rest.
struct AddressHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t major;
  std::uint32_t minor;
  std::uint32_t rest;   // bytes
  std::uint64_t start;  // a random number; that of PE 0 is in the rest of all PEs
};
constexpr std::uint64_t kAddressMagic = 0x3154454e4d485353;  // "SSHMNET1"
constexpr std::uint32_t kAddressVersion = 4;
/// Bytes of a packed address: many times what UCX needs with all its transports.
constexpr std::uint32_t kLongestAddress = 1 << 20;

std::vector<std::byte> pack_address(const PeAddress& address, std::uint64_t start);
/// An Error unless these are all the bytes that pack_address() gave in the start `start` of the job.
Result<PeAddress> unpack_address(std::span<const std::byte> bytes, std::uint64_t start);
/// An Error names PE 0 and the first PE that differs.
Result<void> check_heads(const std::vector<AddressHeader>& heads, const std::vector<std::string>& names);
Result<void> check_segments(const std::vector<PeAddress>& addresses, const std::vector<std::string>& names);

}  // namespace shmem
