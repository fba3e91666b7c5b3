package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Place is a GPU that a plan is for. At is its index in the reader's order, and Number is its
// number for the command. Devices are the plan's on it.
type Place struct {
	At, Number int
	Devices    []int
}

// Places finds the GPUs of a plan's devices. Device i is the GPU that the command calls i, as
// engines number them. A plan for devmap's own engine on a measured topology names the GPUs that
// were measured. Device i is such a GPU, which several devices may share. The notes list GPUs that
// differ from the planned ones. If plan is nil, each visible GPU is a device of its own.
func Places(plan *devicemap.Plan, gpus []GPU, visible []int) (places []Place, notes []string, err error) {
	if plan == nil {
		places, err = visiblePlaces(gpus, visible)
		return places, nil, err
	}
	if len(plan.Devices) == 0 {
		return nil, nil, errors.New("the plan predicts nothing, its devices are an empty list: devmap plan writes one that does")
	}
	if err := sameMachine(plan); err != nil {
		return nil, nil, err
	}
	for i := range plan.Devices {
		device := plan.Devices[i].Device
		number, err := numberOf(plan, device, gpus, visible)
		if err != nil {
			return nil, nil, err
		}
		gpu := visible[number]
		if gpus[gpu].Cut {
			return nil, nil, inMIGMode(gpu, &gpus[gpu])
		}
		notes = append(notes, otherGPU(plan, device, number, &gpus[gpu])...)
		at := slices.IndexFunc(places, func(place Place) bool { return place.At == gpu })
		if at < 0 {
			at, places = len(places), append(places, Place{At: gpu, Number: number})
		}
		places[at].Devices = append(places[at].Devices, device)
	}
	return places, notes, nil
}

// inMIGMode is the error for a GPU whose instances cannot be measured.
func inMIGMode(number int, gpu *GPU) error {
	return fmt.Errorf("GPU %d (%s, %s) is in MIG mode, which devmap cannot measure; disable it with nvidia-smi -mig 0", number, gpu.Name, gpu.UUID)
}

// visiblePlaces are all GPUs that a command sees.
func visiblePlaces(gpus []GPU, visible []int) ([]Place, error) {
	if len(visible) == 0 {
		return nil, fmt.Errorf("CUDA_VISIBLE_DEVICES hides all %d GPUs of this machine", len(gpus))
	}
	places := make([]Place, len(visible))
	for number, gpu := range visible {
		if gpus[gpu].Cut {
			return nil, inMIGMode(gpu, &gpus[gpu])
		}
		places[number] = Place{At: gpu, Number: number, Devices: []int{number}}
	}
	return places, nil
}

// sameMachine returns an error if a part of the plan runs on another machine.
func sameMachine(plan *devicemap.Plan) error {
	var hosts []string
	for i := range plan.Topology.Devices {
		if host := plan.Topology.Devices[i].Host; !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) > 1 {
		return fmt.Errorf("the plan is for GPUs of %d machines (%s): this looks at the GPUs of one", len(hosts), strings.Join(hosts, ", "))
	}
	return nil
}

// numberOf returns the number that the command has for a device's GPU.
func numberOf(plan *devicemap.Plan, device int, gpus []GPU, visible []int) (int, error) {
	if plan.Workload.Runtime == costmodel.Devmap && device < len(plan.Topology.Devices) {
		uuid := plan.Topology.Devices[device].GPU
		if at := slices.IndexFunc(visible, func(gpu int) bool { return gpus[gpu].UUID == uuid }); at >= 0 {
			return at, nil
		}
	}
	if device < len(visible) {
		return device, nil
	}
	var names []string
	for number, gpu := range visible {
		names = append(names, fmt.Sprintf("GPU %d (%s)", number, gpus[gpu].Name))
	}
	seen := "none"
	if len(names) > 0 {
		seen = strings.Join(names, ", ")
	}
	if len(visible) < len(gpus) {
		seen += fmt.Sprintf(", by CUDA_VISIBLE_DEVICES, of the machine's %d", len(gpus))
	}
	planned := "1 GPU"
	if len(plan.Devices) > 1 {
		planned = fmt.Sprintf("%d GPUs", len(plan.Devices))
	}
	return 0, fmt.Errorf("the plan is for %s, and the command sees fewer: %s", planned, seen)
}

// apartShare limits how far two figures of one GPU's capacity may be apart, to a 33rd: engines
// report up to 2 % less than NVML's total.
const apartShare = 33

// otherGPU notes that a GPU is not the planned one.
func otherGPU(plan *devicemap.Plan, device, number int, gpu *GPU) []string {
	if device >= len(plan.Topology.Devices) {
		return nil
	}
	planned := &plan.Topology.Devices[device]
	more := gpu.Total - planned.CapacityBytes
	switch {
	case max(more, -more) > planned.CapacityBytes/apartShare:
		return []string{fmt.Sprintf("device %d was planned for %s with %v; GPU %d is %s with %v: its context and workspaces may be others", device, planned.Name, costmodel.Bytes(planned.CapacityBytes), number, gpu.Name, costmodel.Bytes(gpu.Total))}
	case planned.GPU != "" && planned.GPU != gpu.UUID:
		return []string{fmt.Sprintf("device %d was planned for the GPU %s, as it was measured; GPU %d is %s", device, planned.GPU, number, gpu.UUID)}
	}
	return nil
}
