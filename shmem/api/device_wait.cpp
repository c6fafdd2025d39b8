// SPDX-License-Identifier: Apache-2.0
// Waits for, and tests of, arrays of words of this PE.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "shmem/api/waiting.hpp"
#include "shmem_device.h"

using shmem::Context;
namespace api = shmem::api;

namespace {

/// The elements of one call, of type T; checked.
template <typename T>
class Elements {
 public:
  Elements(const Context& context, const shmemx_elements_t& given)
      : given_(given), first_(static_cast<T*>(given.elements)), values_(static_cast<const T*>(given.values)) {
    api::check_cmp(context, given.call, given.cmp);
    if (given.count == 0) {
      return;
    }
    api::check_aligned(context, given.call, first_);
    if (given.count > SIZE_MAX / sizeof(T) || values_ == nullptr) {
      api::end_job(context, given.call,
                   values_ == nullptr ? "no value to compare with is given"
                                      : std::to_string(given.count) + " elements are too many");
    }
    // Elements are what other PEs write to.
    api::remote(context, given.call, first_, given.count * sizeof(T), context.my_pe());
  }

  [[nodiscard]] bool excluded(std::size_t i) const { return given_.status != nullptr && given_.status[i] != 0; }
  [[nodiscard]] bool met(std::size_t i) const { return api::compare(value(i), given_.cmp, with(i)); }

  [[nodiscard]] std::size_t first_met() const {
    for (std::size_t i = 0; i < given_.count; ++i) {
      if (!excluded(i) && met(i)) {
        return i;
      }
    }
    return SIZE_MAX;
  }
  [[nodiscard]] std::size_t first_unmet() const {
    for (std::size_t i = 0; i < given_.count; ++i) {
      if (!excluded(i) && !met(i)) {
        return i;
      }
    }
    return SIZE_MAX;
  }
  std::size_t collect_met(std::size_t* indices) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < given_.count; ++i) {
      if (!excluded(i) && met(i)) {
        indices[found++] = i;
      }
    }
    return found;
  }
  [[nodiscard]] bool empty() const {
    std::size_t i = 0;
    while (i < given_.count && excluded(i)) {
      ++i;
    }
    return i == given_.count;
  }
  [[nodiscard]] std::string describe() const {
    const std::size_t i = first_unmet();
    return i == SIZE_MAX ? "nothing missing"
                         : "element " + std::to_string(i) + " of " + std::to_string(given_.count) + ": " +
                               api::unmet(value(i), given_.cmp, with(i));
  }

 private:
  // Acquire: pairs with the release of puts, signals and atomics; what was stored before is visible.
  [[nodiscard]] T value(std::size_t i) const { return std::atomic_ref<T>(first_[i]).load(std::memory_order_acquire); }
  [[nodiscard]] T with(std::size_t i) const { return values_[given_.value_for_each != 0 ? i : 0]; }

  const shmemx_elements_t& given_;
  T* first_;
  const T* values_;
};

template <typename T>
std::size_t look(const Elements<T>& elements, int which, std::size_t* indices) {
  switch (which) {
    case SHMEMX_ALL:
      return elements.first_unmet() == SIZE_MAX ? 1 : 0;
    case SHMEMX_ANY:
      return elements.first_met();
    default:
      return elements.collect_met(indices);
  }
}

template <typename T>
std::size_t wait(const Context& context, const shmemx_elements_t& given, int which, std::size_t* indices) {
  const Elements<T> elements(context, given);
  const std::size_t nothing = which == SHMEMX_ANY ? SIZE_MAX : 0;
  if (elements.empty()) {
    return which == SHMEMX_ALL ? 1 : nothing;
  }
  std::size_t seen = nothing;
  api::wait_here(
      context, given.call, [&] { return (seen = look(elements, which, indices)) != nothing; },
      [&] { return elements.describe(); });
  return seen;
}

template <typename T>
std::size_t test(const Context& context, const shmemx_elements_t& given, int which, std::size_t* indices) {
  context.job().policy.advance();  // what is waited for may come over the network
  return look(Elements<T>(context, given), which, indices);
}

/// Calls `act` with a T of that type.
template <typename Act>
std::size_t with_type(const Context& context, const shmemx_elements_t& given, Act act) {
  switch (given.type) {
    case SHMEMX_FLOAT:
      return act(float{});
    case SHMEMX_INT8:
      return act(std::int8_t{});
    case SHMEMX_INT16:
      return act(std::int16_t{});
    case SHMEMX_INT32:
      return act(std::int32_t{});
    case SHMEMX_INT64:
      return act(std::int64_t{});
    case SHMEMX_UINT8:
      return act(std::uint8_t{});
    case SHMEMX_UINT16:
      return act(std::uint16_t{});
    case SHMEMX_UINT32:
      return act(std::uint32_t{});
    case SHMEMX_UINT64:
      return act(std::uint64_t{});
    default:
      api::end_job(context, given.call, std::to_string(given.type) + " is no type (SHMEMX_FLOAT ... SHMEMX_UINT64)");
  }
}

const Context& checked(const shmemx_elements_t* given, int which, const std::size_t* indices) {
  const Context& context = api::running(given->call);
  if (which != SHMEMX_ALL && which != SHMEMX_ANY && which != SHMEMX_SOME) {
    api::end_job(context, given->call, std::to_string(which) + " is none of SHMEMX_ALL, SHMEMX_ANY, SHMEMX_SOME");
  }
  if (which == SHMEMX_SOME && indices == nullptr && given->count > 0) {
    api::end_job(context, given->call, "there is nowhere to put the indices: indices is NULL");
  }
  return context;
}

}  // namespace

extern "C" {

size_t shmemx_wait_elements(const shmemx_elements_t* elements, int which, size_t* indices) noexcept {
  const Context& context = checked(elements, which, indices);
  return with_type(context, *elements,
                   [&](auto value) { return wait<decltype(value)>(context, *elements, which, indices); });
}

size_t shmemx_test_elements(const shmemx_elements_t* elements, int which, size_t* indices) noexcept {
  const Context& context = checked(elements, which, indices);
  return with_type(context, *elements,
                   [&](auto value) { return test<decltype(value)>(context, *elements, which, indices); });
}
}
