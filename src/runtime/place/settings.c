#include "runtime/place/settings.h"

#include <stdlib.h>
#include <string.h>

/* All texts as a list. Packed, each is preceded by a byte that tells whether it is set. */
static void list_texts(mc_settings_t *s, const char **list[MC_SETTINGS])
{
    size_t n = 0;
#define X(field, name) list[n++] = &s->field;
    MC_GIVEN_TABLE(X)
#undef X
    list[n++] = &s->links_from;
    list[n++] = &s->calibrate;
    list[n++] = &s->adapt;
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        list[n++] = &s->strategy[c];
}

size_t mc_settings_bytes(const mc_settings_t *settings)
{
    mc_settings_t s = *settings;
    const char **list[MC_SETTINGS];
    size_t bytes = 0;
    list_texts(&s, list);
    for (int i = 0; i < MC_SETTINGS; i++)
        bytes += 2 + (*list[i] ? strlen(*list[i]) : 0);
    return bytes;
}

void mc_settings_pack(const mc_settings_t *settings, char *at)
{
    mc_settings_t s = *settings;
    const char **list[MC_SETTINGS];
    list_texts(&s, list);
    for (int i = 0; i < MC_SETTINGS; i++) {
        const char *const text = *list[i] ? *list[i] : "";
        *at++ = *list[i] ? '+' : '-';
        memcpy(at, text, strlen(text) + 1);
        at += strlen(text) + 1;
    }
}

int mc_settings_unpack(mc_settings_t *settings, const char *at, size_t bytes)
{
    const char **list[MC_SETTINGS], *end = at;
    mc_settings_t s = {.hook = settings->hook};
    for (int i = 0; i < MC_SETTINGS && end; i++) {
        end = memchr(end, '\0', bytes - (size_t)(end - at));
        end = end ? end + 1 : NULL;
    }
    if (!end || end - at > MC_SETTINGS_MOST)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "the settings of rank 0 arrived incomplete: do all "
                                               "ranks use the same version of meshcoll?");
    const size_t used = (size_t)(end - at);
    if (!(s.memory = malloc(used)))
        return mc_fail_memory("settings");
    memcpy(s.memory, at, used);
    list_texts(&s, list);
    const char *from = s.memory;
    for (int i = 0; i < MC_SETTINGS; i++) {
        *list[i] = *from == '+' ? from + 1 : NULL;
        from += strlen(from) + 1;
    }
    mc_settings_free(settings);
    *settings = s;
    return MESHCOLL_OK;
}

/* Texts move into memory of their own. */
static int own_texts(mc_settings_t *s)
{
    const size_t bytes = mc_settings_bytes(s);
    char *const packed = malloc(bytes);
    if (!packed)
        return mc_fail_memory("settings");
    mc_settings_pack(s, packed);
    const int status = mc_settings_unpack(s, packed, bytes);
    free(packed);
    return status;
}

int mc_settings_set_links(mc_settings_t *settings, const char *links, const char *from)
{
    mc_settings_t s = *settings;
    s.links = links;
    s.links_from = from;
    const int status = own_texts(&s);
    if (!status)
        *settings = s;
    return status;
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
        name[n++] = mc_upper(*c);
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
           size == offsetof(meshcoll_params_t, reproducible) ||
           size == offsetof(meshcoll_params_t, hook) ||
           size == offsetof(meshcoll_params_t, monitor) ||
           size == offsetof(meshcoll_params_t, timeout) ||
           size == offsetof(meshcoll_params_t, check) ||
           size == offsetof(meshcoll_params_t, order) || size >= sizeof(meshcoll_params_t);
}

static int check_lengths(mc_settings_t *s)
{
    static const char *const names[] = {
#define X(field, name) name,
        MC_GIVEN_TABLE(X)
#undef X
            "the source of the links",
        "MESHCOLL_CALIBRATE",
        "MESHCOLL_ADAPT",
    };
    const char **list[MC_SETTINGS];
    int status = MESHCOLL_OK;
    list_texts(s, list);
    for (size_t i = 0; i < MC_SETTINGS && !status; i++)
        if (*list[i])
            status = mc_check_length(MESHCOLL_ERR_PARSE,
                                     i < MC_COUNT(names) ? names[i] : "MESHCOLL_STRATEGY_…",
                                     *list[i], MC_SETTING_MOST);
    return status;
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
#define X(field, name) .field = p.field ? p.field : given(name),
        MC_GIVEN_TABLE(X)
#undef X
            .calibrate = given("MESHCOLL_CALIBRATE"),
        .adapt = given("MESHCOLL_ADAPT"),
        .hook = {p.hook, p.hook_context},
    };
    if (s.mesh && !*s.mesh) { /* discovered, whatever the environment says */
        s.mesh = NULL;
        s.order = p.order;
    }
    if (s.order && !*s.order)
        s.order = NULL;
    if (s.links)
        s.links_from = p.links ? "given to meshcoll_create" : "given by MESHCOLL_LINKS";
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        s.strategy[c] = strategy_given((meshcoll_collective_t)c);
    int status = check_lengths(&s);
    if (!status)
        status = own_texts(&s);
    if (!status)
        *settings = s;
    return status;
}

void mc_settings_free(mc_settings_t *settings)
{
    free(settings->memory);
    *settings = (mc_settings_t){0};
}
