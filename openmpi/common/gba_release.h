/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the internal interfaces of Open MPI 4.1, 5.0 and 6.0. No other file asks for the release. */
#ifndef GBA_OMPI_RELEASE_H
#define GBA_OMPI_RELEASE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "ompi_config.h"

#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"

#if OMPI_MAJOR_VERSION >= 6
#define GBA_OMPI_COLL_VERSION MCA_COLL_BASE_VERSION_3_0_0
/* A module of coll puts its functions into the communicator, and takes them out, itself. The communicator counts no
 * reference for each function: its list of modules keeps them. */
#define GBA_OMPI_MODULES_INSTALL 1
#else
#define GBA_OMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#define GBA_OMPI_MODULES_INSTALL 0
#endif
#define GBA_OMPI_MODEX_GLOBAL PMIX_GLOBAL
#define GBA_OMPI_EXPORTED OMPI_DECLSPEC
typedef size_t gba_ompi_modex_size_t;
#else
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"

#define GBA_OMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#define GBA_OMPI_MODULES_INSTALL 0
#define GBA_OMPI_MODEX_GLOBAL OPAL_PMIX_GLOBAL
#define GBA_OMPI_EXPORTED OMPI_MODULE_DECLSPEC
typedef int32_t gba_ompi_modex_size_t;
#endif

#endif
