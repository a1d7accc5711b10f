#!/usr/bin/env bash
# meshcoll topo: GPUs of the fakes of libcuda and NVML, and network cards of a machine that hwloc is told of.
. "$(dirname "$0")/lib.sh"

build=${MESHCOLL_BUILD_DIR:-build/test}
unset MESHCOLL_LINKS MESHCOLL_MESH MESHCOLL_TRANSPORTS HWLOC_SYNTHETIC HWLOC_THISSYSTEM
export MESHCOLL_TUNE_FILE=$scratch/none.json MESHCOLL_MONITOR=off

# Where there is no driver, one line says so.
MESHCOLL_LIBCUDA=off run 0 topo
has 'GPUs: none: there is no CUDA driver here: MESHCOLL_LIBCUDA is "off"'
[ "$(grep -c GPU <<<"$out")" -eq 1 ] || fail "expected one line of GPUs in:"$'\n'"$out"
MESHCOLL_LIBCUDA=off run 0 topo --json
gives 'j["gpus"]["list"], j["gpus"]["suggested_mesh"]' "([], '')"

if [ ! -e "$build/tests/device/libfakecuda.so" ]; then
    [ $failures -eq 0 ] || finish
    echo "skipped: built without tests/device"
    exit 77
fi
export MESHCOLL_LIBCUDA=$build/tests/device/libfakecuda.so MESHCOLL_LIBNVML=$build/tests/device/libfakenvml.so
FAKE_GPUS=0 run 0 topo
has "GPUs: none: the GPU's driver could not be initialised: CUDA_ERROR_NO_DEVICE"

# Two sockets of four GPUs. Below one PCIe switch: GPUs 0 and 1, and a card of two interfaces; below the same root:
# 2 and 3. On the other socket a card below a root with 4 and 5; 6 and 7 are below another root.
python3 - "$scratch/machine.xml" <<'XML'
import itertools, sys
number = itertools.count(2)
def object(kind, inside="", **attributes):
    said = "".join(f' {k}="{v}"' for k, v in attributes.items())
    return f'<object type="{kind}" gp_index="{next(number)}"{said}>{inside}</object>\n'
def sets(mask):
    return {k: hex(mask) for k in ("cpuset", "complete_cpuset", "nodeset", "complete_nodeset")}
def pci(bus, what, inside=""):
    return object("PCIDev", inside, pci_busid=f"0000:{bus:02x}:00.0", pci_type=what, pci_link_speed="32.0")
def gpu(d):
    return pci(0x11 + 0x10 * d, "0302 [10de:2330] [10de:16c1] a1")
def card(bus, fabric, net):
    return pci(bus, "0207 [15b3:1021] [15b3:0023] 00",
               object("OSDev", name=fabric, osdev_type=3) + object("OSDev", name=net, osdev_type=2))
def port(bus, first, last, inside):
    return object("Bridge", inside, bridge_type="1-1", depth=1, bridge_pci=f"0000:[{first:02x}-{last:02x}]",
                  pci_busid=f"0000:{bus:02x}:01.0", pci_type="0604 [8086:2030] [0000:0000] 04", pci_link_speed="32.0")
def root(first, last, inside):
    return object("Bridge", inside, bridge_type="0-1", depth=0, bridge_pci=f"0000:[{first:02x}-{last:02x}]")
def socket(i, inside):
    m = sets(1 << i)
    return object("Package", object("NUMANode", os_index=i, local_memory=1 << 30, **m) +
                  object("Core", object("PU", os_index=i, **m), os_index=i, **m) + inside, os_index=i, **m)
one = root(0, 0x4f, port(0, 0x10, 0x22, gpu(0) + gpu(1) + card(0x22, "mlx5_0", "ib0")) +
           port(1, 0x31, 0x31, gpu(2)) + port(2, 0x41, 0x41, gpu(3)))
two = root(0x50, 0x6f, port(0x50, 0x51, 0x51, gpu(4)) + port(0x51, 0x61, 0x61, gpu(5)) +
           port(0x52, 0x68, 0x68, card(0x68, "mlx5_1", "ib1"))) + root(0x70, 0x8f, port(0x70, 0x71, 0x71, gpu(6)) +
                                                                     port(0x72, 0x81, 0x81, gpu(7)))
machine = socket(0, one) + socket(1, two)
s = "".join(f' {k}="0x3"' for k in ("cpuset", "complete_cpuset", "allowed_cpuset", "nodeset", "complete_nodeset",
                                    "allowed_nodeset"))
open(sys.argv[1], "w").write('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
                             f'<topology version="2.0">\n<object type="Machine" os_index="0" gp_index="1"{s}>\n'
                             f"{machine}</object>\n</topology>\n")
XML
export HWLOC_XMLFILE=$scratch/machine.xml FAKE_GPUS=8

# All by a switch.
FAKE_SWITCH=18 run 0 topo
has "GPUs: 8, driver 580.0, CUDA 13.0"
has "0 fake GPU 0000:11:00.0 0 18 mlx5_0, ib0: same PCIe switch"
has "3 fake GPU 0000:41:00.0 0 18 mlx5_0, ib0: same PCIe root"
has "5 fake GPU 0000:61:00.0 1 18 mlx5_1, ib1: same PCIe root"
has "7 fake GPU 0000:81:00.0 1 18 mlx5_1, ib1: same socket"
has "2 NV18* NV18* - NV18*"
has "suggested mesh, with a rank for each GPU: gpu=8"

has "decided by NVLinks"

# Links whose other ends a virtual machine hides are a switch's, and said to be assumed.
FAKE_SWITCH=18 FAKE_HIDDEN=1 run 0 topo
has "0 fake GPU 0000:11:00.0 0 18 assumed mlx5_0, ib0: same PCIe switch"
has "assumed: NVML does not say where these end"
has "2 NV18* NV18* - NV18*"
has "suggested mesh, with a rank for each GPU: gpu=8"
FAKE_SWITCH=18 FAKE_HIDDEN=1 run 0 topo --json
gives 'j["gpus"]["list"][0]["nvlinks_assumed"], j["gpus"]["list"][0]["reaches"][1]["by"]' "(18, 'nvlink')"

# Cards of PCIe on two sockets, with NVML and without: by the driver's ranks, and where it ranks all the same, by nodes.
for nvml in "$MESHCOLL_LIBNVML" off; do
    MESHCOLL_LIBNVML=$nvml FAKE_RANKED=2 run 0 topo
    has "suggested mesh, with a rank for each GPU: island=4,gpu=2"
    has "decided by the driver's performance ranks"
    MESHCOLL_LIBNVML=$nvml run 0 topo
    has "suggested mesh, with a rank for each GPU: island=2,gpu=4"
    has "decided by NUMA nodes"
done
run 0 topo --json
gives 'j["gpus"]["suggested_mesh"], j["gpus"]["decided_by"]' "('island=2,gpu=4', 'NUMA nodes')"

# Islands of PCIe; pairs by NVLink in them; pairs whose numbers are apart.
FAKE_ISLAND=4 run 0 topo
has "1 PCIe - PCIe PCIe host host host host"
has "suggested mesh, with a rank for each GPU: island=2,gpu=4"
FAKE_ISLAND=4 FAKE_PAIR=2 run 0 topo
has "4 host host host host - NV4* PCIe PCIe"
has "suggested mesh, with a rank for each GPU: domain=2,island=2,gpu=2"
has "decided by peer access and NVLinks"
FAKE_PAIR=2 FAKE_MIXED=4 run 0 topo
has "1 PCIe - PCIe PCIe PCIe NV4* PCIe PCIe"
has "suggested mesh, with a rank for each GPU: island=4,gpu=2"
has "ranks in the order of CUDA_VISIBLE_DEVICES=0,4,1,5,2,6,3,7"
FAKE_ISLAND=5 run 0 topo
has "suggested mesh, with a rank for each GPU: gpu=8"
has "no finer one: groups of GPUs that belong together are of unequal sizes"
FAKE_GPUS=1 run 0 topo --json
gives '[len(j["gpus"]["list"]), j["gpus"]["suggested_mesh"]]' "[1, 'gpu=1']"
FAKE_ISLAND=4 FAKE_PAIR=2 run 0 topo --json
gives 'j["gpus"]["list"][4]["reaches"][3:7]' "[{'by': 'host', 'rank': -1, 'nvlinks': 0, 'atomics': False}, None, \
{'by': 'nvlink', 'rank': 0, 'nvlinks': 4, 'atomics': True}, {'by': 'pcie', 'rank': 1, 'nvlinks': 0, 'atomics': False}]"
gives '[c["place"] for c in j["gpus"]["list"][6]["cards"]]' "['on another socket', 'same socket']"

# Without NVML the driver's ranks tell pairs apart.
FAKE_PAIR=4 MESHCOLL_LIBNVML=off run 0 topo
has "GPUs: 8, driver CUDA 13.0; of NVLinks nothing is known:"
has 'MESHCOLL_LIBNVML is "off"'
has "0 - fast* fast* fast* PCIe PCIe PCIe PCIe"
has "suggested mesh, with a rank for each GPU: island=2,gpu=4"

# Ranks of one machine are asked once.
run 0 run -n 3 "$MESHCOLL" topo
[ "$(grep -c "^GPUs: " <<<"$out")" -eq 1 ] || fail "expected GPUs once in:"$'\n'"$out"

# Ranks on machines of their own, by their host names: of the same GPUs, and of others.
if unshare --uts true 2>/dev/null; then
    cat >"$scratch/apart" <<'APART'
hostname "box$RANK"
[ "$RANK" -ne 1 ] || export FAKE_GPUS=${SECOND:-8}
exec "$@"
APART
    FAKE_ISLAND=4 run 0 run -n 2 unshare --uts bash "$scratch/apart" "$MESHCOLL" topo
    has "suggested mesh, with a rank for each GPU: box=2,island=2,gpu=4"
    SECOND=4 FAKE_ISLAND=4 run 0 run -n 2 unshare --uts bash "$scratch/apart" "$MESHCOLL" topo
    has "suggested on the machine of rank 0: island=2,gpu=4"
    has "suggested on the machine of rank 1: gpu=4"
else
    echo "not shown: several machines, as this user may not give processes host names"
fi

finish
