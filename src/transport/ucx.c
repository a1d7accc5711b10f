#include "transport/ucx.h"

#include "base/number.h"
#include "base/system/descriptor.h"
#include "base/system/ports.h"
#include "transport/ucx_names.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

/* The executor passes its scatter lists to UCX unchanged. */
_Static_assert(sizeof(mc_span_t) == sizeof(ucp_dt_iov_t), "spans are UCX's scatter lists");
_Static_assert(offsetof(mc_span_t, at) == offsetof(ucp_dt_iov_t, buffer), "the address is first");
_Static_assert(offsetof(mc_span_t, bytes) == offsetof(ucp_dt_iov_t, length), "the length is last");

typedef struct link {
    mc_peer_t peer;
    ucp_ep_h ep;
    struct link *next;
    char where[MC_TRANSPORT_WHERE]; /* the peer is */
} link_t;

/* The receive that is always posted for the next header of any rank. One, so that headers are handled
 * in the order in which they match. */
typedef struct {
    mc_listener_t listener;
    void *request; /* in flight; NULL: none */
    bool complete;
    ucs_status_t status;
    uint64_t tag;
    size_t bytes;
    char header[MC_HEADER_BYTES];
} headers_t;

typedef struct {
    mc_transport_t transport;
    headers_t *headers; /* NULL: nobody listens */
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address; /* UCX's part */
    char *whole;            /* what peers are told: where this rank is, and that */
    link_t *links;
    void *flush; /* in flight; NULL: none */
    bool failed; /* its mesh did, so that operations are left in flight */
    char dim[32];
} ucx_t;

static int fail_ucx(const ucx_t *ucx, const char *what, ucs_status_t status)
{
    return mc_fail(MESHCOLL_ERR_TRANSPORT, "UCX for dimension %s: %s: %s", ucx->dim, what,
                   ucs_status_string(status));
}

static ucx_t *ucx_of(mc_transport_t *t)
{
    return (ucx_t *)t;
}

static bool is_on_loopback(const char *where)
{
    const size_t n = strlen(where);
    return n > 4 && strcmp(where + n - 4, ", lo") == 0;
}

/* UCX reports an endpoint that it could not connect, or that has closed, as a timeout. */
static int fail_link(const char *what, int32_t rank, const char *where, ucs_status_t status)
{
    char reason[400];
    mc_text_t text = mc_text(reason, sizeof reason);
    if (status != UCS_ERR_ENDPOINT_TIMEOUT && status != UCS_ERR_UNREACHABLE)
        mc_text_add(&text, "%s", ucs_status_string(status));
    else if (is_on_loopback(where))
        mc_text_add(&text,
                    "UCX's TCP takes no address of lo but 127.0.0.1: give it to the interface that "
                    "leads to the "
                    "other hosts as well, as in `ip addr add %.*s/32 dev eth0`",
                    (int)strcspn(where, ","), where);
    else
        mc_text_add(&text, "its address cannot be reached from here, or the connection has closed "
                           "(network interfaces: "
                           "MESHCOLL_NET_DEVICES; ports: MESHCOLL_PORTS; none free here: sysctl "
                           "net.ipv4.ip_local_port_range)");
    return mc_fail(MESHCOLL_ERR_TRANSPORT, "UCX%s rank %d%s%s%s: %s", what, rank,
                   *where ? " (" : "", where, *where ? ")" : "", reason);
}

static int ucx_connect(mc_transport_t *t, int32_t rank, const void *address, mc_peer_t **peer)
{
    ucx_t *const ucx = ucx_of(t);
    link_t *const link = calloc(1, sizeof *link);
    if (!link)
        return mc_fail_memory("a connection");
    const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                    .address =
                                        (const void *)((const char *)address + MC_TRANSPORT_WHERE)};
    memcpy(link->where, address, sizeof link->where - 1);
    mc_text_clean(link->where);
    if (!mc_sockets_are_moved())
        mc_descriptor_fill(); /* else it would connect and accept there */
    const ucs_status_t status = ucp_ep_create(ucx->worker, &params, &link->ep);
    if (status != UCS_OK) {
        char what[sizeof ucx->dim + 48];
        snprintf(what, sizeof what, " for dimension %s: cannot connect to", ucx->dim);
        const int failed = fail_link(what, mc_transport_known_as(t, rank), link->where, status);
        free(link);
        return failed;
    }
    link->peer = (mc_peer_t){.transport = t, .rank = rank};
    link->next = ucx->links;
    ucx->links = link;
    *peer = &link->peer;
    return MESHCOLL_OK;
}

static void sent(void *request, ucs_status_t status, void *io)
{
    const mc_io_t *const to = io;
    mc_io_finish(io, status == UCS_OK
                         ? MESHCOLL_OK
                         : fail_link(": a send failed to", to->from, to->where, status));
    ucp_request_free(request);
}

/* Compares the length that arrived with the length expected. */
static int check_received(ucs_status_t status, size_t bytes, const mc_io_t *io)
{
    if ((status == UCS_OK || status == UCS_ERR_MESSAGE_TRUNCATED) && bytes != io->awaited)
        return mc_fail(
            MESHCOLL_ERR_MISMATCH,
            "a message of %zu bytes arrived from rank %d where %zu were expected: do the "
            "ranks agree about the count?",
            bytes, io->from, io->awaited);
    if (status != UCS_OK)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "UCX: a receive from rank %d failed: %s", io->from,
                       ucs_status_string(status));
    return MESHCOLL_OK;
}

static void received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *io)
{
    mc_io_finish(io, check_received(status, info->length, io));
    ucp_request_free(request);
}

/* UCX before 1.16 crashes on lists of pieces of memory of GPUs (openucx/ucx issue 9514). */
static ucp_request_param_t param_of(const mc_message_t *m, mc_io_t *io)
{
    const bool list = m->n_spans > 1;
    return (ucp_request_param_t){
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .datatype = list ? ucp_dt_make_iov() : ucp_dt_make_contig(1),
        .memory_type = m->on_device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST,
        .user_data = io,
    };
}

static int started(const ucx_t *ucx, const char *what, ucs_status_ptr_t request)
{
    if (!request)
        return MESHCOLL_OK;
    if (UCS_PTR_IS_ERR(request))
        return fail_ucx(ucx, what, UCS_PTR_STATUS(request));
    return MESHCOLL_IN_PROGRESS;
}

static int ucx_send(mc_peer_t *peer, const mc_message_t *m, mc_io_t *io)
{
    ucp_request_param_t param = param_of(m, io);
    param.cb.send = sent;
    io->from = mc_transport_known_as(peer->transport, peer->rank);
    io->where = ((const link_t *)peer)->where;
    const bool list = m->n_spans > 1;
    const ucs_status_ptr_t request =
        ucp_tag_send_nbx(((link_t *)peer)->ep, list ? (void *)m->span : m->span->at,
                         list ? m->n_spans : m->bytes, m->tag, &param);
    if (UCS_PTR_IS_ERR(request))
        return fail_link(": cannot send to", io->from, io->where, UCS_PTR_STATUS(request));
    return request ? MESHCOLL_IN_PROGRESS : MESHCOLL_OK;
}

static int ucx_recv(mc_peer_t *peer, const mc_message_t *m, mc_io_t *io)
{
    ucx_t *const ucx = ucx_of(peer->transport);
    ucp_request_param_t param = param_of(m, io);
    /* UCX 1.13 passes the message's length to the callback, but does not return it from an
     * immediate completion. */
    param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.cb.recv = received;
    io->from = mc_transport_known_as(peer->transport, peer->rank);
    io->awaited = m->bytes;
    const bool list = m->n_spans > 1;
    return started(ucx, "cannot receive",
                   ucp_tag_recv_nbx(ucx->worker, list ? (void *)m->span : m->span->at,
                                    list ? m->n_spans : m->bytes, m->tag, ~UINT64_C(0), &param));
}

/* A send may complete while its tail is still in UCX's buffer because the socket was full. Flushing
 * the worker drains its interfaces (FLUSH_WORKER_EPS=n below). Flushing the endpoint would need an
 * answer from the peer, which may have left already. */
static int ucx_flush(mc_transport_t *t)
{
    const ucp_request_param_t param = {0};
    const ucs_status_ptr_t request = ucp_worker_flush_nbx(ucx_of(t)->worker, &param);
    const int status = started(ucx_of(t), "cannot flush", request);
    ucx_of(t)->flush = status == MESHCOLL_IN_PROGRESS ? request : NULL;
    return status;
}

static int ucx_flushed(mc_transport_t *t)
{
    const ucs_status_t status = ucp_request_check_status(ucx_of(t)->flush);
    if (status == UCS_INPROGRESS)
        return MESHCOLL_IN_PROGRESS;
    ucp_request_free(ucx_of(t)->flush);
    ucx_of(t)->flush = NULL;
    return status == UCS_OK ? MESHCOLL_OK : fail_ucx(ucx_of(t), "a flush failed", status);
}

/* Listening ------------------------------------------------------------------------------------ */

static void header_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                            void *data)
{
    headers_t *const r = data;
    r->complete = true;
    r->status = status;
    r->tag = info->sender_tag;
    r->bytes = info->length;
    r->request = NULL;
    ucp_request_free(request);
}

static int post_header(ucx_t *ucx)
{
    headers_t *const r = ucx->headers;
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .memory_type = UCS_MEMORY_TYPE_HOST,
        .cb.recv = header_received,
        .user_data = r,
    };
    r->complete = false;
    const ucs_status_ptr_t request =
        ucp_tag_recv_nbx(ucx->worker, r->header, sizeof r->header, mc_tag(0, MC_TAG_MESSAGE, 0),
                         mc_tag_header_bits(), &param);
    const int status = started(ucx, "cannot receive headers", request);
    if (status == MESHCOLL_IN_PROGRESS && !r->complete)
        r->request = request;
    return status < 0 ? status : MESHCOLL_OK;
}

static int ucx_listen(mc_transport_t *t, const mc_listener_t *listener)
{
    ucx_t *const ucx = ucx_of(t);
    ucx->headers = calloc(1, sizeof *ucx->headers);
    if (!ucx->headers)
        return mc_fail_memory("a listener");
    ucx->headers->listener = *listener;
    return post_header(ucx);
}

static uint32_t handle_headers(ucx_t *ucx)
{
    headers_t *const r = ucx->headers;
    uint32_t n = 0;
    while (r->complete) {
        const bool fits = r->status == UCS_OK && r->bytes == sizeof r->header;
        if (!fits)
            mc_fail(MESHCOLL_ERR_TRANSPORT,
                    "UCX for dimension %s: a header of %zu bytes was expected, got %zu (%s)",
                    ucx->dim, sizeof r->header, r->bytes, ucs_status_string(r->status));
        if (!r->listener.handle(r->listener.context, r->tag, fits ? r->header : NULL))
            break;
        n++;
        r->complete = false;
        if (fits && post_header(ucx))
            r->listener.handle(r->listener.context, 0, NULL);
    }
    return n;
}

/* A receive of a header that has begun to come cannot be cancelled: it keeps its memory until the worker has gone, and
 * nobody waits for the rest, whose sender may be stopped. */
static void stop_listening(const ucx_t *ucx)
{
    if (ucx->headers && ucx->headers->request)
        ucp_request_cancel(ucx->worker, ucx->headers->request);
}

static uint32_t ucx_progress(mc_transport_t *t)
{
    ucx_t *const ucx = ucx_of(t);
    const uint32_t n = ucp_worker_progress(ucx->worker);
    return ucx->headers ? n + handle_headers(ucx) : n;
}

static int ucx_arm(mc_transport_t *t)
{
    const ucs_status_t status = ucp_worker_arm(ucx_of(t)->worker);
    if (status == UCS_ERR_BUSY)
        return MESHCOLL_IN_PROGRESS;
    return status == UCS_OK ? MESHCOLL_OK : fail_ucx(ucx_of(t), "cannot arm its events", status);
}

/* UCX finds only the oldest of those that match in these bits; but all that a rank sends for one call have the same
 * digest. */
static bool ucx_differs(mc_transport_t *t, uint64_t tag, uint64_t *other)
{
    static const uint64_t kind[] = {0, MC_TAG_CREDIT, MC_TAG_LAST};
    const uint64_t bits = mc_tag_alike_bits(tag) | MC_TAG_CREDIT | MC_TAG_LAST;
    bool found = false;
    for (size_t i = 0; i < MC_COUNT(kind) && !found; i++) {
        ucp_tag_recv_info_t info;
        found = ucp_tag_probe_nb(ucx_of(t)->worker, tag | kind[i], bits, 0, &info) &&
                mc_tag_differs(info.sender_tag, tag);
        if (found)
            *other = info.sender_tag;
    }
    return found;
}

static void ucx_abandon(mc_transport_t *t, const char *why)
{
    (void)why;
    ucx_of(t)->failed = true;
}

static ucs_log_func_rc_t say_nothing(const char *file, unsigned line, const char *function,
                                     ucs_log_level_t level,
                                     const ucs_log_component_config_t *component,
                                     const char *message, va_list args)
{
    (void)file, (void)line, (void)function, (void)component, (void)message, (void)args;
    return level == UCS_LOG_LEVEL_WARN ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
}

/* UCX warns of each operation that a failed mesh has left in flight. */
static void destroy_worker(const ucx_t *ucx)
{
    if (ucx->failed) {
        /* UCX sends a farewell over each, and where a peer's machine is down it would try for ever */
        mc_sockets_shut(ucx->transport.fd);
        ucs_log_push_handler(say_nothing);
    }
    if (ucx->worker)
        ucp_worker_destroy(ucx->worker);
    if (ucx->context)
        ucp_cleanup(ucx->context);
    if (ucx->failed)
        ucs_log_pop_handler();
}

/* Destroying the worker destroys its endpoints. Closing each endpoint would flush it, which
 * needs progress by peers that make none any more; nothing is in flight here. */
static void ucx_close(mc_transport_t *t)
{
    ucx_t *const ucx = ucx_of(t);
    stop_listening(ucx);
    while (ucx->links) {
        link_t *const link = ucx->links;
        ucx->links = link->next;
        free(link);
    }
    if (ucx->flush)
        ucp_request_free(ucx->flush);
    if (ucx->address)
        ucp_worker_release_address(ucx->worker, ucx->address);
    destroy_worker(ucx);
    free(ucx->whole);
    free(ucx->headers);
    free(ucx);
}

/* Sets TCP_…; before 1.14 the name in a configuration lacks its table's prefix (openucx/ucx issue 8649). A variable
 * holds. */
static ucs_status_t configure_tcp(const char *name, const char *value, ucp_config_t *config)
{
    char variable[32];
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    snprintf(variable, sizeof variable, "UCX_TCP_%s", name);
    if (getenv(variable))
        return UCS_OK;
    return ucp_config_modify(config, major == 1 && minor < 14 ? name : variable + 4, value);
}

/* `devices`: NULL for those of UCX_NET_DEVICES, or all.
 *
 * TCP gets fragments of 128 KiB: those of 64 KiB, its default, cost a third more at 1 MiB (docs/lab-notes/network.md).
 *
 * TCP gets one rail. UCX would open a second one for rendezvous over another interface, and its handshake may need
 * the peer after that has received all messages on the first and has left: a flush would wait for it. */
static ucs_status_t configure(const char *tls, const char *devices, bool streams,
                              const mc_ports_t *ports, ucp_config_t *config)
{
    ucs_status_t status = ucp_config_modify(config, "TLS", tls);
    if (status == UCS_OK && devices)
        status = ucp_config_modify(config, "NET_DEVICES", devices);
    if (status == UCS_OK)
        status = ucp_config_modify(config, "FLUSH_WORKER_EPS", "n");
    if (status == UCS_OK && streams)
        status = ucp_config_modify(config, "RNDV_THRESH", "inf");
    if (status == UCS_OK && (mc_ucx_streams(tls) || mc_ucx_names_tcp(tls)))
        status = ucp_config_modify(config, "MAX_RNDV_RAILS", "1");
    if (status == UCS_OK && mc_ucx_has_tcp(tls))
        status = configure_tcp("CONN_NB", "y", config);
    if (status == UCS_OK && mc_ucx_has_tcp(tls))
        status = configure_tcp("RX_SEG_SIZE", "128k", config);
    if (status == UCS_OK && mc_ucx_has_tcp(tls) && ports->first) {
        char range[16];
        snprintf(range, sizeof range, "%u-%u", (unsigned)ports->first, (unsigned)ports->last);
        status = configure_tcp("PORT_RANGE", range, config);
    }
    return status;
}

static int open_context(ucx_t *ucx, const mc_ucx_params_t *params)
{
    char tls[256];
    ucp_config_t *config;
    const char *const at = strchr(params->tls, '@'), *const devices = at ? at + 1 : NULL;
    snprintf(tls, sizeof tls, "%.*s", (int)strcspn(params->tls, "@"), params->tls);
    mc_ports_t ports;
    if (mc_ports_read(&ports))
        return MESHCOLL_ERR_INVALID_ARG;
    if (mc_ucx_check_devices(tls, devices, ucx->dim))
        return MESHCOLL_ERR_TRANSPORT;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return fail_ucx(ucx, "cannot read its configuration", status);
    ucx->transport.streams = mc_ucx_streams(params->tls) && !getenv("UCX_RNDV_THRESH");
    status = configure(tls, devices, ucx->transport.streams, &ports, config);
    const ucp_params_t p = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                            .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP};
    if (status == UCS_OK)
        status = ucp_init(&p, config, &ucx->context);
    ucp_config_release(config);
    if (status != UCS_OK)
        return mc_fail(MESHCOLL_ERR_TRANSPORT,
                       "UCX for dimension %s: cannot use transports '%s': %s; `ucx_info -d` lists "
                       "those of this machine, MESHCOLL_TRANSPORTS=\"%s=…\" selects some",
                       ucx->dim, params->tls, ucs_status_string(status), ucx->dim);
    return MESHCOLL_OK;
}

static int set_address(ucx_t *ucx, const char *where)
{
    size_t bytes = 0;
    const ucs_status_t status = ucp_worker_get_address(ucx->worker, &ucx->address, &bytes);
    if (status != UCS_OK)
        return fail_ucx(ucx, "cannot get the worker's address", status);
    ucx->whole = calloc(1, MC_TRANSPORT_WHERE + bytes);
    if (!ucx->whole)
        return mc_fail_memory("an address");
    snprintf(ucx->whole, MC_TRANSPORT_WHERE, "%s", where ? where : "");
    memcpy(ucx->whole + MC_TRANSPORT_WHERE, ucx->address, bytes);
    ucx->transport.address = ucx->whole;
    ucx->transport.address_least = MC_TRANSPORT_WHERE + 1;
    ucx->transport.address_bytes = MC_TRANSPORT_WHERE + bytes;
    return MESHCOLL_OK;
}

static int open_worker(ucx_t *ucx, bool threads, const char *where)
{
    const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = threads ? UCS_THREAD_MODE_SERIALIZED
                                                               : UCS_THREAD_MODE_SINGLE};
    ucs_status_t status = ucp_worker_create(ucx->context, &params, &ucx->worker);
    if (status != UCS_OK)
        return fail_ucx(ucx, "cannot create a worker", status);
    const int failed = set_address(ucx, where);
    if (failed)
        return failed;
    /* Without an event descriptor a waiting rank polls. */
    if (ucp_worker_get_efd(ucx->worker, &ucx->transport.fd) != UCS_OK)
        ucx->transport.fd = -1;
    return MESHCOLL_OK;
}

/* Signals -------------------------------------------------------------------------------------- */

/* If UCX handles this signal, restores the action from before UCX was loaded. */
static void give_back(int number)
{
    struct sigaction action;
    Dl_info handler, ucx;
    void (*const known)(int) = ucs_debug_disable_signal;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
        action.sa_handler != SIG_IGN && dladdr((void *)action.sa_handler, &handler) &&
        dladdr((void *)known, &ucx) && handler.dli_fbase == ucx.dli_fbase)
        ucs_debug_disable_signal(number);
}

/*
 * UCX before 1.20 installs handlers for error signals and SIGHUP when it is loaded, which happens
 * when this library is loaded. A crash of the program would then be reported by UCX, and closing
 * the terminal would not end it. As UCX is a dependency, it has been loaded when this constructor
 * runs. Handlers that the user requests from UCX stay.
 */
__attribute__((constructor)) static void give_back_signals(void)
{
    static const int errors[] = {SIGILL, SIGBUS, SIGFPE, SIGSEGV};
    const bool asked = getenv("UCX_HANDLE_ERRORS") || getenv("UCX_ERROR_SIGNALS");
    for (size_t i = 0; !asked && i < MC_COUNT(errors); i++)
        give_back(errors[i]);
    if (!getenv("UCX_DEBUG_SIGNO"))
        give_back(SIGHUP);
}

static const mc_transport_ops_t ucx_ops = {.connect = ucx_connect,
                                           .send = ucx_send,
                                           .recv = ucx_recv,
                                           .listen = ucx_listen,
                                           .flush = ucx_flush,
                                           .flushed = ucx_flushed,
                                           .arm = ucx_arm,
                                           .progress = ucx_progress,
                                           .differs = ucx_differs,
                                           .abandon = ucx_abandon,
                                           .close = ucx_close};

/* Was UCX built with CUDA, and does the context's list of transports leave it that? */
static bool moves_device_memory(const ucx_t *ucx)
{
    ucp_context_attr_t has = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};
    return ucp_context_query(ucx->context, &has) == UCS_OK &&
           (has.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
}

int mc_ucx_create(const mc_ucx_params_t *params, mc_transport_t **transport)
{
    ucx_t *const ucx = calloc(1, sizeof *ucx);
    if (!ucx)
        return mc_fail_memory("a transport");
    ucx->transport = (mc_transport_t){.ops = &ucx_ops, .greets = true, .fd = -1};
    snprintf(ucx->dim, sizeof ucx->dim, "%s", params->dim);
    mc_descriptor_fill(); /* UCX makes descriptors of several kinds */
    /* its parser folds case by the locale: in Turkish ones "diag" is not "DIAG" */
    const locale_t before = mc_number_enter();
    int status = open_context(ucx, params);
    if (!status)
        status = open_worker(ucx, params->threads, params->where);
    mc_number_leave(before);
    if (status) {
        ucx_close(&ucx->transport);
        return status;
    }
    ucx->transport.moves_device_memory = moves_device_memory(ucx);
    *transport = &ucx->transport;
    return MESHCOLL_OK;
}
