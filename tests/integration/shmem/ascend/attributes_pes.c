/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PE that starts by the attributes of shmem_api.h, without a launcher.
 *
 *   attributes_pes ip_port|set_attr|uid|tls|instance RANK SIZE WHERE
 *
 * WHERE is "tcp://...", or the file through which the unique id goes to the other PEs.
 */
#include <shmem_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static void send_uid(const char* path, const shmem_uniqueid_t* uid) {
  char made[512];
  FILE* file;
  snprintf(made, sizeof made, "%s.new", path);
  file = fopen(made, "wb");
  CHECK(file != NULL && fwrite(uid, sizeof *uid, 1, file) == 1 && fclose(file) == 0);
  CHECK(rename(made, path) == 0);
}

static void receive_uid(const char* path, shmem_uniqueid_t* uid) {
  FILE* file = NULL;
  while ((file = fopen(path, "rb")) == NULL) {
    usleep(5000);
  }
  CHECK(fread(uid, sizeof *uid, 1, file) == 1 && fclose(file) == 0);
}

/* Called once by each PE; `uid` outlives the start. */
static void fill(const char* how, int rank, int size, const char* where, shmem_uniqueid_t* uid,
                 shmem_init_attr_t* attributes) {
  if (strcmp(how, "ip_port") == 0) {
    const aclshmem_init_optional_attr_t options = ACLSHMEM_INIT_OPTIONAL_ATTR_INITIALIZER;
    memset(attributes, 0, sizeof *attributes);
    attributes->my_rank = rank;
    attributes->n_ranks = size;
    snprintf(attributes->ip_port, sizeof attributes->ip_port, "%s", where);
    attributes->local_mem_size = 4 << 20;
    attributes->option_attr = options;
    return;
  }
  CHECK(shmem_set_attr(rank, size, 4 << 20, strcmp(how, "uid") == 0 ? "" : where, attributes) == SHMEM_SUCCESS);
  CHECK(shmem_set_timeout(attributes, 60) == SHMEM_SUCCESS);
  CHECK(shmem_set_data_op_engine_type(attributes, ACLSHMEM_DATA_OP_MTE) == SHMEM_SUCCESS);
  if (strcmp(how, "uid") == 0) {
    if (rank == 0) {
      CHECK(shmem_get_uniqueid(uid) == SHMEM_SUCCESS);
      send_uid(where, uid);
    } else {
      receive_uid(where, uid);
    }
    CHECK(shmem_set_attr_uniqueid_args(rank, size, uid, attributes) == SHMEM_SUCCESS);
  }
}

/* Refused, with a message, before anything is started. */
static int refused(const char* how, shmem_init_attr_t* attributes) {
  CHECK(shmem_set_conf_store_tls(false, "", 0) == SHMEM_SUCCESS);
  if (strcmp(how, "tls") == 0) {
    CHECK(shmem_set_conf_store_tls(true, "", 0) == ACLSHMEM_NOT_SUPPORTED);
    CHECK(shmem_set_config_store_tls_key("", 0, "", 0, NULL) == ACLSHMEM_NOT_SUPPORTED);
  } else {
    aclshmemx_init_attr_t second;
    memset((void*)&second, 0, sizeof second);
    second.n_pes = 1;
    second.local_mem_size = 1 << 20;
    second.option_attr = attributes->option_attr;
    second.instance_id = 1;
    CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &second) == ACLSHMEM_NOT_SUPPORTED);
    CHECK(aclshmemx_instance_ctx_set(1) == ACLSHMEM_NOT_SUPPORTED && aclshmemx_finalize(1) == ACLSHMEM_NOT_SUPPORTED);
  }
  CHECK(shmem_init_status() == ACLSHMEM_STATUS_NOT_INITIALIZED);
  return 0;
}

PE_PART(attributes) {
  shmem_init_attr_t attributes;
  shmem_uniqueid_t uid = ACLSHMEM_UNIQUEID_INITIALIZER;
  int rank, size, *numbers, ret;
  if (argc != 5) {
    return 2;
  }
  rank = atoi(argv[2]);
  size = atoi(argv[3]);
  fill(argv[1], rank, size, argv[4], &uid, &attributes);
  if (strcmp(argv[1], "tls") == 0 || strcmp(argv[1], "instance") == 0) {
    return refused(argv[1], &attributes);
  }
  ret = shmem_init_attr(&attributes);
  if (ret != SHMEM_SUCCESS) {
    fprintf(stderr, "PE %d: shmem_init_attr: %d: %s\n", rank, ret, shmemx_error_text());
    return 1;
  }
  CHECK(shmem_init_status() == ACLSHMEM_STATUS_IS_INITIALIZED);
  CHECK(shmem_my_pe() == rank && shmem_n_pes() == size);
  CHECK(shmem_init_attr(&attributes) == SHMEM_INNER_ERROR);
  numbers = (int*)shmem_malloc((size_t)size * sizeof(int));
  CHECK(numbers != NULL);
  for (int pe = 0; pe < size; ++pe) {
    shmem_int_p(numbers + rank, 100 + rank, pe);
  }
  shmem_barrier_all();
  for (int pe = 0; pe < size; ++pe) {
    CHECK(numbers[pe] == 100 + pe);
  }
  shmem_free(numbers);
  CHECK(shmem_finalize() == SHMEM_SUCCESS);
  return 0;
}
