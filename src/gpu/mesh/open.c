/* Making a mesh's state for calls on device memory, and freeing it. */

#include "gpu/cuda/driver.h"
#include "gpu/mesh/gpu.h"
#include "gpu/mesh/meeting.h"
#include "gpu/stream/signals.h"
#include "job/monitor/monitor.h"
#include "runtime/progress/failure.h"

#include <stdlib.h>
#include <string.h>

/* BLOCKS: of a kernel, so many that they keep an NVLink busy by published figures, and few enough to
 * leave a GPU to the program. ARENA_BYTES: slots of all peers together; no card was measured yet.
 * LL_PART: a slot for messages with flags in their data takes that part of another one, besides. */
enum { BLOCKS = 16, ARENA_BYTES = 64 << 20, MOST_BLOCKS = 1024, LL_PART = 8 };
/* Where strategies have several tracks (gpu/program/tracks.h), of which each has a part of the blocks and of the slots:
 * as many blocks as NCCL takes at most, and slots that make messages long enough by bench/tracks. */
enum { BLOCKS_OF_TRACKS = 2 * BLOCKS, ARENA_OF_TRACKS = 4 * ARENA_BYTES };

/* The alarm --------------------------------------------------------------------------------------- */

static int open_alarm(mc_job_t *job, mc_cu_context_t context)
{
    mc_gpu_job_t *const j = mc_gpu_job(job);
    void *word;
    if (!j)
        return MESHCOLL_ERR_NO_MEMORY;
    if (j->alarm.word)
        return MESHCOLL_OK;
    const int status = mc_cuda_pinned(sizeof *j->alarm.word, &word, &j->alarm.address);
    if (status)
        return status;
    j->alarm.word = word;
    j->alarm.context = context;
    mc_news_also(mc_monitor_board(job->monitor), j->alarm.word);
    return MESHCOLL_OK;
}

/* Kernels of a mesh that failed may still look at it. */
void mc_gpu_shared_free(const mc_job_t *job)
{
    const mc_gpu_job_t *const j = job->gpu;
    mc_gpu_visit_t visit;
    if (j->alarm.word && !job->failure.status && !mc_gpu_visit(j->alarm.context, &visit)) {
        mc_cuda()->host_free((void *)j->alarm.word);
        if (j->module)
            mc_cuda()->module_unload(j->module);
        mc_gpu_leave(&visit);
    }
}

/* Opening, before ranks meet ---------------------------------------------------------------------- */

/* A number from the environment, each rank's own; the smallest of all ranks holds. */
static int read_number(const char *name, unsigned long least, unsigned long most, uint32_t *number)
{
    const char *const text = getenv(name);
    char *end = NULL;
    const unsigned long n = text ? strtoul(text, &end, 10) : 0;
    if (!text || !*text)
        return MESHCOLL_OK;
    if (*end || n < least || n > most)
        return mc_fail(MESHCOLL_ERR_PARSE, "%s: expected a number from %lu to %lu, got '%s'", name,
                       least, most, text);
    *number = (uint32_t)n;
    return MESHCOLL_OK;
}

static int read_executor(uint32_t *executor)
{
    const char *const text = getenv("MESHCOLL_GPU_EXECUTOR");
    *executor = MC_GPU_ANY;
    if (!text || !*text)
        return MESHCOLL_OK;
    if (strcmp(text, "kernel") != 0 && strcmp(text, "stream") != 0)
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "MESHCOLL_GPU_EXECUTOR: expected kernel or stream, got '%s'", text);
    *executor = *text == 'k' ? MC_GPU_KERNEL : MC_GPU_STREAM;
    return MESHCOLL_OK;
}

int mc_gpu_check_ranks(const meshcoll_t *h)
{
    if (!h->job->monitor || !h->machine)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "calls on device memory need a process for each rank; all ranks of this "
                       "mesh are in one");
    return MESHCOLL_OK;
}

/* The meshes of a job share them: a driver may wait for all that the GPU runs to load a module. */
static int load_kernels(mc_gpu_job_t *j, mc_gpu_t *gpu)
{
    const bool shares = j->alarm.context == gpu->context;
    int status = MESHCOLL_OK;
    if (!shares || !j->module)
        status = mc_cuda_status(mc_cuda()->module_load(&gpu->module, mc_cuda_image()),
                                "load meshcoll's kernels");
    else
        gpu->module = j->module;
    if (!status && shares)
        j->module = gpu->module;
    return status;
}

/* What needs no other rank: kernels, stream, events. */
static int open_kernels(mc_gpu_job_t *j, mc_gpu_t *gpu)
{
    const mc_cuda_t *const cuda = mc_cuda();
    int status = mc_cuda_status(cuda->context_device(&gpu->device), "tell its number");
    if (!status)
        status = load_kernels(j, gpu);
    if (!status)
        status = mc_cuda_status(cuda->stream_create(&gpu->stream, MC_CU_STREAM_NON_BLOCKING),
                                "make a stream");
    if (!status)
        status =
            mc_cuda_status(cuda->event_create(&gpu->done, MC_CU_EVENT_NO_TIMING), "make an event");
    if (!status)
        status = mc_cuda_status(cuda->event_create(&gpu->passed, MC_CU_EVENT_NO_TIMING),
                                "make an event");
    return status;
}

static bool shares_line(const mc_mesh_t *mesh, int32_t a, int32_t b)
{
    int32_t x[MC_MAX_DIMS], y[MC_MAX_DIMS], n = 0;
    mc_mesh_coords(mesh, a, x);
    mc_mesh_coords(mesh, b, y);
    for (int32_t d = 0; d < mesh->ndims; d++)
        n += x[d] != y[d];
    return n == 1;
}

/* Ranks whose slots share ARENA_BYTES: those of this machine, which all have some, and of others those that
 * composed strategies send to. */
static uint32_t count_peers(const meshcoll_t *h)
{
    uint32_t n = 0;
    for (int32_t r = 0; r < h->mesh.size; r++)
        n += r != h->rank && (!mc_proxy_is_far(h, r) || shares_line(&h->mesh, h->rank, r));
    return n;
}

static bool has_tracks(const mc_mesh_t *mesh)
{
    int32_t n = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        n += mesh->dim[d].extent > 1;
    return n > 1;
}

/* How many blocks it runs at once, and what slots take. */
static int measure(const meshcoll_t *h, mc_gpu_t *gpu, mc_gpu_note_t *note)
{
    const uint32_t peers = count_peers(h);
    const bool tracks = has_tracks(&h->mesh);
    const mc_cuda_t *const cuda = mc_cuda();
    int processors = 0;
    int status = mc_cuda_status(
        cuda->device_attribute(&processors, MC_CU_MULTIPROCESSORS, gpu->device), "be measured");
    if (!status)
        status = mc_cuda_status(cuda->device_uuid(&note->uuid, gpu->device), "tell its name");
    note->blocks = tracks ? BLOCKS_OF_TRACKS : BLOCKS;
    if (!status)
        status = read_number("MESHCOLL_GPU_BLOCKS", 1, MOST_BLOCKS, &note->blocks);
    if (status)
        return status;
    if (note->blocks > (uint32_t)processors) /* all blocks must run at once */
        note->blocks = (uint32_t)processors;
    const uint32_t lanes = (peers > 0 ? peers : 1) * note->blocks * MC_DEVICE_SLOTS;
    const uint32_t share = (tracks ? ARENA_OF_TRACKS : ARENA_BYTES) / lanes;
    note->slot_bytes = share < MC_DEVICE_SLOT_BYTES ? share : MC_DEVICE_SLOT_BYTES;
    status =
        read_number("MESHCOLL_GPU_SLOT", MC_DEVICE_WORD, MC_DEVICE_SLOT_BYTES, &note->slot_bytes);
    note->slot_bytes -= note->slot_bytes % MC_DEVICE_WORD;
    note->ll_bytes = note->slot_bytes / LL_PART;
    if (!status)
        status = read_number("MESHCOLL_GPU_LL_SLOT", 0, MC_DEVICE_SLOT_BYTES, &note->ll_bytes);
    note->ll_bytes -= note->ll_bytes % MC_DEVICE_WORD;
    return status;
}

static int open_alone(meshcoll_t *h, const mc_pointer_t *buffer, mc_gpu_t *gpu,
                      mc_gpu_visit_t *visit, mc_gpu_note_t *note)
{
    int status = mc_cuda_check();
    if (!status && !mc_cuda_image())
        status =
            mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                    "this meshcoll has no kernels for GPUs, as it was built without nvcc or "
                    "without a GPU: build it with -DMESHCOLL_CUDA=ON where the CUDA toolkit is");
    if (!status)
        status = mc_gpu_context(buffer, &gpu->context);
    if (!status)
        status = mc_gpu_visit(gpu->context, visit);
    if (!status)
        status = open_alarm(h->job, gpu->context);
    if (!status)
        status = open_kernels(h->job->gpu, gpu);
    if (!status)
        status = measure(h, gpu, note);
    if (!status)
        status = read_executor(&note->executor);
    if (status || !mc_proxy_is_needed(h))
        return status;
    status = mc_proxy_open(h);
    if (status)
        return status;
    note->address_bytes = (uint32_t)mc_proxy_address_bytes(h);
    note->direct = mc_proxy_is_direct(h, gpu->context);
    return MESHCOLL_OK;
}

/* Opening, together ------------------------------------------------------------------------------- */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static bool same_gpu(const mc_gpu_meeting_t *m, int32_t a, int32_t b)
{
    return m->mesh->machine[a] == m->mesh->machine[b] &&
           memcmp(&mc_gpu_note(m, a)->uuid, &mc_gpu_note(m, b)->uuid, sizeof(mc_cu_uuid_t)) == 0;
}

/* Two ranks on one GPU; false: there are none. */
static bool find_shared(const mc_gpu_meeting_t *m, int32_t *a, int32_t *b)
{
    const int32_t n = m->mesh->mesh.size;
    for (*a = 0; *a < n; ++*a)
        for (*b = *a + 1; *b < n; ++*b)
            if (same_gpu(m, *a, *b))
                return true;
    return false;
}

/* The stream executor runs programs where a rank asks for it, or where two ranks share a GPU: kernels of
 * two processes do not run at once there, and wait for each other. */
static int choose_executor(const mc_gpu_meeting_t *m, bool *streams)
{
    int32_t a = 0, b = 0;
    bool asks_stream = false, asks_kernel = false;
    for (int32_t r = 0; r < m->mesh->mesh.size; r++) {
        asks_stream = asks_stream || mc_gpu_note(m, r)->executor == MC_GPU_STREAM;
        asks_kernel = asks_kernel || mc_gpu_note(m, r)->executor == MC_GPU_KERNEL;
    }
    const bool shared = find_shared(m, &a, &b);
    *streams = asks_stream || shared;
    if (*streams && mc_proxy_is_needed(m->mesh))
        return mc_fail(
            MESHCOLL_ERR_UNSUPPORTED,
            "the ranks are on several machines, and %s: expected a GPU for each rank, and "
            "MESHCOLL_GPU_EXECUTOR not to be stream, which works within one machine only",
            shared ? "two of them use the same GPU" : "a rank asks for the stream executor");
    if (!shared || !asks_kernel)
        return MESHCOLL_OK;
    return mc_fail(
        MESHCOLL_ERR_UNSUPPORTED,
        "ranks %d and %d use the same GPU, and MESHCOLL_GPU_EXECUTOR is kernel: expected "
        "a GPU for each rank, or another executor, as kernels of two processes do not "
        "run at once",
        (int)mc_comm_rank_of(&m->mesh->order, a), (int)mc_comm_rank_of(&m->mesh->order, b));
}

/* Of the stream executor: lanes of one block, whose slot is as large as those of all blocks. */
static int take_streams(mc_gpu_t *gpu)
{
    mc_gpu_layout_t *const l = &gpu->arena.layout;
    gpu->signals = calloc(1, sizeof *gpu->signals);
    if (!gpu->signals)
        return mc_fail_memory("signals of streams");
    gpu->signals->blocks = l->blocks;
    l->slot_bytes *= l->blocks;
    l->blocks = 1;
    return MESHCOLL_OK;
}

static int agree(const mc_gpu_meeting_t *m, mc_gpu_t *gpu)
{
    const int32_t n = m->mesh->mesh.size;
    mc_gpu_layout_t l = {.rank = m->mesh->rank,
                         .ranks = n,
                         .blocks = m->own->blocks,
                         .slot_bytes = m->own->slot_bytes,
                         .ll_bytes = mc_proxy_is_needed(m->mesh) ? 0 : m->own->ll_bytes,
                         .machine = m->mesh->machine};
    for (int32_t r = 0; r < n; r++) {
        l.blocks = least(l.blocks, mc_gpu_note(m, r)->blocks);
        l.slot_bytes = least(l.slot_bytes, mc_gpu_note(m, r)->slot_bytes);
        l.ll_bytes = least(l.ll_bytes, mc_gpu_note(m, r)->ll_bytes);
    }
    gpu->arena.layout = l;
    gpu->arena.part = calloc((size_t)n, sizeof *gpu->arena.part);
    gpu->arena.reach = calloc((size_t)n, (size_t)n);
    if (!gpu->arena.part || !gpu->arena.reach)
        return mc_fail_memory("an arena");
    bool streams;
    const int status = choose_executor(m, &streams);
    return status || !streams ? status : take_streams(gpu);
}

/* Notes get room for the addresses of proxies, and this rank's own. Without memory for that it cannot meet the
 * others again, and the mesh fails. */
static int widen(mc_gpu_meeting_t *m)
{
    uint32_t most = 0;
    for (int32_t r = 0; r < m->mesh->mesh.size; r++) {
        const uint32_t bytes = mc_gpu_note(m, r)->address_bytes;
        most = bytes > most ? bytes : most;
    }
    const int status = mc_gpu_meeting_widen(m, most);
    if (status)
        return mc_gpu_fail_alone(m->mesh, status);
    mc_proxy_address_pack(m->mesh, mc_gpu_own_more(m));
    return MESHCOLL_OK;
}

static int keep_addresses(const mc_gpu_meeting_t *m, mc_proxy_end_t *end)
{
    const meshcoll_t *const h = m->mesh;
    int status = MESHCOLL_OK;
    for (int32_t r = 0; r < h->mesh.size && !status; r++) {
        const mc_gpu_note_t *const note = mc_gpu_note(m, r);
        if (mc_proxy_is_far(h, r))
            status =
                mc_proxy_end_keep(end, r, mc_gpu_more(m, r), note->address_bytes, note->direct);
    }
    return status;
}

static int make_end(const mc_gpu_meeting_t *m, mc_gpu_t *gpu)
{
    const mc_gpu_layout_t *const l = &gpu->arena.layout;
    meshcoll_t *const h = m->mesh;
    return mc_proxy_is_needed(h)
               ? mc_proxy_end_open(h, l->blocks, l->slot_bytes, m->own->direct, &gpu->end)
               : MESHCOLL_OK;
}

static int make_parts(mc_gpu_t *gpu, mc_gpu_note_t *own)
{
    const size_t reports = gpu->arena.layout.blocks * sizeof *gpu->report;
    void *at;
    int status = mc_cuda_pinned(reports, &at, &gpu->report_address);
    if (status)
        return status;
    gpu->report = at;
    status = mc_gpu_arena_make(&gpu->arena, gpu->stream, &own->handle, &own->shared);
    if (!status && gpu->signals)
        status = mc_stream_signals_make(gpu->signals, gpu->arena.layout.rank,
                                        gpu->arena.layout.ranks, gpu->device, &own->signals);
    return status;
}

/* Is it a GPU that this process sees, but cannot reach? Of others the driver knows. */
static bool is_cut_off(const mc_gpu_t *gpu, const mc_cu_uuid_t *uuid)
{
    const mc_cuda_t *const cuda = mc_cuda();
    int n = 0, can = 1;
    if (cuda->device_count(&n))
        return false;
    for (int i = 0; i < n; i++) {
        mc_cu_device_t device;
        mc_cu_uuid_t its;
        if (cuda->device_get(&device, i) || cuda->device_uuid(&its, device) ||
            memcmp(&its, uuid, sizeof its) != 0)
            continue;
        return cuda->device_can_access(&can, gpu->device, device) == 0 && !can;
    }
    return false;
}

static void map_parts(const mc_gpu_meeting_t *m, mc_gpu_t *gpu)
{
    const mc_gpu_layout_t *const l = &gpu->arena.layout;
    for (int32_t r = 0; r < l->ranks; r++) {
        const mc_gpu_note_t *const note = mc_gpu_note(m, r);
        const bool far = mc_proxy_is_far(m->mesh, r);
        const bool cut_off = !same_gpu(m, r, l->rank) && is_cut_off(gpu, &note->uuid);
        m->own->reach[r] =
            r == l->rank || far ||
            (!cut_off && note->shared && mc_gpu_arena_map(&gpu->arena, r, &note->handle));
    }
}

static int map_signals(const mc_gpu_meeting_t *m, mc_gpu_t *gpu)
{
    const mc_gpu_layout_t *const l = &gpu->arena.layout;
    int status = MESHCOLL_OK;
    if (!gpu->signals)
        return MESHCOLL_OK;
    for (int32_t r = 0; r < l->ranks && !status; r++)
        if (r != l->rank)
            status = mc_stream_signals_map(gpu->signals, r, &mc_gpu_note(m, r)->signals);
    return status
               ? status
               : mc_stream_signals_watch(gpu->signals, m->mesh->job->gpu->alarm.word, gpu->report);
}

/* Returns whether any two ranks go through memory of the host. */
static bool learn_reach(const mc_gpu_meeting_t *m, mc_gpu_t *gpu)
{
    const int32_t n = gpu->arena.layout.ranks;
    bool all = true;
    for (int32_t r = 0; r < n; r++)
        memcpy(gpu->arena.reach + (size_t)r * (size_t)n, mc_gpu_note(m, r)->reach, (size_t)n);
    for (int32_t i = 0; i < n * n; i++)
        all = all && gpu->arena.reach[i];
    return !all;
}

static bool needs_host(const mc_gpu_arena_t *a)
{
    bool needs = false;
    for (int32_t r = 0; r < a->layout.ranks; r++)
        needs = needs || mc_gpu_arena_by_host(a, a->layout.rank, r);
    return needs;
}

static int map_host(const mc_gpu_meeting_t *m, mc_gpu_t *gpu)
{
    const mc_gpu_layout_t *const l = &gpu->arena.layout;
    int status = MESHCOLL_OK;
    for (int32_t r = 0; r < l->ranks && !status; r++)
        if (r != l->rank && mc_gpu_arena_by_host(&gpu->arena, l->rank, r))
            status = mc_gpu_arena_map_host(&gpu->arena, r, &mc_gpu_note(m, r)->file);
    return status;
}

/* Each rank knows after each round how all fare, so that all make the same rounds. */
static int open_together(mc_gpu_meeting_t *m, mc_gpu_t *gpu)
{
    int status = agree(m, gpu);
    const int widened = mc_proxy_is_needed(m->mesh) ? widen(m) : MESHCOLL_OK;
    if (widened)
        return widened;
    if (!status)
        status = make_end(m, gpu);
    if (!status)
        status = make_parts(gpu, m->own);
    status = mc_gpu_meet(m, status);
    if (status)
        return status;
    if (mc_proxy_is_needed(m->mesh))
        status = keep_addresses(m, gpu->end);
    map_parts(m, gpu);
    status = mc_gpu_meet(m, status ? status : map_signals(m, gpu));
    if (status || !learn_reach(m, gpu))
        return status;
    if (needs_host(&gpu->arena))
        status = mc_gpu_arena_make_host(&gpu->arena, &m->own->file);
    status = mc_gpu_meet(m, status);
    return status ? status : mc_gpu_meet(m, map_host(m, gpu));
}

/* Freeing ----------------------------------------------------------------------------------------- */

static void free_all(const mc_gpu_job_t *j, mc_gpu_t *gpu)
{
    const mc_cuda_t *const cuda = mc_cuda();
    if (gpu->report)
        cuda->host_free(gpu->report);
    if (gpu->done)
        cuda->event_destroy(gpu->done);
    if (gpu->passed)
        cuda->event_destroy(gpu->passed);
    if (gpu->stream)
        cuda->stream_destroy(gpu->stream);
    if (gpu->module && gpu->module != j->module)
        cuda->module_unload(gpu->module);
}

void mc_gpu_free(const meshcoll_t *h, mc_gpu_t *gpu, bool leaves)
{
    mc_proxy_end_close(h, gpu->end, leaves);
    mc_gpu_memory_free(&gpu->spare, leaves);
    mc_gpu_memory_free(&gpu->scratch, leaves);
    mc_gpu_arena_free(&gpu->arena, leaves);
    if (gpu->signals)
        mc_stream_signals_free(gpu->signals, leaves);
    if (!leaves)
        free_all(h->job->gpu, gpu);
}

static void unmap_all(mc_gpu_t *gpu)
{
    for (mc_gpu_window_t *w = gpu->registrations; w; w = w->next)
        mc_gpu_window_unmap(w, gpu->arena.layout.ranks);
    if (gpu->signals)
        mc_stream_signals_unmap(gpu->signals);
    mc_gpu_arena_unmap(&gpu->arena);
    gpu->unmapped = true;
}

void mc_gpu_unmap(meshcoll_t *h)
{
    mc_gpu_visit_t visit;
    if (!h->gpu || mc_gpu_visit(h->gpu->context, &visit))
        return;
    unmap_all(h->gpu);
    mc_gpu_leave(&visit);
}

/* Peers may have this rank's memory open: none frees it before all have closed it. */
static void give_up(mc_gpu_meeting_t *m, bool together, mc_gpu_t *gpu)
{
    unmap_all(gpu);
    if (together && !m->mesh->job->failure.status)
        (void)mc_gpu_meet(m, MESHCOLL_OK);
    if (!m->mesh->job->failure.status)
        mc_gpu_free(m->mesh, gpu, false);
    else
        mc_proxy_end_close(m->mesh, gpu->end, true);
}

int mc_gpu_open(meshcoll_t *h, const mc_pointer_t *buffer, uint32_t number, bool *agreed)
{
    mc_gpu_meeting_t m;
    mc_gpu_visit_t visit = {0};
    *agreed = true;
    if (h->gpu)
        return MESHCOLL_OK;
    int status = mc_gpu_check_ranks(h);
    if (status)
        return status;
    mc_gpu_t *const gpu = calloc(1, sizeof *gpu);
    if (!gpu || mc_gpu_meeting_open(h, number, &m)) {
        free(gpu);
        *agreed = false;
        return mc_fail_memory("calls on device memory");
    }
    status = mc_gpu_meet(&m, open_alone(h, buffer, gpu, &visit, m.own));
    const bool together = !status;
    if (together)
        status = open_together(&m, gpu);
    if (!status)
        h->gpu = gpu;
    char why[MC_GPU_WHY + 64];
    mc_text_t text = mc_text(why, sizeof why);
    mc_text_add(&text, "%s", status ? meshcoll_last_error() : "");
    if (status && visit.cuda)
        give_up(&m, together, gpu);
    if (visit.cuda)
        mc_gpu_leave(&visit);
    if (status)
        free(gpu);
    mc_arena_free(&m.arena);
    return status ? mc_fail(status, "%s", why) : MESHCOLL_OK;
}
