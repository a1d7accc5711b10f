/*
 * Every collective over the real transports, called by all ranks of an MPI world.
 *
 * usage: test_collectives MESH [SAMPLE [BOXES NODES STEP]]     MESH "-" lets the boxes be found
 * With BOXES the ranks are shuffled, and take themselves for so many boxes (support/mpi/shuffled.h).
 * One line per collective and one in the end; exit 1 on any mismatch.
 */
#include <meshcoll/mpi.h>

#include "runtime/handle/handle.h"
#include "support/call.h"
#include "support/case.h"
#include "support/element.h"
#include "support/long_form.h"
#include "support/mpi/shuffled.h"
#include "support/strategies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static meshcoll_t *mesh;
static unsigned long n_run;

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

/* Once by a blocking call, twice by a persistent request. */
static void run_case(const mc_case_t *c, const char *strategy)
{
    char what[128], name[512], why[128] = "";
    mc_case_rank_t r;
    meshcoll_request_t *request;
    snprintf(name, sizeof name, "%s on %s: %s", mc_case_print(c, what, sizeof what),
             meshcoll_mesh_text(mesh), strategy ? strategy : "the planner's");
    if (meshcoll_set_strategy(mesh, c->collective, strategy))
        stop(name);
    if (mc_case_open(c, rank, size, &r))
        stop("no memory");
    const meshcoll_args_t blocking = mc_case_args(c, &r, NULL);
    if (mc_call(mesh, &blocking))
        stop(name);
    if (mc_case_check(c, &r, why, sizeof why)) {
        fprintf(stderr, "%s: %s\n", name, why);
        stop("wrong");
    }
    const meshcoll_args_t args = mc_case_args(c, &r, strategy);
    if (meshcoll_init(mesh, &args, &request))
        stop(name);
    for (int again = 0; again < 2; again++) {
        mc_case_fill(c, &r);
        if (meshcoll_start(request) || meshcoll_wait(request))
            stop(name);
        if (mc_case_check(c, &r, why, sizeof why)) {
            fprintf(stderr, "%s: %s, start %d\n", name, why, again);
            stop("wrong");
        }
    }
    meshcoll_free(request);
    mc_case_close(&r);
    n_run++;
}

static mc_case_t turn_case(meshcoll_collective_t collective, size_t count, unsigned turn)
{
    const int roots[] = {0, size - 1, size / 2, size / 3};
    const meshcoll_datatype_t type = (meshcoll_datatype_t)(turn % MESHCOLL_DATATYPES);
    return (mc_case_t){.collective = collective,
                       .count = count,
                       .datatype = type,
                       .op = mc_case_reduces(collective) ? mc_element_op(type, (int)(turn / 4))
                                                         : MESHCOLL_SUM,
                       .root = mc_case_is_rooted(collective) ? roots[turn / 2 % 4] : 0,
                       .in_place = turn % 3 == 0,
                       .bare = turn % 5 < 3};
}

/* Eager and rendezvous, one fragment and several, contiguous and not. */
static const size_t counts[] = {0, 1, 3, 100, 1500, 20000};

static void sweep_collective(meshcoll_collective_t collective, const mc_mesh_t *m, int most)
{
    char text[2048];
    unsigned turn = 0;
    mc_sample_t sample;
    if (mc_sample_open(collective, m, most, &sample))
        stop("no memory");
    for (int i = 0; i < sample.n; i++, turn++) {
        if (strstr(sample.text[i], "segments="))
            continue;
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++, turn++) {
            if (!long_form() && (k + (size_t)i) % 3 != 0) /* two of six, others for each strategy */
                continue;
            const mc_case_t c = turn_case(collective, counts[k], turn);
            const char *const more = strchr(sample.text[i], '|') ? " segments=4" : " segments=3";
            snprintf(text, sizeof text, "%s%s", sample.text[i], turn % 2 ? more : "");
            run_case(&c, text);
        }
    }
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++, turn++) {
        const mc_case_t c = turn_case(collective, counts[k], turn);
        run_case(&c, NULL);
    }
    if (rank == 0)
        printf("%-14s %d strategies\n", meshcoll_collective_name(collective), sample.n);
    mc_sample_close(&sample);
}

/* Several at once, started and waited for in other orders on other ranks. */
static void run_together(void)
{
    enum { AT_ONCE = 4 };
    meshcoll_request_t *request[AT_ONCE];
    mc_case_rank_t r[AT_ONCE];
    mc_case_t c[AT_ONCE];
    char why[128] = "";
    for (int i = 0; i < AT_ONCE; i++) {
        c[i] = turn_case(i % 2 ? MESHCOLL_ALLREDUCE : MESHCOLL_ALLGATHER, 5000, (unsigned)i);
        if (mc_case_open(&c[i], rank, size, &r[i]))
            stop("no memory");
        const meshcoll_args_t args = mc_case_args(&c[i], &r[i], NULL);
        if (meshcoll_init(mesh, &args, &request[i]))
            stop("several at once");
    }
    for (int i = 0; i < AT_ONCE; i++)
        if (meshcoll_start(request[(i + rank) % AT_ONCE]))
            stop("several at once");
    for (int i = 0; i < AT_ONCE; i++)
        if (meshcoll_wait(request[(AT_ONCE - 1 + rank - i + size * AT_ONCE) % AT_ONCE]))
            stop("several at once");
    for (int i = 0; i < AT_ONCE; i++) {
        if (mc_case_check(&c[i], &r[i], why, sizeof why)) {
            fprintf(stderr, "several at once: %s\n", why);
            stop("wrong");
        }
        meshcoll_free(request[i]);
        mc_case_close(&r[i]);
    }
    n_run += AT_ONCE;
}

/* All ranks with this one's outermost coordinate are from the same part of the world. */
static int check_box(int boxes)
{
    int world, *part = calloc((size_t)size, sizeof *part), status = MESHCOLL_OK;
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    const int mine = world / (size / boxes);
    const mc_order_t *const o = &mesh->order;
    if (!part || mesh->job->oob.allgather(mesh->job->oob.context, &mine, part, sizeof mine))
        stop("parts of the world");
    for (int r = 0; r < size && boxes > 1; r++)
        if ((meshcoll_coord(mesh, r, 0) == meshcoll_coord(mesh, rank, 0)) != (part[r] == mine))
            status = mc_fail(MESHCOLL_ERR_MESH, "rank %d stands at %d", r, mc_mesh_rank_of(o, r));
    free(part);
    return status;
}

/* The mesh of shuffled boxes, which must not be in the order of the communicator. */
static int create_shuffled(char **argv, const meshcoll_params_t *params, MPI_Comm *comm)
{
    const mc_shuffle_t shuffle = {atoi(argv[3]), atoi(argv[4]), atoi(argv[5])};
    *comm = mc_shuffled_world(&shuffle);
    MPI_Comm_rank(*comm, &rank);
    const int status = mc_shuffled_create(*comm, &shuffle, params, &mesh);
    if (status)
        return status;
    if (!mesh->order.comm_rank)
        return mc_fail(MESHCOLL_ERR_MESH, "%s stands in order", meshcoll_mesh_text(mesh));
    if (meshcoll_coord(mesh, size, 0) >= 0 || meshcoll_coord(mesh, 0, MC_MAX_DIMS) >= 0)
        return mc_fail(MESHCOLL_ERR_MESH, "there are coordinates of no rank or no dimension");
    return check_box(shuffle.boxes);
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const char *const text = argc > 1 && strcmp(argv[1], "-") != 0 ? argv[1] : NULL;
    const int most = argc > 2 ? atoi(argv[2]) : 4;
    const meshcoll_params_t params = {.size = sizeof params, .mesh = text};
    const double begin = MPI_Wtime();
    mc_mesh_t m;
    if ((argc > 5 ? create_shuffled(argv, &params, &comm)
                  : meshcoll_create(comm, &params, &mesh)) ||
        mc_mesh_parse(meshcoll_mesh_text(mesh), &m))
        stop("meshcoll_create");
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        sweep_collective((meshcoll_collective_t)c, &m, most);
    run_together();
    for (int i = 0; i < 10; i++)
        if (meshcoll_barrier(mesh))
            stop("barrier");
    if (rank == 0)
        printf("test_collectives: %s on %d ranks: %lu cases right in %.1f s\n",
               meshcoll_mesh_text(mesh), size, n_run, MPI_Wtime() - begin);
    if (meshcoll_rank(mesh) != rank)
        stop("its rank");
    meshcoll_destroy(mesh);
    if (comm != MPI_COMM_WORLD)
        MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
