/* The check and the text of a program. */
#ifndef MC_TEST_PROGRAM_TEXT_H
#define MC_TEST_PROGRAM_TEXT_H

#include "gpu/program/program.h"

/* Is every run within its buffers, which have `room` bytes, and as its operation needs it? Else ERR_PLAN with a
 * sentence. */
int mc_device_program_check(const mc_device_program_t *program,
                            const uint64_t room[MC_DEVICE_BUFFERS]);
/* One line for the program, and one per run. */
void mc_device_program_print(const mc_device_program_t *program, mc_text_t *text);

#endif
