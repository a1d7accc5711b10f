#include "job/monitor/news.h"

#include <math.h>
#include <string.h>
#include <time.h>

bool mc_news_read(mc_news_t *news, const void *data, size_t bytes)
{
    if (bytes != sizeof *news)
        return false;
    memcpy(news, data, sizeof *news);
    news->text[MC_NEWS_TEXT - 1] = '\0';
    mc_text_clean(news->text);
    return news->kind < MC_NEWS_KINDS && news->status < 0;
}

void mc_news_open(mc_news_board_t *board)
{
    pthread_condattr_t attributes;
    *board = (mc_news_board_t){0};
    pthread_mutex_init(&board->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&board->posted, &attributes);
    pthread_condattr_destroy(&attributes);
}

void mc_news_close(mc_news_board_t *board)
{
    pthread_cond_destroy(&board->posted);
    pthread_mutex_destroy(&board->lock);
}

static bool was_refused(const mc_news_board_t *board, const mc_news_t *news)
{
    const uint32_t n = board->n_refused < MC_NEWS_REFUSALS ? board->n_refused : MC_NEWS_REFUSALS;
    for (uint32_t i = 0; i < n; i++)
        if (board->refused[i].made == news->made &&
            board->refused[i].persistent == news->persistent &&
            board->refused[i].number == news->number && board->refused[i].context == news->context)
            return true;
    return false;
}

static bool is_new(const mc_news_board_t *board, const mc_news_t *news)
{
    return news->kind == MC_NEWS_FATAL ? !board->has_fatal : !was_refused(board, news);
}

bool mc_news_is_new(mc_news_board_t *board, const mc_news_t *news)
{
    pthread_mutex_lock(&board->lock);
    const bool new = is_new(board, news);
    pthread_mutex_unlock(&board->lock);
    return new;
}

/* Under the lock. */
static void set_also(mc_news_board_t *board)
{
    if (board->also && board->has_fatal)
        atomic_store_explicit(board->also, 1, memory_order_release);
}

void mc_news_also(mc_news_board_t *board, _Atomic uint32_t *word)
{
    pthread_mutex_lock(&board->lock);
    board->also = word;
    set_also(board);
    pthread_mutex_unlock(&board->lock);
}

bool mc_news_post(mc_news_board_t *board, const mc_news_t *news)
{
    pthread_mutex_lock(&board->lock);
    const bool new = is_new(board, news);
    if (new && news->kind == MC_NEWS_FATAL) {
        board->fatal = *news;
        board->has_fatal = true;
        set_also(board);
    } else if (new) {
        board->refused[board->n_refused++ % MC_NEWS_REFUSALS] = *news;
    }
    if (new)
        atomic_fetch_add_explicit(&board->n, 1, memory_order_release);
    pthread_cond_broadcast(&board->posted);
    pthread_mutex_unlock(&board->lock);
    return new;
}

bool mc_news_await(mc_news_board_t *board, double seconds, mc_news_t *news)
{
    const double end = mc_now() + seconds;
    const struct timespec until = {.tv_sec = (time_t)end,
                                   .tv_nsec = (long)(1e9 * (end - floor(end)))};
    pthread_mutex_lock(&board->lock);
    while (!board->has_fatal && mc_now() < end)
        pthread_cond_timedwait(&board->posted, &board->lock, &until);
    const bool there = board->has_fatal;
    if (there)
        *news = board->fatal;
    pthread_mutex_unlock(&board->lock);
    return there;
}

bool mc_news_fatal(mc_news_board_t *board, mc_news_t *news)
{
    return mc_news_any(board) && mc_news_await(board, 0, news);
}

bool mc_news_refusal(mc_news_board_t *board, uint32_t *next, mc_news_t *news)
{
    pthread_mutex_lock(&board->lock);
    const uint32_t n = board->n_refused, behind = n - *next;
    const uint32_t at = behind > MC_NEWS_REFUSALS ? n - MC_NEWS_REFUSALS : *next;
    if (behind > 0) {
        *news = board->refused[at % MC_NEWS_REFUSALS];
        *next = at + 1;
    }
    pthread_mutex_unlock(&board->lock);
    return behind > 0;
}
