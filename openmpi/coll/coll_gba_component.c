/* SPDX-License-Identifier: Apache-2.0 */
#include "coll_gba.h"
#include "ompi/mca/coll/base/base.h"
#include "opal/util/output.h"

static int register_parameters(void) {
  gba_ompi_component_register(&mca_coll_gba_component.common, &mca_coll_gba_component.super.collm_version,
                              "min_comm_size");
  mca_coll_gba_component.early_barriers = 2;
  (void)mca_base_component_var_register(
      &mca_coll_gba_component.super.collm_version, "early_barriers",
      "The number of barriers of a communicator without the device, before its members ask for a group",
      MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_LOCAL,
      &mca_coll_gba_component.early_barriers);
  return OMPI_SUCCESS;
}

static int open_component(void) {
  gba_ompi_component_t* const common = &mca_coll_gba_component.common;
  if (!gba_ompi_component_open(common, opal_output_get_verbosity(ompi_coll_base_framework.framework_output))) {
    return OMPI_ERR_NOT_AVAILABLE;
  }
  OBJ_CONSTRUCT(&mca_coll_gba_component.active, opal_list_t);
  if (common->options.disable) {
    opal_output_verbose(GBA_OMPI_VERBOSITY, common->options.stream, "coll:gba: disabled");
    return OMPI_ERR_NOT_AVAILABLE;
  }
  mca_coll_gba_publish(); /* here, since init_query comes after the modex */
  return OMPI_SUCCESS;
}

/* Called after an open that has failed, too. */
static int close_component(void) {
  if (mca_coll_gba_component.common.opened) {
    gba_ompi_component_close(&mca_coll_gba_component.common);
    mca_coll_gba_forget_published();
    OBJ_DESTRUCT(&mca_coll_gba_component.active);
  }
  return OMPI_SUCCESS;
}

mca_coll_gba_component_t mca_coll_gba_component = {
    .super =
        {
            .collm_version =
                {
                    GBA_OMPI_COLL_VERSION,
                    .mca_component_name = "gba",
                    MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
                    .mca_open_component = open_component,
                    .mca_close_component = close_component,
                    .mca_register_component_params = register_parameters,
                },
            .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
            .collm_init_query = mca_coll_gba_init_query,
            .collm_comm_query = mca_coll_gba_comm_query,
        },
    .common = {.framework = "coll",
               .process = "rank",
               .progress = mca_coll_gba_progress,
               .channel = {.tag = GBA_OMPI_TAG_REMOTE_COLL},
               .running = ATOMIC_FLAG_INIT},
};
