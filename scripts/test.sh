#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/test.sh [--full | --only PART] [--rerun] [--require LABEL[,LABEL...]] [CTEST_ARGUMENT...]
       scripts/test.sh --root RELEASE [--compiler NAME] [CTEST_ARGUMENT...]

Installs missing packages (groups build, options, test and torch of scripts/install-deps.sh), builds
everything, and runs all tests but those labelled soak. Tests whose files have not changed since they
passed (models of the protocol, coverage, packages: tests/proved.txt) are not run again. The last lines
are ctest's summary. Exits with 0 if nothing failed anywhere.

  --full             also runs the parts asan, tsan, fuzz, arm64 and testing before, proves again what
                     has not changed, and writes that to tests/proved.txt
  --only PART        runs one part only:
                     asan   the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer, on
                            Debian 13 if this machine can have a root of it (scripts/debian-root.sh)
                     tsan   the unit tests under ThreadSanitizer
                     fuzz   the fuzz targets for 20 seconds each (GBA_FUZZ_SECONDS says otherwise)
                     arm64  the unit tests cross-compiled for arm64, in qemu-user
                     testing  the unit tests on Debian testing, if this machine can have a root of it
  --rerun            runs a test that failed once more, alone, at the end. If it then passes, it does
                     not count as failed; a line "FLAKY: NAME" and its first output are printed
  --require LABELS   a test with one of these labels that is skipped counts as failed; so does a
                     label that none of the tests has. Label fuzz means the fuzz targets, label arm64 the
                     unit tests for arm64, label trixie those on Debian 13, which need --full or --only.
  --root RELEASE     builds everything, and runs the unit tests, in a Debian of another release
                     instead: trixie is Debian 13, forky Debian testing (scripts/debian-root.sh
                     makes it in ~/.cache/gba-roots; the build is in build-RELEASE). CTEST_ARGUMENTs with -L
                     or -R select other tests, e.g. -R . all of them, with PyTorch and Slurm. The
                     last line is a row of the table in docs/install.md. Exits with 77, and the
                     reason, if this machine cannot have such a root.
  --compiler NAME    with --root: g++ (default) or clang, which has a build of its own
  CTEST_ARGUMENT     handed to each ctest, e.g. -R barrier (a label exclusion, -LE, replaces that
                     of soak)
TEXT
}

readonly PARTS=(asan tsan fuzz arm64 testing)
readonly TESTING=forky # what Debian testing is called
full=
only=
rerun=
root=
compiler=
required=()
not_run=() # labels of parts that this machine cannot run
ctest_arguments=()
without_soak=(-LE '^soak$')
problems=()
again=() # calls of run_again: tests to be run once more

parse_arguments() {
  handle_help_option "$@"
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --full) full=yes ;;
      --rerun) rerun=yes ;;
      --only)
        [[ " ${PARTS[*]} " == *" ${2:-none} "* ]] || usage_error "--only needs one of: ${PARTS[*]}"
        only="$2"
        shift
        ;;
      --require | --require=*)
        [[ "$1" == *=* ]] || set -- "$1=${2:-}" "${@:3}"
        IFS=, read -r -a required <<<"${1#*=}"
        [[ ${#required[@]} -gt 0 ]] || usage_error "--require needs labels"
        ;;
      --root)
        [[ "${2:-}" =~ ^[a-z]+$ ]] || usage_error "--root needs the name of a Debian release, e.g. trixie"
        root="$2"
        shift
        ;;
      --compiler)
        [[ "${2:-}" =~ ^(g\+\+|clang)$ ]] || usage_error "--compiler needs g++ or clang"
        compiler="$2"
        shift
        ;;
      *) ctest_arguments+=("$1") ;;
    esac
    shift
  done
  [[ " ${ctest_arguments[*]} " =~ " -LE "|" --label-exclude " ]] && without_soak=()
  [[ -z "$compiler" || -n "$root" ]] || usage_error "--compiler is for --root"
  [[ -z "$full" || -z "$only$root" ]] || usage_error "--full excludes --only and --root"
  [[ -z "$only" || -z "$root" ]] || usage_error "--only and --root exclude each other"
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

in_root() {
  scripts/debian-root.sh "$1" "$(root_folder "$1")" "${@:2}"
}
in_trixie() {
  in_root trixie "$@"
}
in_testing() {
  in_root "$TESTING" "$@"
}

# can_have_root RELEASE NAME: success if this machine has such a root, or gets it; else says why not.
can_have_root() {
  local reason
  reason="$(in_root "$1" true 2>&1)" || {
    reason="${reason##*$'\n'}"
    echo "unit tests, $2: skipped, ${reason#*skipped: }"
    return 1
  }
}

# run_tests FOLDER PROBLEM RUNNER [ARGUMENT...]: ctest with these arguments, by the command RUNNER. The output is also in
# FOLDER/test.log. What fails is a problem, or, with --rerun, is run again later.
run_tests() {
  local folder="$1" problem="$2" runner="$3" name
  shift 3
  mkdir -p "$folder"
  "$runner" ctest --test-dir "$folder" --output-on-failure "$@" "${ctest_arguments[@]}" 2>&1 | tee "$folder/test.log" && return
  if [[ -z "$rerun" || -z "$(failed_tests "$folder/test.log")" ]]; then
    problems+=("$problem")
    return
  fi
  while read -r name; do
    again+=("$runner $folder $name $problem")
  done < <(failed_tests "$folder/test.log")
}

# The output of a test that failed, from ctest's.
output_of() {
  awk -v name="$1" '/^ *[0-9]+\/[0-9]+ +Test +#[0-9]+: / { inside = ($0 ~ ("#[0-9]+: " name " ")) } /^ +Start +[0-9]+: / { inside = 0 } inside' "$2"
}

# run_again RUNNER FOLDER NAME PROBLEM...: once more, alone.
run_again() {
  local runner="$1" folder="$2" name="$3"
  echo "== once more, alone: $name"
  if "$runner" ctest --test-dir "$folder" --output-on-failure -R "^$name\$" >"$folder/again.log" 2>&1; then
    {
      echo "FLAKY: $name"
      output_of "$name" "$folder/test.log" | sed 's/^/  /'
    } | tee "$folder/flaky.log"
    sed -n 1p "$folder/flaky.log" >>"$folder/test.log"
  else
    cat "$folder/again.log"
    problems+=("${*:4}")
  fi
}

run_part_asan() {
  if can_have_root trixie "Debian 13"; then
    in_trixie bash -euc 'cmake --preset asan -B build-trixie-asan; cmake --build build-trixie-asan --target unit_tests'
    echo "== unit tests, asan, Debian 13"
    run_tests build-trixie-asan "the unit tests failed under asan on Debian 13" in_trixie -j "$(nproc)" -L '^unit$'
  else
    not_run+=(trixie)
    build_preset asan unit_tests
    echo "== unit tests, asan"
    run_tests build-asan "the unit tests failed under asan" with_fixed_layout -j "$(nproc)" -L '^unit$'
  fi
}

run_part_tsan() {
  build_preset tsan unit_tests
  echo "== unit tests, tsan"
  run_tests build-tsan "the unit tests failed under tsan" with_fixed_layout -j "$(nproc)" -L '^unit$'
}

run_part_fuzz() {
  can_fuzz || {
    not_run+=(fuzz)
    return 0
  }
  build_preset fuzz
  echo "== fuzz targets"
  run_tests build-fuzz "a fuzz target found something; build-fuzz/tests/fuzz has the input" env -j "$(nproc)" -L '^fuzz$'
}

run_part_arm64() {
  can_cross_compile || {
    [[ "$(uname -m)" == aarch64 ]] || not_run+=(arm64)
    return 0
  }
  build_preset arm64
  echo "== unit tests, arm64"
  run_tests build-arm64 "the unit tests failed on arm64" env -j "$(nproc)" -L '^unit$'
}

run_part_testing() {
  can_have_root "$TESTING" "Debian testing" || {
    not_run+=(testing)
    return 0
  }
  in_testing bash -euc "cmake --preset release -B build-$TESTING; cmake --build build-$TESTING"
  echo "== unit tests, Debian testing"
  run_tests "build-$TESTING" "the unit tests failed on Debian testing" in_testing -j "$(nproc)" -L '^unit$'
}

# More than half of these tests' time is waiting, so there are twice as many as processors at a time.
run_all_tests() {
  echo "== all tests"
  run_tests build "a test failed" env --no-tests=error -j $(($(nproc) * 2)) "${without_soak[@]}"
}

# Without PyTorch, its tests are skipped.
install_all_packages() {
  local reason
  install_packages build options test
  [[ -z "$only" ]] || return 0
  reason="$(install_packages torch 2>&1)" || echo "PyTorch's tests: skipped, ${reason##*$'\n'}"
}

tests_with_label() {
  ctest --test-dir build -N -L "^$1\$" "${without_soak[@]}" | sed -n 's/^ *Test *#[0-9]*: //p'
}

check_required_label() {
  local label="$1" log="build/test.log" tests name
  local -A part=([fuzz]="the fuzz targets" [arm64]="the unit tests for arm64" [trixie]="the unit tests on Debian 13"
    [testing]="the unit tests on Debian testing")
  if [[ -n "${part[$label]:-}" ]]; then
    [[ -n "$full$only" ]] || usage_error "--require $label needs --full or --only"
    [[ " ${not_run[*]} " != *" $label "* ]] || problems+=("${part[$label]} were skipped, but label $label is required")
    return
  fi
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
[[ -z "$root" ]] || test_in_root
[[ -z "$full" ]] || export GBA_PROVE=all
install_all_packages
parts=()
[[ -z "$full" ]] || parts=("${PARTS[@]}")
[[ -z "$only" ]] || parts=("$only")
[[ -n "$only" ]] || build_preset release
for part in "${parts[@]}"; do
  "run_part_$part"
done
[[ -n "$only" ]] || run_all_tests
for test in "${again[@]}"; do
  # shellcheck disable=SC2086 # words
  run_again $test
done
for label in "${required[@]}"; do
  check_required_label "$label"
done
report_problems
[[ -z "$full" || ! -d build/tests/proved ]] || cat build/tests/proved/* >tests/proved.txt
