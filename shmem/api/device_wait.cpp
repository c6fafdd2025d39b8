// SPDX-License-Identifier: Apache-2.0
// Waiting for, and testing, arrays of words of this PE.
#include <array>
#include <bit>
#include <cstdint>

#include "shmem/api/waiting.hpp"
#include "shmem_device.h"

using shmem::Runtime;
namespace api = shmem::api;

namespace {

/// A different element from call to call, below `count`, so that none of several that satisfy a comparison starves. Not
/// the next one: a program may call for several arrays by turns.
std::size_t random_below(std::size_t count) {
  static thread_local std::uint64_t state = 0;
  state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
  return (state >> 32) % count;
}

/// The elements of one call, of type T; checked.
template <typename T>
class Elements {
 public:
  Elements(const Runtime& runtime, const shmemx_elements_t& given, bool may_be_mapped)
      : runtime_(runtime),
        given_(given),
        first_(static_cast<T*>(given.elements)),
        values_(static_cast<const T*>(given.values)) {
    api::check_cmp(runtime, given.call, given.cmp);
    if (given.count == 0) {
      return;
    }
    aligned_ = reinterpret_cast<std::uintptr_t>(first_) % sizeof(T) == 0;
    if (!aligned_) [[unlikely]] {
      if (api::current_core() != nullptr) {
        api::refuse_alignment(runtime, given.call, first_, sizeof(T));
      }
      api::tolerate(
          runtime, given.call,
          fmt::format("the word is not aligned to its size, {} bytes ({}); a change of it may be seen in parts",
                      sizeof(T), api::place_text(runtime, first_)));
    }
    if (given.count > SIZE_MAX / sizeof(T) || values_ == nullptr) {
      api::end_job(runtime, given.call,
                   values_ == nullptr ? "no value to compare with is given"
                                      : fmt::format("{} elements are too many", given.count));
    }
    const std::size_t bytes = given.count * sizeof(T);
    if (may_be_mapped) {
      whose_ = api::words_at(runtime.job(), first_, bytes);
    }
    if (whose_ == api::WordsOf::kThisPe) {  // elements are what other PEs write to
      api::remote(runtime, given.call, first_, bytes, runtime.my_pe());
    }
  }

  [[nodiscard]] api::WordsOf whose() const { return whose_; }

  [[nodiscard]] bool excluded(std::size_t i) const { return given_.status != nullptr && given_.status[i] != 0; }
  [[nodiscard]] bool met(std::size_t i) const { return api::compare(value(i), given_.cmp, with(i)); }

  /// The first element that does not satisfy the comparison; SIZE_MAX if there is none.
  [[nodiscard]] std::size_t first_unmet() const {
    for (std::size_t i = 0; i < given_.count; ++i) {
      if (!excluded(i) && !met(i)) {
        return i;
      }
    }
    return SIZE_MAX;
  }
  /// Any element that satisfies the comparison; SIZE_MAX if there is none.
  [[nodiscard]] std::size_t any_met() const {
    const std::size_t start = given_.count > 1 ? random_below(given_.count) : 0;
    for (std::size_t looked = 0; looked < given_.count; ++looked) {
      const std::size_t i = start < given_.count - looked ? start + looked : start - (given_.count - looked);
      if (!excluded(i) && met(i)) {
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
                         : (given_.count > 1 ? fmt::format("element {} of {}: ", i, given_.count) : "") +
                               api::unmet(runtime_, first_ + i, value(i), given_.cmp, with(i));
  }

 private:
  // Acquire: pairs with the release of puts, signals and atomics; what was stored before is visible.
  [[nodiscard]] T value(std::size_t i) const {
    return aligned_ ? std::atomic_ref<T>(first_[i]).load(std::memory_order_acquire) : value_of_bytes(i);
  }
  /// Of a word that is not aligned: no atomic access. Read twice, which makes it unlikely to see half of a change.
  [[nodiscard]] T value_of_bytes(std::size_t i) const {
    using Bytes = std::array<unsigned char, sizeof(T)>;
    auto* word = reinterpret_cast<unsigned char*>(first_) + i * sizeof(T);
    const auto read = [word] {
      Bytes bytes{};
      for (std::size_t b = 0; b < bytes.size(); ++b) {
        bytes[b] = std::atomic_ref<unsigned char>(word[b]).load(std::memory_order_acquire);
      }
      return bytes;
    };
    Bytes seen = read();
    for (Bytes again = read(); again != seen; again = read()) {
      seen = again;
    }
    return std::bit_cast<T>(seen);
  }
  [[nodiscard]] T with(std::size_t i) const { return values_[given_.value_for_each != 0 ? i : 0]; }

  const Runtime& runtime_;
  const shmemx_elements_t& given_;
  T* first_;
  const T* values_;
  bool aligned_ = true;
  api::WordsOf whose_ = api::WordsOf::kThisPe;
};

template <typename T>
std::size_t look(const Elements<T>& elements, int which, std::size_t* indices) {
  switch (which) {
    case SHMEMX_ALL:
      return elements.first_unmet() == SIZE_MAX ? 1 : 0;
    case SHMEMX_ANY:
      return elements.any_met();
    default:
      return elements.collect_met(indices);
  }
}

template <typename T>
std::size_t wait(const Runtime& runtime, const shmemx_elements_t& given, int which, std::size_t* indices) {
  const Elements<T> elements(runtime, given, (which & SHMEMX_MAPPED) != 0);
  which &= ~SHMEMX_MAPPED;
  const std::size_t nothing = which == SHMEMX_ANY ? SIZE_MAX : 0;
  if (elements.empty()) {
    return which == SHMEMX_ALL ? 1 : nothing;
  }
  std::size_t seen = nothing;
  api::wait_here(
      runtime, given.call, [&] { return (seen = look(elements, which, indices)) != nothing; },
      [&] { return elements.describe(); }, {}, elements.whose());
  return seen;
}

template <typename T>
std::size_t test(const Runtime& runtime, const shmemx_elements_t& given, int which, std::size_t* indices) {
  runtime.job().policy.advance();  // the awaited word may come over the network
  return look(Elements<T>(runtime, given, (which & SHMEMX_MAPPED) != 0), which & ~SHMEMX_MAPPED, indices);
}

/// Calls `act` with a value of that type.
template <typename Act>
std::size_t with_type(const Runtime& runtime, const shmemx_elements_t& given, Act act) {
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
      api::end_job(runtime, given.call, "{} is not a type (SHMEMX_FLOAT ... SHMEMX_UINT64)", given.type);
  }
}

const Runtime& checked(const shmemx_elements_t* given, int which, const std::size_t* indices) {
  const Runtime& runtime = api::running(given->call);
  which &= ~SHMEMX_MAPPED;
  if (which != SHMEMX_ALL && which != SHMEMX_ANY && which != SHMEMX_SOME) {
    api::end_job(runtime, given->call, "{} is not one of SHMEMX_ALL, SHMEMX_ANY, SHMEMX_SOME", which);
  }
  if (which == SHMEMX_SOME && indices == nullptr && given->count > 0) {
    api::end_job(runtime, given->call, "the indices have no destination: indices is NULL");
  }
  return runtime;
}

}  // namespace

extern "C" {

size_t shmemx_wait_elements(const shmemx_elements_t* elements, int which, size_t* indices) noexcept try {
  const Runtime& runtime = checked(elements, which, indices);
  return with_type(runtime, *elements,
                   [&](auto value) { return wait<decltype(value)>(runtime, *elements, which, indices); });
}
SHMEM_CATCH(size_t)

size_t shmemx_test_elements(const shmemx_elements_t* elements, int which, size_t* indices) noexcept try {
  const Runtime& runtime = checked(elements, which, indices);
  return with_type(runtime, *elements,
                   [&](auto value) { return test<decltype(value)>(runtime, *elements, which, indices); });
}
SHMEM_CATCH(size_t)
}
