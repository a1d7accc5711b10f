/* CUDA as torch's generic interfaces show it. Nothing of CUDA is linked, so that one module serves torch with it and
 * without. */
#ifndef MESHCOLL_TORCH_DEVICE_H
#define MESHCOLL_TORCH_DEVICE_H

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace meshcoll_torch
{

/* Has torch a device of this kind? */
bool has_device(c10::DeviceType type);

c10::Stream current_stream(c10::Device device);
/* One of torch's own, which the program does not use by itself. */
c10::Stream other_stream(c10::Device device);

/* The stream's cudaStream_t. May take Python's lock. */
void *handle_of(const c10::Stream &stream);

/* False as well where this torch cannot tell. */
bool is_captured(const c10::Stream &stream);

/* Lets this thread ask whether events are complete while others capture a graph. */
void allow_questions_during_captures();

} // namespace meshcoll_torch

#endif
