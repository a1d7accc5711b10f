/* What came out of a verification, as text and as JSON. */
#include "tools/verify/verify_command.h"

typedef struct {
    const mc_verify_job_t *job;
    const mc_verify_result_t *result;
    bool in_all; /* a line for all collectives together */
} report_t;

typedef struct {
    uint64_t meshes, all_meshes, strategies, worlds;
    /* of the world that needs the most messages in flight; NULL: none was done */
    const mc_verify_item_t *item;
    const mc_verify_count_t *most;
} sum_t;

static void take_most(sum_t *sum, const mc_verify_item_t *item, const mc_verify_count_t *most)
{
    if (most && most->in_flight > (sum->most ? sum->most->in_flight : 0)) {
        sum->item = item;
        sum->most = most;
    }
}

/* A mesh counts when all of its items for the collective are done. */
static sum_t sum_of(const report_t *r, int collective)
{
    sum_t sum = {0};
    for (size_t i = 0; i < r->job->n;) {
        const mc_verify_item_t *const first = &r->job->item[i];
        bool done = true;
        const bool counts = (int)first->collective == collective;
        for (uint32_t k = 0; k < first->stripes; k++, i++) {
            const mc_verify_count_t *const count = &r->result->count[i];
            done = done && count->done;
            sum.strategies += counts ? count->strategies : 0;
            sum.worlds += counts ? count->worlds : 0;
            take_most(&sum, first, counts ? count : NULL);
        }
        sum.meshes += counts && done;
        sum.all_meshes += counts;
    }
    return sum;
}

static void add_sum(sum_t *total, sum_t sum)
{
    total->meshes += sum.meshes;
    total->all_meshes += sum.all_meshes;
    total->strategies += sum.strategies;
    total->worlds += sum.worlds;
    take_most(total, sum.item, sum.most);
}

static void add_counts(mc_table_t *table, const char *name, sum_t sum)
{
    const bool all = sum.meshes == sum.all_meshes;
    mc_table_add(table, "%s\t%s%s%s\t%s\t%s\t%u", name, mc_print_count(sum.meshes).text,
                 all ? "" : " of ", all ? "" : mc_print_count(sum.all_meshes).text,
                 mc_print_count(sum.strategies).text, mc_print_count(sum.worlds).text,
                 sum.most ? sum.most->in_flight : 0);
}

static int print_sums(const report_t *r, sum_t *total)
{
    mc_table_t table = mc_table("lrrrr");
    *total = (sum_t){0};
    mc_table_add(&table, "collective\tmeshes\tstrategies\tworlds\tin flight");
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const sum_t sum = sum_of(r, c);
        add_sum(total, sum);
        if (sum.all_meshes > 0)
            add_counts(&table, mc_moves[c].name, sum);
    }
    if (r->in_all)
        add_counts(&table, "in all", *total);
    return mc_table_print(&table, 2, stdout);
}

enum { REPEAT_TEXT = MC_MESH_TEXT + MC_STRATEGY_TEXT + 128 };

/* The command that verifies one world of the item: until the next of these calls. */
static const char *repeat_command(const mc_verify_item_t *item, const mc_strategy_t *s,
                                  int32_t root)
{
    static char buffer[REPEAT_TEXT];
    mc_text_t text = mc_text(buffer, REPEAT_TEXT);
    const mc_mesh_t *const m = &item->mesh->mesh;
    mc_text_add(&text, "meshcoll verify %s --mesh %s --strategy \"%s\"",
                mc_moves[item->collective].name, mc_show_mesh(m), mc_show_strategy(s, m));
    if (mc_moves[item->collective].rooted)
        mc_text_add(&text, " --root %d", root);
    return buffer;
}

static const char *repeat_failure(const report_t *r)
{
    const mc_verify_at_t *const at = &r->result->failure;
    return repeat_command(&r->job->item[at->item], &at->strategy, at->root);
}

static const char *repeat_most(sum_t sum)
{
    return repeat_command(sum.item, &sum.most->strategy, sum.most->root);
}

static void print_failure(const report_t *r)
{
    fflush(stdout);
    fprintf(stderr, "meshcoll verify: wrong: %s\nrepeat it with: %s\n", r->result->message,
            repeat_failure(r));
}

/* How many messages in flight the worlds need in program order, and which of several needs them. */
static void print_in_flight(sum_t total)
{
    if (!total.most)
        return;
    const uint32_t n = total.most->in_flight;
    printf("in program order with %u message%s in flight from one rank to another", n,
           n == 1 ? "" : "s");
    if (n > 1 && total.worlds > 1)
        printf("; the first to need %u:\n  %s", n, repeat_most(total));
    printf("\n");
}

static void print_closing(const report_t *r, sum_t total)
{
    const mc_verify_result_t *const result = r->result;
    const mc_printed_t time = mc_print_seconds(result->elapsed);
    char worlds[64];
    snprintf(worlds, sizeof worlds, "%s world%s", mc_print_count(total.worlds).text,
             total.worlds == 1 ? "" : "s");
    if (result->failed)
        printf("\nnot verified: stopped at the first fault, after %s and %s\n", worlds, time.text);
    else if (total.meshes < total.all_meshes)
        printf("\nout of time after %d s: %s verified, all right; the rest, mostly larger meshes, "
               "was not looked at\n",
               r->job->seconds, worlds);
    else
        printf("\nverified: %s, all right, in %s\n", worlds, time.text);
    if (!result->failed)
        print_in_flight(total);
}

static int exit_of(const mc_verify_result_t *result, sum_t total)
{
    if (result->failed)
        return MC_EXIT_FAILED;
    return total.meshes < total.all_meshes ? MC_EXIT_PARTIAL : MC_EXIT_OK;
}

static json_t *json_sum(sum_t sum)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:s?}", "meshes", (json_int_t)sum.meshes,
                     "meshes_asked", (json_int_t)sum.all_meshes, "strategies",
                     (json_int_t)sum.strategies, "worlds", (json_int_t)sum.worlds, "in_flight",
                     (json_int_t)(sum.most ? sum.most->in_flight : 0), "in_flight_at",
                     sum.most ? repeat_most(sum) : NULL);
}

static json_t *json_failure(const report_t *r)
{
    if (!r->result->failed)
        return json_null();
    return json_pack("{s:s, s:s}", "message", r->result->message, "repeat", repeat_failure(r));
}

static int print_json(const report_t *r)
{
    const mc_verify_result_t *const result = r->result;
    sum_t total = {0};
    json_t *const list = json_array();
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const sum_t sum = sum_of(r, c);
        add_sum(&total, sum);
        if (sum.all_meshes == 0)
            continue;
        json_t *const one = json_sum(sum);
        json_object_set_new(one, "collective", json_string(mc_moves[c].name));
        json_array_append_new(list, one);
    }
    const int exit = exit_of(result, total);
    const int printed = mc_json_print(
        json_pack("{s:s, s:o, s:o, s:f, s:b, s:o}", "command", "verify", "collectives", list,
                  "in_all", json_sum(total), "seconds", result->elapsed, "complete",
                  exit == MC_EXIT_OK, "failure", json_failure(r)));
    return printed ? printed : exit;
}

int mc_verify_report(const mc_verify_job_t *job, const mc_verify_result_t *result, bool in_all,
                     bool json)
{
    const report_t r = {.job = job, .result = result, .in_all = in_all};
    sum_t total;
    if (json)
        return print_json(&r);
    const int status = print_sums(&r, &total);
    if (status)
        return status;
    print_closing(&r, total);
    if (result->failed)
        print_failure(&r);
    return exit_of(result, total);
}
