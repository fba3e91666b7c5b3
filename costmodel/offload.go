package costmodel

import "slices"

// Streamed is the unit where its parameters stay in the host's memory or on disk, in inference: a
// hook on every module with parameters of its own copies them to the device before the module's
// forward and drops them after it (Accelerate 1.15, hooks.py AlignDevicesHook.pre_forward and
// post_forward; attach_align_device_hook puts one on each such module). Buffers stay on the device
// (offload_buffers is off by default), and so do activations and the KV cache.
func (unit *Unit) Streamed() Unit {
	out := *unit
	out.Params, out.Padding = 0, 0
	out.Layers = slices.Clone(unit.Layers)
	for i := range out.Layers {
		memory := &out.Layers[i]
		memory.Forward += memory.Weights
		if memory.HeadPeak > 0 {
			memory.HeadPeak += memory.Weights
		}
	}
	return out
}
