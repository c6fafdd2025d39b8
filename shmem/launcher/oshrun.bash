# SPDX-License-Identifier: Apache-2.0
# Completion of oshrun(1) for bash: options from the program itself, then the program to run and its arguments.

_oshrun() {
  local word="${COMP_WORDS[COMP_CWORD]}" program="${COMP_WORDS[0]}" i start=1
  COMPREPLY=()
  # Each program after a colon has options of its own.
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} != : ]] || start=$((i + 1))
  done
  for ((i = start; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -n | -np | --np | -x | --wdir | --gba | --ports | --bind | --grace | --timeout | --restart | --rsh | --debugger) i=$((i + 1)) ;;
      -N | -H | --npernode | --host | --hostfile | --machinefile | --bind-to | --map-by) i=$((i + 1)) ;;
      --mca) i=$((i + 2)) ;;
      -*) ;;
      *) return ;; # the program is there: bash completes a file name
    esac
  done
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    --bind | --bind-to) mapfile -t COMPREPLY < <(compgen -W 'none core numa' -- "$word") ;;
    --gba) mapfile -t COMPREPLY < <(compgen -W 'fake off require' -- "$word") ;;
    --hostfile | --machinefile) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --rsh | --debugger) mapfile -t COMPREPLY < <(compgen -c -- "$word") ;;
    --wdir) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    -x) mapfile -t COMPREPLY < <(compgen -e -- "$word") ;;
    -n | -np | --np | --ports | --grace | --timeout | --restart | -N | --npernode | -H | --host | --map-by | --mca) ;;
    *)
      if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W \
          "$("$program" --help 2>/dev/null | grep -oE -- '^  (-[a-zA-Z],)?--[a-z,-]+|^  -[a-z] ' | tr , '\n')" -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
      fi
      ;;
  esac
}

complete -o bashdefault -o default -F _oshrun oshrun oshrun.libshmem
