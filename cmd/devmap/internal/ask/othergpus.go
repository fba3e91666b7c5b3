package ask

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
)

// replacements returns the devices for other numbers of GPUs, in the form that flags give them. nil
// means the command's own devices. GPUs of a topology file become flags, as no flag changes the
// file.
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

// kindless reports flags that name no kind of GPU: sizes of a list are the same for any kind.
func (asked *GPUs) kindless() bool {
	_, err := strconv.Atoi(asked.gpus)
	return err != nil && asked.topology == "" && !asked.measures()
}

// otherGPUs returns the settings for another number or kind of GPUs, in the user's form. A count
// stays a count, and a list gets more of its largest size. A topology file becomes flags, as no
// flag changes the file.
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
		if asked.nodes > 1 { // each keeps its number of GPUs
			other.nodes = asked.nodes * int64(count) / int64(total)
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

// insteadBy returns the flags that change the command's GPUs to those of another.
func (asked *GPUs) insteadBy(other *GPUs) (set []costmodel.Setting, without []string) {
	differs := func(field, was, is string) {
		if is != was {
			set = append(set, costmodel.Setting{Field: field, Value: is})
		}
	}
	differs("gpus", asked.gpus, other.gpus)
	differs("nodes", strconv.FormatInt(asked.nodes, 10), strconv.FormatInt(other.nodes, 10))
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

// unfiled replaces a topology file by flags: the name of the catalogue's GPU if it matches, else
// the capacity of each.
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

// resized returns a list of count sizes: fewer, or with the sizes of the devices in more appended.
func resized(sizes []string, count int, more []int) string {
	out := slices.Clone(sizes[:min(count, len(sizes))])
	for _, device := range more {
		out = append(out, sizes[device])
	}
	return strings.Join(out, ",")
}

// largest returns the first device with the largest budget.
func largest(topology *costmodel.Topology) int {
	best := 0
	for device := range topology.Devices {
		if topology.Devices[device].Budget() > topology.Devices[best].Budget() {
			best = device
		}
	}
	return best
}

// exact returns a size for a flag, exact to the byte.
func exact(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%dGiB", bytes>>30)
	}
	return fmt.Sprintf("%dB", bytes)
}
