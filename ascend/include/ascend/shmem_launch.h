/* SPDX-License-Identifier: Apache-2.0 */
/* Launching kernels with arguments: what ascend-launches makes of kernel<<<blocks, l2, stream>>>(arguments). C++14. */
#ifndef SHMEM_ASCEND_SHMEM_LAUNCH_H
#define SHMEM_ASCEND_SHMEM_LAUNCH_H

#include <stdint.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../shmemx.h"
#include "../shmemx_interface.h"

/* What ascend-launches makes of casts to __ubuf__ pointers: the address of an offset in the core's own memory; other
 * addresses stay as they are, and nullptr, which is not an offset, stays null. */
template <typename Pointer, typename Value>
std::remove_cv_t<Pointer> shmemi_ub(Value value) {
  void* const address = (void*)(uintptr_t)value; /* numbers of any size, and pointers */
  return static_cast<std::remove_cv_t<Pointer>>((uintptr_t)value < SHMEMX_SCRATCH_SIZE ? shmemx_scratch(address)
                                                                                       : address);
}
template <typename Pointer>
std::remove_cv_t<Pointer> shmemi_ub(std::nullptr_t /*value*/) {
  return nullptr;
}

/* What the cores of a launch share; the last one to end deletes it. */
template <typename Kernel, typename... Arguments>
struct shmemi_launch_work {
  std::atomic<int> cores;
  Kernel kernel;
  std::tuple<Arguments...> arguments;

  template <size_t... Index>
  void call(std::index_sequence<Index...> /*all*/) const {
    kernel(std::get<Index>(arguments)...);
  }
  static void run(shmemx_core_t* /*core*/, void* work) {
    auto* const self = static_cast<shmemi_launch_work*>(work);
    self->call(std::index_sequence_for<Arguments...>());
    /* Release, and acquire for the last: the other cores' last reads come before the deletion. */
    if (self->cores.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const std::unique_ptr<shmemi_launch_work> last(self);
    }
  }
};

/* Runs kernel(arguments...) on as many cores as there are blocks, in the order of the stream, and returns at once. The
 * arguments are copied. The stream is not a parameter of the template, so that NULL and 0 convert. */
template <typename Blocks, typename Kernel, typename... Arguments>
void shmemx_ascend_launch(Blocks blocks, void* stream, Kernel kernel, Arguments... arguments) {
  using Work = shmemi_launch_work<Kernel, Arguments...>;
  const int cores = static_cast<int>(blocks);
  std::unique_ptr<Work> work(new Work{{cores}, kernel, std::tuple<Arguments...>(std::move(arguments)...)});
  shmemx_launch_on_stream(cores, Work::run, work.release(), static_cast<shmemx_stream_t*>(stream));
}

#endif
