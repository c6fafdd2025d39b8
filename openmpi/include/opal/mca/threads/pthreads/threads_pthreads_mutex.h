/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open MPI 5 includes this header of its tree, which it does not install, nor does Debian's package: what a mutex and a
 * condition consist of, if its threads are those of POSIX. gba_ompi_component_open compares the size with Open MPI's.
 */
#ifndef GBA_OMPI_THREADS_PTHREADS_MUTEX_H
#define GBA_OMPI_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

#include "opal/class/opal_object.h"

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;
#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER PTHREAD_COND_INITIALIZER

/* Open MPI's inline functions never ask for a recursive one. */
static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t* mutex, bool recursive) {
  (void)recursive;
  return pthread_mutex_init(mutex, NULL);
}

static inline void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t* mutex) {
  pthread_mutex_destroy(mutex);
}

static inline int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t* mutex) {
  return pthread_mutex_trylock(mutex) != 0;
}

static inline void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t* mutex) {
  pthread_mutex_lock(mutex);
}

static inline void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t* mutex) {
  pthread_mutex_unlock(mutex);
}

static inline int opal_thread_internal_cond_init(opal_thread_internal_cond_t* condition) {
  return pthread_cond_init(condition, NULL);
}

static inline void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t* condition) {
  pthread_cond_destroy(condition);
}

static inline void opal_thread_internal_cond_signal(opal_thread_internal_cond_t* condition) {
  pthread_cond_signal(condition);
}

#endif
