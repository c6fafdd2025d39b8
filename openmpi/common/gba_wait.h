/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking barriers of the device, once all members have agreed on it. */
#ifndef GBA_OMPI_WAIT_H
#define GBA_OMPI_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gba_component.h"
#include "gba_setup.h"

/* Nanoseconds of a clock that is never set. */
uint64_t gba_ompi_now(void);
/* A barrier that was called at `since`, and that the device does or that waits for the agreement, has taken longer than
 * the timeout. REQUIRES: the lock. */
bool gba_ompi_is_late(const gba_ompi_setup_t* setup, const gba_ompi_component_t* component, uint64_t since);

/* Runs the progress engine without the setup's lock. REQUIRES: the lock. */
void gba_ompi_run_progress(gba_ompi_setup_t* setup);

/* For a wait in the progress engine: if the device is a process, gives the processor up, by a yield or, on a busy
 * machine, by a sleep of up to 0.1 ms; else it does nothing. REQUIRES: the lock; a barrier of the device is open. 0: it
 * is over. -EAGAIN: not known. */
int gba_ompi_give_way(gba_ompi_setup_t* setup, gba_ompi_component_t* component);

/* Arrives and waits; counts. REQUIRES: the lock, and !barrier.over. 0, or -ETIMEDOUT after the timeout: the next call
 * continues the same barrier. */
int gba_ompi_wait(gba_ompi_setup_t* setup, gba_ompi_component_t* component);

/* Adds completed barriers to the performance variables. REQUIRES: the lock. */
void gba_ompi_count(gba_ompi_setup_t* setup, gba_ompi_component_t* component);

/* Messages. `name`: of the communicator or group. REQUIRES: the lock. */

/* What all members have decided, by the first one, and what kept this member from the device. Verbose. */
void gba_ompi_report_decision(const gba_ompi_setup_t* setup, const gba_ompi_component_t* component, const char* name);
/* The device is lost. Verbose. */
void gba_ompi_report_lost(const gba_ompi_setup_t* setup, const gba_ompi_component_t* component, const char* name);
/* A barrier has timed out. Names the missing members: of an open barrier those of this node; during the agreement those
 * of all nodes, as far as this member knows. */
void gba_ompi_report_late(const gba_ompi_setup_t* setup, const gba_ompi_component_t* component, const char* name);

#endif
