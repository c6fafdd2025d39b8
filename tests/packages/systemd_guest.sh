#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the guest of systemd.sh, as root under systemd: installs the packages, uses the service as administrators and users do,
# removes all, and switches the machine off. Prints a line for each check; the first that fails is the last.
# shellcheck disable=SC2317 # functions that check runs
set -uo pipefail
unit=gba-fake-device.service
socket=/run/gba-fake/gba0.sock
output=/run/test-output

end() {
  echo "test-guest: the end"
  systemctl poweroff
  exit
}

failed() {
  cat "$output"
  systemctl --no-pager status "$unit" || true
  journalctl --no-pager -n 30 -u "$unit" || true
  echo "failed: $1"
  end
}

check() {
  local what="$1"
  shift
  "$@" >"$output" 2>&1 </dev/null || failed "$what ($*: status $?)"
  echo "ok: $what"
}

refused() {
  local what="$1" text="$2"
  shift 2
  ! "$@" >"$output" 2>&1 </dev/null || failed "$what ($* succeeds)"
  grep -qF -- "$text" "$output" || failed "$what (no \"$text\")"
  echo "ok: $what"
}

# prints WHAT TEXT COMMAND...
prints() {
  local what="$1" text="$2"
  shift 2
  check "$what" "$@"
  grep -qF -- "$text" "$output" || failed "$what (no \"$text\")"
}

as() {
  local user="$1"
  shift
  runuser -u "$user" -- env -u GBA_DEVICE HOME=/tmp "$@"
}

property() {
  systemctl show -P "$1" "$unit"
}

is() {
  [[ "$1" == "$2" ]] || {
    echo "\"$1\" is not \"$2\""
    return 1
  }
}

releases() {
  gba info /dev/gba0 | sed -n 's/^ *releases *//p'
}

# The group of a process, and whether its user is one of those numbers that systemd gives.
owner() {
  local user group
  user="$(awk '/^Uid/ { print $2 }' "/proc/$1/status")"
  group="$(awk '/^Gid/ { print $2 }' "/proc/$1/status")"
  ((user >= 61184 && user <= 65519)) && echo "$(getent group "$group" | cut -d: -f1), a dynamic user"
}

processes() {
  cat /proc/[0-9]*/comm | grep -cx gba-fake-device
}

ends_by_the_limit() {
  as member gba info
  journalctl --no-pager -u "$unit" | grep -q "oom-kill"
}

# eventually COMMAND...: within a minute.
eventually() {
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    ! "$@" >/dev/null 2>&1 || return 0
    sleep 0.2
  done
  "$@"
}

# All files but those of the kernel, of dpkg itself, and what systemd writes at any time.
files() {
  find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log -o -path /var/lib/dpkg \
    -o -path /var/lib/systemd -o -path /var/cache/ldconfig -o -path /packages \) -prune -o -print | sort
  find /dev /run/gba* /run/systemd/system /etc/systemd /var/lib/private /var/lib/dpkg/info 2>/dev/null | grep -E 'gba|shmem|wants' | sort
}

main_process() {
  property MainPID
}

restarted() {
  local now
  now="$(main_process)"
  [[ "$now" != 0 && "$now" != "$1" && -S $socket ]] && systemctl -q is-active "$unit"
}

install_packages() {
  files >/run/before
  check "the packages are installed by dpkg" bash -c 'dpkg -i /packages/*.deb'
  check "systemd knows the unit, and does not start it" is "$(property LoadState) $(property ActiveState)" "loaded inactive"
  check "/dev/gba0 is a link to its socket" is "$(readlink /dev/gba0)" "$socket"
  refused "gba check says what to do while it does not run" "systemctl start gba-fake-device" gba check /dev/gba0
  check "a member of the group is made" usermod -a -G gba member
}

start() {
  check "it is enabled and started" systemctl enable --now "$unit"
  check "it has told systemd that it is ready" is "$(property ActiveState) $(property SubState)" "active running"
  check "it runs in group gba, as a user of its own" is "$(owner "$(main_process)")" "gba, a dynamic user"
  check "/dev/gba0 exists" test -S /dev/gba0
  check "MemoryMax is in force" is "$(<"/sys/fs/cgroup$(property ControlGroup)/memory.max")" $((2 << 30))
  check "it has one privilege" is "$(awk '/^CapEff/ { print $2 }' "/proc/$(main_process)/status")" 0000000000000200
}

use() {
  local before
  prints "gba check says which kind it is" "a process, such as gba-fake-device, behind the socket $socket" as member gba check
  check "gba selftest passes" as member gba selftest
  refused "a user who is not in the group is refused" "EACCES" as stranger gba info --json
  before="$(releases)"
  prints "a program of libshmem makes barriers by the default path" "PE 1 of 2 has made its barriers" \
    as member SHMEM_GBA=require oshrun.libshmem -n 2 --timeout 120 barriers
  check "the device has counted them" test $(($(releases) - before)) -ge 100
}

recover() {
  local before
  before="$(main_process)"
  check "it is killed" kill -KILL "$before"
  check "systemd starts it again" eventually restarted "$before"
  before="$(main_process)"
  check "it is stopped, and does not report any more" kill -STOP "$before"
  check "the watchdog starts it again" eventually restarted "$before"
  check "it serves again" as member gba info
  check "it is limited to less memory than it needs" systemctl set-property --runtime "$unit" MemoryMax=1M
  check "the limit ends it" eventually ends_by_the_limit
  check "the limit is lifted" bash -c "systemctl revert $unit && systemctl reset-failed $unit"
}

stop() {
  check "it is stopped" systemctl stop "$unit"
  check "no process is left" is "$(processes)" 0
  check "its sockets are removed" test ! -e /run/gba-fake
  check "it starts again" systemctl start "$unit"
  check "libgba0 and the others but the device are removed" dpkg -r libshmem-tools libshmem1 gba-tools libgba0
  check "the device still serves" test -S /dev/gba0
}

remove_packages() {
  check "gba-fake-device is removed" dpkg -r gba-fake-device
  check "the service has ended" is "$(property ActiveState)" inactive
  check "no process is left" is "$(processes)" 0
  check "/dev/gba0 is removed" test ! -L /dev/gba0
  check "all are purged" dpkg -P libshmem-tools libshmem1 gba-tools libgba0 gba-fake-device
  check "systemd forgets the unit" is "$(systemctl show -P LoadState "$unit")" not-found
  files >/run/after
  check "no file is left" diff /run/before /run/after
}

echo "test-guest: systemd $(systemctl --version | awk 'NR == 1 { print $2 }'), Linux $(uname -r)"
install_packages
start
use
recover
stop
remove_packages
end
