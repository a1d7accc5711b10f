/* The event loop. What happens at one instant is gathered first: messages that arrive, sums that end, and what then is
 * ready. After that each port starts what it may, and at last the links tell when messages leave them. So no result
 * depends on the order of events of an instant. */
#include "simulate/simulate.h"

#include "simulate/queue.h"
#include "simulate/sim_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps of events that are none: the rank starts, a port (at - WAKE) is free; a receiver learns that it can pull what a
 * step (at - OFFER) sends. */
enum { START = INT32_MAX, WAKE = START - 1 - MC_MAX_DIMS, OFFER = 1 << 30 };

/* A port, or the processor that sums: what is ready is a heap by program order, of up to FEW in place. */
enum { FEW = 2 };
typedef struct {
    int64_t free_at;
    union {
        uint32_t few[FEW], *more;
    } ready;
    uint32_t n;
    uint8_t bits; /* more: of so many bits; 0: few */
    uint8_t under_way;
    bool waiting, listed; /* a wake is due; it is in the list of those to look at */
} port_t;

/* What a dimension's link takes, in ps; beta and gamma for each chunk. */
typedef struct {
    int64_t alpha, gap;
    double beta, gamma;
    int32_t wire;
    bool pulled;
} way_t;

/* An actor as the loop reads it. */
typedef struct {
    const mc_program_t *program;
    const mc_sim_pair_t *pair; /* by slot */
    /* Two bits a step: it has ended; its message has arrived, or can be pulled. A word of each actor of a program follows
     * that of the one before, as they all are at about the same step: the next word is `stride` further. */
    uint64_t *done;
    uint32_t stride;
} actor_t;

typedef struct {
    /* begin, load: when those that share it now began, and for how long; busy: for how long it was in use in all. */
    int64_t begin, load, busy;
    double beta;   /* ps a chunk; 0: that of the message's dimension */
    double slow;   /* a factor of the latter */
    bool receiver; /* a gap follows each message */
    uint64_t round;
} link_t;

typedef struct {
    const mc_simulation_t *q;
    const mc_orbits_t *orbits;
    const mc_sim_world_t *w;
    mc_simulated_t *result;
    way_t way[MC_MAX_DIMS];
    double each;          /* bytes of a chunk */
    int64_t now, call;    /* call: what a call takes besides */
    uint64_t round, left; /* steps that have not ended */
    int32_t n_ports;      /* of an actor: by wire, and the processor */
    port_t *port;
    link_t *link;
    actor_t *actor;
    uint64_t *done;
    mc_queue_t queue;
    mc_event_list_t look;       /* ports to look at: their actor, and which */
    mc_event_list_t todo, sent; /* steps that have ended; that leave now */
    mc_event_list_t happening;  /* of this instant */
} sim_t;

enum { ENDED = 1, THERE = 2 };

static bool has(const actor_t *a, uint32_t step, unsigned bit)
{
    return a->done[(size_t)(step / 32) * a->stride] >> step % 32 * 2 & bit;
}
static void set(const actor_t *a, uint32_t step, unsigned bit)
{
    a->done[(size_t)(step / 32) * a->stride] |= (uint64_t)bit << step % 32 * 2;
}

static void push(sim_t *s, mc_event_list_t *list, uint32_t actor, uint32_t step)
{
    mc_event_push(list, actor, step, &s->queue.failed);
}

/* Steps ------------------------------------------------------------------------------------------- */

static int64_t rounded(double ps)
{
    return (int64_t)(ps + 0.5);
}
static const mc_sim_step_t *step_of(const sim_t *s, uint32_t actor, uint32_t step)
{
    return &s->actor[actor].program->step[step];
}
static const mc_sim_pair_t *pair_of(const sim_t *s, uint32_t actor, uint32_t step)
{
    return &s->actor[actor].pair[step_of(s, actor, step)->slot];
}
/* The step of the peer that belongs to this message: at the other end of the way. */
static uint32_t partner(const sim_t *s, const mc_sim_pair_t *pair, int way, uint32_t seq)
{
    const mc_program_t *const there = s->actor[pair->peer].program;
    return there->message[way][there->off[way][pair->back] + seq];
}
static bool has_message(mc_op_t op)
{
    return mc_op_sends(op) || mc_op_receives(op);
}
/* ps in which a rank adds up what the step has: as its message's link says, or that of its phase. */
static int64_t sum_takes(const sim_t *s, uint32_t actor, uint32_t step)
{
    const mc_sim_step_t *const is = step_of(s, actor, step);
    const mc_op_t op = (mc_op_t)is->op;
    if (op != MC_OP_RECV_REDUCE && !mc_op_adds(op))
        return 0;
    const int32_t d = has_message(op) ? s->actor[actor].pair[is->slot].dim
                                      : s->q->strategy->phase[is->phase].dims.first;
    return rounded(is->chunks * s->way[d].gamma);
}

static bool is_ready(const sim_t *s, uint32_t actor, uint32_t step)
{
    const actor_t *const a = &s->actor[actor];
    const mc_program_t *const p = a->program;
    uint32_t e = p->pred_off[step + 1];
    if (e == p->pred_off[step])
        return has(a, p->plan->n_steps, ENDED) &&
               (!s->q->bucket || s->q->bucket[p->step[step].bucket].ready <= s->now);
    while (e-- > p->pred_off[step])
        if (!has(a, p->pred[e], ENDED))
            return false;
    return true;
}

static port_t *port_of(const sim_t *s, uint32_t actor, int32_t which)
{
    return &s->port[actor * (uint32_t)s->n_ports + (uint32_t)which];
}

/* Where something is ready, what it may start is found when all of the instant is known. */
static void look_at(sim_t *s, uint32_t actor, int32_t which)
{
    port_t *const port = port_of(s, actor, which);
    if (port->listed || port->n == 0)
        return;
    port->listed = true;
    push(s, &s->look, actor, (uint32_t)which);
}

static uint32_t *queue_of(port_t *port)
{
    return port->bits ? port->ready.more : port->ready.few;
}

static bool grow_queue(port_t *port)
{
    const uint8_t bits = port->bits ? port->bits + 1 : 3;
    uint32_t *const more = realloc(port->bits ? port->ready.more : NULL, sizeof *more << bits);
    if (!more)
        return false;
    if (!port->bits)
        memcpy(more, port->ready.few, sizeof port->ready.few);
    port->ready.more = more;
    port->bits = bits;
    return true;
}

/* Puts a step in the queue of a port. */
static void enqueue(sim_t *s, uint32_t actor, int32_t which, uint32_t step)
{
    port_t *const port = port_of(s, actor, which);
    if (port->n == (port->bits ? 1u << port->bits : FEW) && !grow_queue(port)) {
        s->queue.failed = true;
        return;
    }
    uint32_t *const heap = queue_of(port);
    uint32_t i = port->n++;
    for (; i > 0 && heap[(i - 1) / 2] > step; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = step;
    look_at(s, actor, which);
}

static uint32_t dequeue(port_t *port)
{
    uint32_t *const heap = queue_of(port);
    uint32_t at = 0;
    const uint32_t first = heap[0], last = heap[--port->n];
    for (uint32_t k = 1; k < port->n; k = 2 * at + 1) {
        k += k + 1 < port->n && heap[k + 1] < heap[k];
        if (heap[k] >= last)
            break;
        heap[at] = heap[k];
        at = k;
    }
    heap[at] = last;
    return first;
}

/* The operands of a step are there: it adds them up, where that takes time. */
static void add_up(sim_t *s, uint32_t actor, uint32_t step)
{
    if (sum_takes(s, actor, step) > 0)
        enqueue(s, actor, s->n_ports - 1, step);
    else
        push(s, &s->todo, actor, step);
}

/* What it waited for has ended. */
static void get_ready(sim_t *s, uint32_t actor, uint32_t step)
{
    const mc_sim_step_t *const is = step_of(s, actor, step);
    if (!has_message((mc_op_t)is->op)) {
        add_up(s, actor, step);
        return;
    }
    const mc_sim_pair_t *const pair = &s->actor[actor].pair[is->slot];
    const way_t *const way = &s->way[pair->dim];
    if (mc_op_receives((mc_op_t)is->op)) {
        if (has(&s->actor[actor], step, THERE) && way->pulled)
            enqueue(s, actor, way->wire, step);
        else if (has(&s->actor[actor], step, THERE))
            add_up(s, actor, step);
    } else if (!way->pulled) {
        enqueue(s, actor, way->wire, step);
    } else {
        mc_queue_add(&s->queue, s->now + way->alpha, actor, OFFER + step);
    }
}

/* Ends the steps in the list, and those that only waited for these. */
static void end_steps(sim_t *s)
{
    while (s->todo.n > 0) {
        const uint32_t actor = s->todo.at[--s->todo.n].actor, step = s->todo.at[s->todo.n].step;
        const mc_plan_t *const plan = s->actor[actor].program->plan;
        s->result->phase[step_of(s, actor, step)->phase].last = s->now;
        if (s->q->bucket)
            s->q->bucket[step_of(s, actor, step)->bucket].ended = s->now + s->call;
        set(&s->actor[actor], step, ENDED);
        s->left--;
        for (uint32_t e = plan->succ_off[step]; e < plan->succ_off[step + 1]; e++)
            if (plan->n_pred[plan->succ[e]] == 1 || is_ready(s, actor, plan->succ[e]))
                get_ready(s, actor, plan->succ[e]);
    }
}

/* Messages ---------------------------------------------------------------------------------------- */

static void start_rank(sim_t *s, uint32_t actor)
{
    const mc_program_t *const p = s->actor[actor].program;
    const mc_bucket_t *const bucket = s->q->bucket;
    set(&s->actor[actor], p->plan->n_steps, ENDED); /* stands for the start */
    for (uint32_t k = 0; k == 0 || k < s->q->n_buckets; k++)
        if (!bucket || bucket[k].ready == s->now)
            for (uint32_t i = p->root_off[k]; i < p->root_off[k + 1]; i++)
                get_ready(s, actor, p->root[i]);
}

static void arrive(sim_t *s, uint32_t actor, uint32_t step)
{
    const mc_sim_pair_t *const pair = pair_of(s, actor, step);
    const way_t *const way = &s->way[pair->dim];
    const uint32_t there = partner(s, pair, MC_RECEIVES, step_of(s, actor, step)->seq);
    const uint32_t owner = way->pulled ? pair->peer : actor;
    port_of(s, owner, way->wire)->under_way--;
    look_at(s, owner, way->wire);
    push(s, &s->todo, actor, step);
    set(&s->actor[pair->peer], there, THERE);
    if (way->pulled || is_ready(s, pair->peer, there))
        add_up(s, pair->peer, there);
}

static void offer(sim_t *s, uint32_t actor, uint32_t step)
{
    const mc_sim_pair_t *const pair = pair_of(s, actor, step);
    const uint32_t there = partner(s, pair, MC_RECEIVES, step_of(s, actor, step)->seq);
    set(&s->actor[pair->peer], there, THERE);
    if (is_ready(s, pair->peer, there))
        enqueue(s, pair->peer, s->way[pair->dim].wire, there);
}

static void happen(sim_t *s, uint32_t actor, uint32_t step)
{
    if (step == START) {
        start_rank(s, actor);
    } else if (step >= WAKE) {
        port_of(s, actor, (int32_t)(step - WAKE))->waiting = false;
        look_at(s, actor, (int32_t)(step - WAKE));
    } else if (step >= OFFER) {
        offer(s, actor, step - OFFER);
    } else if (mc_op_sends((mc_op_t)step_of(s, actor, step)->op)) {
        arrive(s, actor, step);
    } else {
        port_of(s, actor, s->n_ports - 1)->under_way--;
        look_at(s, actor, s->n_ports - 1);
        push(s, &s->todo, actor, step);
    }
    end_steps(s);
    s->result->events++;
}

static void start_phase(sim_t *s, uint8_t phase)
{
    if (s->now < s->result->phase[phase].first)
        s->result->phase[phase].first = s->now;
}

/* Starts a message; returns for how long it occupies the port. */
static int64_t start_message(sim_t *s, uint32_t actor, uint32_t step)
{
    const mc_sim_step_t *is = step_of(s, actor, step);
    const mc_sim_pair_t *pair = &s->actor[actor].pair[is->slot];
    if (mc_op_receives((mc_op_t)is->op)) { /* pulled: what its sender sends */
        step = partner(s, pair, MC_SENDS, is->seq);
        actor = pair->peer;
        is = step_of(s, actor, step);
        pair = &s->actor[actor].pair[is->slot];
    }
    const way_t *const way = &s->way[pair->dim];
    const int64_t takes = rounded(is->chunks * way->beta);
    for (uint32_t h = 0; h < pair->n_hops; h++) {
        const mc_sim_hop_t hop = s->w->hop[pair->hop + h];
        link_t *const on = &s->link[hop.link];
        if (on->round != s->round) {
            on->begin = on->begin + on->load > s->now ? on->begin + on->load : s->now;
            on->load = 0;
            on->round = s->round;
        }
        const int64_t load = rounded(is->chunks * (on->beta > 0 ? on->beta : way->beta * on->slow));
        on->load += (load + (on->receiver ? way->gap : 0)) * hop.weight;
        on->busy += load * hop.weight;
    }
    push(s, &s->sent, actor, step);
    start_phase(s, is->phase);
    return takes + way->gap;
}

static void start_ports(sim_t *s)
{
    for (uint32_t i = 0; i < s->look.n; i++) {
        const uint32_t actor = s->look.at[i].actor, which = s->look.at[i].step;
        port_t *const port = port_of(s, actor, (int32_t)which);
        const bool sums = which + 1 == (uint32_t)s->n_ports;
        port->listed = false;
        while (port->n > 0 && port->free_at <= s->now &&
               port->under_way < (sums ? 1 : MC_UNDER_WAY)) {
            const uint32_t step = dequeue(port);
            port->under_way++;
            if (!sums) {
                port->free_at = s->now + start_message(s, actor, step);
                continue;
            }
            port->free_at = s->now + sum_takes(s, actor, step);
            mc_queue_add(&s->queue, port->free_at, actor, step);
        }
        if (port->n > 0 && port->free_at > s->now && !port->waiting && !sums) {
            port->waiting = true;
            mc_queue_add(&s->queue, port->free_at, actor, WAKE + which);
        }
    }
    s->look.n = 0;
}

static void record(const sim_t *s, uint32_t actor, uint32_t step, int64_t arrival)
{
    const mc_sim_step_t *const is = step_of(s, actor, step);
    const mc_sent_t sent = {s->w->rank[actor],
                            s->w->rank[s->actor[actor].pair[is->slot].peer],
                            is->phase,
                            is->chunks * s->each,
                            s->now,
                            arrival};
    s->q->record(s->q->context, &sent);
}

/* All that leave now have loaded their links. */
static void send_off(sim_t *s)
{
    for (uint32_t i = 0; i < s->sent.n; i++) {
        const uint32_t actor = s->sent.at[i].actor, step = s->sent.at[i].step;
        const mc_sim_pair_t *const pair = pair_of(s, actor, step);
        const way_t *const way = &s->way[pair->dim];
        int64_t leaves = s->now + rounded(step_of(s, actor, step)->chunks * way->beta);
        for (uint32_t h = 0; h < pair->n_hops; h++) {
            const link_t *const on = &s->link[s->w->hop[pair->hop + h].link];
            const int64_t left = on->begin + on->load - (on->receiver ? way->gap : 0);
            leaves = left > leaves ? left : leaves;
        }
        const int64_t arrival = leaves + (way->pulled ? 0 : way->alpha);
        mc_queue_add(&s->queue, arrival, actor, step);
        if (s->q->record)
            record(s, actor, step, arrival);
    }
    s->result->messages += s->sent.n;
    s->sent.n = 0;
}

static void run(sim_t *s)
{
    mc_queue_t *const q = &s->queue;
    while (q->n_heap > 0 && !q->failed) {
        s->now = q->heap[0].time;
        s->round++;
        while (q->n_heap > 0 && q->heap[0].time == s->now) {
            mc_queue_take(q, &s->happening);
            for (uint32_t i = 0; i < s->happening.n; i++)
                happen(s, s->happening.at[i].actor, s->happening.at[i].step);
        }
        start_ports(s);
        send_off(s);
    }
}

/* The whole --------------------------------------------------------------------------------------- */

/* Bytes of a chunk. Chunks of absent ranks are empty. */
static double chunk_bytes(const mc_simulation_t *q, const mc_plan_t *plan)
{
    const bool blocks = plan->in == MC_HOLDS_HOME || plan->out == MC_HOLDS_HOME;
    const double segments = plan->layout.segments;
    return plan->layout.mesh.ragged && blocks ? q->bytes / (segments * q->mesh->size)
                                              : q->bytes / plan->n_chunks;
}

/* Actors of a program follow each other in memory, word by word. */
static int place_bits(sim_t *s)
{
    const uint32_t n = s->orbits->n_programs;
    size_t *const first = calloc(2 * (size_t)n + 1, sizeof *first),
                  *const count = first ? first + n : NULL, words = 0;
    for (uint32_t a = 0; first && a < s->w->n_actors; a++)
        count[s->w->program[a]]++;
    for (uint32_t i = 0; first && i < n; i++) {
        first[i] = words;
        words += count[i] * (s->orbits->program[i].plan->n_steps / 32 + 1);
    }
    s->done = first ? calloc(words, sizeof *s->done) : NULL;
    for (uint32_t a = 0; s->done && a < s->w->n_actors; a++) {
        const int32_t i = s->w->program[a];
        s->actor[a] = (actor_t){&s->orbits->program[i], s->w->pair + s->w->pair_off[a],
                                s->done + first[i]++, (uint32_t)count[i]};
    }
    free(first);
    return s->done ? MESHCOLL_OK : mc_fail_memory("the state of all ranks");
}

/* Times have 63 bits: refuses what might take a hundred days on one link, with all that ranks may send over it. */
static int check_range(const sim_t *s)
{
    double beta = 0, alpha = 0, steps = 0;
    for (int32_t d = 0; d < s->q->links->ndims; d++) {
        const mc_link_t *const link = &s->q->links->dim[d];
        beta = fmax(beta, fmax(link->beta, link->gamma));
        alpha = fmax(alpha, link->alpha + link->gap);
    }
    const double most = beta;
    for (uint32_t l = 0; l < s->w->n_links; l++)
        beta = fmax(beta, fmax(s->w->link[l].beta, most * s->w->link[l].slow));
    for (uint32_t i = 0; i < s->orbits->n_programs; i++)
        steps = fmax(steps, s->orbits->program[i].plan->n_steps);
    if (beta * s->q->bytes * s->q->mesh->size + alpha * steps < 1e6)
        return MESHCOLL_OK;
    return mc_fail(
        MESHCOLL_ERR_INVALID_ARG,
        "times are counted in ps, up to a hundred days; with these links and %.0f bytes the "
        "simulation could take longer",
        s->q->bytes);
}

static int prepare(sim_t *s)
{
    const uint32_t n = s->w->n_actors;
    const mc_links_t links = mc_links_at(s->q->links, s->q->bytes);
    s->n_ports = s->q->mesh->ndims + 1;
    s->port = calloc((size_t)n * (uint32_t)s->n_ports, sizeof *s->port);
    s->link = calloc((size_t)s->w->n_links + 1, sizeof *s->link);
    s->actor = calloc((size_t)n + 1, sizeof *s->actor);
    const int status =
        s->port && s->link && s->actor ? place_bits(s) : mc_fail_memory("the state of all ranks");
    for (int32_t d = 0; d < links.ndims; d++)
        s->way[d] = (way_t){rounded(links.dim[d].alpha * 1e12), rounded(links.dim[d].gap * 1e12),
                            links.dim[d].beta * s->each * 1e12, links.dim[d].gamma * s->each * 1e12,
                            mc_links_wire(&links, d),           links.dim[d].pulled};
    for (uint32_t l = 0; l < s->w->n_links && !status; l++)
        s->link[l] = (link_t){.beta = s->w->link[l].beta * s->each * 1e12,
                              .slow = s->w->link[l].slow,
                              .receiver = s->w->link[l].receiver};
    for (uint32_t a = 0; a < n && !status; a++) {
        s->left += s->actor[a].program->plan->n_steps;
        if (!s->q->bucket)
            mc_queue_add(&s->queue, s->q->late ? s->q->late[s->w->rank[a]] : 0, a, START);
        for (uint32_t k = 0; k < s->q->n_buckets; k++) /* ascending */
            if (k == 0 || s->q->bucket[k].ready > s->q->bucket[k - 1].ready)
                mc_queue_add(&s->queue, s->q->bucket[k].ready, a, START);
    }
    return status;
}

static void release(sim_t *s)
{
    for (size_t i = 0; s->port && i < (size_t)s->w->n_actors * (uint32_t)s->n_ports; i++)
        if (s->port[i].bits)
            free(s->port[i].ready.more);
    mc_queue_free(&s->queue);
    void *const parts[] = {s->port,    s->link,    s->actor,   s->done,
                           s->look.at, s->todo.at, s->sent.at, s->happening.at};
    for (size_t i = 0; i < MC_COUNT(parts); i++)
        free(parts[i]);
}

static mc_busiest_t load_of(const sim_t *s, uint32_t link)
{
    mc_busiest_t b = {.busy = s->link[link].busy, .alike = s->w->link[link].alike};
    mc_text_t text = mc_text(b.name, sizeof b.name);
    mc_sim_world_name(s->q, s->w, link, &text);
    return b;
}

static void find_busiest(const sim_t *s)
{
    mc_simulated_t *const r = s->result;
    uint32_t at[MC_BUSIEST];
    for (uint32_t l = 0; l < s->w->n_links; l++) {
        int32_t i = r->n_busiest;
        if (s->q->load && (s->link[l].busy > 0 || (s->q->whole && l < s->w->n_network))) {
            const mc_busiest_t load = load_of(s, l);
            s->q->load(s->q->context, &load);
        }
        if (s->link[l].busy == 0 || (i == MC_BUSIEST && s->link[at[i - 1]].busy >= s->link[l].busy))
            continue;
        r->n_busiest += i < MC_BUSIEST;
        for (i = r->n_busiest - 1; i > 0 && s->link[at[i - 1]].busy < s->link[l].busy; i--)
            at[i] = at[i - 1];
        at[i] = l;
    }
    for (int32_t i = 0; i < r->n_busiest; i++)
        r->busiest[i] = load_of(s, at[i]);
}

MC_APART static int simulate(const mc_simulation_t *q, const mc_orbits_t *orbits,
                             const mc_sim_world_t *w, mc_simulated_t *result)
{
    sim_t s = {.q = q, .orbits = orbits, .w = w, .result = result};
    s.each = chunk_bytes(q, orbits->program[0].plan);
    s.call = rounded(mc_links_call(q->links) * 1e12);
    for (int32_t i = 0; i < MC_PLAN_PHASES; i++)
        result->phase[i].first = INT64_MAX;
    int status = check_range(&s);
    if (!status)
        status = prepare(&s);
    if (!status)
        run(&s);
    if (!status && s.queue.failed)
        status = mc_fail_memory("the events of a simulation");
    if (!status && s.left > 0)
        status =
            mc_fail(MESHCOLL_ERR_PLAN, "the simulation got stuck: %llu steps wait for each other",
                    (unsigned long long)s.left);
    result->ps = s.now + s.call;
    if (!status)
        find_busiest(&s);
    release(&s);
    return status;
}

int mc_simulate(const mc_simulation_t *q, mc_simulated_t *result)
{
    mc_orbits_t orbits;
    mc_sim_world_t world;
    mc_simulated_t fresh = {0};
    int status = mc_strategy_check(q->strategy, q->mesh);
    if (!status)
        status = mc_orbits_create(q, &orbits);
    if (status)
        return status;
    status = mc_sim_world_create(q, &orbits, &world);
    if (!status) {
        if (!q->whole)
            status = mc_sim_world_fold(q, &world);
        fresh.plans = (int32_t)orbits.n_programs;
        fresh.classes = (int32_t)world.n_actors;
        if (!status)
            status = simulate(q, &orbits, &world, &fresh);
        mc_sim_world_free(&world);
    }
    mc_orbits_free(&orbits);
    if (!status)
        *result = fresh;
    return status;
}
