/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_options.h"

#include <mpi.h>
#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/output.h"

#define BUILT_FOR "Open MPI v" TEXT_OF_NUMBER(OMPI_MAJOR_VERSION) "." TEXT_OF_NUMBER(OMPI_MINOR_VERSION) "."
#define TEXT_OF_NUMBER(number) TEXT_OF(number)
#define TEXT_OF(text) #text

bool gba_ompi_options_fit(const char* component) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return false;
  if (strncmp(text, BUILT_FOR, strlen(BUILT_FOR)) == 0) return true;
  opal_output(0, "%s: not used: it was built for %s*, and this is %.40s", component, BUILT_FOR, text);
  return false;
}

static void number(const mca_base_component_t* component, const char* name, const char* text, int* storage) {
  (void)mca_base_component_var_register(component, name, text, MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_6,
                                        MCA_BASE_VAR_SCOPE_LOCAL, storage);
}

static void counter(const mca_base_component_t* component, const char* name, const char* text, int variable_class,
                    unsigned long long* storage) {
  (void)mca_base_component_pvar_register(component, name, text, OPAL_INFO_LVL_6, variable_class,
                                         MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
                                         MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL, NULL,
                                         storage);
}

void gba_ompi_options_register(const mca_base_component_t* component, const char* min_name,
                               gba_ompi_options_t* options) {
  options->priority = 100;
  options->disable = false;
  options->device_path = "";
  options->min_size = 2;
  options->timeout = 0;
  options->verbose = 0;
  options->spin = 100;
  options->stream = -1;
  number(component, "priority", "Priority of the component", &options->priority);
  (void)mca_base_component_var_register(component, "disable", "Do without the Global Barrier Accelerator",
                                        MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL,
                                        &options->disable);
  (void)mca_base_component_var_register(
      component, "device_path",
      "The device: a VFIO character device, a PCI address, or the socket of a vfio-user server. "
      "Empty: $GBA_DEVICE, or else /dev/gba0, or else the first one of the machine",
      MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL, &options->device_path);
  number(component, min_name, "Fewer members than this do without the device", &options->min_size);
  number(component, "timeout",
         "Seconds after which a barrier of the device fails and names who has not arrived; 0: never",
         &options->timeout);
  number(component, "verbose", "5: say which barriers the device does, and why not", &options->verbose);
  number(component, "spin", "How often a waiting process looks before it makes other progress", &options->spin);
  counter(component, "offloaded", "Barriers that the device has done", MCA_BASE_PVAR_CLASS_COUNTER,
          &options->offloaded);
  counter(component, "fallen_back", "Barriers that the device should have done and has not",
          MCA_BASE_PVAR_CLASS_COUNTER, &options->fallen_back);
  counter(component, "waiting_ns", "Nanoseconds spent in blocking barriers of the device", MCA_BASE_PVAR_CLASS_COUNTER,
          &options->waiting_ns);
}

void gba_ompi_options_open(gba_ompi_options_t* options, int base_verbose) {
  options->stream = opal_output_open(NULL);
  opal_output_set_verbosity(options->stream, options->verbose > base_verbose ? options->verbose : base_verbose);
}

void gba_ompi_options_close(gba_ompi_options_t* options) {
  if (options->stream >= 0) opal_output_close(options->stream);
  options->stream = -1;
}

const char* gba_ompi_options_path(const gba_ompi_options_t* options) {
  return options->device_path == NULL || options->device_path[0] == '\0' ? NULL : options->device_path;
}
