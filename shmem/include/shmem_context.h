/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts (OpenSHMEM 1.6, section 9.5) and how routines are declared. Included by shmem.h.
 *
 * A context is a stream of operations that is ordered and completed apart from others. The PEs of a node reach each
 * other by load and store, which are complete in the order of the thread that makes them: what fence and quiet do for
 * one context they do for all of the calling thread's. Between nodes they wait only for PEs that the context has
 * operations on. Contexts make PE numbers those of their team.
 */
#ifndef SHMEM_SHMEM_CONTEXT_H
#define SHMEM_SHMEM_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define SHMEM_NOEXCEPT noexcept
/* Routines of the specification throw nothing either, but are not declared noexcept, which is part of a function's
 * type: a profiling library in C++ defines them as the specification writes them. The library itself is compiled with
 * noexcept here. */
#ifndef SHMEM_NOTHROW
#define SHMEM_NOTHROW
#endif
extern "C" {
#else
#define SHMEM_NOEXCEPT
#define SHMEM_NOTHROW
#endif

#define SHMEM_API __attribute__((visibility("default")))

/* Each routine has two names: shmem_X is a weak alias of pshmem_X, so that a profiling library can put itself between
 * (section 10). One that is defined for all routines alike defines the macro before it includes this. */
#ifndef SHMEM_DECLARE_NAME
#define SHMEM_DECLARE_NAME(result, name, parameters) \
  SHMEM_API result name parameters SHMEM_NOTHROW;    \
  SHMEM_API result p##name parameters SHMEM_NOTHROW;
#endif
#define SHMEM_DECLARE(result, name, parameters) SHMEM_DECLARE_NAME(result, shmem_##name, parameters)
/* A routine and its twin that takes a context, shmem_ctx_X, whose PE numbers are those of the context's team. */
#define SHMEM_LIST(...) __VA_ARGS__
#define SHMEM_DECLARE_WITH_CTX(result, name, parameters) \
  SHMEM_DECLARE(result, name, parameters)                \
  SHMEM_DECLARE(result, ctx_##name, (shmem_ctx_t ctx, SHMEM_LIST parameters))

typedef struct shmem_team* shmem_team_t; /* a handle, not an address */
typedef struct shmem_ctx* shmem_ctx_t;   /* a handle, not an address */
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)0)
#define SHMEM_CTX_INVALID ((shmem_ctx_t)-1)

/* Options of a context: used by one thread at a time; by the thread that makes it alone; makes no stores visible to
 * others by fence and quiet. Here all contexts can do what the default context can. */
#define SHMEM_CTX_SERIALIZED 1L
#define SHMEM_CTX_PRIVATE 2L
#define SHMEM_CTX_NOSTORE 4L

/* A context of the world, or of `team`. Not collective. 0, or non-zero, and *ctx is SHMEM_CTX_INVALID, if the team is
 * invalid, an option is invalid, or there are too many contexts (4096 at once). Thread-safe. */
SHMEM_DECLARE(int, ctx_create, (long options, shmem_ctx_t* ctx))
SHMEM_DECLARE(int, team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t* ctx))
/* Completes what was done on it and ends it. SHMEM_CTX_INVALID does nothing; the default context cannot be destroyed.
 */
SHMEM_DECLARE(void, ctx_destroy, (shmem_ctx_t ctx))
/* The team it was made from; SHMEM_TEAM_WORLD for the default context. 0, or non-zero with SHMEM_TEAM_INVALID if it is
 * SHMEM_CTX_INVALID. */
SHMEM_DECLARE(int, ctx_get_team, (shmem_ctx_t ctx, shmem_team_t* team))

/* Sessions (section 9.9): hints that many operations follow. They change nothing here but are checked. */
#define SHMEM_CTX_SESSION_BATCH 1L
#define SHMEM_CTX_SESSION_TOTAL_OPS 1L
typedef struct {
  size_t total_ops; /* how many operations the session will have */
} shmem_ctx_session_config_t;
SHMEM_DECLARE(void, ctx_session_start,
              (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t* config, long config_mask))
SHMEM_DECLARE(void, ctx_session_stop, (shmem_ctx_t ctx))

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
