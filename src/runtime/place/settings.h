/*
 * The user's settings for a mesh, from parameters or environment. All ranks use rank 0's, so that
 * they plan identically. Read when the mesh is created and never after.
 */
#ifndef MC_RUNTIME_SETTINGS_H
#define MC_RUNTIME_SETTINGS_H

#include "base/base.h"

/* How settings.links_from starts if the links come from a tuned file. */
#define MC_TUNED_FROM "measured by meshcoll tune"

/* The caller's function that waiting calls run, of meshcoll_params_t. */
typedef struct {
    meshcoll_hook_t function;
    void *context;
} mc_hook_t;

/* Texts that parameters or environment give: X(field, variable). The fields are those of meshcoll_params_t. */
#define MC_GIVEN_TABLE(X)                    \
    X(mesh, "MESHCOLL_MESH")                 \
    X(links, "MESHCOLL_LINKS")               \
    X(transports, "MESHCOLL_TRANSPORTS")     \
    X(explain, "MESHCOLL_EXPLAIN")           \
    X(progress, "MESHCOLL_PROGRESS")         \
    X(threads, "MESHCOLL_THREADS")           \
    X(reproducible, "MESHCOLL_REPRODUCIBLE") \
    X(monitor, "MESHCOLL_MONITOR")           \
    X(timeout, "MESHCOLL_TIMEOUT")           \
    X(check, "MESHCOLL_CHECK")               \
    X(order, "MESHCOLL_ORDER")

/* The most characters of each text, and of all of them packed: ranks refuse more from rank 0. Links are the
 * longest (MC_LINKS_MOST_READ). */
enum {
    MC_SETTING_MOST = 65535,
#define X(field, name) +1
    MC_SETTINGS = 3 + MESHCOLL_COLLECTIVES MC_GIVEN_TABLE(X),
#undef X
    MC_SETTINGS_MOST = MC_SETTINGS * (MC_SETTING_MOST + 2)
};

/* Texts, NULL where not given; all in one allocation, `memory`. */
typedef struct {
#define X(field, name) const char *field;
    MC_GIVEN_TABLE(X)
#undef X
    const char *links_from; /* source of the links, for reports; NULL: none given */
    const char *calibrate;  /* MESHCOLL_CALIBRATE */
    const char *adapt;      /* MESHCOLL_ADAPT */
    const char *strategy[MESHCOLL_COLLECTIVES];
    char *memory;
    mc_hook_t hook; /* this rank's own */
} mc_settings_t;

/* From this process's parameters (may be NULL) and environment. ERR_PARSE where a text is too long. */
int mc_settings_read(const meshcoll_params_t *params, mc_settings_t *settings);
/* Replaces the links, as though the user had given them. */
int mc_settings_set_links(mc_settings_t *settings, const char *links, const char *from);
/* Settings as bytes, for other ranks: how many, and the copy. */
size_t mc_settings_bytes(const mc_settings_t *settings);
void mc_settings_pack(const mc_settings_t *settings, char *at);
/* Replaces all but the hook by what another rank packed, followed by any bytes. ERR_TRANSPORT if it is no
 * settings. */
int mc_settings_unpack(mc_settings_t *settings, const char *at, size_t bytes);
void mc_settings_free(mc_settings_t *settings);

#endif
