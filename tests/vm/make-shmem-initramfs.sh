#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make-shmem-initramfs.sh CACHE KERNEL RULES COMPONENTS PROGRAM... OUTPUT: makes the initramfs of the guest that runs
# the jobs of guest/shmem_init with these programs, and those of Open MPI with the components in the folder COMPONENTS,
# if Open MPI is installed here.
set -euo pipefail
cache="$1" kernel="$2" rules="$3" components="$4"
programs=("${@:5:$#-5}")
output="${*: -1}"
# shellcheck source=tests/vm/initramfs.sh
source "$(dirname "${BASH_SOURCE[0]}")/initramfs.sh"

# Open MPI's own components, without those that need hardware, a resource manager or files.
readonly SUPERFLUOUS='_(btl|mtl)_(of|op|ps)|_(ess|plm|ras|schizo|pmix)_(slurm|flux|jsm|gridengine|simulator|tool)|'\
'_(coll|osc|pml)_monitoring|_(fbtl|fcoll|fs|io|sharedfp|crs|vprotocol)_|_coll_(adapt|han|sync)|_topo_treematch|_prm_slurm'

has_openmpi() { mpirun --version 2>/dev/null | grep -q 'Open MPI' && command -v ompi_info >/dev/null; }

# All have the paths that this machine's Open MPI expects. COMPONENTS become /components.
add_openmpi() {
  local mpirun own pmix folder folders plugins program
  mpirun="$(readlink -f "$(command -v mpirun)")"
  add_programs "$mpirun"
  ln -s "${mpirun##*/}" "$root/bin/mpirun"
  for program in prterun prted; do # what Open MPI 5's mpirun starts
    ! command -v "$program" >/dev/null || add_programs "$(command -v "$program")"
  done
  ln -s ../bin "$root/usr/bin"
  for folder in /usr/share/openmpi /usr/share/prte /etc/openmpi; do # messages and settings
    [[ ! -d "$folder" ]] || cp -r --parents "$folder" "$root"
  done
  mkdir "$root/components"
  cp "$components"/*.so "$root/components"
  own="$(ompi_info --parsable --path pkglibdir | sed 's/.*://')"
  folders=("$own")
  # It may be within Open MPI, or Open MPI's components within its libraries.
  pmix="$(ldd "$own"/mca_pmix_*.so "$mpirun" 2>/dev/null | grep -o '/[^ ]*libpmix.so[^ ]*' | head -n 1)" || true
  [[ -z "$pmix" ]] || folders+=("$(dirname "$(readlink -f "$pmix")")/pmix")
  mapfile -t plugins < <(find "${folders[@]}" -name '*mca_*.so' | grep -vE "$SUPERFLUOUS")
  [[ ${#plugins[@]} -gt 0 ]] || return 0
  cp --parents "${plugins[@]}" "$root"
  add_libraries_of "${plugins[@]}"
}

make_root "$cache" "$kernel" shmem_init
add_udev "$rules"
add_programs "${programs[@]}"
if [[ -d "$components" ]] && has_openmpi; then
  add_openmpi
fi
mkdir -m 1777 "$root/tmp"
write_image "$output"
