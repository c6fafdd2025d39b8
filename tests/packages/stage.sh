# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the tests that make packages from an existing build.

# stage_build SOURCE BUILD FOLDER [ARGUMENT...]: configures FOLDER as scripts/package.sh does. Its libraries and programs are
# links to those of BUILD, where they find their libraries.
stage_build() {
  local source="$1" build="$2" staged="$3" python=lib/python torch=OFF folder module
  shift 3
  ! compgen -G "$build/$python/shmem_torch/_C*.so" >/dev/null || torch=ON
  (cd "$source" && cmake --preset package -B "$staged" -DCMAKE_SKIP_RPATH=ON -DSHMEM_TORCH=$torch "$@") || return
  for folder in lib bin; do
    find "$build/$folder" -maxdepth 1 ! -type d ! -name 'osh[cC]*' -exec cp -al -t "$staged/$folder" {} +
  done
  mkdir -p "$staged/lib/libshmem"
  cp -al -t "$staged/lib/libshmem" "$build/lib/libshmem/libshmem_profile.so"
  if [[ -d "$build/lib/openmpi" ]]; then
    mkdir -p "$staged/lib/openmpi"
    cp -al -t "$staged/lib/openmpi" "$build"/lib/openmpi/mca_*.so
  fi
  for module in "$build/$python"/shmem_kv/_*core*.so "$build/$python"/shmem_torch/_C*.so; do
    [[ ! -e "$module" ]] || cp -al "$module" "$staged/$python/$(basename "$(dirname "$module")")"
  done
}
