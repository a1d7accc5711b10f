/* Link presets, each with the provenance of its numbers. Alpha is the latency of software and wire
 * together; beta leaves protocol overhead out. */
#include "mesh/link/link.h"

/* clang-format off */
const mc_link_preset_t mc_link_presets[] = {
    {"lab-net",
     "measured in the project's lab (veth shaped to 200 Mbit/s): alpha one way through UCX/TCP "
     "when idle; beta is the rate set; gamma as lab-shm",
     {.alpha = 7e-6, .beta = 8 / 200e6, .gamma = 1e-9, .ports = 1, .streams = true}},
    {"lab-shm",
     "a 2-core 2.5 GHz Xeon with 16 ranks: 4 MiB copied at 0.14 ns/B and summed at 0.13 ns/B were "
     "measured with one rank, times 8 ranks to a core; alpha is an estimate (waking a rank)",
     {.alpha = 5e-6, .beta = 1e-9, .gamma = 1e-9, .ports = 2, .pulled = true}},
    {"ethernet-10g",
     "beta is the line rate (IEEE 802.3); alpha an estimate for TCP through the kernel; gamma as "
     "shm",
     {.alpha = 20e-6, .beta = 8 / 10e9, .gamma = 0.1e-9, .ports = 1, .streams = true}},
    {"ethernet-25g",
     "beta is the line rate (IEEE 802.3); alpha an estimate for TCP through the kernel; gamma as "
     "shm",
     {.alpha = 15e-6, .beta = 8 / 25e9, .gamma = 0.1e-9, .ports = 1, .streams = true}},
    {"infiniband-hdr",
     "one NIC per box; beta is the vendor's 200 Gbit/s; alpha an estimate with software on both "
     "sides; gamma as shm (sums on the host)",
     {.alpha = 1.5e-6, .beta = 8 / 200e9, .gamma = 0.1e-9, .ports = 1}},
    {"infiniband-hdr-rails",
     "one NIC per GPU; beta is the vendor's 200 Gbit/s; alpha an estimate for GPU memory; gamma as "
     "nvlink3 (sums on the GPU)",
     {.alpha = 3e-6, .beta = 8 / 200e9, .gamma = 0.002e-9, .ports = MC_PORTS_ALL}},
    {"infiniband-ndr",
     "one NIC per box; beta is the vendor's 400 Gbit/s; alpha an estimate with software on both "
     "sides; gamma as shm (sums on the host)",
     {.alpha = 1.5e-6, .beta = 8 / 400e9, .gamma = 0.1e-9, .ports = 1}},
    {"infiniband-ndr-rails",
     "one NIC per GPU; beta is 47 GB/s, measured on NDR (nccl-tests 290); alpha a step of a ring over "
     "the network (NCCL's table, LL128); gamma and call as nvlink4",
     {.alpha = 4e-6,
      .beta = 1 / 47e9,
      .gamma = 0.0009e-9,
      .call = 4.5e-6,
      .ports = MC_PORTS_ALL}},
    {"nvlink3",
     "beta is the vendor's 600 GB/s of an A100, half of it each way; gamma from its 1.555 TB/s of "
     "memory, three accesses a sum; alpha an estimate",
     {.alpha = 2e-6, .beta = 1 / 300e9, .gamma = 0.002e-9, .ports = MC_PORTS_ALL, .pulled = true}},
    {"nvlink4",
     "beta is 370 GB/s each way, measured on an H100 (nccl-tests 212, nccl 1264), of the vendor's "
     "450; alpha and gap are a ring's steps in NCCL's table (LL128, LL), call is that table's least "
     "for sm_90; gamma from the vendor's 3.35 TB/s of memory, three accesses a sum",
     {.alpha = 1.9 / 1e6, /* as the text reads, to the last bit */
      .gap = 0.6e-6,
      .beta = 1 / 370e9,
      .gamma = 0.0009e-9,
      .call = 4.5e-6,
      .ports = MC_PORTS_ALL,
      .pulled = true}},
    {"pcie4",
     "beta is what NCCL counts for 16 lanes at 16 GT/s (of 31.5 GB/s after coding, PCI-SIG); alpha "
     "and gap are a ring's steps over PCIe in its table (LL128, LL), call as nvlink4; GPUs behind "
     "one root: one port; gamma as nvlink3",
     {.alpha = 2.5e-6,
      .gap = 1e-6,
      .beta = 1 / 24e9,
      .gamma = 0.002e-9,
      .call = 4.5e-6,
      .ports = 1}},
    {"shm",
     "host memory between processes: estimates rounded from one core of a 2.5 GHz Xeon, which "
     "copied at 0.08 to 0.14 ns/B and summed at 0.08 to 0.13 ns/B",
     {.alpha = 0.5e-6, .beta = 0.1e-9, .gamma = 0.1e-9, .ports = 4, .pulled = true}},
    {"tpu-ici",
     "TPU v4: beta is 50 GB/s per link and direction (Jouppi et al. 2023), used one way round; "
     "alpha and gamma (from 1.2 TB/s of memory) are estimates",
     {.alpha = 1e-6,
      .beta = 1 / 50e9,
      .gamma = 0.0025e-9,
      .ports = MC_PORTS_ALL,
      .wire = MC_WIRE_OWN}},
    {"upi",
     "between the sockets of a machine, for GPUs on PCIe: beta is what NCCL counts for Xeons up to "
     "Ice Lake (10 GB/s; 22 from Sapphire Rapids on), which all GPUs of a socket share; alpha, gap, "
     "gamma and call as pcie4",
     {.alpha = 2.5e-6,
      .gap = 1e-6,
      .beta = 1 / 10e9,
      .gamma = 0.002e-9,
      .call = 4.5e-6,
      .ports = 1}},
    {"uniform",
     "for teaching: 1 us a message, 1 GB/s, 10 GB/s of sums, a port for every rank",
     {.alpha = 1e-6, .beta = 1e-9, .gamma = 0.1e-9, .ports = MC_PORTS_ALL}},
};
const int32_t mc_n_link_presets = MC_COUNT(mc_link_presets);

const mc_cluster_preset_t mc_cluster_presets[] = {
    {"generic", "no machine in particular: an Ethernet NIC per box, shared memory inside",
     "ethernet-25g", "shm"},
    {"lab",
     "the project's lab of boxes on one machine; its queues hold 500 KB, and 256 KiB lost nothing",
     "lab-net;window:256KiB", "lab-shm"},
    {"dgx-a100", "8 GPUs and 8 HDR NICs a box", "infiniband-hdr-rails", "nvlink3"},
    {"dgx-h100", "8 GPUs and 8 NDR NICs a box", "infiniband-ndr-rails", "nvlink4"},
    {"pcie-boxes", "GPUs on PCIe, which share one HDR NIC",
     "infiniband-hdr;gamma:500GB/s", "pcie4"},
    {"tpu-v4", "a torus of chips, all dimensions alike", "tpu-ici", "tpu-ici"},
};
/* clang-format on */
const int32_t mc_n_cluster_presets = MC_COUNT(mc_cluster_presets);
