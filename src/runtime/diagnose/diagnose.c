#include "runtime/diagnose/diagnose.h"

#include "runtime/diagnose/check.h"
#include "runtime/diagnose/differ.h"
#include "runtime/diagnose/explain.h"
#include "runtime/diagnose/waits/requests.h"

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

#define CHECKS \
    .compare = mc_check_call, .refused = mc_check_refused, .compare_group = mc_check_group
#define EXPLAINS                                                               \
    .made = mc_explain_made, .bound = mc_explain_bound, .ran = mc_explain_ran, \
    .freed = mc_explain_freed, .on_gpu = mc_explain_on_gpu, .took = mc_explain_took

static const mc_hooks_t checks = {CHECKS}, explains = {EXPLAINS}, both = {CHECKS, EXPLAINS};

int mc_switch_read(const char *name, const char *text, bool *on)
{
    if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return mc_fail(MESHCOLL_ERR_PARSE, "%s is 0 or 1; got '%s'", name, text);
    *on = text && *text == '1';
    return MESHCOLL_OK;
}

int mc_diagnose_open(meshcoll_t *h, const mc_settings_t *settings)
{
    bool is_checked = false;
    h->hooks = &mc_no_hooks;
    int status = mc_switch_read("MESHCOLL_CHECK", settings->check, &is_checked);
    if (!status)
        status = mc_explain_create(settings, &h->explain);
    if (!status && (is_checked || h->explain))
        h->hooks = !h->explain ? &checks : is_checked ? &both : &explains;
    return status;
}

void mc_diagnose_close(meshcoll_t *h)
{
    h->hooks = &mc_no_hooks;
    mc_explain_destroy(h->explain);
    h->explain = NULL;
}

void mc_diagnose_report(const meshcoll_t *h)
{
    if (h->explain)
        mc_explain_print(h);
}
