/*
 * News that end a mesh, or a call, on all ranks: a process has ended, a rank failed, aborted or waited
 * for too long; or one rank was refused a call that others wait in. The first of those that end the mesh
 * stays: what follows it are mostly its consequences.
 */
#ifndef MC_MONITOR_NEWS_H
#define MC_MONITOR_NEWS_H

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MC_NEWS_TEXT = 400, MC_NEWS_REFUSALS = 16 };

/* REFUSED: only those who wait in this call fail. */
typedef enum { MC_NEWS_FATAL, MC_NEWS_REFUSED, MC_NEWS_KINDS } mc_news_kind_t;

/* What was refused: a call, a persistent operation when it was made, or a start of one. */
typedef enum { MC_NEWS_CALL, MC_NEWS_PERSISTENT, MC_NEWS_START } mc_news_call_t;

/* Plain memory, as it is sent. Ranks are the caller's. */
typedef struct {
    uint32_t kind;
    int32_t status; /* of the error that it makes */
    int32_t rank;   /* whom it is about */
    /* REFUSED: the call's operation number, what it is, how many calls the mesh, or starts the request, had
     * with it (numbers wrap), and of which mesh of the family. */
    uint32_t number, persistent, made, context;
    uint32_t gone; /* FATAL: 1: its process has ended, or its machine is down */
    char text[MC_NEWS_TEXT];
} mc_news_t;

/* Reads news that another rank sent; false: it is none. Its text has no control characters. */
bool mc_news_read(mc_news_t *news, const void *data, size_t bytes);

/* Any thread may use a board at any time. */
typedef struct {
    _Atomic uint32_t n; /* of those below, ever */
    pthread_mutex_t lock;
    pthread_cond_t posted;
    _Atomic bool has_fatal; /* may be read without the lock */
    _Atomic uint32_t *also; /* a word that fatal news set to 1; NULL: none */
    mc_news_t fatal;
    mc_news_t refused[MC_NEWS_REFUSALS]; /* the last ones, by number */
    uint32_t n_refused;                  /* ever */
} mc_news_board_t;

void mc_news_open(mc_news_board_t *board);
void mc_news_close(mc_news_board_t *board);

/* Would posting it tell anything new? Of refusals of one call, the first counts. */
bool mc_news_is_new(mc_news_board_t *board, const mc_news_t *news);
/* From now on fatal news set that word too, which ends with the next such call; NULL: none. */
void mc_news_also(mc_news_board_t *board, _Atomic uint32_t *word);
/* Returns whether it was new. */
bool mc_news_post(mc_news_board_t *board, const mc_news_t *news);
/* Is there any news? */
static inline bool mc_news_any(const mc_news_board_t *board)
{
    return atomic_load_explicit(&board->n, memory_order_acquire) > 0;
}
/* What ended the mesh; false: nothing did. */
bool mc_news_fatal(mc_news_board_t *board, mc_news_t *news);
/* The same, waiting for it for so long. */
bool mc_news_await(mc_news_board_t *board, double seconds, mc_news_t *news);
/* The refusal number *next, counted from the first, or the oldest that is still there; sets *next to the one
 * after it. false: there is none yet. */
bool mc_news_refusal(mc_news_board_t *board, uint32_t *next, mc_news_t *news);

#endif
