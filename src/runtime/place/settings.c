#include "runtime/place/settings.h"

#include "base/gather.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_TEXTS = 8 + MESHCOLL_COLLECTIVES };

/* All texts as a list. Packed, each is preceded by a byte that tells whether it is set. */
static void list_texts(mc_settings_t *s, const char **list[N_TEXTS])
{
    list[0] = &s->mesh;
    list[1] = &s->links;
    list[2] = &s->transports;
    list[3] = &s->explain;
    list[4] = &s->links_from;
    list[5] = &s->progress;
    list[6] = &s->threads;
    list[7] = &s->reproducible;
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        list[8 + c] = &s->strategy[c];
}

static size_t packed_bytes(mc_settings_t *s)
{
    const char **list[N_TEXTS];
    size_t bytes = 0;
    list_texts(s, list);
    for (int i = 0; i < N_TEXTS; i++)
        bytes += 2 + (*list[i] ? strlen(*list[i]) : 0);
    return bytes;
}

static void pack(mc_settings_t *s, char *at)
{
    const char **list[N_TEXTS];
    list_texts(s, list);
    for (int i = 0; i < N_TEXTS; i++) {
        const char *const text = *list[i] ? *list[i] : "";
        *at++ = *list[i] ? '+' : '-';
        memcpy(at, text, strlen(text) + 1);
        at += strlen(text) + 1;
    }
}

static void unpack(mc_settings_t *s, char *memory)
{
    const char **list[N_TEXTS];
    const char *at = memory;
    free(s->memory);
    s->memory = memory;
    list_texts(s, list);
    for (int i = 0; i < N_TEXTS; i++) {
        *list[i] = *at == '+' ? at + 1 : NULL;
        at += strlen(at) + 1;
    }
}

static const char *given(const char *name)
{
    const char *const value = getenv(name);
    return value && *value ? value : NULL;
}

static const char *strategy_given(meshcoll_collective_t collective)
{
    char name[64] = "MESHCOLL_STRATEGY_";
    size_t n = strlen(name);
    for (const char *c = meshcoll_collective_name(collective); *c && n + 1 < sizeof name; c++)
        name[n++] = (char)toupper((unsigned char)*c);
    name[n] = '\0';
    return given(name);
}

/* Sizes of the versions of the struct, which end at a field; later versions may be larger. */
static bool is_size(size_t size)
{
    return size == offsetof(meshcoll_params_t, mesh) ||
           size == offsetof(meshcoll_params_t, links) ||
           size == offsetof(meshcoll_params_t, transports) ||
           size == offsetof(meshcoll_params_t, explain) ||
           size == offsetof(meshcoll_params_t, progress) ||
           size == offsetof(meshcoll_params_t, threads) ||
           size == offsetof(meshcoll_params_t, reproducible) || size >= sizeof(meshcoll_params_t);
}

int mc_settings_read(const meshcoll_params_t *params, mc_settings_t *settings)
{
    meshcoll_params_t p = {0};
    if (params && !is_size(params->size))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_params_t.size is %zu: set it to "
                       "sizeof(meshcoll_params_t) and zero the rest",
                       params->size);
    if (params)
        memcpy(&p, params, params->size < sizeof p ? params->size : sizeof p);
    mc_settings_t s = {
        .mesh = p.mesh ? p.mesh : given("MESHCOLL_MESH"),
        .links = p.links ? p.links : given("MESHCOLL_LINKS"),
        .transports = p.transports ? p.transports : given("MESHCOLL_TRANSPORTS"),
        .explain = p.explain ? p.explain : given("MESHCOLL_EXPLAIN"),
        .progress = p.progress ? p.progress : given("MESHCOLL_PROGRESS"),
        .threads = p.threads ? p.threads : given("MESHCOLL_THREADS"),
        .reproducible = p.reproducible ? p.reproducible : given("MESHCOLL_REPRODUCIBLE"),
    };
    if (s.links)
        s.links_from = p.links ? "given to meshcoll_create" : "given by MESHCOLL_LINKS";
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        s.strategy[c] = strategy_given((meshcoll_collective_t)c);
    char *const memory = malloc(packed_bytes(&s));
    if (!memory)
        return mc_fail_memory("settings");
    pack(&s, memory);
    unpack(&s, memory);
    *settings = s;
    return MESHCOLL_OK;
}

void mc_settings_free(mc_settings_t *settings)
{
    free(settings->memory);
    *settings = (mc_settings_t){0};
}

int mc_settings_share(const meshcoll_oob_t *oob, int status, mc_settings_t *settings)
{
    const uint64_t mine = packed_bytes(settings);
    void *sizes = NULL, *all = NULL;
    status = mc_gather(oob, status, &mine, sizeof mine, &sizes);
    if (status)
        return status;
    const size_t bytes = *(const uint64_t *)sizes;
    free(sizes);
    /* broadcasts by allgather, the only operation there is: only rank 0's part is used */
    char *const own = calloc(1, bytes);
    if (own && oob->rank == 0)
        pack(settings, own);
    status = mc_gather(oob, own ? MESHCOLL_OK : mc_fail_memory("settings"), own, bytes, &all);
    free(own);
    if (!status)
        unpack(settings, all);
    return status;
}
