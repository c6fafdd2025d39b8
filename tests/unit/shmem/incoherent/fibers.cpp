// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/incoherent/fibers.hpp"

#include <cstdint>
#include <system_error>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace incoherent {

namespace {
constexpr std::size_t kStackSize = std::size_t{64} << 10;
}

Fibers::Fibers(int count, Main main) : main_(std::move(main)), fibers_(static_cast<std::size_t>(count) + 1) {
#if defined(__SANITIZE_THREAD__)
  at(kCaller).shadow = __tsan_get_current_fiber();
#endif
  for (int i = 0; i < count; ++i) {
    prepare(at(i));
  }
}

void Fibers::prepare(Fiber& fiber) {
  fiber.stack = std::make_unique_for_overwrite<std::byte[]>(kStackSize);
  fiber.stack_bottom = fiber.stack.get();
  fiber.stack_size = kStackSize;
  if (getcontext(&fiber.context) != 0) {
    throw std::system_error(errno, std::generic_category(), "getcontext");
  }
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackSize;
  const auto self = reinterpret_cast<std::uintptr_t>(this);  // passed in two halves: makecontext passes ints only
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(&Fibers::enter), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
#if defined(__SANITIZE_THREAD__)
  fiber.shadow = __tsan_create_fiber(0);
#endif
}

Fibers::~Fibers() {
#if defined(__SANITIZE_THREAD__)
  for (std::size_t i = 1; i < fibers_.size(); ++i) {
    __tsan_destroy_fiber(fibers_[i].shadow);
  }
#endif
}

void Fibers::enter(unsigned high, unsigned low) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): see prepare()
  auto* const self = reinterpret_cast<Fibers*>(std::uintptr_t{high} << 32 | low);
  self->arrived();
  self->main_(self->current_);
}

void Fibers::switch_to(int fiber) {
  if (fiber == current_) {
    return;
  }
  Fiber& from = at(current_);
  leave_for(fiber);
  swapcontext(&from.context, &at(fiber).context);
  arrived();
}

void Fibers::leave_for(int fiber) {
  previous_ = std::exchange(current_, fiber);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&at(previous_).fake_stack, at(fiber).stack_bottom, at(fiber).stack_size);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(at(fiber).shadow, 0);
#endif
}

void Fibers::arrived() {
#if defined(__SANITIZE_ADDRESS__)
  Fiber& from = at(previous_);  // ASan reports the bounds of the thread's own stack only here
  __sanitizer_finish_switch_fiber(at(current_).fake_stack, &from.stack_bottom, &from.stack_size);
#endif
}

}  // namespace incoherent
