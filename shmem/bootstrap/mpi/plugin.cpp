// SPDX-License-Identifier: Apache-2.0
// The one part of libshmem that is linked with MPI, once for each make of it that is installed.
#define OMPI_SKIP_MPICXX 1  // the header's C++ bindings, gone since MPI-3
#define MPICH_SKIP_MPICXX 1
#include "shmem/bootstrap/mpi/plugin.h"

#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "shmem/bootstrap/mpi/make.hpp"

/// A communicator of our own.
struct shmem_mpi_job {
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Request opening = MPI_REQUEST_NULL;
};

namespace {

constexpr int kTag = 1;
constexpr std::size_t kRequestSize = sizeof(MPI_Request);  // NOLINT(bugprone-sizeof-expression): of a handle
static_assert(kRequestSize <= sizeof(shmem_mpi_transfer::request));

/// A program linked with another MPI than this library has its own types.
bool is_the_mpi_of_the_header() {
#if defined(MPI_ABI_VERSION) && !defined(OPEN_MPI) && !defined(MPICH_NAME)
  constexpr std::string_view kMake = "abi";
#elif defined(OPEN_MPI)
  constexpr std::string_view kMake = "openmpi";
#elif defined(MPICH_NAME)
  constexpr std::string_view kMake = "mpich";
#else
  constexpr std::string_view kMake = "mpi";
#endif
  // The MPI that answers may have longer texts than the header's.
  std::array<char, shmem::kMpiVersionRoom> version{};
  int length = 0;
  return MPI_Get_library_version(version.data(), &length) == MPI_SUCCESS &&
         shmem::mpi_make(shmem::mpi_description(version.data(), &MPI_Get_library_version)) == kMake;
}

const char* problem_of(MPI_Comm communicator) {
  if (communicator == MPI_COMM_NULL) {
    return "the communicator is MPI_COMM_NULL: this process is not in it and must not start libshmem with it";
  }
  int between_groups = 0;
  if (MPI_Comm_test_inter(communicator, &between_groups) != MPI_SUCCESS || between_groups != 0) {
    return "the communicator is between two groups; it must be of one (MPI_Intercomm_merge)";
  }
  return nullptr;
}

const char* problem_of_mpi() {
  int flag = 0;
  if (!is_the_mpi_of_the_header()) {
    return "the program uses another MPI than the one that the plug-in was built for; unset SHMEM_MPI_PLUGIN, or let "
           "it name a plug-in for the program's MPI";
  }
  if (MPI_Initialized(&flag) != MPI_SUCCESS || flag == 0) {
    return "MPI is not initialised: call MPI_Init before libshmem is started, or, under mpirun, start it without MPI "
           "(SHMEM_BOOTSTRAP=pmix)";
  }
  if (MPI_Finalized(&flag) != MPI_SUCCESS || flag != 0) {
    return "MPI has ended already (MPI_Finalize)";
  }
  return nullptr;
}

void write_text(int status, char* text, std::size_t room) {
  std::array<char, MPI_MAX_ERROR_STRING> words{};
  int length = 0;
  if (MPI_Error_string(status, words.data(), &length) != MPI_SUCCESS) {
    words[0] = '\0';
  }
  std::snprintf(text, room, "%s (%d)", words.data(), status);
}

int open_job(const void* communicator, shmem_mpi_job** job, char* text, std::size_t room) {
  *job = nullptr;
  MPI_Comm from = MPI_COMM_WORLD;
  const char* problem = problem_of_mpi();
  if (problem == nullptr && communicator != nullptr) {
    from = *static_cast<const MPI_Comm*>(communicator);
    problem = problem_of(from);
  }
  if (problem != nullptr) {
    std::snprintf(text, room, "%s", problem);
    return MPI_ERR_COMM;
  }
  std::unique_ptr<shmem_mpi_job> made(new (std::nothrow) shmem_mpi_job);
  if (!made) {
    return MPI_ERR_NO_MEM;
  }
  const int status = MPI_Comm_idup(from, &made->communicator, &made->opening);
  if (status != MPI_SUCCESS) {
    write_text(status, text, room);
    return status;
  }
  *job = made.release();
  return MPI_SUCCESS;
}

int job_opened(shmem_mpi_job* job, int* done) {
  const int status = MPI_Test(&job->opening, done, MPI_STATUS_IGNORE);
  if (status != MPI_SUCCESS || *done == 0) {
    return status;
  }
  return MPI_Comm_set_errhandler(job->communicator, MPI_ERRORS_RETURN);
}

void place_of(const shmem_mpi_job* job, int* rank, int* size) {
  MPI_Comm_rank(job->communicator, rank);
  MPI_Comm_size(job->communicator, size);
}

void keep(shmem_mpi_transfer* transfer, MPI_Request request) {
  std::memcpy(&transfer->request, &request, kRequestSize);
}

int start_send(shmem_mpi_job* job, int rank, const void* bytes, std::size_t size, shmem_mpi_transfer* transfer) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int status = MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, rank, kTag, job->communicator, &request);
  keep(transfer, request);  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker): test_transfer() waits for it
  return status;
}

int start_receive(shmem_mpi_job* job, int rank, void* bytes, std::size_t room, shmem_mpi_transfer* transfer) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int status = MPI_Irecv(bytes, static_cast<int>(room), MPI_BYTE, rank, kTag, job->communicator, &request);
  keep(transfer, request);  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker): test_transfer() waits for it
  return status;
}

int test_transfer(shmem_mpi_job* /*job*/, shmem_mpi_transfer* transfer, int* done, std::size_t* size) {
  MPI_Request request = MPI_REQUEST_NULL;
  std::memcpy(&request, &transfer->request, kRequestSize);
  MPI_Status what{};
  int status = MPI_Test(&request, done, &what);
  keep(transfer, request);
  int count = 0;
  if (status == MPI_SUCCESS && *done != 0) {
    status = MPI_Get_count(&what, MPI_BYTE, &count);
  }
  *size = static_cast<std::size_t>(count);
  return status;
}

/// All processes end, whatever the communicator: Open MPI always does so. MPICH would first send messages to those of a
/// communicator that is not the world, and wait for those that are not in MPI.
void abort_job(shmem_mpi_job* /*job*/, int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
}

void close_job(shmem_mpi_job* job, int unfinished) {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (unfinished != 0 && finalized == 0) {
    return;  // for the rest of the process
  }
  const std::unique_ptr<shmem_mpi_job> owned(job);
  if (finalized == 0) {
    MPI_Comm_free(&job->communicator);
  }
}

constexpr shmem_mpi_plugin kPlugin{SHMEM_MPI_PLUGIN_VERSION,
                                   open_job,
                                   job_opened,
                                   place_of,
                                   start_send,
                                   start_receive,
                                   test_transfer,
                                   abort_job,
                                   close_job,
                                   write_text};

}  // namespace

extern "C" __attribute__((visibility("default"))) const shmem_mpi_plugin* shmem_bootstrap_mpi_plugin() {
  return &kPlugin;
}
