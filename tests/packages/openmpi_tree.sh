#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds an Open MPI 4.1 with coll/gba and scoll/gba inside: Debian's source by apt, the components by
# openmpi/ompi-tree/copy.sh, and as few other components as possible. Its own mpirun and oshrun then run barriers, which
# the fake device must count. Skipped (77) if the source is not available or a tool is missing.
set -euo pipefail

[[ $# == 2 ]] || {
  echo "Usage: openmpi_tree.sh SOURCE_FOLDER BUILD_FOLDER" >&2
  exit 2
}
source="$1"
build="$2"

skip() {
  echo "openmpi_tree.sh: skipped: $*"
  exit 77
}

clean_up() {
  [[ -z "$device" ]] || {
    kill "$device" 2>/dev/null || true
    wait "$device" || true
  }
  rm -rf --one-file-system "$work"
}

# step WHAT COMMAND...: runs COMMAND with its output in $work/log, and prints the output if it fails.
step() {
  local what="$1" started="$SECONDS"
  shift
  if "$@" >"$work/log" 2>&1; then
    echo "ok: $what ($((SECONDS - started)) s)"
  else
    tail -n 60 "$work/log"
    echo "failed: $what ($*)"
    exit 1
  fi
}

check_tools() {
  local tool
  for tool in apt-get dpkg-source autoconf automake libtoolize flex perl make cc; do
    command -v "$tool" >/dev/null ||
      skip "there is no $tool (apt-get install dpkg-dev autoconf automake libtool flex perl make gcc)"
  done
  [[ -e /usr/include/ucp/api/ucp.h ]] || skip "OpenSHMEM needs UCX (apt-get install libucx-dev)"
  [[ -e "$pmix/include/pmix.h" ]] || skip "there is no PMIx (apt-get install libpmix-dev)"
}

# apt-get with its own list of sources and package lists: the machine's list need not name sources.
apt_of_sources() {
  apt-get -q -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$work/apt/lists" \
    -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User= -o Acquire::Retries=1 "$@"
}

fetch_source() {
  local mirror release
  # shellcheck disable=SC2016 # the names are apt's
  read -r mirror release < <(apt-get indextargets --format '$(COMPONENT) $(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
    awk '$1 == "main" { print $2, $3; exit }') || skip "apt names no Debian mirror here"
  mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/source"
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" >"$work/apt/sources.list"
  apt_of_sources update >"$work/log" 2>&1 || skip "no list of sources from $mirror: $(tail -n 1 "$work/log")"
  (cd "$work/source" && apt_of_sources source openmpi) >"$work/log" 2>&1 ||
    skip "no source of Open MPI from $mirror: $(grep -m 1 '^E:' "$work/log" || tail -n 1 "$work/log")"
  tree="$(echo "$work"/source/openmpi-*/)"
  grep -q '^minor=1$' "$tree/VERSION" || skip "Debian's Open MPI is no longer 4.1"
}

# Without Fortran, C++, Java, MPI's file I/O, networks other than UCX, and debugging tools.
configure() {
  local left_out=(btl-openib btl-usnic coll-fca coll-hcoll coll-ml coll-monitoring common-monitoring crs fbtl fcoll filem fs io mtl
    osc-monitoring pml-monitoring sharedfp topo-treematch vprotocol)
  mkdir "$work/objects"
  cd "$work/objects"
  "$tree/configure" --prefix="$work/openmpi" --with-gba="$work/gba" --enable-scoll-gba \
    --enable-oshmem --with-ucx --with-libevent=external --with-hwloc=external --with-pmix="$pmix" \
    --disable-mpi-fortran --disable-mpi-cxx --disable-mpi-java --disable-oshmem-fortran --disable-oshmem-profile \
    --disable-mpi-io --without-ofi --without-psm --without-psm2 --without-verbs --without-slurm \
    --enable-mca-no-build="$(IFS=, && echo "${left_out[*]}")" CFLAGS=-O1
}

# Each component has its own, under the name that its Makefile.am gives to make dist.
check_readmes() {
  if ! head -n 1 "$tree/ompi/mca/coll/gba/README.md" | grep -q '^# Open MPI with the GBA' ||
    ! head -n 1 "$tree/oshmem/mca/scoll/gba/README.md" | grep -q '^# scoll/gba'; then
    echo "failed: a component has no README.md, or another one's"
    exit 1
  fi
  echo "ok: each component has its README.md"
}

install_libgba() {
  cmake --install "$build" --prefix "$work/gba" --component libgba
  cmake --install "$build" --prefix "$work/gba" --component libgba-dev
}

build_programs() {
  local programs="$source/tests/integration/openmpi"
  "$work/openmpi/bin/mpicc" -o "$work/barrier_ranks" "$programs/barrier_ranks.c" "$programs/ranks.c" -lpthread
  "$work/openmpi/bin/oshcc" -o "$work/shmem_ranks" "$programs/shmem_ranks.c" "$programs/ranks.c"
}

releases() {
  "$build/bin/gba" info "vfio-user:$work/gba.sock" | sed -n 's/^ *releases *//p'
}

# counted WHAT LEAST COMMAND...: during COMMAND the device must count at least LEAST barriers.
counted() {
  local what="$1" least="$2" before after
  shift 2
  before="$(releases)"
  step "$what" timeout -k 1 120 "$@"
  after="$(releases)"
  cat "$work/log"
  ((after - before >= least)) || {
    echo "failed: $what: the device has counted $((after - before)) barriers, and there were $least"
    exit 1
  }
  echo "ok: the device has counted $((after - before)) barriers"
}

use_device() {
  unset "${!OMPI_MCA_@}"
  export TMPDIR="$work/tmp" GBA_DEVICE="vfio-user:$work/gba.sock" OMPI_MCA_coll_gba_verbose=5 OMPI_MCA_scoll_gba_verbose=5
  export OMPI_MCA_coll_gba_early_barriers=0
  export OMPI_MCA_plm_rsh_agent=false OMPI_MCA_btl_vader_backing_directory="$work/tmp" OMPI_MCA_opal_common_ucx_opal_mem_hooks=0
  export LD_LIBRARY_PATH="$work/gba/lib"
  mkdir "$TMPDIR"
  "$build/bin/gba-fake-device" --socket "$work/gba.sock" >"$work/device.log" 2>&1 &
  device=$!
  for ((tries = 0; tries < 100; tries++)); do
    ! grep -q "ready on" "$work/device.log" || break
    sleep 0.1
  done
  counted "MPI's barriers" 50 "$work/openmpi/bin/mpirun" --allow-run-as-root --oversubscribe -np 4 \
    "$work/barrier_ranks" "$work/entered" world 50
  OMPI_MCA_coll_gba_disable=1 counted "OpenSHMEM's barriers" 100 "$work/openmpi/bin/oshrun" --allow-run-as-root --oversubscribe -np 4 \
    "$work/shmem_ranks" "$work/entered" world 50
}

device=
pmix="/usr/lib/$(cc -print-multiarch)/pmix2"
work="$(mktemp -d)"
trap clean_up EXIT
check_tools
fetch_source
step "the components are copied" "$source/openmpi/ompi-tree/copy.sh" "$tree"
check_readmes
step "libgba is installed" install_libgba
cd "$tree"
step "autogen.pl" env AUTOMAKE_JOBS=2 ./autogen.pl --force
step "configure" configure
cd "$work/objects"
step "make" make -j2
! grep -E '(^|/)(coll_|scoll_)?gba_[a-z]+\.[ch]:.*warning:' "$work/log" || {
  echo "failed: the components are compiled with warnings"
  exit 1
}
step "make install" make -j2 install
step "programs are built" build_programs
use_device
