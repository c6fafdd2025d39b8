#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/test.sh [--require LABEL[,LABEL...]] [CTEST_ARGUMENT...]
       scripts/test.sh --root RELEASE [--compiler NAME] [CTEST_ARGUMENT...]

Installs missing packages (groups build, options, test and arm64 of scripts/install-deps.sh), builds,
and runs the tests: the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer, on Debian
13 if this machine can have a root of it (scripts/debian-root.sh), and under ThreadSanitizer, the fuzz
targets for 20 seconds each (GBA_FUZZ_SECONDS says otherwise), the unit tests cross-compiled for arm64
in qemu-user, then all tests but those labelled soak. The last lines are ctest's summary of the latter.
Exits with 0 if nothing failed anywhere.

  --require LABELS   a test with one of these labels that is skipped counts as failed; so does a
                     label that none of the tests has. Label fuzz means the fuzz targets, label arm64 the
                     unit tests for arm64, label trixie those on Debian 13.
  --root RELEASE     builds everything, and runs the unit tests, in a Debian of another release
                     instead: trixie is Debian 13 (scripts/debian-root.sh makes it in
                     ~/.cache/gba-roots; the build is in build-RELEASE). CTEST_ARGUMENTs with -L
                     or -R select other tests, e.g. -R . all of them, with PyTorch and Slurm. The
                     last line is a row of the table in docs/install.md. Exits with 77, and the
                     reason, if this machine cannot have such a root.
  --compiler NAME    with --root: g++ (default) or clang, which has a build of its own
  CTEST_ARGUMENT     handed to each ctest, e.g. -R barrier (a label exclusion, -LE, replaces that
                     of soak)
TEXT
}

root=
compiler=
required=()
fuzz=
arm64=
trixie=
ctest_arguments=()
without_soak=(-LE '^soak$')
problems=()

parse_arguments() {
  handle_help_option "$@"
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --require)
        [[ -n "${2:-}" ]] || usage_error "--require needs labels"
        IFS=, read -r -a required <<<"$2"
        shift 2
        ;;
      --require=*)
        IFS=, read -r -a required <<<"${1#*=}"
        [[ ${#required[@]} -gt 0 ]] || usage_error "--require needs labels"
        shift
        ;;
      --root)
        [[ "${2:-}" =~ ^[a-z]+$ ]] || usage_error "--root needs the name of a Debian release, e.g. trixie"
        root="$2"
        shift 2
        ;;
      --compiler)
        [[ "${2:-}" =~ ^(g\+\+|clang)$ ]] || usage_error "--compiler needs g++ or clang"
        compiler="$2"
        shift 2
        ;;
      *)
        ctest_arguments+=("$1")
        shift
        ;;
    esac
  done
  [[ " ${ctest_arguments[*]} " =~ " -LE "|" --label-exclude " ]] && without_soak=()
  return 0
}

# ThreadSanitizer cannot live with the address space layout that some kernels choose; where the
# layout can be fixed, it is.
with_fixed_layout() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then
    setarch "$(uname -m)" -R "$@"
  else
    "$@"
  fi
}

in_trixie() {
  scripts/debian-root.sh trixie "$(root_folder trixie)" "$@"
}

# Success if this machine has a root of Debian 13, or gets it; else says why not.
can_have_trixie() {
  local reason
  reason="$(in_trixie true 2>&1)" || {
    reason="${reason##*$'\n'}"
    echo "unit tests, Debian 13: skipped, ${reason#*skipped: }"
    return 1
  }
}

build_asan_in_trixie() {
  in_trixie bash -euc 'cmake --preset asan -B build-trixie-asan; cmake --build build-trixie-asan --target unit_tests'
}

run_asan_in_trixie() {
  echo "== unit tests, asan, Debian 13"
  in_trixie ctest --test-dir build-trixie-asan --output-on-failure -j "$(nproc)" -L '^unit$' "${ctest_arguments[@]}" ||
    problems+=("the unit tests failed under asan on Debian 13")
}

run_sanitized_unit_tests() {
  local preset="$1"
  echo "== unit tests, $preset"
  with_fixed_layout ctest --test-dir "build-$preset" --output-on-failure -j "$(nproc)" -L '^unit$' \
    "${ctest_arguments[@]}" || problems+=("the unit tests failed under $preset")
}

run_fuzz_targets() {
  echo "== fuzz targets"
  ctest --test-dir build-fuzz --output-on-failure -j "$(nproc)" -L '^fuzz$' "${ctest_arguments[@]}" ||
    problems+=("a fuzz target found something; build-fuzz/tests/fuzz has the input")
}

run_arm64_tests() {
  echo "== unit tests, arm64"
  ctest --test-dir build-arm64 --output-on-failure -j "$(nproc)" -L '^unit$' "${ctest_arguments[@]}" ||
    problems+=("the unit tests failed on arm64")
}

# A third of these tests' time is waiting, so there are half as many again as processors at a time.
run_all_tests() {
  local log="$1"
  echo "== all tests"
  ctest --test-dir build --output-on-failure --no-tests=error -j $((($(nproc) * 3 + 1) / 2)) "${without_soak[@]}" \
    "${ctest_arguments[@]}" 2>&1 | tee "$log" || problems+=("a test failed")
}

tests_with_label() {
  ctest --test-dir build -N -L "^$1\$" "${without_soak[@]}" | sed -n 's/^ *Test *#[0-9]*: //p'
}

check_required_label() {
  local label="$1" log="$2" tests name
  case "$label" in
    fuzz)
      [[ -n "$fuzz" ]] || problems+=("the fuzz targets were skipped, but label fuzz is required")
      return
      ;;
    arm64)
      [[ -n "$arm64" || "$(uname -m)" == aarch64 ]] ||
        problems+=("the unit tests for arm64 were skipped, but label arm64 is required")
      return
      ;;
    trixie)
      [[ -n "$trixie" ]] || problems+=("the unit tests on Debian 13 were skipped, but label trixie is required")
      return
      ;;
  esac
  tests="$(tests_with_label "$label")"
  [[ -n "$tests" ]] || problems+=("no test has the required label $label")
  while read -r name; do
    if grep -qE "^\s*[0-9]+ - $name \(Skipped\)" "$log"; then
      problems+=("$name was skipped, but label $label is required")
    fi
  done <<<"$tests"
}

report_problems() {
  [[ ${#problems[@]} -eq 0 ]] && return
  printf 'test.sh: %s\n' "${problems[@]}" >&2
  exit 1
}

# Replaces this process.
test_in_root() {
  local folder build="build-$root"
  local -a with=() cmake=() selection=(-L '^unit$')
  folder="$(root_folder "$root")"
  [[ ${#required[@]} -eq 0 ]] || usage_error "--require and --root exclude each other"
  if [[ " ${ctest_arguments[*]} " =~ " -L "|" -R "|" --label-regex "|" --tests-regex " ]]; then
    with=(--with "soak,torch")
    selection=()
  fi
  if [[ "$compiler" == clang ]]; then
    build+=-clang
    cmake=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)
  fi
  # shellcheck disable=SC2016 # expanded in the root
  exec scripts/debian-root.sh "${with[@]}" "$root" "$folder" env "CMAKE_ARGUMENTS=${cmake[*]}" bash -euc '
    build="$1"
    shift
    cmake --preset release -B "$build" $CMAKE_ARGUMENTS
    cmake --build "$build"
    status=0
    rm -f "$build/tests.xml"
    ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$(nproc)" \
      --output-junit "$PWD/$build/tests.xml" "$@" || status=$?
    scripts/versions.sh "$build"
    exit "$status"
  ' bash "$build" "${selection[@]}" "${ctest_arguments[@]}"
}

parse_arguments "$@"
cd "$ROOT"
[[ -z "$compiler" || -n "$root" ]] || usage_error "--compiler is for --root"
[[ -z "$root" ]] || test_in_root
install_packages build options test
build_preset release
if can_have_trixie; then
  build_asan_in_trixie
  trixie=yes
else
  build_preset asan unit_tests
fi
build_preset tsan unit_tests
if can_fuzz; then
  build_preset fuzz
  fuzz=yes
fi
if can_cross_compile; then
  build_preset arm64
  arm64=yes
fi
if [[ -n "$trixie" ]]; then
  run_asan_in_trixie
else
  run_sanitized_unit_tests asan
fi
run_sanitized_unit_tests tsan
[[ -z "$fuzz" ]] || run_fuzz_targets
[[ -z "$arm64" ]] || run_arm64_tests
log=build/test.log
run_all_tests "$log"
for label in "${required[@]}"; do
  check_required_label "$label" "$log"
done
report_problems
