/* Memory of the fake: device, managed, pinned and registered; IPC; what a pointer points to. */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum { DEVICE, OPENED, MANAGED, PINNED, REGISTERED } sort_t;

typedef struct area {
    struct area *next;
    sort_t sort;
    char *at;
    size_t bytes;
    int fd; /* of DEVICE */
    mc_cu_context_t context;
} area_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static area_t *areas;

/* Protection keys --------------------------------------------------------------------------------- */

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static int key = -1;

static void take_key(void)
{
    key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
}

void fake_open_memory(bool open)
{
    pthread_once(&key_once, take_key);
    if (key >= 0)
        pkey_set(key, open ? 0 : PKEY_DISABLE_ACCESS);
}

bool fake_guards(void)
{
    pthread_once(&key_once, take_key);
    return key >= 0;
}

static int guard(void *at, size_t bytes)
{
    pthread_once(&key_once, take_key);
    return key < 0 ? 0 : pkey_mprotect(at, bytes, PROT_READ | PROT_WRITE, key);
}

/* The list ---------------------------------------------------------------------------------------- */

static size_t whole_pages(size_t bytes)
{
    const size_t page = 4096;
    return (bytes + page - 1) / page * page;
}

static mc_cu_result_t add(sort_t sort, void *at, size_t bytes, int fd)
{
    area_t *const a = malloc(sizeof *a);
    if (!a)
        return MC_CU_ERROR_OUT_OF_MEMORY;
    *a = (area_t){.sort = sort, .at = at, .bytes = bytes, .fd = fd, .context = fake_context()};
    pthread_mutex_lock(&lock);
    a->next = areas;
    areas = a;
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

/* Takes it out of the list; false: there is none of that sort that begins there. */
static bool take(sort_t sort, const void *at, area_t *found)
{
    bool there = false;
    pthread_mutex_lock(&lock);
    for (area_t **i = &areas; *i && !there; i = there ? i : &(*i)->next)
        if ((*i)->sort == sort && (*i)->at == at) {
            area_t *const a = *i;
            there = true;
            *found = *a;
            *i = a->next;
            free(a);
            break;
        }
    pthread_mutex_unlock(&lock);
    return there;
}

static bool find(const void *at, area_t *found)
{
    bool there = false;
    pthread_mutex_lock(&lock);
    for (const area_t *a = areas; a && !there; a = a->next)
        if ((const char *)at >= a->at && (const char *)at < a->at + a->bytes) {
            there = true;
            *found = *a;
        }
    pthread_mutex_unlock(&lock);
    return there;
}

static void unmap(const area_t *a)
{
    munmap(a->at, whole_pages(a->bytes));
    if (a->fd >= 0)
        close(a->fd);
}

bool fake_is_word(mc_cu_address_t at)
{
    area_t a;
    return at % sizeof(uint32_t) == 0 && find((void *)(uintptr_t)at, &a) &&
           (a.sort == PINNED || a.sort == REGISTERED || a.sort == DEVICE);
}

unsigned fake_areas(void)
{
    unsigned n = 0;
    pthread_mutex_lock(&lock);
    for (const area_t *a = areas; a; a = a->next)
        n++;
    pthread_mutex_unlock(&lock);
    return n;
}

/* Device memory ----------------------------------------------------------------------------------- */

static mc_cu_result_t map_file(int fd, size_t bytes, sort_t sort, mc_cu_address_t *at)
{
    void *const mapped = mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return MC_CU_ERROR_OUT_OF_MEMORY;
    mc_cu_result_t result =
        guard(mapped, whole_pages(bytes)) ? MC_CU_ERROR_OUT_OF_MEMORY : FAKE_SUCCESS;
    if (!result)
        result = add(sort, mapped, bytes, fd);
    if (result)
        munmap(mapped, whole_pages(bytes));
    else
        *at = (mc_cu_address_t)(uintptr_t)mapped;
    return result;
}

mc_cu_result_t cuMemAlloc_v2(mc_cu_address_t *at, size_t bytes)
{
    FAKE_BEGIN;
    FAKE_UNSAFE;
    if (!fake_context())
        return MC_CU_ERROR_INVALID_CONTEXT;
    if (bytes == 0)
        return MC_CU_ERROR_INVALID_VALUE;
    const int fd = memfd_create("fake device memory", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)whole_pages(bytes)) != 0) {
        if (fd >= 0)
            close(fd);
        return MC_CU_ERROR_OUT_OF_MEMORY;
    }
    const mc_cu_result_t result = map_file(fd, bytes, DEVICE, at);
    if (result)
        close(fd);
    return result;
}

mc_cu_result_t cuMemFree_v2(mc_cu_address_t at)
{
    area_t a;
    FAKE_BEGIN;
    FAKE_UNSAFE;
    if (!take(DEVICE, (void *)(uintptr_t)at, &a) && !take(MANAGED, (void *)(uintptr_t)at, &a))
        return MC_CU_ERROR_INVALID_VALUE;
    unmap(&a);
    return FAKE_SUCCESS;
}

mc_cu_result_t cuMemGetAddressRange_v2(mc_cu_address_t *base, size_t *bytes, mc_cu_address_t at)
{
    area_t a;
    FAKE_BEGIN;
    if (!find((void *)(uintptr_t)at, &a) || (a.sort != DEVICE && a.sort != OPENED))
        return MC_CU_ERROR_INVALID_VALUE;
    *base = (mc_cu_address_t)(uintptr_t)a.at;
    *bytes = a.bytes;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuMemAllocManaged(mc_cu_address_t *at, size_t bytes, unsigned flags)
{
    (void)flags;
    FAKE_BEGIN;
    void *const mapped =
        mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return MC_CU_ERROR_OUT_OF_MEMORY;
    *at = (mc_cu_address_t)(uintptr_t)mapped;
    return add(MANAGED, mapped, bytes, -1);
}

/* Other processes --------------------------------------------------------------------------------- */

typedef struct {
    pid_t pid;
    int fd, device;
    uint64_t bytes, ino;
} handle_t;
_Static_assert(sizeof(handle_t) <= MC_CU_IPC_BYTES, "it is sent as a handle");

mc_cu_result_t cuIpcGetMemHandle(mc_cu_ipc_t *handle, mc_cu_address_t at)
{
    area_t a;
    struct stat s;
    FAKE_BEGIN;
    if (!find((void *)(uintptr_t)at, &a) || a.sort != DEVICE || fstat(a.fd, &s) != 0)
        return MC_CU_ERROR_INVALID_VALUE;
    const handle_t h = {getpid(), a.fd, a.context->device, a.bytes, s.st_ino};
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &h, sizeof h);
    return FAKE_SUCCESS;
}

static int open_other(const handle_t *h)
{
    char path[64];
    struct stat s;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)h->pid, h->fd);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &s) != 0 || s.st_ino != h->ino)) {
        close(fd);
        return -1;
    }
    return fd;
}

mc_cu_result_t cuIpcOpenMemHandle_v2(mc_cu_address_t *at, mc_cu_ipc_t handle, unsigned flags)
{
    handle_t h;
    FAKE_BEGIN;
    FAKE_UNSAFE;
    memcpy(&h, &handle, sizeof h);
    if (!fake_context() || h.pid == getpid() || flags != MC_CU_IPC_PEER)
        return MC_CU_ERROR_INVALID_VALUE;
    if (!fake_reaches(fake_context()->device, h.device))
        return MC_CU_ERROR_PEER_ACCESS_UNSUPPORTED;
    const int fd = open_other(&h);
    if (fd < 0)
        return FAKE_ERROR_INVALID_HANDLE;
    const mc_cu_result_t result = map_file(fd, h.bytes, OPENED, at);
    if (result)
        close(fd);
    return result;
}

mc_cu_result_t cuIpcCloseMemHandle(mc_cu_address_t at)
{
    area_t a;
    FAKE_BEGIN;
    if (!take(OPENED, (void *)(uintptr_t)at, &a))
        return MC_CU_ERROR_INVALID_VALUE;
    unmap(&a);
    return FAKE_SUCCESS;
}

/* Memory of the host ------------------------------------------------------------------------------ */

mc_cu_result_t cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    FAKE_BEGIN;
    FAKE_UNSAFE;
    if (!fake_context() || !(flags & MC_CU_HOST_MAPPED))
        return MC_CU_ERROR_INVALID_VALUE;
    void *const mapped =
        mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return MC_CU_ERROR_OUT_OF_MEMORY;
    *at = mapped;
    return add(PINNED, mapped, bytes, -1);
}

mc_cu_result_t cuMemFreeHost(void *at)
{
    area_t a;
    FAKE_BEGIN;
    FAKE_UNSAFE;
    if (!take(PINNED, at, &a))
        return MC_CU_ERROR_INVALID_VALUE;
    unmap(&a);
    return FAKE_SUCCESS;
}

mc_cu_result_t cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
    area_t a;
    FAKE_BEGIN;
    FAKE_UNSAFE;
    if (!fake_context() || !(flags & MC_CU_REGISTER_PORTABLE))
        return MC_CU_ERROR_INVALID_VALUE;
    if (find(at, &a) || find((char *)at + bytes - 1, &a))
        return FAKE_ERROR_ALREADY_REGISTERED;
    return add(REGISTERED, at, bytes, -1);
}

mc_cu_result_t cuMemHostUnregister(void *at)
{
    area_t a;
    FAKE_BEGIN;
    FAKE_UNSAFE;
    return take(REGISTERED, at, &a) ? FAKE_SUCCESS : MC_CU_ERROR_INVALID_VALUE;
}

/* The same address, as on a system with unified addresses. */
mc_cu_result_t cuMemHostGetDevicePointer_v2(mc_cu_address_t *device, void *at, unsigned flags)
{
    area_t a;
    FAKE_BEGIN;
    if (flags != 0 || !find(at, &a) || (a.sort != PINNED && a.sort != REGISTERED))
        return MC_CU_ERROR_INVALID_VALUE;
    *device = (mc_cu_address_t)(uintptr_t)at;
    return FAKE_SUCCESS;
}

/* Network cards ----------------------------------------------------------------------------------- */

/* What was written and is not there yet. */
typedef struct written {
    struct written *next;
    void *to;
    size_t bytes;
    char data[];
} written_t;

static written_t *first_written, **last_written = &first_written;

bool fake_is_device(const void *at)
{
    area_t a;
    return find(at, &a) && (a.sort == DEVICE || a.sort == OPENED);
}

void fake_card_reads(void *to, const void *from, size_t bytes)
{
    fake_open_memory(true);
    memcpy(to, from, bytes);
    fake_open_memory(false);
}

static void settle_writes(void)
{
    fake_open_memory(true);
    for (written_t *w; (w = first_written);) {
        first_written = w->next;
        memcpy(w->to, w->data, w->bytes);
        free(w);
    }
    last_written = &first_written;
    fake_open_memory(false);
}

void fake_card_writes(void *to, const void *from, size_t bytes)
{
    written_t *const w = malloc(sizeof *w + bytes);
    if (!w)
        abort();
    w->next = NULL;
    w->to = to;
    w->bytes = bytes;
    memcpy(w->data, from, bytes);
    pthread_mutex_lock(&lock);
    *last_written = w;
    last_written = &w->next;
    if (fake_is_direct("ordered"))
        settle_writes();
    pthread_mutex_unlock(&lock);
}

/* Takes its time, in which a kernel that was told too early reads what was there before. */
mc_cu_result_t cuFlushGPUDirectRDMAWrites(mc_cu_flush_target_t target, mc_cu_flush_scope_t scope)
{
    FAKE_BEGIN;
    if (!fake_context())
        return MC_CU_ERROR_INVALID_CONTEXT;
    if (target != MC_CU_DIRECT_CONTEXT || scope != MC_CU_DIRECT_TO_OWNER)
        return MC_CU_ERROR_INVALID_VALUE;
    usleep(100);
    pthread_mutex_lock(&lock);
    settle_writes();
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

/* Pointers ---------------------------------------------------------------------------------------- */

static void answer(const area_t *a, mc_cu_pointer_attribute_t what, void *at)
{
    const bool on_device = a->sort == DEVICE || a->sort == OPENED || a->sort == MANAGED;
    switch (what) {
    case MC_CU_POINTER_TYPE:
        *(unsigned *)at = on_device ? MC_CU_TYPE_DEVICE : a->at ? MC_CU_TYPE_HOST : 0;
        break;
    case MC_CU_POINTER_MANAGED:
        *(unsigned *)at = a->sort == MANAGED;
        break;
    case MC_CU_POINTER_DEVICE:
        *(int *)at = a->context ? a->context->device : -2;
        break;
    case MC_CU_POINTER_CONTEXT:
        *(mc_cu_context_t *)at = a->context;
        break;
    default:
        abort();
    }
}

/* Of memory that it does not know it tells zeros, and succeeds, as the driver does; without a context it fails. */
mc_cu_result_t cuPointerGetAttributes(unsigned n, mc_cu_pointer_attribute_t *what, void **at,
                                      mc_cu_address_t pointer)
{
    area_t a;
    FAKE_BEGIN;
    if (!fake_context())
        return MC_CU_ERROR_INVALID_CONTEXT;
    if (!find((void *)(uintptr_t)pointer, &a))
        a = (area_t){.sort = PINNED};
    for (unsigned i = 0; i < n; i++)
        answer(&a, what[i], at[i]);
    return FAKE_SUCCESS;
}
