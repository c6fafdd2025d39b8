/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Ibarrier: a communicator has one open barrier, further ones queue. */
#include <errno.h>

#include "coll_gba.h"
#include "gba_wait.h"

typedef struct request_t {
  ompi_request_t super;
  uint64_t since; /* gba_ompi_now() of the call */
} request_t;
static OBJ_CLASS_INSTANCE(request_t, ompi_request_t, NULL, NULL);

static int free_request(ompi_request_t** request) {
  OMPI_REQUEST_FINI(*request);
  OBJ_RELEASE(*request);
  *request = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
}

static int cancel_request(ompi_request_t* request, int flag) {
  (void)request;
  (void)flag;
  return MPI_ERR_REQUEST; /* as MPI says of collective operations */
}

static ompi_request_t* make_request(ompi_communicator_t* comm) {
  request_t* const request = OBJ_NEW(request_t);
  if (request == NULL) return NULL;
  OMPI_REQUEST_INIT(&request->super, false);
  request->since = gba_ompi_now();
  request->super.req_type = OMPI_REQUEST_COLL;
  request->super.req_state = OMPI_REQUEST_ACTIVE;
  request->super.req_status = (ompi_status_public_t){.MPI_ERROR = MPI_SUCCESS};
  request->super.req_free = free_request;
  request->super.req_cancel = cancel_request;
  request->super.req_mpi_object.comm = comm;
  return &request->super;
}

static const uint64_t kPatience = 1000000; /* ns; then, and each time again, a lost doorbell or release is looked for */

static int look(mca_coll_gba_module_t* module) {
  const uint64_t now = gba_ompi_now();
  if (now - module->looked < kPatience) return gba_ompi_barrier_test(&module->setup->barrier);
  module->looked = now;
  return gba_ompi_barrier_sleep(&module->setup->barrier, 0);
}

static int serve_by_device(mca_coll_gba_module_t* module) {
  gba_ompi_barrier_t* const barrier = &module->setup->barrier;
  if (!module->serving) {
    if (barrier->open && !module->abandoned) return -EAGAIN; /* a blocking one of another thread's */
    if (!barrier->open) gba_ompi_barrier_start(barrier);
    module->abandoned = false;
    module->serving = true;
    module->looked = gba_ompi_now();
  }
  const int status = look(module);
  if (status == 0) {
    module->serving = false;
    mca_coll_gba_count(module);
  }
  return status;
}

static int serve_by_software(mca_coll_gba_module_t* module) {
  const int status = mca_coll_gba_software(&module->software, module->comm);
  if (status == 0) __atomic_fetch_add(&mca_coll_gba_component.options.fallen_back, 1, __ATOMIC_RELAXED);
  return status;
}

/* 0: the barrier of the first request is over. -EAGAIN: not yet. */
static int serve_first(mca_coll_gba_module_t* module) {
  const gba_ompi_barrier_t* const barrier = &module->setup->barrier;
  if (module->server == MCA_COLL_GBA_UNDECIDED) return -EAGAIN;
  if (module->server == MCA_COLL_GBA_DEVICE && !barrier->open && barrier->over) {
    module->server = MCA_COLL_GBA_SOFTWARE;
  }
  return module->server == MCA_COLL_GBA_DEVICE ? serve_by_device(module) : serve_by_software(module);
}

/* -ETIMEDOUT: the first request has waited for too long. Barriers that the device does not do may take what they take.
 */
static int give_up_if_late(mca_coll_gba_module_t* module) {
  const request_t* const first = (const request_t*)opal_list_get_first(&module->requests);
  if (module->server == MCA_COLL_GBA_SOFTWARE) return -EAGAIN;
  if (!gba_ompi_is_late(module->setup, &mca_coll_gba_component.options, first->since)) return -EAGAIN;
  mca_coll_gba_complain(module);
  module->abandoned = module->serving;
  module->serving = false;
  return -ETIMEDOUT;
}

int mca_coll_gba_serve(mca_coll_gba_module_t* module, opal_list_t* ended) {
  int count = 0;
  while (!opal_list_is_empty(&module->requests)) {
    int status = serve_first(module);
    if (status == -EAGAIN) status = give_up_if_late(module);
    if (status == -EAGAIN) break;
    request_t* const request = (request_t*)opal_list_remove_first(&module->requests);
    request->super.req_status.MPI_ERROR = status == 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
    opal_list_append(ended, (opal_list_item_t*)request);
    ++count;
  }
  return count;
}

void mca_coll_gba_complete(opal_list_t* ended) {
  opal_list_item_t* item = NULL;
  while ((item = opal_list_remove_first(ended)) != NULL) {
    ompi_request_complete((ompi_request_t*)item, true); /* its owner may free it from here on */
  }
}

int mca_coll_gba_ibarrier(ompi_communicator_t* comm, ompi_request_t** request, mca_coll_base_module_t* base) {
  mca_coll_gba_module_t* const module = (mca_coll_gba_module_t*)base;
  *request = make_request(comm);
  if (*request == NULL) return OMPI_ERR_OUT_OF_RESOURCE;
  opal_list_t ended;
  OBJ_CONSTRUCT(&ended, opal_list_t);
  OPAL_THREAD_LOCK(&module->setup->lock);
  opal_list_append(&module->requests, (opal_list_item_t*)*request);
  /* Arrives at once, if it is the only one. What has messages to send waits for the progress engine. */
  if (module->server == MCA_COLL_GBA_DEVICE && !module->setup->barrier.over) (void)mca_coll_gba_serve(module, &ended);
  if (!opal_list_is_empty(&module->requests)) mca_coll_gba_activate(module);
  OPAL_THREAD_UNLOCK(&module->setup->lock);
  mca_coll_gba_complete(&ended);
  OBJ_DESTRUCT(&ended);
  return OMPI_SUCCESS;
}
