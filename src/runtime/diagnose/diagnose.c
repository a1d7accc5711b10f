#include "runtime/diagnose/diagnose.h"

#include "runtime/diagnose/diagnosis.h"
#include "runtime/diagnose/differ.h"
#include "runtime/diagnose/waits/limits.h"
#include "runtime/diagnose/waits/publish.h"

#include <stdlib.h>
#include <string.h>

/* Jobs ------------------------------------------------------------------------------------------- */

static int watches(mc_job_t *job, int64_t now_ms)
{
    const int status = mc_differ_ask(job, now_ms);
    return status ? status : mc_limits_poll(job, now_ms);
}

static const mc_job_hooks_t of_jobs = {.differs = mc_differ_check,
                                       .watches = watches,
                                       .ended = mc_waits_forget,
                                       .broke = mc_waits_break,
                                       .introduces = mc_differ_introduce,
                                       .meets = mc_differ_meet};

int mc_diagnose_open_job(mc_job_t *job)
{
    job->hooks = &of_jobs;
    return mc_waits_open(job);
}

void mc_diagnose_close_job(mc_job_t *job)
{
    mc_waits_close(job);
}

/* Meshes ----------------------------------------------------------------------------------------- */

#define CHECKS                                                                               \
    .compare = mc_check_call, .compare_now = mc_check_call_now, .refused = mc_check_refused, \
    .group_opened = mc_check_group_opened, .group_added = mc_check_group_added,              \
    .group_refused = mc_check_group_refused, .group_ends = mc_check_group_ends
#define EXPLAINS                                                                   \
    .made = mc_explain_made, .binds = mc_explain_binds, .bound = mc_explain_bound, \
    .ran = mc_explain_ran, .freed = mc_explain_freed, .on_gpu = mc_explain_on_gpu, \
    .took = mc_explain_took

static const mc_hooks_t checks = {CHECKS}, explains = {EXPLAINS}, both = {CHECKS, EXPLAINS};

static int read_check(const char *text, bool *is_on)
{
    if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return mc_fail(MESHCOLL_ERR_PARSE, "MESHCOLL_CHECK is 0 or 1; got '%s'", text);
    *is_on = text && *text == '1';
    return MESHCOLL_OK;
}

int mc_diagnose_open(meshcoll_t *h, const mc_settings_t *settings)
{
    mc_explain_t *explain = NULL;
    bool is_checked = false;
    h->hooks = &mc_no_hooks;
    int status = read_check(settings->check, &is_checked);
    if (!status)
        status = mc_explain_create(settings, &explain);
    if (status || (!is_checked && !explain))
        return status;
    h->diagnosis = calloc(1, sizeof *h->diagnosis);
    if (!h->diagnosis) {
        mc_explain_destroy(explain);
        return mc_fail_memory("what is kept of calls");
    }
    h->diagnosis->explain = explain;
    h->hooks = !explain ? &checks : is_checked ? &both : &explains;
    return MESHCOLL_OK;
}

void mc_diagnose_close(meshcoll_t *h)
{
    h->hooks = &mc_no_hooks;
    if (!h->diagnosis)
        return;
    mc_explain_destroy(h->diagnosis->explain);
    free(h->diagnosis->checks.call);
    free(h->diagnosis);
    h->diagnosis = NULL;
}

void mc_diagnose_report(const meshcoll_t *h)
{
    if (h->diagnosis && h->diagnosis->explain)
        mc_explain_print(h);
}
