// SPDX-License-Identifier: Apache-2.0
// libshmem_profile.so, which oshrun --profile preloads: every routine shmem_X that shmem.h declares, which counts the
// call and makes it by pshmem_X. The declarations of the headers become definitions here, so no routine is forgotten.
// They name types but not always parameters: shmem_X is an indirect function, whose resolver returns a function of a
// template, which has the type of pshmem_X.
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shmem/profile/recorder.hpp"

// As in shmem_context.h, which the macro below needs this before.
using shmem_team_t = struct shmem_team*;
using shmem_ctx_t = struct shmem_ctx*;

namespace {

using shmem::profile::Argument;

template <typename Type>
Argument describe(Type argument) {
  if constexpr (std::is_integral_v<Type>) {
    return {static_cast<std::uint64_t>(argument), 0};
  } else if constexpr (std::is_same_v<Type, shmem_ctx_t>) {
    return {reinterpret_cast<std::uint64_t>(argument), 0};
  } else if constexpr (std::is_pointer_v<Type> && !std::is_same_v<Type, shmem_team_t>) {
    using Pointee = std::remove_cv_t<std::remove_pointer_t<Type>>;
    if constexpr (!std::is_void_v<Pointee>) {
      return {0, sizeof(Pointee)};
    }
  }
  return {};
}

/// True if the first of the types is `Type`.
template <typename Type, typename...>
constexpr bool kBeginsWith = false;
template <typename Type, typename First, typename... Others>
constexpr bool kBeginsWith<Type, First, Others...> = std::is_same_v<Type, First>;

template <const char* name, typename Type, Type* routine>
struct Counted;

template <const char* name, typename Result, typename... Arguments, Result (*routine)(Arguments...)>
struct Counted<name, Result(Arguments...), routine> {
  static constinit inline shmem::profile::Routine counts{name, kBeginsWith<shmem_ctx_t, Arguments...>,
                                                         kBeginsWith<shmem_team_t, Arguments...>};

  static Result call(Arguments... arguments) {
    shmem::profile::Call call(counts);
    const Argument described[sizeof...(Arguments) + 1] = {describe(arguments)..., {}};
    if constexpr (std::is_void_v<Result>) {
      routine(arguments...);
      call.done(described, sizeof...(Arguments));
    } else {
      const Result result = routine(arguments...);
      call.done(described, sizeof...(Arguments));
      return result;
    }
  }
};

/// shmem_pcontrol, whose further arguments mean nothing to libshmem.
template <const char* name, typename Result, typename... Arguments, Result (*routine)(Arguments..., ...)>
struct Counted<name, Result(Arguments..., ...), routine> {
  static Result call(Arguments... arguments, ...) { return routine(arguments...); }
};

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): types and lists of parameters
#define SHMEM_DECLARE_NAME(result, name, parameters)                \
  __attribute__((visibility("default"))) result p##name parameters; \
  static constexpr char name##_name[] = #name;                      \
  [[gnu::used]] static decltype(&p##name) name##_resolver() {       \
    return Counted<name##_name, decltype(p##name), p##name>::call;  \
  }                                                                 \
  __attribute__((visibility("default"), ifunc(#name "_resolver"))) result name parameters;
// NOLINTEND(bugprone-macro-parentheses)
#define SHMEM_NO_OVERLOADS
#include <shmem.h>
