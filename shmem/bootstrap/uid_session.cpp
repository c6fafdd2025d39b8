// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/uid_session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "base/folder.hpp"
#include "base/number.hpp"

namespace shmem {

namespace {

constexpr std::uint32_t kTag = 0x44495553;  // "SUID"

/// One layout for both address families.
struct Packed {
  std::uint32_t tag;
  std::uint16_t family;  // 4 or 6; 1: the name of a socket in the job's folder, "shmem-" and `address` in hexadecimal
  std::uint16_t port;
  std::uint32_t scope;
  std::array<std::uint8_t, 16> address;
  Secret secret;
};
static_assert(sizeof(Packed) == 44 && sizeof(Packed) <= sizeof(UniqueIdBytes));

/// Without a shared secret, the user in its place only keeps jobs apart: everybody can know it.
Result<Secret> secret_of(const UidSettings& settings) {
  const bool shared = !settings.shared_secret.empty();
  const std::string job =
      fmt::format("{}\n{}\n{}", shared ? "secret" : "user", settings.session, settings.size.value_or(0));
  return shared ? derive_secret(settings.shared_secret, job) : derive_from_public(fmt::to_string(::geteuid()), job);
}

Result<Endpoint> session_place(const UidSettings& settings) {
  auto place = wire::parse_endpoint(settings.session);
  if (!place) {
    place.error().text = fmt::format("shmem: SHMEM_UID_SESSION_ID={}: {}", settings.session, place.error().text);
  }
  return place;
}

Result<UidListener> listen_for(const UniqueId& id, std::string how) {
  UidListener listener{base::UniqueFd(), id, std::move(how)};
  auto socket = wire::listen_at(listener.id.place);
  if (!socket) {
    return fail(socket.error().code,
                fmt::format("{}; {} (set SHMEM_UID_SESSION_ID=ip:port or SHMEM_UID_SOCK_IFNAME=interface to choose "
                            "another address)",
                            socket.error().text, listener.how));
  }
  listener.socket = *std::move(socket);
  return listener;
}

using SocketNumber = decltype(Packed::address);

/// Each PE may know the folder by another path.
Endpoint place_in(const std::string& folder, const SocketNumber& number) {
  return Endpoint::at_path(fmt::format("{}/shmem-{:02x}", folder, fmt::join(number, "")));
}
std::optional<SocketNumber> number_of(const Endpoint& place) {
  SocketNumber number{};
  const std::string path = place.address_text();
  if (path.size() < 2 * number.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < number.size(); ++i) {
    const auto byte = base::hexadecimal_number<std::uint8_t>(path.substr(path.size() - 2 * (number.size() - i), 2));
    if (!byte) {
      return std::nullopt;
    }
    number[i] = *byte;
  }
  return number;
}

/// A new name in the folder, which is made ready.
Result<UniqueId> place_in(const std::string& folder, std::string& how) {
  if (auto ok = base::prepare_for_sockets(folder, "PEs (SHMEM_JOB_DIR)"); !ok) {
    return fail(ok.error().code, "shmem: " + ok.error().text);
  }
  SocketNumber number{};
  if (auto random = fill_randomly(number, "the name of a socket"); !random) {
    return random.error();
  }
  how = "SHMEM_JOB_DIR=" + folder;
  return UniqueId{{}, place_in(folder, number)};
}

/// Chooses among this host's interfaces.
Result<UniqueId> choose(const UidSettings& settings, std::string& how) {
  std::optional<wire::InterfaceChoice> choice;
  if (!settings.interface.empty()) {
    auto parsed = wire::parse_interface(settings.interface);
    if (!parsed) {
      return parsed.error();
    }
    choice = *parsed;
  }
  const auto all = wire::interface_addresses();
  if (!all) {
    return all.error();
  }
  const auto place = wire::choose_address(*all, choice);
  if (!place) {
    return place.error();
  }
  how = fmt::format("{} among this host's {}",
                    choice ? "SHMEM_UID_SOCK_IFNAME=" + settings.interface : "chosen automatically",
                    wire::interfaces_text(*all));
  return UniqueId{{}, *place};
}

Result<UniqueId> place_of(const UidSettings& settings, std::string& how) {
  if (settings.session.empty()) {
    return settings.folder.empty() ? choose(settings, how) : place_in(settings.folder, how);
  }
  auto place = session_place(settings);
  if (!place) {
    return place.error();
  }
  how = "SHMEM_UID_SESSION_ID=" + settings.session;
  return UniqueId{{}, *place};
}

}  // namespace

UniqueIdBytes pack(const UniqueId& id) {
  const Endpoint& place = id.place;
  Packed packed{.tag = kTag,
                .family = static_cast<std::uint16_t>(place.family() == AF_INET ? 4 : 6),
                .port = place.port(),
                .scope = 0,
                .address = {},
                .secret = id.secret};
  if (place.family() == AF_UNIX) {
    packed.family = 1;
    packed.address = number_of(place).value_or(SocketNumber{});
  } else if (place.family() == AF_INET) {
    std::memcpy(packed.address.data(), &reinterpret_cast<const sockaddr_in&>(place.storage).sin_addr, 4);
  } else {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(place.storage);
    std::memcpy(packed.address.data(), &six.sin6_addr, 16);
    packed.scope = six.sin6_scope_id;
  }
  UniqueIdBytes bytes{};
  std::memcpy(bytes.data(), &packed, sizeof(packed));
  return bytes;
}

Result<UniqueId> unpack(const UniqueIdBytes& bytes, const std::string& folder) {
  Packed packed{};
  std::memcpy(&packed, bytes.data(), sizeof(packed));
  if (packed.tag == kTag && packed.family == 1) {
    if (folder.empty()) {
      return fail(std::errc::invalid_argument,
                  "shmem: the unique id is of a job whose PEs meet in a folder: set SHMEM_JOB_DIR for this PE, too");
    }
    return UniqueId{packed.secret, place_in(folder, packed.address)};
  }
  if (packed.tag != kTag || (packed.family != 4 && packed.family != 6) || packed.port == 0) {
    return fail(
        std::errc::invalid_argument,
        "shmem: the unique id is invalid: its bytes do not come from shmemx_get_uniqueid; was it sent to all PEs?");
  }
  UniqueId id{packed.secret, {}};
  if (packed.family == 4) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    std::memcpy(&four.sin_addr, packed.address.data(), 4);
    id.place = Endpoint::of(reinterpret_cast<const sockaddr*>(&four));
  } else {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_scope_id = packed.scope;
    std::memcpy(&six.sin6_addr, packed.address.data(), 16);
    id.place = Endpoint::of(reinterpret_cast<const sockaddr*>(&six));
  }
  id.place.set_port(packed.port);
  return id;
}

Result<UidListener> open_listener(const UidSettings& settings) {
  std::string how;
  auto id = place_of(settings, how);
  if (!id) {
    return id.error();
  }
  if (auto random = fill_randomly(id->secret, "a unique id"); !random) {
    return random.error();
  }
  return listen_for(*id, std::move(how));
}

Result<UniqueId> shared_id(const UidSettings& settings) {
  auto place = session_place(settings);
  if (!place) {
    return place.error();
  }
  if (place->port() == 0) {
    return fail(std::errc::invalid_argument,
                fmt::format("shmem: SHMEM_UID_SESSION_ID={}: name a port: without a launcher the other PEs cannot know "
                            "which port PE 0 was given",
                            settings.session));
  }
  const auto secret = secret_of(settings);
  return secret ? Result<UniqueId>(UniqueId{*secret, *place}) : secret.error();
}

Result<UidListener> open_shared_listener(const UidSettings& settings) {
  const auto id = shared_id(settings);
  if (!id) {
    return id.error();
  }
  return listen_for(*id, "SHMEM_UID_SESSION_ID=" + settings.session);
}

}  // namespace shmem
