#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages from an existing build, checks that they do not conflict with packages installed here (Open
# MPI has commands of the same names), unpacks them and uses them. clean_root.sh installs them for real. Skipped (77) on
# systems other than Debian.
set -euo pipefail

[[ $# == 2 ]] || {
  echo "Usage: debian.sh SOURCE_FOLDER BUILD_FOLDER" >&2
  exit 2
}
source="$1"
build="$2"

die() {
  echo "debian.sh: $*"
  exit 1
}

for tool in dpkg-shlibdeps file; do
  command -v "$tool" >/dev/null || {
    echo "debian.sh: skipped: there is no $tool (Debian: dpkg-dev, file)"
    exit 77
  }
done
work="$(mktemp -d "$build/debian.XXXXXX")"
trap 'rm -rf "$work"' EXIT

# Configured as by scripts/package.sh; libraries and programs are links to those of the build folder, where they find
# their libraries.
(cd "$source" && cmake --preset package -B "$work/build" -DCMAKE_SKIP_RPATH=ON >"$work/log" 2>&1) || die "$(<"$work/log")"
for folder in lib bin; do
  find "$build/$folder" -maxdepth 1 ! -type d ! -name 'osh[cC]*' -exec cp -al -t "$work/build/$folder" {} +
done
python=lib/python/shmem_kv
if [[ -d "$build/lib/openmpi" ]]; then
  mkdir -p "$work/build/lib/openmpi"
  cp -al -t "$work/build/lib/openmpi" "$build"/lib/openmpi/mca_*.so
fi
for module in "$build/$python"/_core*.so; do
  [[ ! -e "$module" ]] || cp -al "$module" "$work/build/$python"
done
(cd "$work/build" && cpack -G DEB >"$work/log" 2>&1) || die "$(<"$work/log")"

echo "== no file belongs to another package"
root="$work/root"
for package in "$work"/build/*.deb; do
  dpkg-deb -x "$package" "$root"
done
(cd "$root" && find . ! -type d -printf '/%P\n') >"$work/files"
[[ $(wc -l <"$work/files") -gt 60 ]] || die "the packages have few files: $(<"$work/files")"
# dpkg-query fails for files that belong to no package.
others="$(xargs -a "$work/files" dpkg-query -S 2>/dev/null |
  grep -vE '^(libgba|libgba-dev|libgba-openmpi|gba-tools|gba-fake-device|libshmem|libshmem-dev|libshmem-mpi|python3-shmem-kv)(:[a-z0-9]+)?: ' || true)"
[[ -z "$others" ]] || die "other packages have: $others"
dangling="$(find "$root" -xtype l)"
[[ -z "$dangling" ]] || die "links to nothing: $dangling"

echo "== dependencies"
depends() {
  dpkg-deb -f "$work"/build/"$1"_*.deb Depends
}
for package in libshmem gba-tools libgba-dev; do
  [[ "$(depends $package)" == *"libgba (= "* ]] || die "$package depends on $(depends $package)"
done
[[ "$(depends libshmem)" != *mpi* ]] || die "libshmem depends on $(depends libshmem)"
[[ "$(depends libshmem)" == *libsodium* ]] || die "libshmem depends on $(depends libshmem)"
[[ "$(depends libshmem-dev)" == *"libshmem (= "* ]] || die "libshmem-dev depends on $(depends libshmem-dev)"
! readelf -S "$root"/usr/lib/*/libshmem.so.1 | grep -q debug_info || die "libshmem is not stripped"

echo "== oshcc.libshmem and oshrun.libshmem"
cat >"$work/hello.c" <<'TEXT'
#include <shmem.h>
int main(void) {
  shmem_init();
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}
TEXT
"$root/usr/bin/oshcc.libshmem" -o "$work/hello" "$work/hello.c"
"$root/usr/bin/oshrun.libshmem" -n 2 --gba off --timeout 60 "$work/hello"
[[ "$("$root/usr/bin/oshCC.libshmem" --showme:incdirs)" == "$(readlink -f "$root/usr/include/libshmem")" ]] ||
  die "headers are in $("$root/usr/bin/oshCC.libshmem" --showme:incdirs)"
flags="$(PKG_CONFIG_PATH="$(echo "$root"/usr/lib/*/pkgconfig)" pkg-config --cflags --libs shmem)"
# shellcheck disable=SC2086 # several words
cc -o "$work/by_pc" "$work/hello.c" $flags

components="$(echo "$root"/usr/lib/*/libgba/openmpi)"
if [[ -d "$components" ]]; then
  echo "== libgba-openmpi"
  [[ "$(depends libgba-openmpi)" == *"libgba (= "*"libopenmpi3 (>= 4.1"*"libopenmpi3 (<< 4.2)"* ]] ||
    die "libgba-openmpi depends on $(depends libgba-openmpi)"
  LD_LIBRARY_PATH="$(echo "$root"/usr/lib/*-linux-gnu)" PATH="$root/usr/bin:$PATH" \
    "$source/tests/packages/use_openmpi.sh" "$work/openmpi" "$components"
fi

if [[ -d "$work/build/$python" ]]; then
  echo "== python3-shmem-kv"
  [[ "$(depends python3-shmem-kv)" == *"libshmem (= "*python3-numpy* ]] || die "python3-shmem-kv depends on $(depends python3-shmem-kv)"
  "$root/usr/bin/oshrun.libshmem" -n 2 --gba off --timeout 60 env PYTHONPATH="$root/usr/lib/python3/dist-packages" \
    LD_LIBRARY_PATH="$(echo "$root"/usr/lib/*-linux-gnu)" PYTHONDONTWRITEBYTECODE=1 \
    /usr/bin/python3 -c 'import shmem_kv; shmem_kv.init(1 << 20); shmem_kv.barrier_all(); shmem_kv.finalize()'
fi
