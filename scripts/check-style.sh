#!/usr/bin/env bash
# Files stay under 600 lines and look as .clang-format says.
set -euo pipefail
cd "$(dirname "$0")/.."

limit=600
wanted=14    # versions of clang-format differ in details: .clang-format is written for this one
failed=0

mapfile -t files < <(find src include tests bench examples -type f \
    \( -name '*.c' -o -name '*.h' -o -name '*.py' -o -name '*.sh' \) 2>/dev/null | sort)
mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep -E '\.[ch]$' || true)

for file in "${files[@]}"; do
    lines=$(wc -l <"$file")
    if [ "$lines" -gt $limit ]; then
        echo "$file: $lines lines, at most $limit are allowed: split it by what it does"
        failed=1
    fi
done

format=
for candidate in clang-format-$wanted clang-format; do
    if command -v "$candidate" >/dev/null && "$candidate" --version | grep -q "version $wanted\."; then
        format=$candidate
        break
    fi
done
if [ -z "$format" ]; then
    echo "style: skipped clang-format: version $wanted is not installed"
elif [ ${#sources[@]} -gt 0 ]; then
    if ! "$format" --dry-run -Werror "${sources[@]}"; then
        echo "style: put right with: $format -i <file>"
        failed=1
    fi
fi

[ $failed -eq 0 ] && echo "style: ${#files[@]} files, all well"
exit $failed
