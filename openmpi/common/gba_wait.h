/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking barriers of the device, once all members have agreed on it. */
#ifndef GBA_OMPI_WAIT_H
#define GBA_OMPI_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gba_options.h"
#include "gba_setup.h"

/* Nanoseconds of a clock that is never set. */
uint64_t gba_ompi_now(void);
/* Whether a barrier that was called at `since`, and is one of the device's or waits for the agreement, has taken longer
 * than options->timeout. REQUIRES: the lock. */
bool gba_ompi_is_late(const gba_ompi_setup_t* setup, const gba_ompi_options_t* options, uint64_t since);

/* Others make progress, and may take the setup's lock meanwhile. REQUIRES: the lock. */
void gba_ompi_give_way(gba_ompi_setup_t* setup);

/* Arrives and waits; counts. `is_process`: the device is one, and needs its turn on this machine. REQUIRES: the lock,
 * and !barrier.over. 0, or -ETIMEDOUT when options->timeout is over: the next call takes the same barrier up again. */
int gba_ompi_wait(gba_ompi_setup_t* setup, gba_ompi_options_t* options, bool is_process);

/* Adds the barriers that are over to the performance variables. REQUIRES: the lock. */
void gba_ompi_count(gba_ompi_setup_t* setup, gba_ompi_options_t* options);

/* " 1 3": the ranks of this node that have not come to the open barrier; other words if it is none of them. Before all
 * have agreed on the device: those, of all nodes, that the agreement waits for, as far as this member knows. REQUIRES:
 * the lock. */
void gba_ompi_missing_text(const gba_ompi_setup_t* setup, char* text, size_t size);

#endif
