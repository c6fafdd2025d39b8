#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Carries out packaging/Containerfile without a container engine: each stage is a bare Debian, in which its commands run, or
# an empty folder, and the result runs jobs. Skipped (77) without root, debootstrap or a Debian mirror.
set -euo pipefail
# shellcheck source=tests/packages/root.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"

[[ $# == 1 ]] || {
  echo "Usage: container.sh SOURCE_FOLDER" >&2
  exit 2
}
source="$1"
environment=()
folder=/

# in_stage COMMAND: as RUN does.
in_stage() {
  inside "${environment[@]}" sh -c "cd $folder && $1"
}

# The result of the first stage is kept, since later stages copy from it.
next_stage() {
  local image="$1"
  if [[ -z "$work" ]]; then
    make_root bookworm
    unmount_kernel
    cp -a "$root" "$work/bare"
  else
    unmount_kernel
    if [[ -d "$work/build-stage" ]]; then rm -rf --one-file-system "$root"; else mv "$root" "$work/build-stage"; fi
  fi
  case "$image" in
    docker.io/library/debian:12-slim)
      [[ -d "$root" ]] || cp -a "$work/bare" "$root"
      mount_kernel
      ;;
    scratch) mkdir "$root" ;;
    *)
      echo "Containerfile is based on $image, which this test does not know"
      exit 1
      ;;
  esac
  kept_objects=()
  environment=()
  folder=/
}

while read -r instruction arguments; do
  read -r -a words <<<"$arguments"
  case "$instruction" in
    FROM) next_stage "${words[0]}" ;;
    WORKDIR) folder="${words[0]}" ;;
    ENV) environment+=("$arguments") ;;
    RUN) check "RUN $arguments" in_stage "$arguments" ;;
    COPY)
      if [[ "$arguments" == ". /src" ]]; then
        copy_tree "$source"
        keep_objects bookworm
      elif [[ "${words[0]}" == --from=build ]]; then
        check "COPY $arguments" cp -a "$work/build-stage${words[1]}" "$root${words[2]}"
      else
        echo "Containerfile copies $arguments, which this test does not know"
        exit 1
      fi
      ;;
    "" | \#*) ;;
    *)
      echo "Containerfile has $instruction, which this test does not know"
      exit 1
      ;;
  esac
done <"$source/packaging/Containerfile"
check "the wheel is made" ls "$work"/build-stage/wheel/shmem_kv-*.whl
check "a job runs" in_stage "oshrun -n 2 --gba fake --timeout 120 kv_shuffle --check --rounds 1 --blocks 8 --page 16"
check "the Python module runs" in_stage \
  "oshrun -n 2 --gba off --timeout 120 python3 -c 'import shmem_kv; shmem_kv.init(1 << 20); shmem_kv.barrier_all(); shmem_kv.finalize()'"
check "the gba command runs" in_stage "gba list"
check "there is no compiler" in_stage "! command -v gcc"
