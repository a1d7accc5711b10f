/*
 * Messages with flags in their data, as NCCL's LL protocol has them: for calls of few bytes. Of each
 * 8 bytes, which are written and read at once, 4 are data and 4 the flag: the low bits of the number
 * of the message, from 1, below the digest of its call. A receiver's thread reads until the flag is that of the
 * message, so that nothing else tells of it: no release, which waits for all writes, and no barrier between a word's
 * arrival and its being passed on. A message takes twice its bytes. gpu/kernel/block.h says what the
 * includer gives; of that mc_pair_t with mc_load_pair, mc_store_pair and mc_post are for this file.
 *
 * A slot that is read has older flags: of its message before, four numbers back, and where messages
 * were shorter of earlier ones. Flags repeat after 2^23 messages. So a sender writes the whole slot
 * in four messages of 2^22: no flag in a slot is as old as it would have to be. For the same reason
 * these messages have slots and counters of their own, which begin as 0: the data of other messages
 * could be any flag.
 */
#ifndef MC_KERNEL_LL_H
#define MC_KERNEL_LL_H

#include "gpu/kernel/wait.h"

enum { MC_DEVICE_LL_WORD = 2 * MC_DEVICE_WORD }; /* bytes of a word of data, with its flags */

/* The parts of a word. */
typedef union {
    mc_word_t word;
    uint32_t four[4];
    uint16_t two[8];
    uint8_t one[MC_DEVICE_WORD];
} mc_device_parts_t;

MC_DEVICE_FN mc_word_t mc_device_no_word(void)
{
    mc_device_parts_t parts;
    MC_UNROLL
    for (int i = 0; i < 4; i++)
        parts.four[i] = 0;
    return parts.word;
}

/* Of a message, and of the digest of its call. */
enum { MC_DEVICE_LL_COUNT_BITS = 32 - MC_DEVICE_DIGEST_BITS };
MC_DEVICE_FN uint32_t mc_device_ll_flag(uint64_t number, uint32_t digest)
{
    return (uint32_t)(number + 1) << MC_DEVICE_DIGEST_BITS >> MC_DEVICE_DIGEST_BITS |
           digest << MC_DEVICE_LL_COUNT_BITS;
}

/* The word of a message that begins with byte `at` of the data. */
MC_DEVICE_FN char *mc_device_ll_word(const mc_device_table_t *table, uint32_t m, uint64_t at)
{
    return table->message[m] + at / MC_DEVICE_WORD * MC_DEVICE_LL_WORD;
}

MC_DEVICE_FN void mc_device_ll_put(const mc_device_table_t *table, uint32_t m, uint64_t at,
                                   mc_word_t x)
{
    char *const word = mc_device_ll_word(table, m, at);
    const uint64_t flag = (uint64_t)table->flag[m] << 32;
    mc_device_parts_t parts;
    parts.word = x;
    MC_UNROLL
    for (int i = 0; i < 2; i++) {
        mc_pair_t pair;
        pair.a = parts.four[2 * i] | flag;
        pair.b = parts.four[2 * i + 1] | flag;
        mc_store_pair(word + i * MC_DEVICE_WORD, pair);
    }
}

/* Returns how waiting for it ended. */
MC_DEVICE_FN uint32_t mc_device_ll_get(const mc_device_call_t *call, mc_device_table_t *table,
                                       uint32_t m, uint64_t at, mc_word_t *x)
{
    const char *const word = mc_device_ll_word(table, m, at);
    const uint32_t flag = table->flag[m];
    uint64_t begun = 0;
    for (;;) {
        uint32_t other = 0;
        MC_ROLLED
        for (int poll = 0; poll < MC_DEVICE_POLLS; poll++) {
            const mc_pair_t low = mc_load_pair(word), high = mc_load_pair(word + MC_DEVICE_WORD);
            const uint32_t differs =
                ((uint32_t)(low.a >> 32) ^ flag) | ((uint32_t)(low.b >> 32) ^ flag) |
                ((uint32_t)(high.a >> 32) ^ flag) | ((uint32_t)(high.b >> 32) ^ flag);
            if (!differs) {
                mc_device_parts_t parts;
                parts.four[0] = (uint32_t)low.a;
                parts.four[1] = (uint32_t)low.b;
                parts.four[2] = (uint32_t)high.a;
                parts.four[3] = (uint32_t)high.b;
                *x = parts.word;
                return MC_DEVICE_DONE;
            }
            other = (uint32_t)(low.a >> 32);
            mc_pause();
        }
        if (other != flag && (other ^ flag) << MC_DEVICE_DIGEST_BITS == 0) {
            mc_mark(&table->digest[m], other >> MC_DEVICE_LL_COUNT_BITS);
            return MC_DEVICE_DIFFERS;
        }
        const uint32_t over = mc_device_waited(call, &begun);
        if (over != MC_DEVICE_DONE)
            return over;
    }
}

/* Is the whole slot written with this message? */
MC_DEVICE_FN int mc_device_ll_cleans(uint64_t number)
{
    return (number & ((1u << (MC_DEVICE_LL_COUNT_BITS - 1)) - 1)) < MC_DEVICE_SLOTS;
}

/* What is behind the message's bytes. */
MC_DEVICE_FN void mc_device_ll_clean(mc_thread_t thread, const mc_device_table_t *table, uint32_t m,
                                     uint64_t bytes, uint32_t slot_bytes)
{
    for (uint64_t at = bytes + (uint64_t)thread.index * MC_DEVICE_WORD;
         (at / MC_DEVICE_WORD + 1) * MC_DEVICE_LL_WORD <= slot_bytes;
         at += thread.count * MC_DEVICE_WORD)
        mc_device_ll_put(table, m, at, mc_device_no_word());
}

#endif
