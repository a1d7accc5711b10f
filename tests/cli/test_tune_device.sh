#!/usr/bin/env bash
# meshcoll tune --memory device, on a fake of the CUDA driver: links of GPUs are measured, kept with their provenance,
# and found by a mesh. What the numbers are says nothing about GPUs.
. "$(dirname "$0")/lib.sh"

build=${MESHCOLL_BUILD_DIR:-build/test}
double=$build/tests/device/libfakecuda.so
if [ ! -e "$double" ]; then
    echo "skipped: built without tests/device"
    exit 77
fi
unset MESHCOLL_LINKS MESHCOLL_MESH MESHCOLL_TRANSPORTS
export MESHCOLL_TUNE_FILE=$scratch/links.json MESHCOLL_GPU_BLOCKS=2
export MESHCOLL_LIBCUDA=$double MESHCOLL_LIBNVML=$build/tests/device/libfakenvml.so

ranks 4 0 "$MESHCOLL" tune --mesh box=2,gpu=2 --memory device --seconds 1
if [[ $err == *"has no kernels for GPUs"* || $err == *"built with -DMESHCOLL_CUDA=OFF"* ]]; then
    echo "skipped: the library was built without kernels for GPUs"
    exit 77
fi
has "links of box=2,gpu=2 on 1 machine with "
has "on memory of GPUs: fake GPU, driver 580.0, CUDA 13.0"
links=$(sed -n 's/^as text: //p' <<<"$out")
[[ $out == *"slower than untuned"* || $links == *";pulled:no,gpu="*";pulled:no;streams:no" ]] || fail "expected pushed links, got: $links"
run 0 plan allreduce --mesh box=2,gpu=2 --links "$links" --bytes 1M --json
gives 'all(0 < l["alpha"] < 1 and 0 < l["beta"] < 1e-3 and 0 <= l["gamma"] < 1e-3 for l in j["links"])' True
if [ -x "$build/tests/mpi/test_tuned" ]; then
    mpirun_ranks 4 "$build/tests/mpi/test_tuned" box=2,gpu=2 "$links" || fail "a mesh does not take $links"
fi

# One line of GPUs: strategies are timed on them.
ranks 2 0 "$MESHCOLL" tune --mesh gpu=2 --memory device --seconds 1 --json
gives 'j["memory"], len(j["strategies"]["bytes"])' "('fake GPU, driver 580.0, CUDA 13.0', 8)"
gives '(j["held_out"]["worse"] == 0) <= (len({s["collective"] for s in j["strategies"]["strategies"]}) == 8)' True
out=$(cat "$MESHCOLL_TUNE_FILE")
gives 'sorted(e["mesh"] for e in j["clusters"].values())' "['box=2,gpu=2', 'gpu=2']"
gives 'all("on memory of GPUs (fake GPU, driver 580.0, CUDA 13.0)" in e["provenance"] for e in j["clusters"].values())' True

# A GPU for each rank.
FAKE_GPUS=3 ranks 4 1 "$MESHCOLL" tune --mesh gpu=4 --memory device --seconds 1
[[ $err == *"rank 3 is the one numbered 3 of its machine, which shows it 3 GPUs"* ]] || fail "strange: $err"

finish
