/* SPDX-License-Identifier: Apache-2.0 */
#include "opal/util/output.h"
#include "oshmem/mca/scoll/base/base.h"
#include "scoll_gba.h"

static int register_parameters(void) {
  gba_ompi_options_register(&mca_scoll_gba_component.super.scoll_version, "min_group_size",
                            &mca_scoll_gba_component.options);
  return OSHMEM_SUCCESS;
}

/* Also if it is disabled: the other PEs have to learn that, and do so when the members of a group agree. */
static int open_component(void) {
  if (!gba_ompi_options_fit("scoll:gba")) return OSHMEM_ERR_NOT_AVAILABLE;
  gba_ompi_options_open(&mca_scoll_gba_component.options,
                        opal_output_get_verbosity(oshmem_scoll_base_framework.framework_output));
  OBJ_CONSTRUCT(&mca_scoll_gba_component.lock, opal_mutex_t);
  OBJ_CONSTRUCT(&mca_scoll_gba_component.channel.lock, opal_mutex_t);
  mca_scoll_gba_component.channel.tag = GBA_OMPI_TAG_FAR_SCOLL;
  mca_scoll_gba_component.opened = true;
  return OSHMEM_SUCCESS;
}

/* Called after an open that has failed, too. */
static int close_component(void) {
  mca_scoll_gba_component_t* const component = &mca_scoll_gba_component;
  gba_ompi_options_close(&component->options);
  if (!component->opened) return OSHMEM_SUCCESS;
  component->opened = false;
  mca_scoll_gba_stop_listening();
  if (component->port_tried) gba_ompi_port_close(&component->port);
  component->port_tried = false;
  OBJ_DESTRUCT(&component->channel.lock);
  OBJ_DESTRUCT(&component->lock);
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
            .scoll_data = {MCA_BASE_METADATA_PARAM_NONE},
            .scoll_init = init,
            .scoll_query = mca_scoll_gba_query,
        },
    .running = ATOMIC_FLAG_INIT,
};
