// SPDX-License-Identifier: Apache-2.0
// The unique id of a job: where its server listens, and the secret by which PEs are admitted.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/fd.hpp"
#include "shmem/bootstrap/uid_protocol.hpp"
#include "shmem/result.hpp"
#include "wire/endpoint.hpp"
#include "wire/interfaces.hpp"

namespace shmem {

using wire::Endpoint;

struct UniqueId {
  Secret secret{};
  Endpoint place;
};

/// The form that the application passes on: shmemx_uniqueid_t.internal.
using UniqueIdBytes = std::array<std::byte, 124>;
UniqueIdBytes pack(const UniqueId& id);
/// An Error if these are not the bytes of an id, or if its server is in a folder, and `folder` is "".
Result<UniqueId> unpack(const UniqueIdBytes& bytes, const std::string& folder = {});

/// The settings of the environment or shmemx_init_attr.
struct UidSettings {
  std::string session = {};    // SHMEM_UID_SESSION_ID, or ""
  std::string interface = {};  // SHMEM_UID_SOCK_IFNAME, or ""
  std::string folder = {};     // SHMEM_JOB_DIR, or ""
  std::optional<int> rank = {};
  std::optional<int> size = {};
  std::string shared_secret = {};  // SHMEM_UID_SECRET, or ""
};

/// The socket of a server that starts later: other PEs can connect from now on, and are answered later.
struct UidListener {
  base::UniqueFd socket;
  UniqueId id;
  std::string how;  // how the address was chosen, for messages
};

/// A new id with a random secret. Listens at the session's address, else in the folder, else at the interface's
/// address, else at an address of this host (choose_address); on a free port if none is given.
Result<UidListener> open_listener(const UidSettings& settings);

/// The id of a job that was started without a unique id: the session's address, and a secret made of `shared_secret`,
/// or else of public values (session, size, user), which prevents mix-ups, not attacks.
Result<UniqueId> shared_id(const UidSettings& settings);
/// PE 0 listens at that address.
Result<UidListener> open_shared_listener(const UidSettings& settings);

}  // namespace shmem
