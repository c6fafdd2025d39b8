// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "shmem/net/request_server.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/targets.hpp"

namespace fuzz {
namespace {

using shmem::Answer;

constexpr std::byte kGuard{0x5a};
constexpr std::size_t kLongest = 64;
constexpr std::uint64_t kJob = 0;

/// Two segments, with bytes before and after them that no request may change.
class Memory {
 public:
  Memory() { all_.fill(kGuard); }
  [[nodiscard]] std::span<std::byte> heap() { return std::span(all_).subspan(64, 300); }
  [[nodiscard]] std::span<std::byte> board() { return std::span(all_).subspan(512, 24); }
  void check_guards() {
    for (const auto& [from, to] : {std::pair{0, 64}, std::pair{364, 512}, std::pair{536, 1024}}) {
      check(std::all_of(all_.begin() + from, all_.begin() + to, [](std::byte byte) { return byte == kGuard; }),
            "only segments are written");
    }
  }

 private:
  alignas(64) std::array<std::byte, 1024> all_{};
};

/// Checks the answers to one request.
class Replies final : public shmem::RequestServer::Replies {
 public:
  explicit Replies(Memory& memory) : memory_(memory) {}

  void answer(const Answer& answer, std::span<const std::byte> bytes) override {
    check(answer.number != 0 && answer.job == kJob, "an answer has a number and the job's");
    check(bytes.size() <= kLongest, "an answer is not too long");
    check(bytes.empty() || lies_in(memory_.heap(), bytes) || lies_in(memory_.board(), bytes),
          "answers are made of segments");
    check(!refused_ || (answer.refused != shmem::Refusal::kNone && bytes.empty()), "an invalid request is refused");
    sent_ += bytes.size();
    check(sent_ <= memory_.heap().size(), "a request gets at most a segment");
  }
  void refuse(int pe, shmem::Refusal why) override {
    check(why == shmem::Refusal::kMemory || why == shmem::Refusal::kOrder, "a refusal has a reason");
    check(pe == 1 || pe == 2, "a PE of another node is refused");
    refused_ = true;
  }
  void report_foreign(int pe) override { check(pe == 1 || pe == 2, "a PE of another node is named"); }

 private:
  static bool lies_in(std::span<const std::byte> segment, std::span<const std::byte> bytes) {
    return bytes.data() >= segment.data() && bytes.data() + bytes.size() <= segment.data() + segment.size();
  }

  Memory& memory_;
  std::size_t sent_ = 0;
  bool refused_ = false;
};

/// The numbers of the requests of each PE. Hardly any input has the right ones: 0 stands for the next one.
class Sequences {
 public:
  void fill_in(std::span<std::byte> header) {
    shmem::Request request;
    if (header.size() != sizeof request) {
      return;
    }
    std::memcpy(&request, header.data(), sizeof request);
    if (request.from < next_.size() && request.job == kJob && request.sequence == 0) {
      request.sequence = next_[request.from]++;
      std::memcpy(header.data(), &request, sizeof request);
    }
  }

 private:
  std::array<std::uint16_t, 3> next_{};
};

}  // namespace

// Messages: i8 length of the header minus 48, the header, u8 length of the bytes, the bytes.
void run_request(std::span<const std::byte> bytes) {
  Input input(bytes);
  Memory memory;
  shmem::RequestServer server({memory.heap(), {}, memory.board()}, {false, true, true}, kLongest, kJob);
  Sequences sequences;
  while (!input.empty()) {
    const int length = static_cast<int>(sizeof(shmem::Request)) + input.take<std::int8_t>();
    const auto taken = input.take_bytes(static_cast<std::size_t>(std::max(length, 0)));
    std::vector<std::byte> header(taken.begin(), taken.end());
    sequences.fill_in(header);
    const auto data = input.take_bytes(input.take<std::uint8_t>());
    Replies replies(memory);
    server.serve(header, data, replies);
  }
  memory.check_guards();
}

}  // namespace fuzz
