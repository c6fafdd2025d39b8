/* SPDX-License-Identifier: Apache-2.0 */
/* The MCA parameters, the performance variables and the voice of a component, coll/gba or scoll/gba. */
#ifndef GBA_OMPI_OPTIONS_H
#define GBA_OMPI_OPTIONS_H

#include <stdbool.h>

#include "ompi_config.h"

#include "opal/mca/mca.h"

typedef struct gba_ompi_options_t {
  int priority;
  bool disable;
  char* device_path; /* "": where gba_open finds one */
  int min_size;      /* of a communicator or group */
  int timeout;       /* of a barrier, seconds; 0: none */
  int verbose;
  int spin;   /* how often to look before others get their turn */
  int stream; /* of opal_output, with verbosity `verbose` */
  unsigned long long offloaded, fallen_back, waiting_ns;
} gba_ompi_options_t;

enum { GBA_OMPI_SAY = 5 }; /* the verbosity at which decisions are said */

/* Whether this is the release of Open MPI that the component was built for: functions and their arguments are those of
 * that one, and MCA itself compares only the framework's version, which later releases may keep. Complains if not. */
bool gba_ompi_options_fit(const char* component);
/* `min_name`: min_comm_size or min_group_size. Called when the component registers its parameters. */
void gba_ompi_options_register(const mca_base_component_t* component, const char* min_name,
                               gba_ompi_options_t* options);
/* Opens the stream, which is heard at `base_verbose`, the framework's own verbosity, too. */
void gba_ompi_options_open(gba_ompi_options_t* options, int base_verbose);
/* Also if it is not open. */
void gba_ompi_options_close(gba_ompi_options_t* options);
/* What gba_open is to open: NULL for its own choice. */
const char* gba_ompi_options_path(const gba_ompi_options_t* options);

#endif
