/* SPDX-License-Identifier: Apache-2.0 */
#include "scoll_gba.h"

#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"
#include "oshmem/mca/scoll/base/base.h"

static int register_parameters(void) {
  gba_ompi_component_register(&mca_scoll_gba_component.common, &mca_scoll_gba_component.super.scoll_version,
                              "min_group_size");
  return OSHMEM_SUCCESS;
}

/* Opens if it is disabled, too: the other PEs learn that when the members of a group agree. */
static int open_component(void) {
  return gba_ompi_component_open(&mca_scoll_gba_component.common,
                                 opal_output_get_verbosity(oshmem_scoll_base_framework.framework_output))
             ? OSHMEM_SUCCESS
             : OSHMEM_ERR_NOT_AVAILABLE;
}

/* When all groups are gone: waits until no other node needs an answer. Called after an open that has failed, too. */
static int close_component(void) {
  gba_ompi_component_t* const common = &mca_scoll_gba_component.common;
  while (common->opened && gba_ompi_remote_needed(&common->channel) && !gba_ompi_remote_is_finalized()) {
    opal_progress();
  }
  gba_ompi_component_close(common);
  return OSHMEM_SUCCESS;
}

static int init(bool enable_progress_threads, bool enable_threads) {
  (void)enable_progress_threads;
  (void)enable_threads;
  return OSHMEM_SUCCESS;
}

mca_scoll_gba_component_t mca_scoll_gba_component = {
    .super =
        {
            .scoll_version =
                {
                    MCA_SCOLL_BASE_VERSION_2_0_0,
                    .mca_component_name = "gba",
                    MCA_BASE_MAKE_VERSION(component, OSHMEM_MAJOR_VERSION, OSHMEM_MINOR_VERSION,
                                          OSHMEM_RELEASE_VERSION),
                    .mca_open_component = open_component,
                    .mca_close_component = close_component,
                    .mca_register_component_params = register_parameters,
                },
            .scoll_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
            .scoll_init = init,
            .scoll_query = mca_scoll_gba_query,
        },
    .common = {.framework = "scoll",
               .process = "PE",
               .progress = mca_scoll_gba_progress,
               .channel = {.tag = GBA_OMPI_TAG_REMOTE_SCOLL},
               .running = ATOMIC_FLAG_INIT},
};
