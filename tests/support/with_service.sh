#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# with_service.sh UNIT TMPFILES BIN COMMAND...: runs a command on a machine with the packaged service, whose files UNIT and
# TMPFILES are. /dev and /run belong to the command, and so do the processes: nothing is left behind, and other tests see
# nothing. BIN has gba-fake-device. Needs root; without a program that it needs it exits with 77.
set -eu
fail() {
  echo "with_service.sh: $2" >&2
  exit "$1"
}

if [ "${1:-}" != --inside ]; then
  for needed in systemd-tmpfiles unshare; do
    command -v "$needed" > /dev/null || fail 77 "$needed is not installed"
  done
  unshare --mount --pid --fork --mount-proc true || fail 77 "namespaces for mounts and processes need root"
  exec unshare --mount --pid --fork --kill-child --mount-proc "$0" --inside "$@"
fi
unit=$2
tmpfiles=$3
bin=$4
shift 4

own=$(mktemp -d)
mount -t tmpfs gba-test-dev "$own"
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty "$own"
ln -s /proc/self/fd "$own/fd"
ln -s pts/ptmx "$own/ptmx"
mkdir "$own/pts" "$own/shm"
mount --rbind /dev/pts "$own/pts"
mount --rbind /dev/shm "$own/shm"
mount --rbind "$own" /dev
umount -l "$own"
rmdir "$own"
mount -t tmpfs gba-test-run /run
mkdir -m 750 /run/gba-fake

systemd-tmpfiles --create --prefix=/dev "$tmpfiles" || fail 1 "systemd-tmpfiles refuses $tmpfiles"
start=$(sed -n "s,^ExecStart=[^ ]*/gba-fake-device ,$bin/gba-fake-device ,p" "$unit" | sed 's,%t,/run,g')
[ -n "$start" ] || fail 1 "$unit starts no gba-fake-device"
if [ -z "${GBA_TEST_NOT_STARTED:-}" ]; then
  $start > /run/gba-fake/log 2>&1 &
  tries=0
  until grep -qs ready /run/gba-fake/log; do  # -s: the file comes with the process
    tries=$((tries + 1))
    [ "$tries" -lt 2400 ] || fail 1 "the device is not ready: $(cat /run/gba-fake/log)"
    sleep 0.05
  done
fi
exec "$@"
