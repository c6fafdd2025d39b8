// SPDX-License-Identifier: Apache-2.0
// How two sides prove to each other that they know a secret, which neither of them sends: HMAC-SHA-256 over random
// numbers of both sides. Seals then show that each later frame is the other side's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace wire {

using base::Result;

/// Known to the PEs of one job, or the members of one exchange, only. Never printed, never sent.
using Secret = std::array<std::uint8_t, 16>;
/// A random number that is used once, so that no proof is valid twice.
using Nonce = std::array<std::uint8_t, 32>;
using Proof = std::array<std::uint8_t, 32>;

/// Of a message that says for which protocol, and which side, it is.
Proof authenticate(const Secret& secret, std::span<const std::uint8_t> message);
/// The proof that its maker knows the secret: `purpose` tells protocols, and sides, apart.
Proof sign(const Secret& secret, std::string_view purpose, std::span<const std::uint8_t> message);

/// Shows that a frame is from the other side of a connection, whole, and in its turn: a program that passes frames on
/// between two sides that know the secret, but does not know it, can change, leave out, repeat or add none.
using Seal = Proof;

/// Makes the seals of the frames of one side.
class Seals {
 public:
  /// `side` tells the sides apart. `proof` is one of this connection, so that its random numbers are in each seal.
  Seals(const Secret& secret, std::string_view side, const Proof& proof) : key_(sign(secret, side, proof)) {}
  /// The seal of the next frame.
  Seal next(std::span<const std::byte> frame);

 private:
  Proof key_;
  std::uint64_t frames_ = 0;
};
/// Compares in constant time, so that the time does not tell how many bytes were right.
bool same(const Proof& one, const Proof& other);

/// The secret of the jobs that have the same `job` and know the same `key`, a text that people may have chosen. A
/// program that asks a server, or records a start, can try guesses at it: each takes 8 MiB of memory and some 10 ms
/// (Argon2id). Error: ENOMEM.
Result<Secret> derive_secret(const std::string& key, const std::string& job);
/// The same from a key that everybody may know: it only keeps jobs apart.
Secret derive_from_public(const std::string& key, const std::string& job);

/// From the kernel's generator. `purpose` is for the Error: "a unique id".
Result<void> fill_randomly(std::span<std::uint8_t> bytes, const char* purpose);

}  // namespace wire
