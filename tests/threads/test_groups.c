/*
 * Groups that threads of each rank make, use and destroy at the same time, by ranks that are threads. Exit 1 on any
 * mismatch.
 */
#include "meeting.h"

enum { MAKERS = 3, ROUNDS = 3, COUNT = 600 };

typedef struct {
    seat_t seat;
    meshcoll_t *mesh;
} rank_t;

typedef struct {
    const rank_t *rank;
    int which;
} maker_t;

/* All ranks, in another order for each thread; or all but one. */
static int members_of(int which, int round, int members[RANKS])
{
    int n = 0;
    for (int i = 0; i < RANKS; i++) {
        const int r = (i * 3 + which + round) % RANKS;
        if (which != 2 || r != round % RANKS)
            members[n++] = r;
    }
    return n;
}

static void use(meshcoll_t *group, const maker_t *m, int round, int sum)
{
    int32_t in[COUNT], out[COUNT];
    for (int i = 0; i < COUNT; i++)
        in[i] = m->rank->seat.rank + 10 * m->which + round;
    check(meshcoll_allreduce(group, in, out, COUNT, MESHCOLL_INT32, MESHCOLL_SUM) == MESHCOLL_OK,
          "allreduce");
    const int n = meshcoll_size(group);
    for (int i = 0; i < COUNT; i++)
        check(out[i] == sum + n * (10 * m->which + round), "a wrong sum on a group");
}

static void *make(void *argument)
{
    const maker_t *const m = argument;
    for (int round = 0; round < ROUNDS; round++) {
        int members[RANKS], own = 0, sum = 0;
        const int n = members_of(m->which, round, members);
        meshcoll_t *group;
        for (int i = 0; i < n; i++) {
            own = own || members[i] == m->rank->seat.rank;
            sum += members[i];
        }
        if (!own)
            continue;
        check(meshcoll_create_group(m->rank->mesh, members, n, m->which, &group) == MESHCOLL_OK,
              "create_group");
        use(group, m, round, sum);
        meshcoll_destroy(group);
    }
    return NULL;
}

static void *run_rank(void *argument)
{
    rank_t *const r = argument;
    pthread_t thread[MAKERS];
    maker_t maker[MAKERS];
    r->mesh = open_mesh(&r->seat, "x=2,y=2", "x=shm;y=shm");
    for (int k = 0; k < MAKERS; k++) {
        maker[k] = (maker_t){r, k};
        check(pthread_create(&thread[k], NULL, make, &maker[k]) == 0, "a thread");
    }
    for (int k = 0; k < MAKERS; k++)
        pthread_join(thread[k], NULL);
    meshcoll_destroy(r->mesh);
    return NULL;
}

int main(void)
{
    static const threading_t mode[] = {{"none", "multiple"}, {"thread", "multiple"}};
    static rank_t rank[RANKS];
    run_modes(mode, sizeof mode / sizeof mode[0], rank, sizeof *rank, run_rank);
    return 0;
}
