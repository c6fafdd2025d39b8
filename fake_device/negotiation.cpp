// SPDX-License-Identifier: Apache-2.0
#include "fake_device/negotiation.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace fake_device {
namespace {

using nlohmann::json;

bool read_number(const json& capabilities, const char* name, std::uint64_t& value) {
  const auto found = capabilities.find(name);
  if (found == capabilities.end()) {
    return true;
  }
  if (!found->is_number_unsigned()) {
    return false;
  }
  value = found->get<std::uint64_t>();
  return true;
}

bool read_flag(const json& capabilities, const char* name, bool& value) {
  const auto found = capabilities.find(name);
  if (found == capabilities.end()) {
    return true;
  }
  if (!found->is_boolean()) {
    return false;
  }
  value = found->get<bool>();
  return true;
}

Result<ClientLimits> parse_capabilities(const json& document) {
  ClientLimits limits;
  if (!document.is_object()) {
    return failure("its capabilities are not a JSON object");
  }
  const auto capabilities = document.find("capabilities");
  if (capabilities == document.end()) {
    return limits;
  }
  if (!capabilities->is_object() || !read_number(*capabilities, "max_msg_fds", limits.max_fds) ||
      !read_number(*capabilities, "max_data_xfer_size", limits.max_transfer) ||
      !read_flag(*capabilities, "write_multiple", limits.write_multiple)) {
    return failure("a capability of it has the wrong type");
  }
  limits.max_transfer = std::min<std::uint64_t>(limits.max_transfer, kMaxTransfer);
  return limits;
}

}  // namespace

Result<ClientLimits> parse_version(std::span<const std::byte> payload) {
  vfio_user_version version{};
  if (payload.size() < sizeof version) {
    return failure("its VERSION message is too short");
  }
  std::memcpy(&version, payload.data(), sizeof version);
  if (version.major != VFIO_USER_MAJOR) {
    return failure("it speaks vfio-user " + std::to_string(version.major) + "." + std::to_string(version.minor) +
                   ", this server " + std::to_string(VFIO_USER_MAJOR) + "." + std::to_string(VFIO_USER_MINOR));
  }
  const auto text = payload.subspan(sizeof version);
  if (text.empty()) {
    return ClientLimits{};
  }
  const auto end = std::find(text.begin(), text.end(), std::byte{0});
  if (end != text.end() - 1) {
    return failure("its capabilities are not one string that ends with a NUL");
  }
  const auto* const begin = reinterpret_cast<const char*>(text.data());
  return parse_capabilities(json::parse(begin, begin + text.size() - 1, nullptr, /*allow_exceptions=*/false));
}

std::vector<std::byte> version_reply(const ClientLimits& limits) {
  json capabilities{{"max_msg_fds", kMaxFds},
                    {"max_data_xfer_size", kMaxTransfer},
                    {"max_dma_maps", kMaxDmaMaps},
                    {"pgsizes", kPageSize}};
  if (limits.write_multiple) {
    capabilities["write_multiple"] = true;
  }
  const std::string text = json{{"capabilities", capabilities}}.dump();
  const vfio_user_version version{.major = VFIO_USER_MAJOR, .minor = VFIO_USER_MINOR};
  std::vector<std::byte> payload(sizeof version + text.size() + 1);
  std::memcpy(payload.data(), &version, sizeof version);
  std::memcpy(payload.data() + sizeof version, text.c_str(), text.size() + 1);
  return payload;
}

}  // namespace fake_device
