/* Addresses that ranks gather, as packed by their peers: a byte that says how many dimensions have a transport, one for
 * the length of a rank's part in units of 8 bytes, then the parts. */
#include "fuzz/fuzz.h"
#include "runtime/connect/connections.h"

enum { LENGTH = 24 }; /* of an address in memory */

/* Reads all of the address that its transport may read. */
static int read_address(mc_transport_t *t, int32_t rank, const void *address, mc_peer_t **peer)
{
    unsigned char copy[LENGTH];
    (void)rank;
    (void)peer;
    memcpy(copy, (const char *)address + (t->address_least ? t->address_least - 1 : 0),
           t->address_least ? 1 : LENGTH);
    return copy[0] == 0xff ? MESHCOLL_ERR_TRANSPORT : MESHCOLL_ERR_UNSUPPORTED;
}

static const mc_transport_ops_t reading = {.connect = read_address};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_bytes_t bytes = {data, data + size};
    mc_job_t *const job = calloc(1, sizeof *job);
    meshcoll_t h = {.job = job};
    mc_transport_t t[3];
    mc_peer_t *peer;
    const uint8_t which = fuzz_byte(&bytes);
    FUZZ_CHECK(job && mc_mesh_parse("a=2,b=2,c=2", &job->mesh) == MESHCOLL_OK, "a mesh");
    for (int d = 0; d < 3; d++) {
        t[d] = (mc_transport_t){.ops = &reading,
                                .address_bytes = LENGTH,
                                .address_least = which >> d & 1 ? MC_TRANSPORT_WHERE + 1 : 0};
        job->connections.transport[d] = which >> (3 + d) & 1 ? NULL : &t[d];
    }
    job->connections.address_stride = (size_t)fuzz_byte(&bytes) % 32 * 8;
    job->connections.addresses =
        malloc(job->connections.address_stride * (size_t)job->mesh.size + 1);
    FUZZ_CHECK(job->connections.addresses, "no memory");
    fuzz_fill(&bytes, job->connections.addresses,
              job->connections.address_stride * (size_t)job->mesh.size);
    if (mc_addresses_check_bytes(job->connections.address_stride) == MESHCOLL_OK &&
        mc_addresses_check(job) == MESHCOLL_OK)
        for (int32_t r = 1; r < job->mesh.size; r++)
            if (job->connections.transport[mc_mesh_level(&job->mesh, 0, r)])
                (void)mc_handle_link(&h, r, &peer);
    free(job->connections.addresses);
    free(job->connections.peer);
    free(job);
    return 0;
}
