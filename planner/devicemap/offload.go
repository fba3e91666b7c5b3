package devicemap

import "github.com/devmap-dev/devmap/costmodel"

// mainDevice is where offloaded units run: the first device with a unit
// (Accelerate 1.15, big_modeling.py dispatch_model: main_device is the first
// of the set of devices that are no tiers). -1 where none has one, and in
// training, which Accelerate does not offload.
func mainDevice(t *costmodel.Table, m Map) int {
	out := -1
	for _, d := range m {
		if d >= 0 && (out < 0 || int(d) < out) {
			out = int(d)
		}
	}
	if t.Workload.Mode == costmodel.Train {
		return -1
	}
	return out
}
