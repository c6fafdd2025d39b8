/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "coll_gba.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"

/* Dissemination: in each round send to the rank `distance` ahead, receive from the rank `distance` behind. Between two
 * ranks there is at most one message per barrier each way, so that the network's order separates the barriers. */
static int begin_round(mca_coll_gba_software_t* software, ompi_communicator_t* comm) {
  const int size = ompi_comm_size(comm);
  const int rank = ompi_comm_rank(comm);
  const int behind = (rank - software->distance + size) % size;
  const int ahead = (rank + software->distance) % size;
  int error =
      MCA_PML_CALL(irecv(NULL, 0, &ompi_mpi_byte.dt, behind, GBA_OMPI_TAG_SOFTWARE, comm, &software->request[0]));
  if (error == OMPI_SUCCESS) {
    error = MCA_PML_CALL(isend(NULL, 0, &ompi_mpi_byte.dt, ahead, GBA_OMPI_TAG_SOFTWARE, MCA_PML_BASE_SEND_STANDARD,
                               comm, &software->request[1]));
  }
  return error == OMPI_SUCCESS ? 0 : -EIO;
}

static int end_round(mca_coll_gba_software_t* software) {
  int status = 0;
  if (!REQUEST_COMPLETE(software->request[0]) || !REQUEST_COMPLETE(software->request[1])) {
    return -EAGAIN;
  }
  for (int i = 0; i < 2; ++i) {
    if (software->request[i]->req_status.MPI_ERROR != MPI_SUCCESS) {
      status = -EIO;
    }
    ompi_request_free(&software->request[i]);
  }
  return status;
}

int mca_coll_gba_software(mca_coll_gba_software_t* software, ompi_communicator_t* comm) {
  int status = 0;
  if (software->distance == 0) {
    software->distance = 1;
    status = begin_round(software, comm);
  }
  while (status == 0) {
    status = end_round(software);
    if (status != 0) {
      break;
    }
    software->distance *= 2;
    if (software->distance >= ompi_comm_size(comm)) {
      software->distance = 0;
      return 0;
    }
    status = begin_round(software, comm);
  }
  return status;
}
