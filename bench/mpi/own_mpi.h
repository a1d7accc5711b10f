/*
 * MPI's own collectives, for meshcoll-bench --flat mpi: meshcoll-bench-mpi.so, which alone is linked with MPI. The
 * program loads it when it is asked for.
 */
#ifndef BENCH_OWN_MPI_H
#define BENCH_OWN_MPI_H

#include <meshcoll/meshcoll.h>

#include <stdbool.h>
#include <stddef.h>

/* A call; where a buffer is not used on this rank it is NULL. */
typedef struct {
    meshcoll_collective_t collective;
    meshcoll_datatype_t datatype;
    meshcoll_op_t op;
    int root;
    bool in_place, barrier; /* the latter instead of all the others */
    size_t count;           /* as of meshcoll's function; within the range of int */
    void *in, *out;
} own_mpi_call_t;

enum { OWN_MPI_VERSION = 256 };

typedef struct {
    /* Starts MPI. False: it does not start. */
    bool (*open)(int *rank, int *size, char version[OWN_MPI_VERSION]);
    void (*close)(void);
    bool (*has_datatype)(meshcoll_datatype_t datatype);
    bool (*has_op)(meshcoll_op_t op);
    void (*barrier)(void);
    void (*poll)(void);
    void (*run)(const own_mpi_call_t *call);
} own_mpi_t;

/* The library's only symbol. */
#define OWN_MPI_SYMBOL "meshcoll_bench_mpi"
typedef const own_mpi_t *(*own_mpi_find_t)(void);

#endif
