#!/usr/bin/env bash
# scripts/check-docs.py is green as it is, and red where a page or a comment points to what is not there.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

root=$(cd "$(dirname "$0")/../.." && pwd)

check() { # check: what it says of the scratch folder
    out=$(python3 "$root/scripts/check-docs.py" "$scratch") && status=0 || status=$?
}

python3 "$root/scripts/check-docs.py" >/dev/null || fail "red as it is"

mkdir -p "$scratch/docs" "$scratch/src/plan"
cat >"$scratch/src/plan/step.h" <<'HEADER'
/* As plan/step.h says, and step.h. */
#define MC_STEP "plan/gone.h"
HEADER
printf '# One\n\nSee [two](two.md#more-of-it) and `plan/step.h`.\n' >"$scratch/docs/one.md"
printf '# Two\n\n## More of it\n' >"$scratch/docs/two.md"
check
[ $status = 0 ] || fail "red: $out"

printf '/* plan/moved.h has it,\n * or moved.c. */\n' >>"$scratch/src/plan/step.h"
printf '[a](two.md#less) [b](three.md) [c]() `src/plan/old.c`\n%130s\n' x >>"$scratch/docs/one.md"
check
[ $status = 1 ] || fail "green: $out"
for word in "src/plan/step.h:3: plan/moved.h is not there" "src/plan/step.h:4: moved.c is not there" \
    "docs/one.md:4: docs/two.md has no heading for #less" "docs/one.md:4: the link three.md leads nowhere" "docs/one.md:4: the link  leads nowhere" \
    "docs/one.md:4: src/plan/old.c is not there" "docs/one.md:5: 130 columns"; do
    grep -qF "$word" <<<"$out" || fail "expected '$word' in: $out"
done

finish
