// SPDX-License-Identifier: Apache-2.0
// A network without another PE.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shmem/net/network.hpp"

namespace shmem {

/// Notes the calls that change another PE's memory, and those that order them; refuses all others.
class NotingNetwork : public Network {
 public:
  Result<void> put(const RemotePlace& to, const void* /*from*/, std::size_t /*bytes*/) override {
    return note("put", to.pe);
  }
  Result<void> start_put(const RemotePlace& to, const void* /*from*/, std::size_t /*bytes*/) override {
    return note("start_put", to.pe);
  }
  Result<void> post_atomic(const RemotePlace& word, std::size_t /*size*/, AtomicOperation operation,
                           std::uint64_t /*operand*/) override {
    return note(operation == AtomicOperation::kSet ? "set" : "add", word.pe);
  }
  Result<void> fence(PeChoice pes) override { return note("fence", pes); }
  Result<void> quiet(PeChoice pes) override { return note("quiet", pes); }

  Result<void> get(void* /*to*/, const RemotePlace& /*from*/, std::size_t /*bytes*/) override { return refused(); }
  Result<void> start_get(void* /*to*/, const RemotePlace& /*from*/, std::size_t /*bytes*/) override {
    return refused();
  }
  Result<std::uint64_t> fetch_atomic(const RemotePlace& /*word*/, std::size_t /*size*/, AtomicOperation /*operation*/,
                                     std::uint64_t /*operand*/, std::uint64_t /*compared*/) override {
    return refused();
  }
  Result<std::uint64_t> start_send(int /*pe*/, std::uint64_t /*tag*/, const void* /*from*/,
                                   std::size_t /*bytes*/) override {
    return refused();
  }
  Result<std::uint64_t> start_receive(int /*pe*/, std::uint64_t /*tag*/, void* /*to*/, std::size_t /*bytes*/) override {
    return refused();
  }
  Result<void> wait(std::uint64_t /*request*/, std::optional<std::chrono::nanoseconds> /*limit*/) override {
    return refused();
  }
  Result<bool> test(std::uint64_t /*request*/) override { return refused(); }
  void cancel(std::uint64_t /*request*/) override {}
  Result<std::vector<std::byte>> add_segment(Segment /*segment*/, std::span<std::byte> /*memory*/) override {
    return refused();
  }
  void attach_segment(Segment /*segment*/, std::vector<SegmentAddress> /*places*/) override {}
  void remove_segment(Segment /*segment*/) override {}
  [[nodiscard]] bool has_lost(int /*pe*/) const override { return false; }
  [[nodiscard]] bool has_come(const TagPattern& /*pattern*/) override { return false; }
  bool advance() override { return false; }
  void sleep(std::chrono::nanoseconds /*longest*/) override {}
  void wake() override {}
  [[nodiscard]] std::optional<Error> lost() const override { return {}; }
  [[nodiscard]] std::string describe() const override { return "notes"; }

  /// The calls since the last time, each with its PEs.
  std::vector<std::string> take() { return std::exchange(calls_, {}); }

 private:
  static Error refused() { return fail(std::errc::not_supported, "not in this test"); }
  Result<void> note(const std::string& call, int pe) { return note(call, PeChoice(pe)); }
  Result<void> note(const std::string& call, PeChoice pes) {
    std::string text = call;
    for (int pe = 0; pe < 3; ++pe) {
      text += pes.contains(pe) ? " " + std::to_string(pe) : "";
    }
    calls_.push_back(text);
    return {};
  }

  std::vector<std::string> calls_;
};

}  // namespace shmem
