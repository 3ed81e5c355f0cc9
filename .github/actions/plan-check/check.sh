#!/bin/sh
# check.sh STUDY [EXPECT [BASELINE [TOLERANCE]]]: asks the study; fails (1) if a row is not as expected, or a figure differs
# from the baseline's by more than the tolerance. Writes plans-checked.jsonl and plans-checked.html; SCALECALC names the program.
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
  columns=${COLUMNS_COMPARED:-status,step_time_s,mfu,memory_bytes,tokens_per_s_per_chip}
  difference=$("$scalecalc" batch diff "$baseline" plans-checked.jsonl --tolerance "$tolerance" --columns "$columns" 2>&1) || status=1
  printf '%s\n' "$difference"
  printf '```\n%s\n```\n' "$difference" >>"$summary"
fi
exit "$status"
