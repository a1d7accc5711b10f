#!/usr/bin/env bash
# Are the compiled GPU kernels what they should be? scripts/check-kernels.sh build/test/device
# Every kernel of src/gpu/program/bodies.h is there for each architecture, spills no register and keeps nothing on a
# stack, and moves words of 16 bytes. The last is read in the machine code by cuobjdump or nvdisasm
# ($CUOBJDUMP, $NVDISASM, or on PATH); without them in the PTX, and a line says so.
set -euo pipefail
folder=${1:?usage: scripts/check-kernels.sh FOLDER}
shopt -s nullglob
cubins=("$folder"/sm_*.cubin)
if [ ${#cubins[@]} -eq 0 ]; then
    echo "skipped: no GPU kernels in $folder: configured without nvcc, or without -DMESHCOLL_CUDA=ON where there is no GPU"
    exit 77
fi

disassemble() { # disassemble CUBIN: its machine code; 1: no program for that
    local tool
    if tool=$(command -v "${CUOBJDUMP:-cuobjdump}"); then
        "$tool" -sass "$1"
    elif tool=$(command -v "${NVDISASM:-nvdisasm}"); then
        "$tool" -c "$1"
    else
        return 1
    fi
}

# spills LOG: a line for each kernel that spills or has a stack, then "kernels registers", the most of any
spills() {
    awk '/Compiling entry function/ { split($0, part, "\047"); name = part[2]; n++ }
         /bytes stack frame/ && ($1 + 0 || $5 + 0 || $9 + 0) { print name ":" $0 }
         match($0, /Used [0-9]+ registers/) { used = substr($0, RSTART + 5) + 0; most = used > most ? used : most }
         END { print n + 0, most + 0 }' "$1"
}

# narrow LOAD STORE: of the functions in the text on stdin, those without such a load or store; then their number
narrow() {
    awk -v load="$1" -v store="$2" '
        function close_one() { if (name != "" && !(loads && stores)) print name; if (name != "") n++ }
        /Function : |^\.text\.|\.visible \.entry / {
            if (match($0, /mc_(walk|sum)_[a-z0-9_]+/)) {
                close_one()
                name = substr($0, RSTART, RLENGTH)
                loads = stores = 0
            }
        }
        index($0, load) { loads = 1 }
        index($0, store) { stores = 1 }
        END { close_one(); print n + 0 }'
}

failed=0
wanted=
for cubin in "${cubins[@]}"; do
    arch=$(basename "$cubin" .cubin)
    said=$(spills "${cubin%.cubin}.log")
    read -r kernels registers <<<"${said##*$'\n'}"
    if [ "$said" != "$kernels $registers" ]; then
        echo "$arch: registers are spilled, or a stack is used:"
        sed '$d' <<<"$said"
        failed=1
    fi
    wanted=${wanted:-$kernels}
    if [ "$kernels" -lt 100 ] || [ "$kernels" != "$wanted" ]; then
        echo "$arch: $kernels kernels, expected at least 100, and as many for each architecture"
        failed=1
    fi
    if disassemble "$cubin" >"$folder/$arch.sass"; then
        where="machine code"
        said=$(narrow LDG.E.128 STG.E.128 <"$folder/$arch.sass")
    else
        where="PTX only: neither cuobjdump nor nvdisasm is here"
        said=$(narrow ld.global.v4.u32 st.global.v4.u32 <"${cubin%.cubin}.ptx")
    fi
    if [ "$said" != "$kernels" ]; then
        echo "$arch: kernels without loads or stores of 16 bytes ($where), then how many there are of $kernels:"
        echo "$said"
        failed=1
    fi
    echo "$arch: $kernels kernels, at most $registers registers; 16-byte loads and stores looked for in the $where"
done
exit $failed
