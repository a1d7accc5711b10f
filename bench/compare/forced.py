"""The forced grid: a row names an algorithm for each collective, by the library's own parameters. docs/benchmarks.md
lists it with where each library documents them. Names are those of `ompi_info --param coll tuned --level 9`, of
`mpivars`, and the numbers of the I_MPI_ADJUST family."""


class Row:
    def __init__(self, name, algorithms, settings):
        self.name, self.algorithms, self.settings = name, algorithms, settings      # collective → algorithm

    def text(self):
        return ", ".join(f"{collective} {algorithm}" for collective, algorithm in self.algorithms.items())


def openmpi_row(name, segment, **algorithms):
    """`segment`: bytes, of the collectives that Open MPI cuts."""
    def settings():
        found = {"coll_tuned_use_dynamic_rules": "1", "coll_han_priority": "0"}
        for collective, algorithm in algorithms.items():
            key = "reduce_scatter_block" if collective == "reduce_scatter" else collective
            found[f"coll_tuned_{key}_algorithm"] = algorithm
            if segment and collective in ("bcast", "reduce", "allreduce"):
                found[f"coll_tuned_{key}_algorithm_segmentsize"] = str(segment)
        return found
    return Row(name, algorithms, settings)


def openmpi(in_lab):
    rows = [openmpi_row("pipe16", 16 << 10, bcast="pipeline", reduce="pipeline", allreduce="ring",
                        reduce_scatter="butterfly", allgather="ring", alltoall="pairwise", scatter="binomial",
                        gather="binomial", barrier="recursive_doubling"),
            openmpi_row("pipe64", 64 << 10, bcast="pipeline", reduce="pipeline", allreduce="segmented_ring",
                        reduce_scatter="recursive_halving", allgather="neighbor", alltoall="linear_sync",
                        scatter="linear_nb", gather="linear_sync", barrier="tree"),
            openmpi_row("tree", 0, bcast="scatter_allgather", reduce="rabenseifner", allreduce="rabenseifner",
                        reduce_scatter="recursive_doubling", allgather="recursive_doubling", alltoall="modified_bruck",
                        scatter="basic_linear", gather="basic_linear", barrier="bruck"),
            openmpi_row("low", 0, bcast="binomial", reduce="binomial", allreduce="recursive_doubling",
                        allgather="bruck", alltoall="linear", barrier="linear")]
    if not in_lab:
        shared = dict.fromkeys(("bcast", "reduce", "allreduce", "barrier"), "coll/sm")
        rows.append(Row("sm", shared, lambda: {"coll_sm_priority": "100"}))
    return rows


def mpich_row(name, more=(), **algorithms):
    def settings():
        found = {"MPIR_CVAR_DEVICE_COLLECTIVES": "none", **dict(more)}
        for collective, algorithm in algorithms.items():
            key = "REDUCE_SCATTER_BLOCK" if collective == "reduce_scatter" else collective.upper()
            found[f"MPIR_CVAR_{key}_INTRA_ALGORITHM"] = algorithm
        return found
    return Row(name, algorithms, settings)


def mpich():
    pipelined = {"MPIR_CVAR_BCAST_TREE_TYPE": "kary", "MPIR_CVAR_BCAST_TREE_KVAL": "1"}
    return [mpich_row("pipe16", {**pipelined, "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE": str(16 << 10)},
                      bcast="pipelined_tree", reduce="reduce_scatter_gather", allreduce="ring",
                      reduce_scatter="pairwise", allgather="ring", alltoall="pairwise", scatter="binomial",
                      gather="binomial", barrier="k_dissemination"),
            mpich_row("pipe64", {**pipelined, "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE": str(64 << 10)},
                      bcast="pipelined_tree", reduce="smp", allreduce="smp", reduce_scatter="recursive_halving",
                      allgather="brucks", alltoall="scattered", barrier="smp"),
            mpich_row("tree", bcast="scatter_ring_allgather", reduce="binomial", allreduce="reduce_scatter_allgather",
                      reduce_scatter="recursive_doubling", allgather="recursive_doubling", alltoall="brucks",
                      barrier="recexch"),
            mpich_row("smp", bcast="smp", allreduce="recursive_doubling", allgather="recexch_doubling")]


def intel_row(name, **algorithms):
    def settings():
        return {f"I_MPI_ADJUST_{collective.upper()}" + ("_BLOCK" if collective == "reduce_scatter" else ""):
                algorithm.partition(" ")[0] for collective, algorithm in algorithms.items()}
    return Row(name, algorithms, settings)


def intel():
    return [intel_row("ring", bcast="3 ring", reduce="1 Shumilin", allreduce="8 ring", reduce_scatter="2 pairwise",
                      allgather="3 ring", alltoall="3 pairwise", scatter="1 binomial", gather="1 binomial",
                      barrier="1 dissemination"),
            intel_row("topo", bcast="6 topology-aware ring", reduce="6 topology-aware Rabenseifner",
                      allreduce="4 topology-aware reduce and bcast", reduce_scatter="1 recursive halving",
                      allgather="4 topology-aware gather and bcast", alltoall="4 Plum", scatter="3 Shumilin",
                      gather="3 Shumilin", barrier="4 topology-aware recursive doubling"),
            intel_row("doubling", bcast="2 recursive doubling", reduce="5 Rabenseifner", allreduce="2 Rabenseifner",
                      reduce_scatter="3 recursive doubling", allgather="1 recursive doubling", alltoall="2 isend",
                      scatter="2 topology-aware binomial", gather="2 topology-aware binomial",
                      barrier="2 recursive doubling"),
            intel_row("tree", bcast="7 Shumilin", reduce="2 binomial", allreduce="7 Shumilin ring",
                      allgather="2 Bruck", alltoall="1 Bruck", barrier="5 binomial")]
