/* Waiting for what another device writes, with an end: gpu/kernel/block.h says what the includer gives. */
#ifndef MC_KERNEL_WAIT_H
#define MC_KERNEL_WAIT_H

#include "gpu/program/piece.h"

#ifndef MC_DEVICE_FN
#error "include gpu/kernel/on_cuda.h before this file, or what gives the same on a host"
#endif

/* Looks at what is awaited between two at the clock. */
enum { MC_DEVICE_POLLS = 64 };

/* Must a wait end? *begun: when it was asked first; 0 before. Returns DONE where it goes on. */
MC_DEVICE_FN uint32_t mc_device_waited(const mc_device_call_t *call, uint64_t *begun)
{
    const uint64_t now = mc_clock();
    *begun = *begun ? *begun : now;
    if (mc_poll(call->abort_word))
        return MC_DEVICE_ABORTED;
    return now - *begun > call->limit ? MC_DEVICE_LATE : MC_DEVICE_DONE;
}

/* Until *word >= least in their low `bits` bits, which wrap. Returns how it ended, and what the word is then. */
MC_DEVICE_FN uint32_t mc_device_await(const mc_device_call_t *call, const uint64_t *word,
                                      uint64_t least, int bits, uint64_t *value)
{
    uint64_t begun = 0;
    for (;;) {
        MC_ROLLED
        for (int poll = 0; poll < MC_DEVICE_POLLS; poll++) {
            *value = mc_acquire(word);
            if ((int64_t)((*value - least) << (64 - bits)) >= 0)
                return MC_DEVICE_DONE;
            mc_pause();
        }
        const uint32_t over = mc_device_waited(call, &begun);
        if (over != MC_DEVICE_DONE)
            return over;
    }
}

#endif
