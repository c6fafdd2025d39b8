// SPDX-License-Identifier: Apache-2.0
// How a PE and the job's server prove to each other that they know the job's secret, which neither of them sends:
// HMAC-SHA-256 over random numbers of both sides.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "shmem/result.hpp"

namespace shmem {

/// Known to the PEs of one job only. Never printed, never sent.
using Secret = std::array<std::uint8_t, 16>;
/// A random number that is used once, so that no proof is valid twice.
using Nonce = std::array<std::uint8_t, 32>;
using Proof = std::array<std::uint8_t, 32>;

/// The first message of a PE.
struct Hello {
  Nonce nonce;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t process;
  std::uint32_t limit;  // how long this PE waits in a step, in ms
  std::array<char, 64> host;
};
static_assert(sizeof(Hello) == 112);

/// The server's answer. The server proves itself first: a PE sends its proof to no other program.
struct Challenge {
  Nonce nonce;
  std::int32_t size;    // of the server's job
  std::int32_t server;  // the PE whose process the server is
  Proof proof;
};
static_assert(sizeof(Challenge) == 72);

/// A side's proof is of no use to the other side.
enum class Prover : std::uint8_t { kServer = 1, kPe = 2 };

/// The proof of `prover` for this exchange, which includes all of `hello` and all of `challenge` but its proof.
Proof prove(const Secret& secret, Prover prover, const Hello& hello, const Challenge& challenge);
/// The proof that its maker knows the secret, for any other protocol: `purpose` tells protocols, and sides, apart.
Proof sign(const Secret& secret, std::string_view purpose, std::span<const std::uint8_t> message);
/// Compares in constant time, so that the time does not tell how many bytes were right.
bool same(const Proof& one, const Proof& other);

/// The secret of the jobs that have the same `job` and know the same `key`.
Secret derive_secret(const std::string& key, const std::string& job);

/// From the kernel's generator. `purpose` is for the Error: "a unique id".
Result<void> fill_randomly(std::span<std::uint8_t> bytes, const char* purpose);

}  // namespace shmem
