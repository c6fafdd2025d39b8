/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libshmem knows of MPI: a library that is linked with one make of MPI (libshmem_bootstrap_openmpi.so,
 * libshmem_bootstrap_mpich.so), or with the interface that all have from MPI-5 on (libshmem_bootstrap_abi.so), and that
 * libshmem loads when it is asked to start by MPI. All calls are made by the thread that starts or ends the library;
 * none of them blocks. Those that give an int give 0 or a status that text() explains.
 */
#ifndef SHMEM_BOOTSTRAP_MPI_PLUGIN_H
#define SHMEM_BOOTSTRAP_MPI_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMEM_MPI_PLUGIN_VERSION 1
#define SHMEM_MPI_PLUGIN_SYMBOL "shmem_bootstrap_mpi_plugin"

typedef struct shmem_mpi_job shmem_mpi_job;

/* Bytes on their way. Neither it nor what it is for may move or go before test() has said that it is done. */
typedef struct shmem_mpi_transfer {
  uint64_t request;
} shmem_mpi_transfer;

typedef struct shmem_mpi_plugin {
  uint32_t version;

  /* Begins to take a duplicate of the communicator at this address, NULL: MPI_COMM_WORLD. Collective over it. What is
   * wrong with the communicator, or MPI, is written to `text`, and `*job` is NULL then. */
  int (*open)(const void* communicator, shmem_mpi_job** job, char* text, size_t room);
  /* Whether all have come to open(). Before that, only close() may be called. */
  int (*opened)(shmem_mpi_job* job, int* done);
  void (*place)(const shmem_mpi_job* job, int* rank, int* size);
  int (*send)(shmem_mpi_job* job, int rank, const void* bytes, size_t size, shmem_mpi_transfer* transfer);
  int (*receive)(shmem_mpi_job* job, int rank, void* bytes, size_t room, shmem_mpi_transfer* transfer);
  /* `*size`: of what was received. */
  int (*test)(shmem_mpi_job* job, shmem_mpi_transfer* transfer, int* done, size_t* size);
  /* Ends all processes of the job, mostly without returning. */
  void (*abort)(shmem_mpi_job* job, int status);
  /* `unfinished`: some transfer is, so that MPI may still use what belongs to the job. */
  void (*close)(shmem_mpi_job* job, int unfinished);
  void (*text)(int status, char* text, size_t room);
} shmem_mpi_plugin;

/* What the library exports under SHMEM_MPI_PLUGIN_SYMBOL. */
typedef const shmem_mpi_plugin* (*shmem_mpi_plugin_function)(void);

#ifdef __cplusplus
}
#endif

#endif
