#include "runtime/diagnose/status/status.h"

#include "base/table.h"
#include "runtime/diagnose/waits/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ranges of ranks on a line, and causes; more are left out. */
enum { MOST_RANGES = 16, MOST_CAUSES = 8 };

/* The table ---------------------------------------------------------------------------------------- */

static void add_state(const mc_status_rank_t *r, mc_table_t *table)
{
    if (r->answered && !r->waits.broken && r->waits.n > 0)
        mc_table_add(table, "waits for %.1f s", (double)r->waits.wait[0].still_ms / 1000);
    else
        mc_table_add(table, !r->answered      ? "does not answer"
                            : r->waits.broken ? "failed"
                                              : "does not wait");
}

static int print_table(const mc_status_t *s, FILE *out)
{
    mc_table_t table = mc_table("rrlll");
    mc_table_add(&table, "rank\tprocess\thost\tplace\tstate");
    for (int32_t r = 0; r < s->n; r++) {
        const mc_waits_t *const w = &s->rank[r].waits;
        mc_table_add(&table, "%" PRId32 "\t%" PRId32 "\t%.*s", r, w->pid, MC_WAIT_HOST - 1,
                     w->host);
        if (w->place.name[0])
            mc_table_add(&table, "%.*s %" PRId32, MC_WAIT_PLACE - 1, w->place.name, w->place.at);
        else
            mc_table_add(&table, "-");
        add_state(&s->rank[r], &table);
    }
    return mc_table_print(&table, 2, out);
}

/* Sentences ------------------------------------------------------------------------------------------ */

/* What one rank does. */
typedef struct {
    char text[MC_WAIT_TEXT];
    int32_t rank;
    int64_t ms;        /* since when; -1: not known */
    const char *timed; /* goes between text and time */
} line_t;

typedef struct {
    line_t *line;
    size_t n;
} lines_t;

static line_t *add_line(lines_t *l, int32_t rank, int64_t ms, const char *timed)
{
    line_t *const line = &l->line[l->n++];
    line->rank = rank;
    line->ms = ms;
    line->timed = timed;
    return line;
}

static void add_idle(const mc_waits_t *w, int32_t rank, lines_t *l)
{
    line_t *const line = add_line(l, rank, w->looked_ms, " for");
    mc_text_t text = mc_text(line->text, sizeof line->text);
    const uint32_t calls = w->n_meshes > 0 ? w->mesh[0].n_calls : 0;
    mc_text_add(&text, "%" PRIu32 " call%s made; %s waiting in the library", calls,
                calls == 1 ? "" : "s", w->looked_ms >= 0 ? "has not been" : "is not");
}

static void add_lines(const mc_status_rank_t *r, int32_t rank, lines_t *l)
{
    if (!r->answered)
        return;
    for (int32_t i = 0; i < r->waits.n && i < MC_WAITS_REQUESTS; i++) {
        line_t *const line = add_line(l, rank, r->waits.wait[i].still_ms, ", for");
        mc_text_t text = mc_text(line->text, sizeof line->text);
        mc_wait_print_what(&r->waits.wait[i], MC_WAIT_LONG, &text);
    }
    if (r->waits.n == 0)
        add_idle(&r->waits, rank, l);
}

static int by_text(const void *a, const void *b)
{
    const line_t *const x = a, *const y = b;
    const int order = strcmp(x->text, y->text);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* A run of lines with the same text. */
typedef struct {
    const line_t *first;
    size_t n;
} fold_t;

static int by_rank(const void *a, const void *b)
{
    const fold_t *const x = a, *const y = b;
    return (x->first->rank > y->first->rank) - (x->first->rank < y->first->rank);
}

/* "ranks 0-2, 5" */
static void print_ranks(const fold_t *f, FILE *out)
{
    int n = 0;
    fprintf(out, f->first[f->n - 1].rank == f->first[0].rank ? "rank" : "ranks");
    for (size_t i = 0, end; i < f->n; i = end) {
        for (end = i + 1; end < f->n && f->first[end].rank <= f->first[end - 1].rank + 1;)
            end++;
        const int32_t from = f->first[i].rank, to = f->first[end - 1].rank;
        fprintf(out, n++ ? ", %" PRId32 : " %" PRId32, from);
        if (to > from)
            fprintf(out, "-%" PRId32, to);
        if (n == MOST_RANGES && end < f->n) {
            fprintf(out, ", and others");
            return;
        }
    }
}

static void print_fold(const fold_t *f, FILE *out)
{
    int64_t most = -1;
    for (size_t i = 0; i < f->n; i++)
        most = f->first[i].ms > most ? f->first[i].ms : most;
    print_ranks(f, out);
    fprintf(out, ": %s", f->first->text);
    if (most >= 0)
        fprintf(out, "%s %.1f s", f->first->timed, (double)most / 1000);
    fputc('\n', out);
}

static int print_lines(lines_t *l, FILE *out)
{
    fold_t *const fold = calloc(l->n + 1, sizeof *fold);
    size_t n = 0;
    if (!fold)
        return mc_fail_memory("a report");
    qsort(l->line, l->n, sizeof *l->line, by_text);
    for (size_t i = 0; i < l->n; i++) {
        if (i == 0 || strcmp(l->line[i].text, l->line[i - 1].text) != 0)
            fold[n++].first = &l->line[i];
        fold[n - 1].n++;
    }
    qsort(fold, n, sizeof *fold, by_rank);
    for (size_t i = 0; i < n; i++)
        print_fold(&fold[i], out);
    free(fold);
    return MESHCOLL_OK;
}

/* Causes --------------------------------------------------------------------------------------------- */

static int find(const void *context, int32_t rank, mc_waits_t *waits)
{
    const mc_status_t *const s = context;
    for (int32_t r = 0; r < s->n; r++)
        if (s->rank[r].waits.rank == rank && s->rank[r].answered) {
            *waits = s->rank[r].waits;
            return 0;
        }
    return MESHCOLL_ERR_TRANSPORT;
}

static mc_verdict_t follow(const mc_status_t *s, const mc_wait_t *wait, int32_t most)
{
    const mc_peer_query_t query = {find, s};
    return mc_verdict_find(&query, wait, most, INFINITY);
}

/* A rank may come several times, in several calls; after so many waits they repeat. */
static int32_t most_waits(const mc_status_t *s)
{
    return s->n * MC_WAITS_REQUESTS;
}

typedef struct {
    char text[MOST_CAUSES][MC_WAIT_TEXT];
    int n;
    bool has_circle;
} causes_t;

/* Of a rank in it, from the lowest one on. */
static void print_circle(const mc_status_t *s, const mc_verdict_t *in, mc_text_t *text)
{
    mc_verdict_t first = *in, v = *in;
    for (int32_t i = 0; i < most_waits(s); i++) {
        v = follow(s, &v.own, 0);
        if (v.wait.known_as < first.wait.known_as)
            first = v;
    }
    const int32_t lowest = first.wait.known_as;
    mc_text_add(text, "ranks wait for one another: rank %" PRId32, lowest);
    for (v = first; v.own.known_as != lowest; v = follow(s, &v.own, 0))
        mc_text_add(text, " for %" PRId32 ", %" PRId32, v.own.known_as, v.own.known_as);
    mc_text_add(text, " for %" PRId32 "; all ranks must make the same calls in the same order",
                lowest);
}

static void add_cause(const mc_status_t *s, const mc_verdict_t *v, causes_t *c)
{
    char text[MC_WAIT_TEXT];
    mc_text_t t = mc_text(text, sizeof text);
    const bool circle = v->kind == MC_PEER_WAITS;
    if (c->n == MOST_CAUSES || v->kind == MC_PEER_BUSY || (circle && c->has_circle))
        return;
    c->has_circle |= circle;
    if (circle)
        print_circle(s, v, &t);
    else
        mc_verdict_print(v, &t);
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->text[i], text) == 0)
            return;
    memcpy(c->text[c->n++], text, sizeof text);
}

static int print_causes(const mc_status_t *s, FILE *out)
{
    causes_t *const causes = calloc(1, sizeof *causes);
    if (!causes)
        return mc_fail_memory("a report");
    for (int32_t r = 0; r < s->n; r++) {
        const mc_wait_t *const wait = &s->rank[r].waits.wait[0];
        if (!s->rank[r].answered || s->rank[r].waits.n == 0 || wait->peer < 0)
            continue;
        mc_verdict_t v = follow(s, wait, s->n);
        if (v.kind == MC_PEER_WAITS && !causes->has_circle)
            v = follow(s, &v.own, most_waits(s));
        add_cause(s, &v, causes);
    }
    for (int i = 0; i < causes->n; i++)
        fprintf(out, "%s%s\n", i == 0 ? "\ncause: " : "and ", causes->text[i]);
    free(causes);
    return MESHCOLL_OK;
}

int mc_status_print(const mc_status_t *status, FILE *out)
{
    lines_t l = {.line = calloc((size_t)status->n * MC_WAITS_REQUESTS, sizeof *l.line)};
    if (!l.line)
        return mc_fail_memory("a report");
    const locale_t before = mc_number_enter();
    for (int32_t r = 0; r < status->n; r++)
        add_lines(&status->rank[r], r, &l);
    int failed = print_table(status, out);
    fputc('\n', out);
    if (!failed)
        failed = print_lines(&l, out);
    if (!failed)
        failed = print_causes(status, out);
    mc_number_leave(before);
    free(l.line);
    return failed;
}
