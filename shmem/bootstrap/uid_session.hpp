// SPDX-License-Identifier: Apache-2.0
// The unique id of a job: where its server listens, and the secret that lets a PE in.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "shmem/bootstrap/uid_address.hpp"
#include "shmem/bootstrap/uid_frame.hpp"
#include "shmem/memory/fd.hpp"
#include "shmem/result.hpp"

namespace shmem {

struct UniqueId {
  Secret secret{};
  Endpoint place;
};

/// As it goes through the application: shmemx_uniqueid_t.internal.
using UniqueIdBytes = std::array<std::byte, 124>;
UniqueIdBytes pack(const UniqueId& id);
/// An Error if these are not the bytes of one.
Result<UniqueId> unpack(const UniqueIdBytes& bytes);

/// What the environment, or shmemx_init_attr, says about it.
struct UidSettings {
  std::string session = {};    // SHMEM_UID_SESSION_ID, or ""
  std::string interface = {};  // SHMEM_UID_SOCK_IFNAME, or ""
  std::optional<int> rank = {};
  std::optional<int> size = {};
  std::string shared_secret = {};  // SHMEM_UID_SECRET, or ""
};

/// The server's socket, before there is a server: others can connect from now on, and will be answered later.
struct UidListener {
  UniqueFd socket;
  UniqueId id;
  std::string how;  // it was chosen, for people
};

/// A new id with a random secret. Listens at the session's address, else at the interface's, else at one of this host's
/// (choose_address); on a free port where none is given.
Result<UidListener> open_listener(const UidSettings& settings);

/// The id of a job without anybody who hands one out: the session's address, and a secret made of `shared_secret`, or,
/// without one, of what anybody can know: session, size, user. That keeps jobs apart, not people out.
Result<UniqueId> shared_id(const UidSettings& settings);
/// Listens there, as PE 0 does.
Result<UidListener> open_shared_listener(const UidSettings& settings);

}  // namespace shmem
