/* SPDX-License-Identifier: Apache-2.0 */
/* Open MPI 5 includes this header of its tree, which it does not install. */
#ifndef GBA_OMPI_THREADS_PTHREADS_THREADS_H
#define GBA_OMPI_THREADS_PTHREADS_THREADS_H

#include <sched.h>

static inline void opal_thread_yield(void) {
  sched_yield();
}

#endif
