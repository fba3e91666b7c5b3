package ask

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
)

// replacements are the devices that other numbers of GPUs are taken from, as flags
// name them: those of a topology file, which no flag alters, in flags of their
// own; nil if they are the command's own.
func (asked *GPUs) replacements(now *costmodel.Topology, mode costmodel.Mode) ([]costmodel.Device, error) {
	if asked.topology == "" && !asked.measures() {
		return nil, nil
	}
	other := *asked
	other.unfiled(now, len(now.Devices), nil, "")
	topology, err := other.devices(mode, 0)
	if err != nil {
		return nil, err
	}
	return topology.Devices, nil
}

// kindless reports flags that name no kind of GPU: a list of capacities has the
// same sizes under any.
func (asked *GPUs) kindless() bool {
	_, err := strconv.Atoi(asked.gpus)
	return err != nil && asked.topology == "" && !asked.measures()
}

// otherGPUs says how the user would ask for another number of GPUs, or for
// those of another kind: a count as a count, a list with more of its largest,
// a topology file, which no flag alters, in flags of its own.
func (asked *GPUs) otherGPUs(now *costmodel.Topology, count int, kind string) (set []costmodel.Setting, without []string) {
	other, total := *asked, len(now.Devices)
	more := slices.Repeat([]int{largest(now)}, max(0, count-total))
	switch {
	case asked.topology != "" || asked.measures():
		other.unfiled(now, count, more, kind)
	case asked.kindless():
		other.gpus = resized(strings.Split(asked.gpus, ","), count, more)
	default:
		other.gpus = strconv.Itoa(count)
		if kind != "" {
			other.gpu = kind
		}
	}
	other.reserve = slices.Clone(other.reserve)
	for i, reserve := range other.reserve {
		if parts := strings.Split(reserve, ","); len(parts) == total && total > 1 {
			other.reserve[i] = resized(parts, count, more)
		}
	}
	return asked.insteadBy(&other)
}

// insteadBy are the flags that make the command's GPUs those of another.
func (asked *GPUs) insteadBy(other *GPUs) (set []costmodel.Setting, without []string) {
	differs := func(field, was, is string) {
		if is != was {
			set = append(set, costmodel.Setting{Field: field, Value: is})
		}
	}
	differs("gpus", asked.gpus, other.gpus)
	differs("gpu", asked.gpu, other.gpu)
	if other.topology != asked.topology {
		without = append(without, "topology")
	}
	switch {
	case len(other.reserve) == 0 && len(asked.reserve) > 0:
		without = append(without, "reserve")
	case !slices.Equal(other.reserve, asked.reserve):
		for _, sizes := range other.reserve {
			set = append(set, costmodel.Setting{Field: "reserve", Value: sizes})
		}
	}
	return set, without
}

// unfiled puts flags in place of a topology file: GPUs of the catalogue as
// they are, else the capacity of each.
func (asked *GPUs) unfiled(now *costmodel.Topology, count int, more []int, kind string) {
	asked.topology, asked.reserve = "", nil
	asked.gpus, asked.gpu = strconv.Itoa(count), kind
	if kind != "" {
		return
	}
	asked.gpu = defaultGPU
	gpu, err := catalogue.Find(now.Devices[0].Name)
	if err == nil {
		asked.gpu = now.Devices[0].Name
	}
	listed := gpu.Device("")
	var sizes []string
	same := err == nil
	for i := range now.Devices {
		device := &now.Devices[i]
		sizes = append(sizes, exact(device.Budget()))
		same = same && device.Name == now.Devices[0].Name && device.CapacityBytes == listed.CapacityBytes && device.ReservedBytes == listed.ReservedBytes
	}
	if !same {
		asked.gpus = resized(sizes, count, more)
	}
}

// resized is the list of as many sizes: fewer, or with those of the devices
// in more after them.
func resized(sizes []string, count int, more []int) string {
	out := slices.Clone(sizes[:min(count, len(sizes))])
	for _, device := range more {
		out = append(out, sizes[device])
	}
	return strings.Join(out, ",")
}

// largest is the first device of the largest budget.
func largest(topology *costmodel.Topology) int {
	best := 0
	for device := range topology.Devices {
		if topology.Devices[device].Budget() > topology.Devices[best].Budget() {
			best = device
		}
	}
	return best
}

// exact is a size as a flag takes it, to the byte.
func exact(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%dGiB", bytes>>30)
	}
	return fmt.Sprintf("%dB", bytes)
}
