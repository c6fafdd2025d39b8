// SPDX-License-Identifier: Apache-2.0
#include "wire/proof.hpp"

#include <fmt/format.h>
#include <sodium/core.h>
#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/crypto_pwhash_argon2id.h>
#include <sodium/utils.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

namespace wire {

using base::fail;
using base::fail_errno;

namespace {

static_assert(std::tuple_size_v<Proof> == crypto_auth_hmacsha256_BYTES);

class Mac {
 public:
  explicit Mac(std::span<const std::uint8_t> key) {
    // Fails without random bits only, and the functions used here need none.
    [[maybe_unused]] static const int initialized = ::sodium_init();
    ::crypto_auth_hmacsha256_init(&state_, key.data(), key.size());
  }
  void add(std::span<const std::uint8_t> bytes) {
    ::crypto_auth_hmacsha256_update(&state_, bytes.data(), bytes.size());
  }
  void add(std::string_view text) { add({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}); }
  template <typename T>
  void add_object(const T& object) {
    static_assert(std::has_unique_object_representations_v<T>);
    add({reinterpret_cast<const std::uint8_t*>(&object), sizeof object});
  }
  Proof take() {
    Proof proof{};
    ::crypto_auth_hmacsha256_final(&state_, proof.data());
    return proof;
  }

 private:
  crypto_auth_hmacsha256_state state_{};
};

}  // namespace

Proof authenticate(const Secret& secret, std::span<const std::uint8_t> message) {
  Mac mac(secret);
  mac.add(message);
  return mac.take();
}

Proof sign(const Secret& secret, std::string_view purpose, std::span<const std::uint8_t> message) {
  Mac mac(secret);
  mac.add(purpose);
  mac.add_object(std::uint64_t{message.size()});  // its beginning cannot pass for a part of the purpose
  mac.add(message);
  return mac.take();
}

Seal Seals::next(std::span<const std::byte> frame) {
  Mac mac(key_);
  mac.add_object(frames_++);
  mac.add({reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size()});
  return mac.take();
}

bool same(const Proof& one, const Proof& other) {
  return ::sodium_memcmp(one.data(), other.data(), one.size()) == 0;
}

Result<Secret> derive_secret(const std::string& key, const std::string& job) {
  constexpr unsigned long long kPasses = 3;
  constexpr std::size_t kMemory = std::size_t{8} << 20;
  const Secret salt = derive_from_public("libshmem: salt of a secret", job);
  static_assert(std::tuple_size_v<Secret> == crypto_pwhash_argon2id_SALTBYTES);
  Secret secret{};
  if (::crypto_pwhash_argon2id(secret.data(), secret.size(), key.data(), key.size(), salt.data(), kPasses, kMemory,
                               crypto_pwhash_argon2id_ALG_ARGON2ID13) != 0) {
    return fail(std::errc::not_enough_memory, "shmem: cannot derive a secret from SHMEM_UID_SECRET: out of memory");
  }
  return secret;
}

Secret derive_from_public(const std::string& key, const std::string& job) {
  Mac mac({reinterpret_cast<const std::uint8_t*>(key.data()), key.size()});
  mac.add("libshmem: secret of a job");
  mac.add(job);
  const Proof whole = mac.take();
  Secret secret{};
  std::copy_n(whole.begin(), secret.size(), secret.begin());
  return secret;
}

Result<void> fill_randomly(std::span<std::uint8_t> bytes, const char* purpose) {
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail_errno(errno, fmt::format("shmem: cannot get random bits for {}: getrandom", purpose));
  }
  return {};
}

}  // namespace wire
