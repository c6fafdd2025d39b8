#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/coverage.sh

Installs missing packages, builds the fake device's model and its unit tests with --coverage into
build-coverage/, runs them, and prints how many of the model's lines ran and which did not. Exits
with 0 if at least 95 % ran, with 77 without gcov.
TEXT
}

readonly LEAST_PERCENT=95
readonly PROGRAMS=(fake_device_unit_test fake_device_long_unit_test)
readonly TESTS="^fake_device_(model|faults|history)_test$"
readonly OBJECTS=fake_device/CMakeFiles/gba_fake_model.dir

run_tests() {
  find . -name '*.gcda' -delete
  env -u GBA_SOAK ctest -R "$TESTS" --no-tests=error --output-on-failure >tests.log 2>&1 || {
    cat tests.log >&2
    die "a test failed"
  }
}

# One run over all objects, so that gcov sums the counts of each header.
write_annotated_sources() {
  rm -f ./*.gcov
  find "$OBJECTS" -name '*.gcda' -exec \
    gcov --preserve-paths --relative-only --source-prefix "$ROOT" {} + >gcov.log 2>&1 || {
    cat gcov.log >&2
    die "gcov failed on $PWD/$OBJECTS"
  }
}

# gcov lists a line of a template first with its sum, then once for each instance.
report() {
  awk -F: -v least="$LEAST_PERCENT" '
    FNR == 1 { split("", seen) }
    { count = $1; line = $2 + 0; gsub(/ /, "", count) }
    line == 0 && $3 == "Source" { source = $4; sub(/^(\.\.\/)+/, "", source) }
    line == 0 || count == "-" || line in seen || NF < 3 { next }
    { seen[line]; lines++ }
    count ~ /^[#=]/ { missed++; print source ":" line ":" substr($0, index($0, $3)) }
    END {
      if (!lines) { print "gcov found no line of the model"; exit 1 }
      percent = 100 * (lines - missed) / lines
      printf "%d of %d lines of the model ran: %.1f %%, at least %d %% are required\n", lines - missed, lines, percent, least
      exit percent < least
    }' ./*fake_device#*.gcov
}

handle_help_option "$@"
[[ $# == 0 ]] || usage_error "unexpected argument: $1"
command -v gcov >/dev/null || {
  echo "coverage.sh: gcov is not installed (it comes with gcc)"
  exit 77
}
install_packages build test >/dev/null
build_preset coverage "${PROGRAMS[@]}" >/dev/null
cd build-coverage
run_tests
write_annotated_sources
report
