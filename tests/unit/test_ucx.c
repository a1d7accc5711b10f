/* Which transports of UCX take a send without its receiver, by their names. */
#include "transport/ucx.h"

#include <criterion/criterion.h>
#include <unistd.h>

Test(ucx, tcp_streams_and_rdma_does_not)
{
    static const char *const yes[] = {"tcp,self", "self,tcp", "^sm", "tcp,cuda_copy,cuda_ipc"};
    static const char *const no[] = {"rc,tcp",     "tcp,rc_x", "ud_verbs,tcp,self", "ib",
                                     "shm,memory", "^tcp",     "self,tcpx",         ""};
    const bool rdma = access("/sys/class/infiniband", F_OK) == 0; /* that TCP may go over */
    for (size_t i = 0; i < MC_COUNT(yes); i++)
        cr_expect_eq(mc_ucx_streams(yes[i]), !rdma, "%s", yes[i]);
    for (size_t i = 0; i < MC_COUNT(no); i++)
        cr_expect_not(mc_ucx_streams(no[i]), "%s", no[i]);
}
