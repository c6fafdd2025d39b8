/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI_Barrier and MPI_Ibarrier, and what makes progress without a blocking barrier: agreements, queued MPI_Ibarriers,
 * and answers to other nodes. Open MPI's progress engine calls mca_coll_gba_progress, from any thread that waits for
 * anything, as long as a module has something under way. A communicator has one open barrier; further MPI_Ibarriers
 * queue.
 */
#include <errno.h>
#include <stdio.h>

#include "coll_gba.h"
#include "gba_wait.h"
#include "opal/runtime/opal_progress.h"

/* From now on the communicator calls the previous module itself. REQUIRES: the lock, and to be called by MPI_Barrier on
 * this communicator, so that no other thread calls its barriers. */
static void restore_previous(mca_coll_gba_module_t* module) {
  module->server = MCA_COLL_GBA_PREVIOUS;
  mca_coll_gba_put_back(module, module->comm);
}

typedef void (*report_t)(const gba_ompi_setup_t* setup, const gba_ompi_component_t* component, const char* name);

/* REQUIRES: the lock. */
static void report(report_t message, const mca_coll_gba_module_t* module) {
  char name[MPI_MAX_OBJECT_NAME + 16];
  snprintf(name, sizeof name, "communicator %s", module->comm->c_name);
  message(module->setup, &mca_coll_gba_component.common, name);
}

/* Drives the agreement, and reports its result. REQUIRES: the lock. */
static void progress_agreement(mca_coll_gba_module_t* module) {
  if (module->server != MCA_COLL_GBA_UNDECIDED || gba_ompi_setup_progress(module->setup) != 0) {
    return;
  }
  module->server = module->setup->decision.reason == GBA_OMPI_USED ? MCA_COLL_GBA_DEVICE : MCA_COLL_GBA_SOFTWARE;
  report(gba_ompi_report_decision, module);
}

/* REQUIRES: the component's lock. */
static void update_callback(void) {
  gba_ompi_component_listen(&mca_coll_gba_component.common, !opal_list_is_empty(&mca_coll_gba_component.active));
}

static void put_on_list(mca_coll_gba_module_t* module) {
  mca_coll_gba_component_t* const component = &mca_coll_gba_component;
  OPAL_THREAD_LOCK(&component->common.lock);
  opal_list_append(&component->active, &module->link.super);
  update_callback();
  OPAL_THREAD_UNLOCK(&component->common.lock);
}

static mca_coll_gba_module_t* take_from_list(void) {
  mca_coll_gba_component_t* const component = &mca_coll_gba_component;
  OPAL_THREAD_LOCK(&component->common.lock);
  opal_list_item_t* const item = opal_list_remove_first(&component->active);
  OPAL_THREAD_UNLOCK(&component->common.lock);
  return item == NULL ? NULL : ((mca_coll_gba_link_t*)item)->module;
}

void mca_coll_gba_activate(mca_coll_gba_module_t* module) {
  if (module->active) {
    return;
  }
  module->active = true;
  OBJ_RETAIN(module->comm);
  put_on_list(module);
}

/* Only MPI_Finalize destroys a communicator in spite of a reference. */
void mca_coll_gba_deactivate(mca_coll_gba_module_t* module) {
  mca_coll_gba_component_t* const component = &mca_coll_gba_component;
  if (!module->active) {
    return;
  }
  OPAL_THREAD_LOCK(&component->common.lock);
  opal_list_remove_item(&component->active, &module->link.super);
  update_callback();
  OPAL_THREAD_UNLOCK(&component->common.lock);
  module->active = false;
}

/* Counts the barrier that has just been completed. REQUIRES: the lock. */
static void count(mca_coll_gba_module_t* module) {
  gba_ompi_count(module->setup, &mca_coll_gba_component.common);
  if (module->setup->barrier.over) {
    report(gba_ompi_report_lost, module);
  }
}

/* The first barriers of a communicator are the previous module's. All members have the same number of them, and call
 * the barriers of a communicator in the same order. */
static bool is_early(mca_coll_gba_module_t* module) {
  if (module->early == 0) {
    return false;
  }
  --module->early;
  return true;
}

/* REQUIRES: the lock. */
static void begin_agreement(mca_coll_gba_module_t* module) {
  if (!module->begun) {
    mca_coll_gba_begin(module);
  }
}

/* ---- MPI_Barrier ---- */

/* Until the agreement is done and the MPI_Ibarriers before it are completed. They time out for themselves. */
static int wait_for_turn(mca_coll_gba_module_t* module) {
  if (module->server != MCA_COLL_GBA_UNDECIDED && opal_list_is_empty(&module->requests)) {
    return OMPI_SUCCESS;
  }
  const uint64_t since = gba_ompi_now();
  while (module->server == MCA_COLL_GBA_UNDECIDED || !opal_list_is_empty(&module->requests)) {
    const bool undecided = module->server == MCA_COLL_GBA_UNDECIDED;
    if (undecided && gba_ompi_is_late(module->setup, &mca_coll_gba_component.common, since)) {
      return MPI_ERR_OTHER;
    }
    gba_ompi_run_progress(module->setup);
  }
  return OMPI_SUCCESS;
}

static int barrier_of_device(mca_coll_gba_module_t* module) {
  module->abandoned = false;
  if (gba_ompi_wait(module->setup, &mca_coll_gba_component.common) != 0) {
    module->abandoned = true;
    return MPI_ERR_OTHER;
  }
  count(module);
  return OMPI_SUCCESS;
}

static int barrier_of_previous(mca_coll_gba_module_t* module) {
  mca_coll_base_module_barrier_fn_t const barrier = module->barrier;
  mca_coll_base_module_t* const previous = module->barrier_module;
  ompi_communicator_t* const comm = module->comm;
  __atomic_fetch_add(&mca_coll_gba_component.common.options.fallen_back, 1, __ATOMIC_RELAXED);
  /* MPI_Ibarriers may go that way from here on: all members get here at the same place among their collectives, and
   * those that were called before are completed. */
  if (module->server != MCA_COLL_GBA_PREVIOUS) {
    restore_previous(module);
  }
  /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the communicator's list of modules keeps this one */
  OPAL_THREAD_UNLOCK(&module->setup->lock);
  return barrier(comm, previous);
}

int mca_coll_gba_barrier(ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  mca_coll_gba_module_t* const module = (mca_coll_gba_module_t*)base;
  if (is_early(module)) {
    return module->barrier(comm, module->barrier_module);
  }
  OPAL_THREAD_LOCK(&module->setup->lock);
  begin_agreement(module);
  int status = wait_for_turn(module);
  if (status == OMPI_SUCCESS) {
    if (module->server != MCA_COLL_GBA_DEVICE || module->setup->barrier.over) {
      return barrier_of_previous(module);
    }
    status = barrier_of_device(module);
  }
  if (status != OMPI_SUCCESS) {
    report(gba_ompi_report_late, module);
  }
  OPAL_THREAD_UNLOCK(&module->setup->lock);
  return status;
}

/* ---- MPI_Ibarrier ---- */

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
  if (request == NULL) {
    return NULL;
  }
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

static int serve_by_device(mca_coll_gba_module_t* module) {
  gba_ompi_barrier_t* const barrier = &module->setup->barrier;
  if (!module->serving) {
    if (barrier->open && !module->abandoned) {
      return -EAGAIN; /* a blocking one of another thread's */
    }
    if (!barrier->open) {
      gba_ompi_barrier_start(barrier);
    }
    module->abandoned = false;
    module->serving = true;
  }
  const int status = gba_ompi_barrier_poll(barrier);
  if (status == 0) {
    module->serving = false;
    count(module);
  }
  return status;
}

static int serve_by_software(mca_coll_gba_module_t* module) {
  const int status = mca_coll_gba_software(&module->software, module->comm);
  if (status == 0) {
    __atomic_fetch_add(&mca_coll_gba_component.common.options.fallen_back, 1, __ATOMIC_RELAXED);
  }
  return status;
}

/* 0: the barrier of the first request is over. -EAGAIN: not yet. */
static int serve_first(mca_coll_gba_module_t* module) {
  const gba_ompi_barrier_t* const barrier = &module->setup->barrier;
  if (module->server == MCA_COLL_GBA_UNDECIDED) {
    return -EAGAIN;
  }
  /* Unless it is the first request's that gba_ompi_give_way() has just completed. */
  if (module->server == MCA_COLL_GBA_DEVICE && !module->serving && !barrier->open && barrier->over) {
    module->server = MCA_COLL_GBA_SOFTWARE;
  }
  return module->server == MCA_COLL_GBA_DEVICE ? serve_by_device(module) : serve_by_software(module);
}

/* -ETIMEDOUT: the first request has waited for too long. Barriers that the device does not do may take what they take.
 */
static int give_up_if_late(mca_coll_gba_module_t* module) {
  const request_t* const first = (const request_t*)opal_list_get_first(&module->requests);
  if (module->server == MCA_COLL_GBA_SOFTWARE) {
    return -EAGAIN;
  }
  if (!gba_ompi_is_late(module->setup, &mca_coll_gba_component.common, first->since)) {
    return -EAGAIN;
  }
  report(gba_ompi_report_late, module);
  module->abandoned = module->serving;
  module->serving = false;
  return -ETIMEDOUT;
}

/* Goes on with the requests. Gives how many have ended; they are on `ended`, to be completed without the lock.
 * REQUIRES: the lock. */
static int serve(mca_coll_gba_module_t* module, opal_list_t* ended) {
  int count = 0;
  while (!opal_list_is_empty(&module->requests)) {
    int status = serve_first(module);
    if (status == -EAGAIN) {
      status = give_up_if_late(module);
    }
    if (status == -EAGAIN) {
      break;
    }
    request_t* const request = (request_t*)opal_list_remove_first(&module->requests);
    request->super.req_status.MPI_ERROR = status == 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
    opal_list_append(ended, (opal_list_item_t*)request);
    ++count;
  }
  return count;
}

static void complete(opal_list_t* ended) {
  opal_list_item_t* item = NULL;
  while ((item = opal_list_remove_first(ended)) != NULL) {
    ompi_request_complete((ompi_request_t*)item, true); /* its owner may free it from here on */
  }
}

int mca_coll_gba_ibarrier(ompi_communicator_t* comm, ompi_request_t** request, mca_coll_base_module_t* base) {
  mca_coll_gba_module_t* const module = (mca_coll_gba_module_t*)base;
  if (is_early(module)) {
    return module->ibarrier(comm, request, module->ibarrier_module);
  }
  *request = make_request(comm);
  if (*request == NULL) {
    return OMPI_ERR_OUT_OF_RESOURCE;
  }
  opal_list_t ended;
  OBJ_CONSTRUCT(&ended, opal_list_t);
  OPAL_THREAD_LOCK(&module->setup->lock);
  begin_agreement(module);
  opal_list_append(&module->requests, (opal_list_item_t*)*request);
  /* Arrives at once, if it is the only one. What has messages to send waits for the progress engine. */
  if (module->server == MCA_COLL_GBA_DEVICE && !module->setup->barrier.over) {
    (void)serve(module, &ended);
  }
  if (!opal_list_is_empty(&module->requests)) {
    mca_coll_gba_activate(module);
  }
  OPAL_THREAD_UNLOCK(&module->setup->lock);
  complete(&ended);
  OBJ_DESTRUCT(&ended);
  return OMPI_SUCCESS;
}

/* ---- The progress engine ---- */

/* Serves the requests. If the first one awaits the device, and the device is a process, lets it run. True: it has. */
static bool serve_or_give_way(mca_coll_gba_module_t* module, opal_list_t* ended, int* events) {
  *events = serve(module, ended);
  if (*events > 0 || !module->serving || !mca_coll_gba_component.common.is_process) {
    return false;
  }
  if (gba_ompi_give_way(module->setup, &mca_coll_gba_component.common) == 0) {
    *events = serve(module, ended);
  }
  return true;
}

/* A step for a module that has been taken from the list. `may_give_way` becomes false if it has given way. */
static int progress_module(mca_coll_gba_module_t* module, bool* may_give_way) {
  opal_list_t ended;
  int events = 0;
  OBJ_CONSTRUCT(&ended, opal_list_t);
  OPAL_THREAD_LOCK(&module->setup->lock);
  progress_agreement(module);
  if (*may_give_way) {
    *may_give_way = !serve_or_give_way(module, &ended, &events);
  } else {
    events = serve(module, &ended);
  }
  const bool done = module->server != MCA_COLL_GBA_UNDECIDED && opal_list_is_empty(&module->requests);
  module->active = !done;
  ompi_communicator_t* comm = module->comm;
  OPAL_THREAD_UNLOCK(&module->setup->lock);
  if (!done) {
    put_on_list(module);
  }
  complete(&ended);
  OBJ_DESTRUCT(&ended);
  if (done) {
    OBJ_RELEASE(comm); /* the last reference, if it has been freed: the module goes with it */
  }
  return events;
}

int mca_coll_gba_progress(void) {
  mca_coll_gba_component_t* const component = &mca_coll_gba_component;
  int events = 0;
  bool may_give_way = true; /* once, however many modules wait */
  if (atomic_flag_test_and_set_explicit(&component->common.running, memory_order_acquire)) {
    return 0;
  }
  OPAL_THREAD_LOCK(&component->common.lock);
  size_t modules = opal_list_get_size(&component->active);
  OPAL_THREAD_UNLOCK(&component->common.lock);
  for (; modules > 0; --modules) {
    mca_coll_gba_module_t* const module = take_from_list();
    if (module == NULL) {
      break;
    }
    events += progress_module(module, &may_give_way);
  }
  gba_ompi_remote_progress(&component->common.channel);
  OPAL_THREAD_LOCK(&component->common.lock);
  update_callback();
  OPAL_THREAD_UNLOCK(&component->common.lock);
  atomic_flag_clear_explicit(&component->common.running, memory_order_release);
  return events;
}
