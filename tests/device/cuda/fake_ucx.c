/*
 * A part of UCX as it is when built with CUDA, before the real one, which is not: with FAKE_UCX_CUDA
 * in the environment it says that it moves memory of GPUs, and does so as a network card would,
 * through the fake of libcuda and the real one's messages. Memory of another type than it is
 * told, a list of pieces of such memory, and a thread that may not call the driver end the process.
 */
#include "fake.h"

#include <dlfcn.h>
#include <stdio.h>

#include <ucp/api/ucp.h>

/* A message of such memory in flight. */
typedef struct {
    void *bytes; /* its copy */
    void *to;    /* of a receive */
    ucp_send_nbx_callback_t sent;
    ucp_tag_recv_nbx_callback_t received;
    void *user;
} moved_t;

static __typeof__(ucp_context_query) *real_query;
static __typeof__(ucp_tag_send_nbx) *real_send;
static __typeof__(ucp_tag_recv_nbx) *real_recv;

static void find(const char *name, void *function)
{
    void *const found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    memcpy(function, &found, sizeof found);
}

__attribute__((constructor)) static void find_all(void)
{
    find("ucp_context_query", &real_query);
    find("ucp_tag_send_nbx", &real_send);
    find("ucp_tag_recv_nbx", &real_recv);
}

FAKE_API ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t *has)
{
    const ucs_status_t status = real_query(context, has);
    if (status == UCS_OK && (has->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES) &&
        getenv("FAKE_UCX_CUDA"))
        has->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
    return status;
}

static void wrong(const char *what)
{
    fprintf(stderr, "a message: %s\n", what);
    abort();
}

static void check_piece(const void *at, size_t bytes, bool on_device)
{
    if (bytes > 0 && fake_is_device(at) != on_device)
        wrong(on_device ? "memory of the host that is said to be a GPU's"
                        : "memory of a GPU that is said to be the host's");
}

/* A context, and leave to call the driver while another thread captures. */
static bool is_ready(void)
{
    mc_cu_context_t context;
    mc_cu_capture_mode_t mode = MC_CU_CAPTURE_RELAXED;
    if (cuCtxGetCurrent(&context) != 0 || cuThreadExchangeStreamCaptureMode(&mode) != 0)
        abort();
    const bool relaxed = mode == MC_CU_CAPTURE_RELAXED;
    if (cuThreadExchangeStreamCaptureMode(&mode) != 0)
        abort();
    return context && relaxed;
}

/* Is it memory of a GPU? */
static bool check(const void *at, size_t count, const ucp_request_param_t *param)
{
    const bool on_device = param->memory_type == UCS_MEMORY_TYPE_CUDA;
    const bool list =
        (param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) && param->datatype == ucp_dt_make_iov();
    const ucp_dt_iov_t *const piece = at;
    if (!(param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE))
        wrong("nothing says what memory it is in");
    if (on_device && list)
        wrong("a list of pieces of memory of a GPU");
    if (on_device && (!is_ready() || !getenv("FAKE_UCX_CUDA")))
        wrong("memory of a GPU by UCX without CUDA, or in a thread that may not call the driver");
    for (size_t i = 0; list && i < count; i++)
        check_piece(piece[i].buffer, piece[i].length, false);
    if (!list)
        check_piece(at, count, on_device);
    return on_device;
}

static _Atomic unsigned n_moved;

unsigned fake_ucx_moved(void)
{
    return n_moved;
}

static moved_t *new_moved(size_t bytes, const ucp_request_param_t *param)
{
    moved_t *const m = calloc(1, sizeof *m);
    if (!m || !(m->bytes = malloc(bytes + 1)))
        abort();
    m->user = param->user_data;
    n_moved++;
    return m;
}

static void free_moved(moved_t *m)
{
    free(m->bytes);
    free(m);
}

static void sent(void *request, ucs_status_t status, void *user)
{
    const moved_t m = *(const moved_t *)user;
    free_moved(user);
    m.sent(request, status, m.user);
}

FAKE_API ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *at, size_t count, ucp_tag_t tag,
                                           const ucp_request_param_t *param)
{
    if (!check(at, count, param))
        return real_send(ep, at, count, tag, param);
    moved_t *const m = new_moved(count, param);
    ucp_request_param_t changed = *param;
    m->sent = param->cb.send;
    changed.memory_type = UCS_MEMORY_TYPE_HOST;
    changed.cb.send = sent;
    changed.user_data = m;
    fake_card_reads(m->bytes, at, count);
    const ucs_status_ptr_t request = real_send(ep, m->bytes, count, tag, &changed);
    if (!UCS_PTR_IS_PTR(request))
        free_moved(m);
    return request;
}

static void received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                     void *user)
{
    const moved_t m = *(const moved_t *)user;
    if (status == UCS_OK)
        fake_card_writes(m.to, m.bytes, info->length);
    free_moved(user);
    m.received(request, status, info, m.user);
}

FAKE_API ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *at, size_t count,
                                           ucp_tag_t tag, ucp_tag_t mask,
                                           const ucp_request_param_t *param)
{
    if (!check(at, count, param))
        return real_recv(worker, at, count, tag, mask, param);
    moved_t *const m = new_moved(count, param);
    ucp_request_param_t changed = *param;
    m->to = at;
    m->received = param->cb.recv;
    changed.memory_type = UCS_MEMORY_TYPE_HOST;
    changed.cb.recv = received;
    changed.user_data = m;
    const ucs_status_ptr_t request = real_recv(worker, m->bytes, count, tag, mask, &changed);
    if (!UCS_PTR_IS_PTR(request))
        free_moved(m);
    return request;
}
