/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_component.h"

#include <mpi.h>
#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#define BUILT_FOR "Open MPI v" TEXT_OF_NUMBER(OMPI_MAJOR_VERSION) "." TEXT_OF_NUMBER(OMPI_MINOR_VERSION) "."
#define TEXT_OF_NUMBER(number) TEXT_OF(number)
#define TEXT_OF(text) #text

static bool fits(const gba_ompi_component_t* component) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) {
    return false;
  }
  if (strncmp(text, BUILT_FOR, strlen(BUILT_FOR)) == 0) {
    /* Another implementation of threads makes another mutex; openmpi/include has that of POSIX threads. */
    if (opal_mutex_t_class.cls_sizeof == sizeof(opal_mutex_t)) {
      return true;
    }
    opal_output(0, "%s:gba: not used: it was built for an Open MPI with another kind of threads", component->framework);
    return false;
  }
  opal_output(0, "%s:gba: not used: it was built for %s*, and this is %.40s", component->framework, BUILT_FOR, text);
  return false;
}

static void number(const mca_base_component_t* mca, const char* name, const char* text, int* storage) {
  (void)mca_base_component_var_register(mca, name, text, MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_6,
                                        MCA_BASE_VAR_SCOPE_LOCAL, storage);
}

static void counter(const mca_base_component_t* mca, const char* name, const char* text, int variable_class,
                    unsigned long long* storage) {
  (void)mca_base_component_pvar_register(mca, name, text, OPAL_INFO_LVL_6, variable_class,
                                         MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
                                         MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL, NULL,
                                         storage);
}

static void register_device_path(gba_ompi_options_t* options, const mca_base_component_t* mca) {
  const int variable = mca_base_component_var_register(
      mca, "device_path",
      "The device: a VFIO character device, a PCI address, or the socket of a vfio-user server. "
      "Unless it is set, $GBA_DEVICE comes before the default, and all functions of the machine after it",
      MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL, &options->device_path);
  mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
  options->path_is_set = variable >= 0 && mca_base_var_get_value(variable, NULL, &source, NULL) == OPAL_SUCCESS &&
                         source != MCA_BASE_VAR_SOURCE_DEFAULT;
}

void gba_ompi_component_register(gba_ompi_component_t* component, const mca_base_component_t* mca,
                                 const char* min_name) {
  gba_ompi_options_t* const options = &component->options;
  *options = (gba_ompi_options_t){
      .priority = 100, .device_path = GBA_OMPI_DEFAULT_NODE, .min_size = 2, .spin = 100, .stream = -1};
  number(mca, "priority", "Priority of the component", &options->priority);
  (void)mca_base_component_var_register(mca, "disable", "Do not use the Global Barrier Accelerator",
                                        MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL,
                                        &options->disable);
  register_device_path(options, mca);
  number(mca, min_name, "Smaller groups do not use the device", &options->min_size);
  number(mca, "timeout", "Seconds after which a barrier of the device fails and names the missing processes; 0: never",
         &options->timeout);
  number(mca, "verbose", "5: print which barriers the device does, and why it does not do the others",
         &options->verbose);
  number(mca, "spin", "How often a waiting process looks before it makes other progress", &options->spin);
  counter(mca, "offloaded", "Barriers that the device has done", MCA_BASE_PVAR_CLASS_COUNTER, &options->offloaded);
  counter(mca, "fallen_back", "Barriers that the device should have done and has not", MCA_BASE_PVAR_CLASS_COUNTER,
          &options->fallen_back);
  counter(mca, "waiting_ns", "Nanoseconds spent in blocking barriers of the device", MCA_BASE_PVAR_CLASS_COUNTER,
          &options->waiting_ns);
}

bool gba_ompi_component_open(gba_ompi_component_t* component, int base_verbose) {
  gba_ompi_options_t* const options = &component->options;
  if (!fits(component)) {
    return false;
  }
  options->stream = opal_output_open(NULL);
  opal_output_set_verbosity(options->stream, options->verbose > base_verbose ? options->verbose : base_verbose);
  OBJ_CONSTRUCT(&component->lock, opal_mutex_t);
  OBJ_CONSTRUCT(&component->channel.lock, opal_mutex_t);
  component->opened = true;
  return true;
}

void gba_ompi_component_close(gba_ompi_component_t* component) {
  if (!component->opened) {
    return;
  }
  component->opened = false;
  if (component->listening) {
    opal_progress_unregister(component->progress);
  }
  component->listening = false;
  gba_ompi_remote_end(&component->channel);
  if (component->port_tried) {
    gba_ompi_port_close(&component->port);
  }
  component->port_tried = false;
  OBJ_DESTRUCT(&component->channel.lock);
  OBJ_DESTRUCT(&component->lock);
  opal_output_close(component->options.stream);
  component->options.stream = -1;
}

int gba_ompi_component_open_port(gba_ompi_component_t* component) {
  OPAL_THREAD_LOCK(&component->lock);
  if (!component->port_tried) {
    gba_device_info info;
    component->port_tried = true;
    component->port_error = gba_ompi_port_open(gba_ompi_component_path(component),
                                               (uint32_t)opal_process_info.my_local_rank, &component->port);
    component->is_process = component->port.port != NULL &&
                            gba_barrier_port_get_info(component->port.port, &info) == 0 && info.is_process != 0;
    if (component->port_error != 0) {
      opal_output_verbose(GBA_OMPI_VERBOSITY, component->options.stream, "%s:gba: this process cannot use a device: %s",
                          component->framework, component->port.trouble);
    }
  }
  OPAL_THREAD_UNLOCK(&component->lock);
  return component->port_error;
}

void gba_ompi_component_listen(gba_ompi_component_t* component, bool needed) {
  needed = gba_ompi_remote_needed(&component->channel) || needed;
  if (needed && !component->listening) {
    opal_progress_register(component->progress);
  }
  if (!needed && component->listening) {
    opal_progress_unregister(component->progress);
  }
  component->listening = needed;
}

const char* gba_ompi_component_path(const gba_ompi_component_t* component) {
  const char* const path = component->options.device_path;
  return !component->options.path_is_set || path == NULL || path[0] == '\0' ? NULL : path;
}
