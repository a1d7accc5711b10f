#!/usr/bin/env bash
# Files stay under 600 lines and look as .clang-format says; numbers are read and printed in the C locale; pages and
# comments name files that are there.
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

# The command fills 0 to 2 when it starts, and its pipes go there on purpose.
mapfile -t unmoved < <(find src/* -name '*.c' ! -path 'src/tools/*' ! -path src/base/system/descriptor.c -exec perl -0777 -ne '
    s{/\*.*?\*/|"(?:\\.|[^"\\])*"}{ $& =~ s/[^\n]/ /gr }gse;
    while (/(?<![\w.>])(?:socket|socketpair|accept4|accept(?=\((?!context))|memfd_create|epoll_create1?|eventfd|pidfd_open|
            signalfd|timerfd_create|inotify_init1?|pipe2?|dup[23]?|open|openat|creat|mkstemp|mkostemp|fopen|freopen|popen|
            fcntl(?=\([^;]*F_DUPFD))\(/gx) {
        my ($before, $line) = (substr($_, 0, $-[0]), 1 + (substr($_, 0, $-[0]) =~ tr/\n//));
        print "$ARGV:$line\n" unless $before =~ /mc_descriptor(?:_stream)?\(\s*$/;
    }' {} +)
for place in ${unmoved[@]+"${unmoved[@]}"}; do
    echo "$place: pass the descriptor through mc_descriptor() of base/system/descriptor.h: where a daemon has closed 0 to 2," \
        "what the program prints to stderr would land in it"
    failed=1
done

# Numbers that are read back have a decimal point in every locale: src/base/number.h.
mapfile -t ours < <(find src python/cpp -type f \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \) ! -name 'number.[ch]')
if grep -nE '\b(strto(d|f|ld)|ato(f|l?d)|std::sto(d|f|ld))\(|sscanf\([^;]*%[0-9]*l?[aefg]|to_string\([^;]*double' "${ours[@]}" ||
    grep -PzoH '(?<!\w)v?snprintf\([^;]*(?<!%)%(?!%)[-+ #0-9.*]*l?[aefgAEFG]' \
        $(printf '%s\n' "${ours[@]}" | grep '^src/') | tr '\0' '\n' | grep .; then
    echo "style: read and print these numbers by mc_number_read and mc_number_print (src/base/number.h)"
    failed=1
fi
if grep -nE '\b(to(upper|lower)|strn?casecmp)\(' "${ours[@]}"; then
    echo "style: take mc_upper (src/base/number.h), as locales have other capitals"
    failed=1
fi

# A comment is a sentence, or names what it stands at: it needs no other comment, and sends nobody elsewhere.
mapfile -t sentences < <(find include src/{base,mesh,plan,ring,mst,direct,doubling,compose,network,simulate,tools} -name '*.[ch]')
if perl -0777 -ne 'while (m{/\*[*<!]*\s*(?:\*\s)?\s*((?:Of|Its|Those|That|Both|Else|As|See|see|Likewise|The same)\b[^\n]*)}g) {
        print "$ARGV:", 1 + (substr($_, 0, $-[1]) =~ tr/\n//), ": $1\n" unless $1 =~ /^[\w ]+ --/ }' "${sentences[@]}" | grep .; then
    echo "style: begin these comments with their subject or a verb: \"The vector of all ranks\", \"Returns the …\""
    failed=1
fi

scripts/check-docs.py || failed=1

[ $failed -eq 0 ] && echo "style: ${#files[@]} files, all well"
exit $failed
