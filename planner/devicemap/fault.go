package devicemap

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// The kinds of [Fault].
const (
	// doesNotFit is a device that would hold more than its budget: the map is
	// one that can be run, on larger devices.
	doesNotFit       = "does-not-fit"
	unknownModule    = "unknown-module"
	noDevice         = "no-device"
	splitUnit        = "split-unit"
	tiesApart        = "ties-apart"
	deviceNotANumber = "device-not-a-number"
	unknownDevice    = "unknown-device"
	overlap          = "overlap"
	// offloadInTraining is a unit that leaves the GPUs in training, which
	// Accelerate's hooks cannot do: they drop the weights after forward.
	offloadInTraining = "offload-in-training"
	// unknownEngine is a strategy that runs no device map: of what a device
	// then holds, nothing is known.
	unknownEngine = "unknown-engine"
)

// Fault is one thing that is wrong with a device map.
type Fault struct {
	// Kind is one of unknown-module, no-device, split-unit, ties-apart,
	// device-not-a-number, unknown-device, overlap, offload-in-training,
	// unknown-engine, and does-not-fit for a device that would hold more than
	// its budget: that map is one that can be run, on larger devices.
	Kind    string
	Module  string
	Message costmodel.Message
	// Nearest is the real module closest to an unknown one.
	Nearest string
}

// String is the fault in one line.
func (fault Fault) String() string {
	line := fmt.Sprintf("%s: %q: %s", fault.Kind, fault.Module, fault.Message)
	if fault.Nearest != "" {
		line += fmt.Sprintf("; the nearest is %q", fault.Nearest)
	}
	return line
}
