#include "runtime/execute/executor.h"

void mc_flush_start(mc_executor_t *x)
{
    x->idle_polls = 0;
    for (uint32_t p = 0; p < x->n_ports && x->state == MC_FLUSHING; p++) {
        mc_transport_t *const t = x->port[p].transport;
        const int status =
            t->ops->flush ? t->ops->flush(t, !x->shared, &x->port[p].flush) : MESHCOLL_OK;
        if (status < 0)
            mc_executor_fail(x, status);
        else if (status == MESHCOLL_IN_PROGRESS)
            x->n_left++;
    }
}

static void drop(mc_port_t *port)
{
    port->transport->ops->drop_flush(port->transport, port->flush);
    port->flush = NULL;
}

void mc_flush_poll(mc_executor_t *x)
{
    const bool given_up = x->shared && x->idle_polls > x->polls_awake + MC_FLUSH_SLEEPS;
    for (uint32_t p = 0; p < x->n_ports; p++) {
        mc_port_t *const port = &x->port[p];
        if (!port->flush)
            continue;
        const int status = port->transport->ops->flushed(port->transport, port->flush);
        if (status == MESHCOLL_IN_PROGRESS && !given_up)
            continue;
        if (status == MESHCOLL_IN_PROGRESS)
            drop(port);
        port->flush = NULL;
        x->n_left--;
        if (status < 0)
            mc_executor_fail(x, status);
    }
}

void mc_flush_drop(mc_executor_t *x)
{
    for (uint32_t p = 0; p < x->n_ports; p++)
        if (x->port[p].flush)
            drop(&x->port[p]);
}
