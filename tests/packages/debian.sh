#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages from an existing build, checks that they do not conflict with packages installed here (Open
# MPI has commands of the same names), unpacks them and uses them. clean_root.sh installs them for real. Skipped (77) on
# systems other than Debian.
set -euo pipefail
# shellcheck source=tests/packages/stage.sh
source "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

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

stage_build "$source" "$build" "$work/build" >"$work/log" 2>&1 || die "$(<"$work/log")"
(cd "$work/build" && cpack -G DEB >"$work/log" 2>&1) || die "$(<"$work/log")"
python=lib/python

echo "== a build for another prefix, whose packages would conflict with openmpi-bin, is refused"
prefix="$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")"
if [[ "$prefix" != /usr ]]; then
  ! cpack -G DEB -B "$work/refused" --config "$build/CPackConfig.cmake" >"$work/log" 2>&1 || die "cpack makes packages for $prefix"
  grep -q "scripts/package.sh" "$work/log" || die "$(<"$work/log")"
fi

echo "== no file belongs to another package"
root="$work/root"
for deb in "$work"/build/*.deb; do
  dpkg-deb -x "$deb" "$root"
done
(cd "$root" && find . ! -type d -printf '/%P\n') >"$work/files"
[[ $(wc -l <"$work/files") -gt 60 ]] || die "the packages have few files: $(<"$work/files")"
# dpkg-query fails for files that belong to no package.
others="$(xargs -a "$work/files" dpkg-query -S 2>/dev/null |
  grep -vE '^(libgba[0-9]*|libgba-dev|libgba-openmpi|gba-udev|gba-tools|gba-fake-device|libshmem[0-9]*|libshmem-(tools|dev|doc|mpi|mpich|mpi-abi)|python3-shmem-(kv|torch))(:[a-z0-9]+)?: ' || true)"
[[ -z "$others" ]] || die "other packages have: $others"
dangling="$(find "$root" -xtype l)"
[[ -z "$dangling" ]] || die "links to nothing: $dangling"

echo "== each package has a synopsis of its own"
for deb in "$work"/build/*.deb; do
  dpkg-deb -f "$deb" Description | sed -n 1p  # reads all: head would end dpkg-deb by SIGPIPE
done >"$work/synopses"
[[ -z "$(sort "$work/synopses" | uniq -d)" && -z "$(awk 'length > 80' "$work/synopses")" ]] || die "the synopses: $(<"$work/synopses")"
unit="$root/usr/lib/systemd/system/gba-fake-device.service"
grep -q '^ExecStart=/usr/bin/gba-fake-device ' "$unit" || die "the unit starts $(grep ExecStart "$unit")"

echo "== dependencies"
depends() {
  dpkg-deb -f "$work"/build/"$1"_*.deb Depends
}
soname() {
  basename "$(readlink -f "$build/lib/$1.so")" | sed 's/.*\.so\.\([0-9]*\).*/\1/'
}
libgba="libgba$(soname libgba)"
libshmem="libshmem$(soname libshmem)"
for package in "$libshmem" gba-tools libgba-dev; do
  [[ "$(depends "$package")" == *"$libgba (= "* ]] || die "$package depends on $(depends "$package")"
done
[[ "$(dpkg-deb -c "$work"/build/"$libshmem"_*.deb)" == *"/libkvexchange.so.${libshmem#libshmem} "* ]] || die "$libshmem has no libkvexchange"
[[ "$(depends "$libshmem")" != *mpi* ]] || die "$libshmem depends on $(depends "$libshmem")"
[[ "$(depends "$libshmem")" == *libsodium* ]] || die "$libshmem depends on $(depends "$libshmem")"
for file in "$build"/lib/libshmem_bootstrap_*.so; do
  case "$file" in
    *_openmpi.so) [[ "$(depends libshmem-mpi)" == *libopenmpi* ]] || die "libshmem-mpi depends on $(depends libshmem-mpi)" ;;
    *_abi.so) [[ "$(depends libshmem-mpi-abi)" == *"$libshmem (= "* ]] || die "libshmem-mpi-abi depends on $(depends libshmem-mpi-abi)" ;;
    *_mpich.so) [[ "$(depends libshmem-mpich)" == *libmpich* ]] || die "libshmem-mpich depends on $(depends libshmem-mpich)" ;;
  esac
done
[[ "$(depends libshmem-dev)" == *"$libshmem (= "*"libshmem-tools (= "* ]] || die "libshmem-dev depends on $(depends libshmem-dev)"
for package in "$libgba" "$libshmem"; do
  [[ "$(dpkg-deb -f "$work"/build/"$package"_*.deb Breaks)" == "${package%[0-9]*}" ]] || die "$package does not replace ${package%[0-9]*}"
  # libkvexchange has libshmem's number.
  others="$(dpkg-deb -c "$work"/build/"$package"_*.deb | grep -v '/$' |
    grep -vE "/(${package%[0-9]*}\.so\.|libkvexchange\.so\.${libshmem#libshmem}\>|doc/$package/)" || true)"
  [[ -z "$others" ]] || die "$package would conflict with that of another interface: $others"
done
# CPack adds one that calls ldconfig.
! dpkg-deb -I "$work"/build/"$libgba"_*.deb postinst 2>/dev/null | grep -E 'udev|groupadd' || die "$libgba changes devices when it is installed"
[[ "$(dpkg-deb -f "$work"/build/"$libgba"_*.deb Maintainer)" == *"<"*@*">" ]] || die "the maintainer has no address"
[[ "$(dpkg-deb -I "$work"/build/gba-udev_*.deb postinst)" != *subsystem* ]] || die "gba-udev touches devices of others"
[[ ! -e "$root/usr/lib/modules-load.d" ]] || die "a package loads kernel modules at each start"

echo "== licences, and what Debian requires"
for deb in "$work"/build/*.deb; do
  package="$(dpkg-deb -f "$deb" Package)"
  for file in copyright NOTICE changelog.gz; do
    [[ -s "$root/usr/share/doc/$package/$file" ]] || die "$package has no $file"
  done
done
grep -q '^Format: .*copyright-format/1.0' "$root/usr/share/doc/$libgba/copyright" || die "copyright is in another format"
! readelf -S "$root"/usr/lib/*/libshmem.so.1 | grep -q debug_info || die "libshmem is not stripped"
id="$(readelf -n "$root"/usr/lib/*/libshmem.so.1 | sed -n 's/.*Build ID: //p')"
dpkg-deb -x "$work"/build/"$libshmem"-dbgsym_*.ddeb "$work/debug"
readelf -S "$work/debug/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" | grep -q debug_info || die "$libshmem-dbgsym has no debug information"

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
PATH="$root/usr/lib/$(gcc -print-multiarch)/libshmem/bin:$PATH" PKG_CONFIG_PATH="$(echo "$root"/usr/lib/*/pkgconfig)" \
  CMAKE_PREFIX_PATH="$root/usr" "$source/tests/packages/use_kvexchange.sh" "$work/kvexchange"

components="$(echo "$root"/usr/lib/*/libgba/openmpi)"
if [[ -d "$components" ]]; then
  echo "== libgba-openmpi"
  # Its structs are those of one series: libopenmpi3 has 4.1, libopenmpi40 has 5.0.
  [[ "$(depends libgba-openmpi)" =~ "$libgba (= ".*"libopenmpi3 (>= 4.1".*"libopenmpi3 (<< 4.2)" ||
    "$(depends libgba-openmpi)" =~ "$libgba (= ".*"libopenmpi40 (>= 5.0".*"libopenmpi40 (<< 5.1)" ||
    "$(depends libgba-openmpi)" =~ "$libgba (= ".*"libopenmpi40 (>= 6.0".*"libopenmpi40 (<< 6.1)" ]] ||
    die "libgba-openmpi depends on $(depends libgba-openmpi)"
  LD_LIBRARY_PATH="$(echo "$root"/usr/lib/*-linux-gnu)" PATH="$root/usr/bin:$PATH" \
    "$source/tests/packages/use_openmpi.sh" "$work/openmpi" "$components"
fi

if [[ -d "$work/build/$python/shmem_kv" ]]; then
  echo "== python3-shmem-kv"
  [[ "$(depends python3-shmem-kv)" == *"$libshmem (= "*python3-numpy* ]] || die "python3-shmem-kv depends on $(depends python3-shmem-kv)"
  for module in vllm sglang lmcache; do
    PYTHONPATH="$root/usr/lib/python3/dist-packages" LD_LIBRARY_PATH="$(echo "$root"/usr/lib/*-linux-gnu)" PYTHONDONTWRITEBYTECODE=1 \
      /usr/bin/python3 -c "import shmem_kv.adapters.$module" || die "python3-shmem-kv has no adapter for $module"
  done
  "$root/usr/bin/oshrun.libshmem" -n 2 --gba off --timeout 60 env PYTHONPATH="$root/usr/lib/python3/dist-packages" \
    LD_LIBRARY_PATH="$(echo "$root"/usr/lib/*-linux-gnu)" PYTHONDONTWRITEBYTECODE=1 \
    /usr/bin/python3 -c 'import shmem_kv, shmem.core; shmem_kv.init(1 << 20); shmem.core.barrier(); shmem_kv.finalize()'
fi

if [[ -d "$work/build/$python/shmem_torch" ]]; then
  echo "== python3-shmem-torch"
  [[ "$(depends python3-shmem-torch)" == *"python3-shmem-kv (= "*python3-torch* ]] || die "python3-shmem-torch depends on $(depends python3-shmem-torch)"
  PYTHONPATH="$root/usr/lib/python3/dist-packages" LD_LIBRARY_PATH="$(echo "$root"/usr/lib/*-linux-gnu)" PYTHONDONTWRITEBYTECODE=1 \
    /usr/bin/python3 -c 'import shmem_torch' || die "shmem_torch cannot be imported"
fi
