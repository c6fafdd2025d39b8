// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <span>

#include "tests/fuzz/seeds.hpp"
#include "uapi/vfio_user.h"

namespace fuzz {
namespace {

constexpr std::uint8_t kWhole = 255;

/// An input of the message target.
class Stream {
 public:
  explicit Stream(std::uint8_t longest_piece) : bytes_{std::byte{longest_piece}} {}

  Stream& header(std::uint16_t command, std::size_t size) {
    put(vfio_user_header{.msg_id = 1,
                         .command = command,
                         .msg_size = static_cast<std::uint32_t>(size),
                         .flags = VFIO_USER_TYPE_COMMAND,
                         .error = 0});
    return *this;
  }
  Stream& message(std::uint16_t command, std::size_t payload) {
    header(command, sizeof(vfio_user_header) + payload);
    bytes_.resize(bytes_.size() + payload, std::byte{0x5a});
    return *this;
  }
  Stream& version(const std::string& json, std::uint16_t major = VFIO_USER_MAJOR) {
    header(VFIO_USER_VERSION, sizeof(vfio_user_header) + sizeof(vfio_user_version) + json.size() + 1);
    put(vfio_user_version{.major = major, .minor = 0});
    const auto text = std::as_bytes(std::span(json.c_str(), json.size() + 1));
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  Stream& cut(std::size_t count) {
    bytes_.resize(bytes_.size() - count);
    return *this;
  }
  operator std::vector<std::byte>() const { return bytes_; }  // NOLINT(google-explicit-constructor)

 private:
  template <typename T>
  void put(const T& value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);  // not by insert(): g++ 16 takes it for a write out of bounds
    std::memcpy(&bytes_[at], &value, sizeof value);
  }
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> every_command() {
  Stream stream(7);
  for (std::uint16_t command = 0; command < 20; ++command) {
    stream.message(command, command);
  }
  return stream;
}

}  // namespace

Seeds message_seeds() {
  const std::string all =
      R"({"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576,"max_dma_maps":65535,"pgsizes":4096,)"
      R"("twin_socket":{"supported":true,"fd_index":0},"write_multiple":true,"migration":{"pgsize":4096}}})";
  return {
      {"version", Stream(kWhole).version(all)},
      {"version_byte_by_byte", Stream(0).version(all)},
      {"version_without_json", Stream(kWhole).message(VFIO_USER_VERSION, 4).cut(4).message(0, 0).cut(12)},
      {"version_with_two_strings", Stream(kWhole).version(std::string("{}\0{}", 5))},
      {"version_with_wrong_types", Stream(kWhole)
                                       .version(R"({"capabilities":{"max_msg_fds":-1}})")
                                       .version(R"({"capabilities":{"max_msg_fds":1e99}})")
                                       .version(R"({"capabilities":{"write_multiple":1}})")
                                       .version(R"({"capabilities":[]})")},
      {"version_with_huge_numbers",
       Stream(kWhole).version(R"({"capabilities":{"max_data_xfer_size":18446744073709551615,"max_msg_fds":0}})")},
      {"version_nested_deeply", Stream(kWhole).version(std::string(500, '[') + std::string(500, ']'))},
      {"version_with_escapes", Stream(kWhole).version(R"({"\u0000\ud83d\ude00":"\\\"\n","capabilities":{}})")},
      {"every_command", every_command()},
      {"long_payload", Stream(200).message(VFIO_USER_REGION_WRITE, 4200)},
      {"size_below_the_header", Stream(kWhole).header(VFIO_USER_VERSION, 15)},
      {"size_past_the_most", Stream(kWhole).header(VFIO_USER_VERSION, 0x11001)},
      {"half_a_payload", Stream(3).message(VFIO_USER_DMA_MAP, 32).cut(16)},
  };
}

}  // namespace fuzz
