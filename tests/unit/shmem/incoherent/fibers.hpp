// SPDX-License-Identifier: Apache-2.0
// Several flows of control on one thread that switch only explicitly, so that a schedule can be repeated.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace incoherent {

/// Fibers 0..count-1 and the thread that made them, which is kCaller. Every switch is announced to the sanitizers.
class Fibers {
 public:
  static constexpr int kCaller = -1;
  /// The body of fiber i. It never returns; it switches to another fiber when it has nothing to do.
  using Main = std::function<void(int)>;

  Fibers(int count, Main main);
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;
  /// REQUIRES: kCaller runs. Objects on the fibers' stacks are not destroyed.
  ~Fibers();

  [[nodiscard]] int current() const { return current_; }
  /// Returns when another fiber switches back to this one.
  void switch_to(int fiber);

 private:
  struct Fiber {
    ucontext_t context{};
    std::unique_ptr<std::byte[]> stack;  // kCaller's is the thread's
    const void* stack_bottom = nullptr;
    std::size_t stack_size = 0;
    void* fake_stack = nullptr;  // AddressSanitizer's
    void* shadow = nullptr;      // ThreadSanitizer's
  };

  static void enter(unsigned high, unsigned low);
  [[nodiscard]] Fiber& at(int fiber) { return fibers_[static_cast<std::size_t>(fiber) + 1]; }
  void prepare(Fiber& fiber);
  void leave_for(int fiber);
  void arrived();

  Main main_;
  std::vector<Fiber> fibers_;  // kCaller first
  int current_ = kCaller;
  int previous_ = kCaller;
};

}  // namespace incoherent
