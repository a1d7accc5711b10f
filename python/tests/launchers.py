"""Jobs of every launcher: torchrun, mpirun, MPICH's mpiexec, and the variables of PMI and Slurm, which are played.

usage: launchers.py [NAME…]    only tests whose name has one of these texts
"""

import os
import shutil
import socket
import sys

import jobs

RANKS, LIMIT = 4, 120
TAKEN = ("RANK", "PALS_", "MV2_", "JSM_", "FLUX_", "HOROVOD_", "ALPS_", "I_MPI_", "MPIRUN_", "WORLD_SIZE",
         "LOCAL_RANK", "MASTER_", "OMPI_", "PMI", "MPI_", "SLURM_", "TORCHELASTIC_")

OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "8", "PMIX_NAMESPACE": "1234"}
SLURM = {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0",
         "SLURM_STEP_NODELIST": "n[01-04]-ib,other"}
PMI = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0"}
MASTER = {"MASTER_ADDR": "there", "MASTER_PORT": "29500"}


def rank_of_a_job():
    import torch
    import torch.distributed as dist

    import meshcoll.torch

    torch.set_num_threads(1)
    meshcoll.torch.init()
    size = dist.get_world_size()
    x = torch.tensor([dist.get_rank(), int(os.environ["LOCAL_RANK"]), 1])
    dist.all_reduce(x)
    assert x.tolist() == [size * (size - 1) // 2] * 2 + [size], f"{x} of {size} ranks"
    if dist.get_rank() == 0:
        print(f"{size} ranks", flush=True)
    dist.destroy_process_group()


# Jobs ----------------------------------------------------------------------------------------------------------------

JOB = [sys.executable, __file__, "--rank"]


def clean(more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(TAKEN)}
    return {**kept, "OMP_NUM_THREADS": "1", **more}


def run(commands, size):
    """Starts the commands, each with its own variables; rank 0 says how many ranks there are."""
    results = jobs.outputs([(command, clean(more)) for command, more in commands], LIMIT)
    text = "\n".join(out for out, _ in results)
    assert not any(status for _, status in results) and f"{size} ranks\n" in text, text


def torchrun():
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
    run([(start + JOB[1:], {})], RANKS)


def mpirun():
    if not shutil.which("mpirun"):
        return "mpirun is not installed (Debian: openmpi-bin)"
    start = ["mpirun", "-n", str(RANKS), "--oversubscribe", "--bind-to", "none"]
    start += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    run([(start + JOB, {})], RANKS)


def mpich():
    start = shutil.which("mpiexec.hydra")
    if not start:
        return "mpiexec.hydra is not installed (Debian: mpich); its variables are played"
    run([([start, "-n", str(RANKS)] + JOB, {})], RANKS)


def slurm():
    local = {**SLURM, "SLURM_NTASKS": str(RANKS), "SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_NODELIST": "127.0.0.1"}
    run([(JOB, {**local, "SLURM_PROCID": str(r), "SLURM_LOCALID": str(r)}) for r in range(RANKS)], RANKS)


def pmi():
    local = {"PMI_SIZE": str(RANKS), "PMI_JOBID": str(os.getpid()), "MASTER_ADDR": "127.0.0.1"}
    run([(JOB, {**local, "PMI_RANK": str(r), "MPI_LOCALRANKID": str(r)}) for r in range(RANKS)], RANKS)


def no_launcher():
    run([(JOB, {})], 1)


# Rules ---------------------------------------------------------------------------------------------------------------


def expect(variables, wanted):
    from meshcoll.launch import environment
    got = environment(variables)
    assert {name: got.get(name) for name in wanted} == wanted, f"{variables}: {got}, expected {wanted}"
    return got


def refused(variables, words):
    from meshcoll.launch import environment
    try:
        got = environment(variables)
    except ValueError as error:
        assert words in str(error), f"the error does not say '{words}': {error}"
        return
    raise AssertionError(f"{variables}: {got}, expected an error")


def ranks_and_addresses():
    expect(OPEN_MPI, {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1"})
    expect({**OPEN_MPI, **MASTER}, MASTER)
    expect({**SLURM, "PMI_RANK": "2", "PMI_SIZE": "9", **MASTER}, {"RANK": "2", "WORLD_SIZE": "9"})  # the innermost
    expect({**SLURM, **PMI, "PMI_SIZE": "8", "PMI_JOBID": "9"}, {"RANK": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "n01-ib"})
    expect({**PMI, **MASTER}, {**MASTER, "RANK": "2"})
    assert expect({**SLURM, **MASTER, "RANK": "5", "WORLD_SIZE": "8"}, {}) == {}
    torchrun_inside = {"RANK": "30", "WORLD_SIZE": "64", "LOCAL_RANK": "6"}  # agents that srun started
    assert expect({**SLURM, **MASTER, **torchrun_inside}, {}) == {}
    expect({**SLURM, **MASTER, **torchrun_inside, "MESHCOLL_LAUNCHER": "slurm"}, {"RANK": "5", "WORLD_SIZE": "8"})
    expect({**OPEN_MPI, "RANK": "", "WORLD_SIZE": ""}, {"RANK": "3", "WORLD_SIZE": "8"})
    for step in ("", "4294967290", "4294967291"):  # no srun: none, salloc's shell, a batch script
        expect({**SLURM, "SLURM_STEP_ID": step}, {"RANK": "0", "WORLD_SIZE": "1"})
    nodes = {"node1,node2": "node1", "node[3-7,9]": "node3", "n[01-04]-ib,other": "n01-ib", "n[5]": "n5",
             "rack[2,3]node[08-09]": "rack2node08"}
    for text, first in nodes.items():
        expect({**SLURM, "SLURM_STEP_NODELIST": text}, {"RANK": "5", "LOCAL_RANK": "1", "MASTER_ADDR": first})


def other_launchers():
    one_host = [("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_SIZE", "8", "HOROVOD_GLOO_RENDEZVOUS_PORT"),
                ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "8", "MPIRUN_ID"),
                ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_SIZE", "8", "PMIX_NAMESPACE"),
                ("FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_JOB_NNODES", "1", "FLUX_JOB_ID"),
                ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "8", "I_MPI_HYDRA_UUID")]
    for rank, size, here, whole, job in one_host:
        played = {rank: "3", size: "8", here: whole, job: "77", "PMIX_RANK": "3"}
        expect(played, {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "127.0.0.1"})
        refused({**played, job: ""}, "set MASTER_PORT")
        refused({**played, here: "2"}, "set MASTER_ADDR")
        expect({**played, here: "2", "SLURM_JOB_NODELIST": "n[1-4]"}, {"MASTER_ADDR": "n1"})
    one, other = socket.socketpair()
    with one, other:
        expect({"PMI_RANK": "1", "PMI_SIZE": "8", "MPI_LOCALNRANKS": "8", "PMI_FD": str(one.fileno())},
               {"MASTER_ADDR": "127.0.0.1"})
    expect({**SLURM, "SLURM_STEP_NUM_NODES": "1"}, {"MASTER_ADDR": "127.0.0.1"})
    expect({**SLURM, "SLURM_PROCID": "0", "SLURM_NODEID": "0"}, {"MASTER_ADDR": "n01-ib"})
    refused({**SLURM, "SLURM_PROCID": "0", "SLURM_NODEID": "2", "SLURMD_NODENAME": "n03-ib"},
            "set MASTER_ADDR to its name, n03-ib")
    refused({**SLURM, **PMI, "PMI_RANK": "0", "PMI_SIZE": "8", "SLURM_PROCID": "0", "SLURM_NODEID": "2"}, "set MASTER_ADDR")
    for name in ("PMIX_RANK", "PMI_ID", "PALS_RANKID", "ALPS_APP_PE"):
        refused({name: "0"}, f"{name} is 0, so this is one of several processes, but no variable says of how many")
        refused({**SLURM, "SLURM_PROCID": "0", "SLURM_NTASKS": "1", name: "1"}, f"unset {name}")
        expect({**SLURM, "SLURM_PROCID": "3", name: "3"}, {"RANK": "3", "WORLD_SIZE": "8"})
        assert expect({**MASTER, "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", name: "1"}, {}) == {}
    for address in ("10.0.0.1:29500", "tcp://there", "there:29500", "[fd00::1]:1", "the re"):
        refused({**SLURM, **MASTER, "MASTER_ADDR": address}, f"got '{address}'")
    for address in ("10.0.0.1", "there.local", "fd00::1", "[fd00::1]", "fe80::1%eth0"):
        expect({**SLURM, **MASTER, "MASTER_ADDR": address}, {"MASTER_ADDR": address})


def ports():
    own = expect(SLURM, {})["MASTER_PORT"]
    assert 20000 <= int(own) < 28000, own
    expect({**SLURM, "SLURM_PROCID": "1"}, {"MASTER_PORT": own})
    assert expect({**SLURM, "SLURM_STEP_ID": "1"}, {})["MASTER_PORT"] != own
    assert expect(OPEN_MPI, {})["MASTER_PORT"] != own


def refusals():
    refused({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "set MASTER_ADDR on all ranks")
    refused({**OPEN_MPI, "PMIX_NAMESPACE": ""}, "set MASTER_PORT on all ranks")
    refused({**PMI, "PMI_JOBID": "9"}, "set MASTER_ADDR on all ranks")
    for nodes in ("node[1-", "node[[1]]", "node[]", "node 1", "node1]"):
        refused({**SLURM, "SLURM_STEP_NODELIST": nodes}, "set MASTER_ADDR")
    for rank in ("8", "-1", "x"):
        refused({**SLURM, "SLURM_PROCID": rank}, f"SLURM_PROCID is a number from 0 to 7; got '{rank}'")
    refused({**SLURM, "SLURM_NTASKS": "0"}, "SLURM_NTASKS is a number from 1")
    refused({"RANK": "0"}, "RANK is set, but WORLD_SIZE is not")
    refused({"WORLD_SIZE": "2", "RANK": ""}, "WORLD_SIZE is set, but RANK is not")
    refused({**SLURM, "SLURM_NTASKS": ""}, "SLURM_PROCID is set, but SLURM_NTASKS is not")
    refused({**OPEN_MPI, "RANK": "0", "WORLD_SIZE": "1"}, "rank 0 of 1 by RANK and WORLD_SIZE, rank 3 of 8 by OMPI_")
    refused({**OPEN_MPI, "RANK": "0", "WORLD_SIZE": "16"}, "set MESHCOLL_LAUNCHER=torchrun or openmpi")
    refused({**OPEN_MPI, "MESHCOLL_LAUNCHER": "srun"}, "expected torchrun, horovod, openmpi")


TESTS = {
    "launchers: ranks and addresses": ranks_and_addresses, "launchers: others": other_launchers,
    "launchers: ports": ports, "launchers: refusals": refusals,
    "launchers: torchrun": torchrun, "launchers: mpirun": mpirun, "launchers: mpiexec of MPICH": mpich,
    "launchers: Slurm's variables": slurm, "launchers: PMI's variables": pmi, "launchers: none": no_launcher,
}


if __name__ == "__main__":
    rank_of_a_job() if sys.argv[1:] == ["--rank"] else jobs.main(TESTS)
