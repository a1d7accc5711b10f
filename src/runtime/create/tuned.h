/*
 * The links that `meshcoll tune` measured, kept in a JSON file by cluster (docs/links.md). Written by
 * the command; looked into once when a mesh is created, by rank 0, where no links are given.
 */
#ifndef MC_RUNTIME_TUNED_H
#define MC_RUNTIME_TUNED_H

#include "mesh/link.h"
#include "runtime/create/create.h"
#include "runtime/place/boxes.h"

enum { MC_CPU_TEXT = 128, MC_CLUSTER_TEXT = 512, MC_TUNED_PATH = 1024 };

/* What its numbers depend on; plain memory, which may be sent. */
typedef struct {
    mc_mesh_t mesh;
    char tls[MC_MAX_DIMS][MC_TLS_TEXT]; /* transports by dimension */
    char cpu[MC_CPU_TEXT];              /* of this process's machine, as its cores */
    int32_t cores, machines;
} mc_cluster_t;

/* The cluster that ranks at these places form with these settings. */
int mc_cluster_find(const mc_settings_t *settings, const mc_place_t *place, int32_t size,
                    mc_cluster_t *cluster);
/* "box=4,gpu=4 on 4 machines with 2 cores of …, box=tcp,self;gpu=posix,…": the key in the file. */
void mc_cluster_print(const mc_cluster_t *cluster, mc_text_t *text);
/* As MESHCOLL_TRANSPORTS takes them. */
void mc_cluster_print_transports(const mc_cluster_t *cluster, mc_text_t *text);

/* $MESHCOLL_TUNE_FILE, else in $XDG_CONFIG_HOME, else in ~/.config. */
int mc_tuned_path(char path[MC_TUNED_PATH]);

/* ERR_IO where the file cannot be read, ERR_PARSE where it is broken. A file that is not there, or
 * lacks the cluster, is no error: `*links` is NULL then, else the caller's to free. */
int mc_tuned_read(const char *path, const mc_cluster_t *cluster, char **links);

typedef struct {
    const char *links; /* as mc_links_print writes them */
    const char *date, *command, *provenance;
} mc_tuned_t;

/* Replaces this cluster's entry and keeps all others, those too that other processes write at the same time; folders
 * are made. At no time is the file half-written, and one that is broken stays as it is. */
int mc_tuned_write(const char *path, const mc_cluster_t *cluster, const mc_tuned_t *tuned);

/* mc_handle_create, with the links of the file where neither parameters nor environment give any.
 * A file that cannot be used is told in one line on stderr. Collective. */
int mc_tuned_create(const mc_creation_t *creation, meshcoll_t **mesh);

#endif
