package devicemap

import "fmt"

// FaultKind is what is wrong with a device map.
type FaultKind string

// The kinds of [Fault].
const (
	UnknownModule    FaultKind = "unknown-module"
	NoDevice         FaultKind = "no-device"
	SplitUnit        FaultKind = "split-unit"
	TiesApart        FaultKind = "ties-apart"
	DeviceNotANumber FaultKind = "device-not-a-number"
	UnknownDevice    FaultKind = "unknown-device"
	Overlap          FaultKind = "overlap"
	DoesNotFit       FaultKind = "does-not-fit"
	// OffloadInTraining is a unit that leaves the GPUs in training, which
	// Accelerate's hooks cannot do: they drop the weights after forward.
	OffloadInTraining FaultKind = "offload-in-training"
	// UnknownEngine is a strategy that runs no device map: of what a device
	// then holds, nothing is known.
	UnknownEngine FaultKind = "unknown-engine"
)

// Fault is one thing that is wrong with a device map.
type Fault struct {
	Kind    FaultKind `json:"kind"`
	Module  string    `json:"module"`
	Message string    `json:"message"`
	// Nearest is the real module closest to an unknown one.
	Nearest string `json:"nearest,omitzero"`
}

// String is the fault in one line.
func (f Fault) String() string {
	s := fmt.Sprintf("%s: %q: %s", f.Kind, f.Module, f.Message)
	if f.Nearest != "" {
		s += fmt.Sprintf("; the nearest is %q", f.Nearest)
	}
	return s
}
