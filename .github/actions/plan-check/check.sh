#!/bin/sh
# check.sh STUDY [EXPECT [BASELINE [TOLERANCE]]]: asks the study; fails (1) if a row is not as expected, or a figure is worse
# than the baseline's by more than the tolerance. Writes plans-checked.jsonl and plans-checked.html; SCALECALC names the program.
set -u
study=$1 expect=${2:-} baseline=${3:-} tolerance=${4:-2%}
scalecalc=${SCALECALC:-scalecalc}
summary=${GITHUB_STEP_SUMMARY:-/dev/null}
status=0
set -- "$study" -o jsonl=plans-checked.jsonl -o html=plans-checked.html -o markdown=plans-checked.md
[ -z "$expect" ] || set -- "$@" --expect "$expect"
said=$("$scalecalc" batch "$@" 2>&1) || status=$?
printf '%s\n' "$said"
cat plans-checked.md >>"$summary" 2>/dev/null
[ "$status" -le 1 ] || exit "$status"
if [ -n "$baseline" ]; then
  # Named figures alone: texts and rankings may change with a release.
  case $(head -n 1 plans-checked.jsonl) in
    *'"ttft_s"'*) usual=status,ttft_s,tpot_s,memory_bytes,tokens_per_s_per_chip ;;
    *) usual=status,step_time_s,mfu,memory_bytes,tokens_per_s_per_chip ;;
  esac
  columns=${COLUMNS_COMPARED:-$usual}
  differs=0
  difference=$("$scalecalc" batch diff "$baseline" plans-checked.jsonl --tolerance "$tolerance" --columns "$columns" --worse 2>&1) || differs=$?
  [ "$differs" -le "$status" ] || status=$differs
  printf '%s\n' "$difference"
  printf '```\n%s\n```\n' "$difference" >>"$summary"
fi
exit "$status"
