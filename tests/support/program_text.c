/* The check and the text of a program. */
#include "support/program_text.h"

#include "gpu/program/join.h"
#include "gpu/program/piece.h"

#include <inttypes.h>

static bool is_reduction(const mc_device_run_t *r)
{
    return r->op == MC_DEVICE_RECV_REDUCE || r->op == MC_DEVICE_REDUCE ||
           r->op == MC_DEVICE_DIVIDE || r->op == MC_DEVICE_SCALE;
}

static int fail(const mc_device_program_t *p, uint32_t i, const char *what)
{
    return mc_fail(MESHCOLL_ERR_PLAN, "rank %d, run %u (%s, of step %u): %s", p->rank, i,
                   mc_device_op_name(p->run[i].op), p->run[i].step, what);
}

/* Do n chunks at this distance lie within `room` bytes? */
static bool fits(uint64_t first, int64_t stride, uint32_t n, uint64_t bytes, uint64_t room)
{
    const int64_t span = stride * (int64_t)(n - 1);
    const int64_t low = (int64_t)first + (span < 0 ? span : 0);
    const int64_t high = (int64_t)first + (span > 0 ? span : 0);
    return low >= 0 && (uint64_t)high + bytes <= room;
}

static int check_buffers(const mc_device_program_t *p, uint32_t i,
                         const uint64_t room[MC_DEVICE_BUFFERS])
{
    const mc_device_run_t *const r = &p->run[i];
    const bool reads = r->op != MC_DEVICE_RECV && r->op != MC_DEVICE_DIVIDE;
    const bool writes = r->op != MC_DEVICE_SEND;
    if (reads != (r->from_buffer != MC_DEVICE_NONE) || writes != (r->to_buffer != MC_DEVICE_NONE) ||
        r->from_buffer > MC_DEVICE_NONE || r->to_buffer > MC_DEVICE_NONE)
        return fail(p, i, "it reads or writes another number of buffers than its operation does");
    if (r->to_buffer == MC_DEVICE_IN)
        return fail(p, i, "it writes the input");
    if (reads && !fits(r->from, r->from_stride, r->n, r->bytes, room[r->from_buffer]))
        return fail(p, i, "it reads beyond its buffer");
    if (writes && !fits(r->to, r->to_stride, r->n, r->bytes, room[r->to_buffer]))
        return fail(p, i, "it writes beyond its buffer");
    return MESHCOLL_OK;
}

static int check_message(const mc_device_program_t *p, uint32_t i, uint32_t *chunks)
{
    const mc_device_run_t *const r = &p->run[i];
    if (!mc_device_is_message(r))
        return r->flags & MC_DEVICE_NO_TRACK ? fail(p, i, "it has flags, but no message")
                                             : MESHCOLL_OK;
    if (r->lane >= 2 * p->n_peers || r->lane % 2 != (r->op != MC_DEVICE_SEND))
        return fail(p, i, "its lane is not one of this rank's, or of the other direction");
    if (r->flags & MC_DEVICE_MORE && r->flags & MC_DEVICE_JOIN)
        return fail(p, i, "its message goes on, and is joined to another one here");
    if (r->flags & MC_DEVICE_DIRECT && r->op != MC_DEVICE_SEND &&
        (r->op != MC_DEVICE_RECV || r->to_buffer != MC_DEVICE_OUT))
        return fail(p, i, "its message is direct, but is not stored in OUT");
    *chunks += r->n;
    if (*chunks > p->widest)
        return fail(p, i, "its message has more chunks than the widest");
    if (!(r->flags & MC_DEVICE_MORE))
        *chunks = 0;
    else if (i + 1 == p->n_runs || r[1].step != r->step)
        return fail(p, i, "its message goes on, but the next run is of another one");
    else if ((r[1].flags ^ r->flags) & MC_DEVICE_DIRECT)
        return fail(p, i, "its message is direct in part");
    return MESHCOLL_OK;
}

static int check_joined(const mc_device_program_t *p)
{
    for (uint32_t i = 0; i < p->n_runs;) {
        if (!mc_device_is_message(&p->run[i])) {
            i++;
            continue;
        }
        const char *const fault = mc_device_join_fault(p->run, p->n_runs, &i);
        if (fault)
            return fail(p, i, fault);
    }
    return MESHCOLL_OK;
}

/* Marks of a track are set one after the other, and none is awaited before it is set in program order. */
static int check_order(const mc_device_program_t *p, uint32_t i, uint32_t marks[MC_DEVICE_TRACKS])
{
    const mc_device_run_t *const r = &p->run[i];
    const uint32_t own = mc_device_track(r);
    if (own >= p->tracks || p->tracks > MC_DEVICE_TRACKS || p->tracks > p->blocks)
        return fail(p, i, "it is of no track");
    if (r->op == MC_DEVICE_MARK && (r->lane != own || r->n != ++marks[own]))
        return fail(p, i, "its mark is not the next one of its track");
    if (r->op == MC_DEVICE_AFTER &&
        (r->lane == own || r->lane >= p->tracks || r->n == 0 || r->n > marks[r->lane]))
        return fail(p, i, "it waits for a mark that is not set before it by another track");
    return MESHCOLL_OK;
}

static int check_move(const mc_device_program_t *p, uint32_t i,
                      const uint64_t room[MC_DEVICE_BUFFERS], uint32_t *chunks)
{
    const mc_device_run_t *const r = &p->run[i];
    if (r->n == 0 || r->bytes == 0)
        return fail(p, i, "it has no chunks, or empty ones");
    if (r->slice > p->longest || r->slice % MC_DEVICE_WORD ||
        r->slice * (p->blocks / p->tracks) < r->bytes)
        return fail(p, i, "its slices do not cover its chunks");
    if (is_reduction(r) &&
        (r->bytes % p->element || MC_DEVICE_WORD % p->element || p->body == MC_DEVICE_BODY_move))
        return fail(p, i, "it cuts elements, or there is nothing to reduce them with");
    const int status = check_buffers(p, i, room);
    return status ? status : check_message(p, i, chunks);
}

int mc_device_program_check(const mc_device_program_t *program,
                            const uint64_t room[MC_DEVICE_BUFFERS])
{
    uint32_t chunks = 0, marks[MC_DEVICE_TRACKS] = {0};
    for (uint32_t i = 0; i < program->n_runs; i++) {
        const mc_device_run_t *const r = &program->run[i];
        if (r->op >= MC_DEVICE_OPS)
            return fail(program, i, "it has no known operation");
        if (r->step > program->n_steps || (i > 0 && r->step < r[-1].step))
            return fail(program, i, "its step is before the last one, or not of the plan");
        int status = check_order(program, i, marks);
        if (!status && r->op < MC_DEVICE_MARK)
            status = check_move(program, i, room, &chunks);
        if (status)
            return status;
    }
    for (uint32_t t = 0; t < MC_DEVICE_TRACKS; t++)
        if (marks[t] != program->marks[t])
            return mc_fail(MESHCOLL_ERR_PLAN, "rank %d, track %u: %u marks, expected %u",
                           program->rank, t, marks[t], program->marks[t]);
    return check_joined(program);
}

static void print_side(uint8_t buffer, uint64_t at, int64_t stride, uint32_t n, mc_text_t *text)
{
    if (buffer == MC_DEVICE_NONE) {
        mc_text_add(text, "message");
        return;
    }
    mc_text_add(text, "%s+%" PRIu64, mc_buffer_name((mc_buffer_t)buffer), at);
    if (n > 1)
        mc_text_add(text, " every %" PRId64, stride);
}

static void print_run(const mc_device_program_t *p, const mc_device_run_t *r, mc_text_t *text)
{
    mc_text_add(text, "%4u ", r->step);
    if (p->tracks > 1)
        mc_text_add(text, "track %u: ", mc_device_track(r));
    mc_text_add(text, "%s", mc_device_op_name(r->op));
    if (r->op >= MC_DEVICE_MARK) {
        mc_text_add(text, r->op == MC_DEVICE_MARK ? " %u\n" : " mark %u of track %u\n", r->n,
                    r->lane);
        return;
    }
    if (mc_device_is_message(r))
        mc_text_add(text, " lane %u (rank %d)", r->lane, p->peer[r->lane / 2]);
    mc_text_add(text, " %u x %" PRIu64 ": ", r->n, r->bytes);
    if (r->op != MC_DEVICE_DIVIDE) {
        print_side(r->from_buffer, r->from, r->from_stride, r->n, text);
        mc_text_add(text, " -> ");
    }
    const bool sent_direct = r->op == MC_DEVICE_SEND && r->flags & MC_DEVICE_DIRECT;
    print_side(sent_direct ? MC_DEVICE_OUT : r->to_buffer, r->to, r->to_stride, r->n, text);
    mc_text_add(text, "%s%s%s%s%s\n", sent_direct ? " of the peer" : "",
                r->flags & MC_DEVICE_DIRECT ? ", direct" : "",
                r->flags & MC_DEVICE_MORE ? ", more" : "",
                r->flags & MC_DEVICE_JOIN ? ", joined to the next" : "",
                r->flags & MC_DEVICE_DROP ? ", not kept" : "");
}

void mc_device_program_print(const mc_device_program_t *program, mc_text_t *text)
{
    mc_text_add(text,
                "rank %d of %d: %s, elements of %u bytes, %u blocks, %u tracks, %u runs, %u peers, "
                "widest %u\n",
                program->rank, program->ranks, mc_device_body_name(program->body), program->element,
                program->blocks, program->tracks, program->n_runs, program->n_peers,
                program->widest);
    for (uint32_t i = 0; i < program->n_runs; i++)
        print_run(program, &program->run[i], text);
}
