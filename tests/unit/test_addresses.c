/* Addresses that ranks gather: their lengths, and where a rank says it is. */
#include "runtime/connect/connections.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, IN_MEMORY = 24, STRIDE = 2 * (8 + 96) };

static char packed[RANKS * STRIDE];
static mc_transport_t memory = {.address_bytes = IN_MEMORY, .greets = true};
static mc_transport_t network = {.address_least = MC_TRANSPORT_WHERE + 1, .greets = true};

/* Rank 1's addresses: along box with a text that has no end, along gpu in memory. */
static void pack(mc_job_t *job, uint64_t along_box, uint64_t along_gpu)
{
    *job = (mc_job_t){.connections = {.addresses = packed, .address_stride = STRIDE}};
    cr_assert_eq(mc_mesh_parse("box=2,gpu=1", &job->mesh), MESHCOLL_OK);
    job->connections.transport[0] = &network;
    job->connections.transport[1] = &memory;
    for (int r = 0; r < RANKS; r++) {
        char *const at = packed + r * STRIDE, *const next = at + 8 + (along_box + 7) / 8 * 8;
        memcpy(at, &along_box, 8);
        memset(at + 8, '\33', 96);
        memcpy(at + 8, "10.0.0.2, eth0", 14);
        memcpy(next, &along_gpu, 8);
    }
}

Test(addresses, have_the_length_of_their_transport)
{
    static const struct {
        uint64_t along_box, along_gpu;
        int status;
    } cases[] = {{80, IN_MEMORY, MESHCOLL_OK},
                 {MC_TRANSPORT_WHERE + 1, IN_MEMORY, MESHCOLL_OK},
                 {MC_TRANSPORT_WHERE, IN_MEMORY, MESHCOLL_ERR_TRANSPORT}, /* nothing for UCX */
                 {80, IN_MEMORY - 8, MESHCOLL_ERR_TRANSPORT},
                 {80, IN_MEMORY + 8, MESHCOLL_ERR_TRANSPORT},
                 {STRIDE, IN_MEMORY, MESHCOLL_ERR_TRANSPORT}};
    for (size_t i = 0; i < MC_COUNT(cases); i++) {
        mc_job_t job;
        pack(&job, cases[i].along_box < STRIDE ? cases[i].along_box : 80, cases[i].along_gpu);
        if (cases[i].along_box >= STRIDE)
            memcpy(packed, &cases[i].along_box, 8);
        cr_expect_eq(mc_addresses_check(&job), cases[i].status, "case %zu", i);
    }
}

Test(addresses, say_where_a_rank_is_as_plain_text)
{
    char where[MC_TRANSPORT_WHERE];
    mc_job_t job;
    pack(&job, 80, IN_MEMORY);
    mc_rank_where(&job, 1, where);
    cr_expect_eq(strncmp(where, "10.0.0.2, eth0", 14), 0, "%s", where);
    cr_expect_eq(strlen(where), MC_TRANSPORT_WHERE - 1);
    cr_expect_null(strchr(where, '\33'));
    mc_rank_where(&job, 0, where);
    cr_expect_str_empty(where, "this rank itself");
}
