/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_exchange.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"

static int rank_of(const gba_ompi_exchange_t* exchange, int member) {
  return exchange->team.ranks == NULL ? member : exchange->team.ranks[member];
}

static int receive(gba_ompi_exchange_t* exchange, void* bytes, size_t size, int member, int tag) {
  const int error = MCA_PML_CALL(irecv(bytes, size, &ompi_mpi_byte.dt, rank_of(exchange, member), tag,
                                       exchange->team.comm, &exchange->requests[exchange->open]));
  if (error != OMPI_SUCCESS) {
    return -EIO;
  }
  ++exchange->open;
  return 0;
}

static int send_bytes(gba_ompi_exchange_t* exchange, const void* bytes, size_t size, int member, int tag) {
  const int error =
      MCA_PML_CALL(isend(bytes, size, &ompi_mpi_byte.dt, rank_of(exchange, member), tag, MCA_PML_BASE_SEND_STANDARD,
                         exchange->team.comm, &exchange->requests[exchange->open]));
  if (error != OMPI_SUCCESS) {
    return -EIO;
  }
  ++exchange->open;
  return 0;
}

static size_t table_size(const gba_ompi_exchange_t* exchange) {
  return (size_t)exchange->team.members * GBA_OMPI_EXCHANGE_BYTES;
}

static int begin_first(gba_ompi_exchange_t* exchange) {
  memcpy(exchange->table, exchange->mine, GBA_OMPI_EXCHANGE_BYTES);
  for (int member = 1; member < exchange->team.members; ++member) {
    unsigned char* const row = exchange->table + (size_t)member * GBA_OMPI_EXCHANGE_BYTES;
    const int error = receive(exchange, row, GBA_OMPI_EXCHANGE_BYTES, member, exchange->team.up);
    if (error != 0) {
      return error;
    }
  }
  return 0;
}

static int begin_other(gba_ompi_exchange_t* exchange) {
  const int error = receive(exchange, exchange->table, table_size(exchange), 0, exchange->team.down);
  if (error != 0) {
    return error;
  }
  return send_bytes(exchange, exchange->mine, GBA_OMPI_EXCHANGE_BYTES, 0, exchange->team.up);
}

static int answer(gba_ompi_exchange_t* exchange) {
  exchange->answered = 1;
  for (int member = 1; member < exchange->team.members; ++member) {
    const int error = send_bytes(exchange, exchange->table, table_size(exchange), member, exchange->team.down);
    if (error != 0) {
      return error;
    }
  }
  return 0;
}

int gba_ompi_exchange_begin(gba_ompi_exchange_t* exchange, const gba_ompi_team_t* team, const void* mine, size_t size) {
  gba_ompi_exchange_end(exchange);
  exchange->team = *team;
  exchange->answered = 0;
  memset(exchange->mine, 0, sizeof exchange->mine);
  memcpy(exchange->mine, mine, size);
  exchange->table = calloc((size_t)team->members, GBA_OMPI_EXCHANGE_BYTES);
  exchange->requests = calloc((size_t)team->members + 1, sizeof(struct ompi_request_t*));
  if (exchange->table == NULL || exchange->requests == NULL) {
    return -ENOMEM;
  }
  return team->self == 0 ? begin_first(exchange) : begin_other(exchange);
}

int gba_ompi_exchange_progress(gba_ompi_exchange_t* exchange) {
  while (exchange->open > 0) {
    ompi_request_t** const last = &exchange->requests[exchange->open - 1];
    if (!REQUEST_COMPLETE(*last)) {
      return -EAGAIN;
    }
    const int error = (*last)->req_status.MPI_ERROR;
    ompi_request_free(last);
    --exchange->open;
    if (error != MPI_SUCCESS) {
      return -EIO;
    }
    if (exchange->open == 0 && exchange->team.self == 0 && !exchange->answered) {
      const int answered = answer(exchange);
      if (answered != 0) {
        return answered;
      }
    }
  }
  return 0;
}

bool gba_ompi_exchange_awaits(const gba_ompi_exchange_t* exchange, int member) {
  /* Request i is of member i + 1, in either direction. */
  return member <= exchange->open && !REQUEST_COMPLETE(exchange->requests[member - 1]);
}

const void* gba_ompi_exchange_of(const gba_ompi_exchange_t* exchange, int member) {
  return exchange->table + (size_t)member * GBA_OMPI_EXCHANGE_BYTES;
}

void gba_ompi_exchange_end(gba_ompi_exchange_t* exchange) {
  bool under_way = false;
  for (; exchange->open > 0; --exchange->open) {
    ompi_request_t** const last = &exchange->requests[exchange->open - 1];
    if (!REQUEST_COMPLETE(*last)) {
      ompi_request_cancel(*last);
    }
    under_way = under_way || !REQUEST_COMPLETE(*last);
    ompi_request_free(last);
  }
  free(exchange->requests);
  if (!under_way) {
    free(exchange->table); /* else a message may still come */
  }
  exchange->requests = NULL;
  exchange->table = NULL;
}
