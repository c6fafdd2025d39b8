// SPDX-License-Identifier: Apache-2.0
// Memory of a PE that its program registers, for tests.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "tests/integration/shmem/pe_checks.hpp"

namespace registered {

constexpr std::size_t kBytes = std::size_t{1} << 20;

inline int me() {
  return shmem_my_pe();
}
inline int pes() {
  return shmem_n_pes();
}
inline int next() {
  return (me() + 1) % pes();
}

/// Memory of this PE with what shmemx_memory_register needs to know about it.
class Memory {
 public:
  enum class Kind { kGiven, kFound, kNamed, kPrivate };

  /// `skip`: bytes of the file before it.
  Memory(Kind kind, std::size_t bytes, std::size_t skip = 0) : bytes_(bytes), offset_(skip) {
    const std::size_t all = bytes + skip;
    if (kind == Kind::kPrivate) {
      void* memory = nullptr;
      CHECK(::posix_memalign(&memory, 64, bytes) == 0);
      private_.reset(static_cast<std::byte*>(memory));
      address_ = private_.get();
      return;
    }
    if (kind == Kind::kNamed) {
      std::string name = "/dev/shm/registered_pes-XXXXXX";
      fd_ = ::mkstemp(name.data());
      name_ = name;
    } else {
      fd_ = ::memfd_create("registered", MFD_CLOEXEC);
    }
    CHECK(fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(all)) == 0);
    mapped_ = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    mapped_bytes_ = all;
    CHECK(mapped_ != MAP_FAILED);
    address_ = static_cast<std::byte*>(mapped_) + skip;
    if (kind == Kind::kNamed) {
      ::close(std::exchange(fd_, -1));
    }
    given_ = kind == Kind::kGiven ? fd_ : -1;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (mapped_ != nullptr) {
      ::munmap(mapped_, mapped_bytes_);
    }
    if (fd_ >= 0) {
      ::close(fd_);
    }
    if (!name_.empty()) {
      ::unlink(name_.c_str());
    }
  }

  [[nodiscard]] int add() const { return shmemx_memory_register(address_, bytes_, given_, given_ >= 0 ? offset_ : 0); }
  [[nodiscard]] int remove() const { return shmemx_memory_unregister(address_); }
  template <typename T>
  [[nodiscard]] T* at(std::size_t offset = 0) const {
    return reinterpret_cast<T*>(address_ + offset);
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }  // NOLINT(cppcoreguidelines-owning-memory)
  };
  std::unique_ptr<std::byte, Free> private_;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::byte* address_ = nullptr;
  std::size_t bytes_;
  std::size_t offset_;
  int fd_ = -1;
  int given_ = -1;
  std::string name_;
};

}  // namespace registered
