package costmodel

import "slices"

// Streamed returns the unit with its parameters in host memory or on disk, in inference. Accelerate
// puts a hook on every module with parameters of its own (1.15, hooks.py,
// attach_align_device_hook). It copies them to the device before the module's forward and drops
// them after it (AlignDevicesHook). Buffers stay on the device (offload_buffers is off by default),
// and so do activations and the KV cache.
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
