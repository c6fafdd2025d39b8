/* SPDX-License-Identifier: Apache-2.0 */
/* What the components coll/gba and scoll/gba have in common: MCA parameters, performance variables, verbose output, the
 * port of the device, and the callback in Open MPI's progress engine. */
#ifndef GBA_OMPI_COMPONENT_H
#define GBA_OMPI_COMPONENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "ompi_config.h"

#include "gba_port.h"
#include "gba_release.h"
#include "gba_remote.h"
#include "opal/mca/mca.h"

typedef struct gba_ompi_options_t {
  int priority;
  bool disable;
  char* device_path; /* "": what gba_open finds */
  bool path_is_set;  /* by the user: then $GBA_DEVICE does not count */
  int min_size;      /* of a communicator or group */
  int timeout;       /* of a barrier, seconds; 0: none */
  int verbose;
  int spin;   /* looks before the progress engine runs */
  int stream; /* of opal_output, with verbosity `verbose` */
  unsigned long long offloaded, fallen_back, waiting_ns;
} gba_ompi_options_t;

enum { GBA_OMPI_VERBOSITY = 5 }; /* from which decisions are printed */

typedef struct gba_ompi_component_t {
  const char* framework;      /* given: "coll" or "scoll" */
  const char* process;        /* given: what its messages call a process, "rank" or "PE" */
  int (*progress)(void);      /* given: the callback of opal_progress */
  gba_ompi_channel_t channel; /* given: its tag */
  gba_ompi_options_t options;
  bool opened;
  opal_mutex_t lock;   /* for `listening` and the port's opening; nothing else is called with it held */
  bool listening;      /* opal_progress calls `progress` */
  atomic_flag running; /* one thread is in `progress`, which is not entered again */
  bool port_tried;
  int port_error;
  gba_ompi_port_t port;
  bool is_process;              /* the device; of a shared port it is not known, and not needed */
  _Atomic uint64_t yields_from; /* waiting processes sleep until then, in the time of gba_ompi_now() */
} gba_ompi_component_t;

/* `min_name`: min_comm_size or min_group_size. Called when the component registers its parameters. */
void gba_ompi_component_register(gba_ompi_component_t* component, const mca_base_component_t* mca,
                                 const char* min_name);
/* `base_verbose`: the framework's own verbosity, which counts, too. False, with a message: this is not the release of
 * Open MPI that the component was built for. Functions and their arguments are those of that release, and MCA itself
 * compares only the framework's version, which later releases may keep. */
bool gba_ompi_component_open(gba_ompi_component_t* component, int base_verbose);
/* Also after an open that has failed. */
void gba_ompi_component_close(gba_ompi_component_t* component);
/* Opens the port at the first call. 0, or the negative errno of that call. */
int gba_ompi_component_open_port(gba_ompi_component_t* component);
/* Registers the callback as long as the channel or the component needs it. REQUIRES: the lock. */
void gba_ompi_component_listen(gba_ompi_component_t* component, bool needed);
/* What gba_open is to open: NULL for its own choice. */
const char* gba_ompi_component_path(const gba_ompi_component_t* component);

#endif
