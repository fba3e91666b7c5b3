package devicemap

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// The kinds of [Fault].
const (
	// doesNotFit is a device whose predicted memory exceeds its budget, or activations that exceed the
	// host's memory. The map still runs on larger devices.
	doesNotFit       = "does-not-fit"
	unknownModule    = "unknown-module"
	noDevice         = "no-device"
	splitUnit        = "split-unit"
	tiesApart        = "ties-apart"
	deviceNotANumber = "device-not-a-number"
	unknownDevice    = "unknown-device"
	overlap          = "overlap"
	// offloadInTraining is a unit on a tier in training. Accelerate cannot train it: its hooks drop
	// the weights after forward.
	offloadInTraining = "offload-in-training"
	// unknownEngine is a strategy that runs no device map, so devmap cannot predict its memory.
	unknownEngine = "unknown-engine"
	// notPlaced is a map that the engine does not make with its own flags.
	notPlaced = "not-placed"
)

// Fault is one error in a device map.
type Fault struct {
	// Kind is one of unknown-module, no-device, split-unit, ties-apart, device-not-a-number,
	// unknown-device, overlap, offload-in-training, unknown-engine, not-placed, and does-not-fit. A map with
	// only does-not-fit faults runs on larger devices.
	Kind    string
	Module  string
	Message costmodel.Message
	// Nearest is the real module with the name closest to an unknown one.
	Nearest string
}

// String returns the fault in one line.
func (fault Fault) String() string {
	line := fmt.Sprintf("%s: %q: %s", fault.Kind, fault.Module, fault.Message)
	if fault.Nearest != "" {
		line += fmt.Sprintf("; the nearest is %q", fault.Nearest)
	}
	return line
}
