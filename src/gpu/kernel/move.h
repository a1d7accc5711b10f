/*
 * Moving bytes: the threads of a block take what lies in a rank's memory and in messages, combine
 * it and write it to memory and to messages, in one pass. Of gpu/kernel/block.h, which says what the
 * includer gives.
 */
#ifndef MC_KERNEL_MOVE_H
#define MC_KERNEL_MOVE_H

#include "gpu/kernel/ll.h"

/* Words that a thread has in flight in a copy, and of each operand in a reduction, which needs more
 * registers for each. */
enum { MC_DEVICE_BATCH = 4, MC_DEVICE_SUMS = 2 };

/* a (+) b, of the elements in two words. */
typedef mc_word_t (*mc_device_combine_t)(mc_word_t a, mc_word_t b);
/* to = from / by, or from * scalar, over `bytes` bytes. Of the threads each does its part. */
typedef void (*mc_device_divide_t)(mc_thread_t thread, char *to, const char *from, uint64_t bytes,
                                   int32_t by, const void *scalar);

/* One pass over bytes: to and all sent messages = a (+) b (+) received messages, as far as there
 * are such. Messages in slots are aligned to words, and padded; the ranks' memory need not be. */
typedef struct {
    const char *a, *b; /* in this rank's memory; NULL: none. b: only with a */
    char *to;          /* there; NULL: nowhere */
    mc_device_table_t *table;
    uint32_t receives, messages;  /* of the table: those received first, then those sent */
    uint32_t begin;               /* the first to be read; 1: message 0 lies in `a` */
    uint64_t at;                  /* where these bytes begin in each message */
    uint64_t direct_at;           /* and in the memory of a peer that a message goes to directly */
    const mc_device_call_t *call; /* whose messages they are; NULL: there are none */
} mc_device_pass_t;

/* Have the messages flags in their data? */
MC_DEVICE_FN int mc_device_is_ll(const mc_device_pass_t *p)
{
    return p->call && p->call->ll && p->messages > 0;
}

/* What is combined is numbered: a and b, then the messages. */
enum { MC_DEVICE_A = -2, MC_DEVICE_B = -1 };

MC_DEVICE_FN int mc_device_source(const mc_device_pass_t *p)
{
    return p->a ? MC_DEVICE_A : 0;
}
MC_DEVICE_FN int mc_device_next_source(const mc_device_pass_t *p, int source)
{
    if (source == MC_DEVICE_A && p->b)
        return MC_DEVICE_B;
    return source < 0 ? (int)p->begin : source + 1;
}

MC_DEVICE_FN int mc_device_aligned(const void *at, uint32_t to)
{
    return ((uintptr_t)at & (to - 1)) == 0;
}

MC_DEVICE_FN char *mc_device_message(const mc_device_pass_t *p, uint32_t m, uint64_t at)
{
    return p->table->message[m] + (p->table->direct >> m & 1 ? p->direct_at : p->at) + at;
}

/* Byte `at` of a source that lies in memory as it is. */
MC_DEVICE_FN const char *mc_device_source_at(const mc_device_pass_t *p, int source, uint64_t at)
{
    return source == MC_DEVICE_A   ? p->a + at
           : source == MC_DEVICE_B ? p->b + at
                                   : mc_device_message(p, (uint32_t)source, at);
}

/* A whole word of the result. */
MC_DEVICE_FN void mc_device_put(const mc_device_pass_t *p, uint64_t at, mc_word_t x)
{
    if (p->to)
        mc_store_word(p->to + at, x);
    MC_ROLLED
    for (uint32_t m = p->receives; m < p->messages; m++)
        mc_store_word(mc_device_message(p, m, at), x);
}

/* A batch of words at a time; returns this thread's first word that is left. `combine`: 0 where there is one source. */
MC_DEVICE_FN uint64_t mc_device_move_words(mc_thread_t thread, const mc_device_pass_t *p,
                                           uint64_t words, mc_device_combine_t combine,
                                           const int batch)
{
    const int source = mc_device_source(p);
    const char *const from = mc_device_source_at(p, source, 0);
    const uint64_t step = thread.count;
    uint64_t w = thread.index;
    for (; w + (uint64_t)(batch - 1) * step < words; w += (uint64_t)batch * step) {
        mc_word_t x[MC_DEVICE_BATCH], y[MC_DEVICE_BATCH];
        MC_UNROLL
        for (int k = 0; k < batch; k++)
            x[k] = mc_load_word(from + (w + k * step) * MC_DEVICE_WORD);
        MC_ROLLED
        for (int s = combine ? mc_device_next_source(p, source) : (int)p->receives;
             s < (int)p->receives; s = mc_device_next_source(p, s)) {
            const char *const more = mc_device_source_at(p, s, 0);
            MC_UNROLL
            for (int k = 0; k < batch; k++)
                y[k] = mc_load_word(more + (w + k * step) * MC_DEVICE_WORD);
            MC_UNROLL
            for (int k = 0; k < batch; k++)
                x[k] = combine(x[k], y[k]);
        }
        MC_UNROLL
        for (int k = 0; k < batch; k++)
            mc_device_put(p, (w + k * step) * MC_DEVICE_WORD, x[k]);
    }
    return w;
}

typedef uint32_t mc_device_four_t __attribute__((__may_alias__));
typedef uint16_t mc_device_two_t __attribute__((__may_alias__));

/* A word that is not aligned, or of which only `left` bytes are there; the others become 0. */
MC_DEVICE_FN mc_word_t mc_device_load_part(const char *at, uint64_t left)
{
    mc_device_parts_t parts;
    parts.word = mc_device_no_word();
    if (left >= MC_DEVICE_WORD && mc_device_aligned(at, MC_DEVICE_WORD))
        return mc_load_word(at);
    if (left >= MC_DEVICE_WORD && mc_device_aligned(at, 4)) {
        MC_UNROLL
        for (int i = 0; i < 4; i++)
            parts.four[i] = ((const mc_device_four_t *)at)[i];
    } else if (left >= MC_DEVICE_WORD && mc_device_aligned(at, 2)) {
        MC_UNROLL
        for (int i = 0; i < 8; i++)
            parts.two[i] = ((const mc_device_two_t *)at)[i];
    } else {
        MC_UNROLL
        for (int i = 0; i < MC_DEVICE_WORD; i++)
            if ((uint64_t)i < left)
                parts.one[i] = (uint8_t)at[i];
    }
    return parts.word;
}

MC_DEVICE_FN void mc_device_store_part(char *at, mc_word_t word, uint64_t left)
{
    mc_device_parts_t parts;
    parts.word = word;
    if (left >= MC_DEVICE_WORD && mc_device_aligned(at, MC_DEVICE_WORD)) {
        mc_store_word(at, word);
    } else if (left >= MC_DEVICE_WORD && mc_device_aligned(at, 4)) {
        MC_UNROLL
        for (int i = 0; i < 4; i++)
            ((mc_device_four_t *)at)[i] = parts.four[i];
    } else if (left >= MC_DEVICE_WORD && mc_device_aligned(at, 2)) {
        MC_UNROLL
        for (int i = 0; i < 8; i++)
            ((mc_device_two_t *)at)[i] = parts.two[i];
    } else {
        MC_UNROLL
        for (int i = 0; i < MC_DEVICE_WORD; i++)
            if ((uint64_t)i < left)
                at[i] = (char)parts.one[i];
    }
}

/* A word of a source. Returns how waiting for a flag in it ended, which the table says, too. */
MC_DEVICE_FN uint32_t mc_device_take(const mc_device_pass_t *p, int source, uint64_t at,
                                     uint64_t left, mc_word_t *y)
{
    if (source < 0 || !mc_device_is_ll(p)) {
        *y = mc_device_load_part(mc_device_source_at(p, source, at), left);
        return MC_DEVICE_DONE;
    }
    const uint32_t m = (uint32_t)source;
    const uint32_t status = mc_device_ll_get(p->call, p->table, m, p->at + at, y);
    if (status != MC_DEVICE_DONE)
        mc_mark(&p->table->status[m], status);
    return status;
}

/* From this thread's word w on, word by word. Returns how waiting ended. */
MC_DEVICE_FN uint32_t mc_device_move_parts(mc_thread_t thread, const mc_device_pass_t *p,
                                           uint64_t w, uint64_t bytes, mc_device_combine_t combine)
{
    const int source = mc_device_source(p);
    for (uint64_t at = w * MC_DEVICE_WORD; at < bytes; at += thread.count * MC_DEVICE_WORD) {
        const uint64_t left = bytes - at;
        mc_word_t x = mc_device_no_word();
        MC_ROLLED
        for (int s = source; s < (int)p->receives; s = mc_device_next_source(p, s)) {
            mc_word_t y;
            const uint32_t status = mc_device_take(p, s, at, left, &y);
            if (status != MC_DEVICE_DONE)
                return status;
            x = s == source ? y : combine(x, y);
        }
        if (p->to)
            mc_device_store_part(p->to + at, x, left);
        MC_ROLLED
        for (uint32_t m = p->receives; m < p->messages; m++) {
            if (mc_device_is_ll(p))
                mc_device_ll_put(p->table, m, p->at + at, x);
            else if (p->table->direct >> m & 1)
                mc_device_store_part(mc_device_message(p, m, at), x, left);
            else
                mc_store_word(mc_device_message(p, m, at), x);
        }
    }
    return MC_DEVICE_DONE;
}

/* Do all direct messages go to aligned memory? */
MC_DEVICE_FN int mc_device_sends_aligned(const mc_device_pass_t *p)
{
    int aligned = 1;
    MC_ROLLED
    for (uint32_t m = p->receives; m < p->messages && p->table->direct; m++)
        aligned &= mc_device_aligned(mc_device_message(p, m, 0), MC_DEVICE_WORD);
    return aligned;
}

/* Returns how waiting for flags in the data ended. */
MC_DEVICE_FN uint32_t mc_device_move(mc_thread_t thread, const mc_device_pass_t *p, uint64_t bytes,
                                     mc_device_combine_t combine)
{
    const int sums = mc_device_next_source(p, mc_device_source(p)) < (int)p->receives;
    uint64_t w = thread.index;
    if (!mc_device_is_ll(p) && mc_device_aligned(p->a, MC_DEVICE_WORD) &&
        mc_device_aligned(p->b, MC_DEVICE_WORD) && mc_device_aligned(p->to, MC_DEVICE_WORD) &&
        mc_device_sends_aligned(p))
        w = sums ? mc_device_move_words(thread, p, bytes / MC_DEVICE_WORD, combine, MC_DEVICE_SUMS)
                 : mc_device_move_words(thread, p, bytes / MC_DEVICE_WORD, 0, MC_DEVICE_BATCH);
    return mc_device_move_parts(thread, p, w, bytes, combine);
}

/* to = a (+) b, which may be the same memory. */
MC_DEVICE_FN void mc_device_reduce(mc_thread_t thread, char *to, const char *a, const char *b,
                                   uint64_t bytes, mc_device_combine_t combine)
{
    mc_device_pass_t p;
    p.a = a;
    p.b = b;
    p.to = to;
    p.table = 0;
    p.receives = p.messages = p.begin = 0;
    p.at = p.direct_at = 0;
    p.call = 0;
    (void)mc_device_move(thread, &p, bytes, combine);
}

#endif
