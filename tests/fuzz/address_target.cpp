// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <vector>

#include "shmem/net/address_exchange.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/targets.hpp"

namespace fuzz {
namespace {

using Bytes = std::vector<std::byte>;

/// A bootstrap in which this PE is the last one and the input decides what all others contribute.
class OtherPes final : public shmem::Bootstrap {
 public:
  OtherPes(Input& input, int others) : input_(input), others_(others) {}

  [[nodiscard]] int rank() const override { return others_; }
  [[nodiscard]] int size() const override { return others_ + 1; }
  shmem::Result<Bytes> allgather(std::span<const std::byte> mine) override {
    // Each contributes as many bytes as this one: a bootstrap refuses other sizes.
    check(mine.size() <= (std::size_t{16} << 20), "the numbers of others do not fill the memory");
    Bytes all(mine.size() * static_cast<std::size_t>(size()));
    for (std::size_t pe = 0; pe < static_cast<std::size_t>(others_); ++pe) {
      const auto bytes = input_.take_bytes(input_.take<std::uint16_t>());
      const auto fitting = bytes.first(std::min(bytes.size(), mine.size()));
      std::copy(fitting.begin(), fitting.end(), all.begin() + static_cast<std::ptrdiff_t>(pe * mine.size()));
    }
    std::copy(mine.begin(), mine.end(), all.end() - static_cast<std::ptrdiff_t>(mine.size()));
    return all;
  }
  int abort(int status, const std::string& /*reason*/) override { return status; }
  [[nodiscard]] std::optional<std::string> aborted() const override { return std::nullopt; }
  void leave() override {}

 private:
  Input& input_;
  int others_;
};

shmem::PeAddress my_address() {
  return {.major = 1,
          .minor = 13,
          .address = Bytes(3, std::byte{7}),
          .segments = {shmem::SegmentAddress{0x1000, 4096, Bytes(2, std::byte{8})}, {}, {0x9000, 64, {}}}};
}

}  // namespace

// First byte: the number of other PEs. Then, for each step of the bootstrap and each of them: u16 length, bytes.
void run_address(std::span<const std::byte> bytes) {
  Input input(bytes);
  const int others = 1 + input.take<std::uint8_t>() % 3;
  const shmem::PeAddress mine = my_address();
  OtherPes world(input, others);
  const std::vector<std::string> names(static_cast<std::size_t>(others) + 1, "PE");
  const auto addresses = shmem::exchange_addresses(world, mine, names);
  if (!addresses) {
    check(!addresses.error().text.empty(), "a refusal has a reason");
    return;
  }
  check(addresses->pes.size() == names.size(), "there is an address for each PE");
  check(shmem::pack_address(addresses->pes.back(), 0) == shmem::pack_address(mine, 0),
        "this PE's address is as it was");
  for (const auto& address : addresses->pes) {
    for (std::size_t i = 0; i < shmem::kSegments; ++i) {
      check(address.segments[i].bytes == mine.segments[i].bytes, "segments are of one size");
    }
    const auto again = shmem::unpack_address(shmem::pack_address(address, 5), 5);
    check(again && again->address == address.address, "an address can be passed on");
  }
}

}  // namespace fuzz
