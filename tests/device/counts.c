#include "counts.h"

#include "box.h"

#include <stdio.h>

/* So many messages later than 0, in all counters. */
#define COUNTED ((UINT64_C(1) << MC_DEVICE_COUNT_BITS) - 1)
static void advance(mc_box_t *box, uint64_t by)
{
    mc_box_lane_t *const lane = &box->lane[true][0][1][0];
    uint64_t *const counter[] = {&lane->flag, &lane->credit, &lane->sent, &lane->taken};
    for (size_t i = 0; i < MC_COUNT(counter); i++) /* of the flag nobody looks at it */
        *counter[i] = (*counter[i] & ~COUNTED) | ((*counter[i] + by) & COUNTED);
}

static uint64_t sent(const mc_box_t *box)
{
    return box->lane[true][0][1][0].sent & COUNTED;
}

static bool late_bcast(mc_box_t *box, meshcoll_datatype_t type, size_t count)
{
    const mc_case_t c = {.collective = MESHCOLL_BCAST, .datatype = type, .count = count};
    const mc_box_how_t how = {
        .threads = 2, .slot_bytes = 1 << 10, .ll = true, .delay = {[0] = 5000}};
    return mc_box_case(box, &c, "bcast:chain(gpu)", &how);
}

/* Numbers of messages pass 2^23, where flags begin anew. And 2^23 messages after a long one, with short ones
 * in between, the same slot holds nothing of it that has the flag which is awaited: here by the second thread,
 * whose words are not of short messages. */
bool mc_counts_ll_wrap(void)
{
    enum { LONG = 100, SHORT = 4, BEFORE = 8, BEHIND = 6 };
    const uint64_t half = UINT64_C(1) << 22;
    mc_box_t *const box = mc_box_open("gpu=2");
    bool good = true;
    advance(box, 2 * half - BEFORE);
    for (int i = 0; i < BEFORE + BEHIND + 1 && good; i++)
        good = late_bcast(box, MESHCOLL_INT32, LONG);
    for (int turn = 1; turn <= 2; turn++) { /* to where whole slots are written */
        advance(box, half - sent(box) % half);
        for (int i = 0; i < (turn == 1 ? MC_DEVICE_SLOTS : BEHIND) && good; i++)
            good = late_bcast(box, MESHCOLL_INT32, SHORT);
    }
    good = good && late_bcast(box, MESHCOLL_FLOAT32, LONG);
    if (sent(box) != 4 * half + BEHIND + 1)
        good = false;
    mc_box_close(box);
    return good;
}

/* Counts of messages begin anew. */
bool mc_counts_wrap(void)
{
    enum { BEFORE = 8, CALLS = 2 * BEFORE };
    mc_box_t *const box = mc_box_open("gpu=2");
    bool good = true;
    advance(box, COUNTED - BEFORE);
    for (int i = 0; i < CALLS && good; i++)
        good = late_bcast(box, MESHCOLL_INT32, 100);
    good = good && sent(box) == CALLS - BEFORE - 1;
    mc_box_close(box);
    return good;
}

/* Rank 1 makes another call. What `fails` has a bit of must say so, and of whom; the others end. */
static bool other_call(const char *mesh, meshcoll_collective_t collective, const char *strategy,
                       const mc_box_how_t *like, unsigned fails)
{
    const mc_case_t c = {.collective = collective, .datatype = MESHCOLL_INT32, .count = 1000};
    mc_box_how_t how = *like;
    bool good = true;
    mc_box_t *const box = mc_box_open(mesh);
    for (int turn = 0; turn < 3; turn++) /* after calls that are the same */
        good = good && mc_box_case(box, &c, strategy, &how);
    how.differs = 2;
    mc_box_run_t *const run = mc_box_run_open(box, &c, strategy, &how);
    mc_box_run(run);
    for (int r = 0; r < box->mesh.size && good; r++)
        for (uint32_t b = 0; b < how.blocks && good; b++) {
            const mc_device_report_t *const report = &run->rank[r].report[b];
            const bool failed = report->status == MC_DEVICE_DIFFERS;
            good = failed ? (fails >> r & 1) && report->digest == mc_box_digest(run, 1 - r)
                          : report->status == MC_DEVICE_DONE && !(fails >> r & 1);
            if (!good)
                printf("%s: rank %d, block %u ended with %u, digest %u\n", run->name, r, b,
                       report->status, report->digest);
        }
    mc_box_run_close(run);
    mc_box_close(box);
    return good;
}

/* No rank takes a message of another call, nor writes to memory of a rank that makes another one. */
bool mc_counts_differ(void)
{
    const char *const ring = "reduce_scatter:ring(gpu) allgather:ring(gpu)";
    mc_box_how_t how = {.blocks = 2, .slot_bytes = 1 << 14};
    bool good = true;
    for (int ll = 0; ll < 2; ll++) {
        how.ll = ll;
        good = good && other_call("gpu=2", MESHCOLL_BCAST, "bcast:chain(gpu)", &how, 2);
        how.delay[0] = 20000; /* the receiver waits for it */
        good = good && other_call("gpu=2", MESHCOLL_BCAST, "bcast:chain(gpu)", &how, 2) &&
               other_call("gpu=2", MESHCOLL_ALLREDUCE, ring, &how, 3);
        how.delay[0] = 0;
    }
    how.ll = false;
    how.threads = 3;
    good = good && other_call("gpu=2", MESHCOLL_ALLREDUCE, "allreduce:fullmesh(gpu)", &how, 3);
    how.registered = true;
    how.limit = 500000000;
    mc_box_t *const box = mc_box_open("gpu=2");
    const mc_case_t c = {.collective = MESHCOLL_BCAST, .datatype = MESHCOLL_INT32, .count = 1000};
    how.differs = 2;
    mc_box_run_t *const run = mc_box_run_open(box, &c, "bcast:chain(gpu)", &how);
    mc_box_run(run); /* the receiver waits for the sender, which does not write */
    for (uint32_t b = 0; b < how.blocks; b++)
        good = good && run->rank[0].report[b].status == MC_DEVICE_DIFFERS &&
               run->rank[1].report[b].status == MC_DEVICE_LATE;
    mc_box_run_close(run);
    mc_box_close(box);
    return good;
}
