/* SPDX-License-Identifier: Apache-2.0 */
#include "coll_gba.h"
#include "ompi/mca/coll/base/base.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

static int register_parameters(void) {
  gba_ompi_options_register(&mca_coll_gba_component.super.collm_version, "min_comm_size",
                            &mca_coll_gba_component.options);
  return OMPI_SUCCESS;
}

static int open_component(void) {
  if (!gba_ompi_options_fit("coll:gba")) return OMPI_ERR_NOT_AVAILABLE;
  gba_ompi_options_open(&mca_coll_gba_component.options,
                        opal_output_get_verbosity(ompi_coll_base_framework.framework_output));
  if (mca_coll_gba_component.options.disable) {
    opal_output_verbose(GBA_OMPI_SAY, mca_coll_gba_component.options.stream, "coll:gba: disabled");
    return OMPI_ERR_NOT_AVAILABLE;
  }
  OBJ_CONSTRUCT(&mca_coll_gba_component.lock, opal_mutex_t);
  OBJ_CONSTRUCT(&mca_coll_gba_component.active, opal_list_t);
  OBJ_CONSTRUCT(&mca_coll_gba_component.channel.lock, opal_mutex_t);
  mca_coll_gba_component.channel.tag = GBA_OMPI_TAG_FAR_COLL;
  mca_coll_gba_component.opened = true;
  mca_coll_gba_tell(); /* here, since init_query comes after the modex */
  return OMPI_SUCCESS;
}

/* Called after an open that has failed, too. */
static int close_component(void) {
  mca_coll_gba_component_t* const component = &mca_coll_gba_component;
  gba_ompi_options_close(&component->options);
  if (!component->opened) return OMPI_SUCCESS;
  component->opened = false;
  if (component->listening) opal_progress_unregister(mca_coll_gba_progress);
  component->listening = false;
  gba_ompi_far_end(&component->channel);
  if (component->port_tried) gba_ompi_port_close(&component->port);
  component->port_tried = false;
  OBJ_DESTRUCT(&component->channel.lock);
  OBJ_DESTRUCT(&component->active);
  OBJ_DESTRUCT(&component->lock);
  return OMPI_SUCCESS;
}

mca_coll_gba_component_t mca_coll_gba_component = {
    .super =
        {
            .collm_version =
                {
                    MCA_COLL_BASE_VERSION_2_0_0,
                    .mca_component_name = "gba",
                    MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
                    .mca_open_component = open_component,
                    .mca_close_component = close_component,
                    .mca_register_component_params = register_parameters,
                },
            .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
            .collm_init_query = mca_coll_gba_init_query,
            .collm_comm_query = mca_coll_gba_comm_query,
        },
    .running = ATOMIC_FLAG_INIT,
};
