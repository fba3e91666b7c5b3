package probe

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// probed is a device without the context of other engines, which depends on the mode.
type probed struct {
	costmodel.Device
	ContextBytes struct{} `json:"context_bytes,omitzero"`
}

// kindOf returns the catalogue's GPU for a driver's name: one whose words without the size are all
// in the name (h100 of h100-80gb). It prefers the one with the most words, then the nearest size
// within a tenth. Empty: none matches.
func kindOf(name string, total int64) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(letter rune) bool { return letter == ' ' || letter == '-' })
	best, nearest, most := "", 0.1, 0
	for _, known := range catalogue.Names() {
		gpu, err := catalogue.Find(known)
		kind := strings.Split(strings.TrimSuffix(known, fmt.Sprintf("-%dgb", gpu.SoldGB)), "-")
		if err != nil || slices.ContainsFunc(kind, func(word string) bool { return !slices.Contains(words, word) }) {
			continue
		}
		off := math.Abs(float64(gpu.CapacityBytes)/float64(total) - 1)
		if off < 0.1 && (len(kind) > most || len(kind) == most && off < nearest) {
			best, nearest, most = known, off, len(kind)
		}
	}
	return best
}

// write writes the topology. Devices that share a GPU get equal parts of its memory, including
// other processes' memory. Arenas take whole granules. The largest possible rounding is reserved,
// so that a plan that just fits finds room. The catalogue gives the missing fields of devices, such
// as those for other engines.
func (probe *probe) write(to io.Writer) error {
	topology := struct {
		FormatVersion string           `json:"format_version"`
		Devices       []probed         `json:"devices"`
		Links         []costmodel.Link `json:"links,omitzero"`
	}{FormatVersion: "devmap.topology/v1"}
	for i, gpu := range probe.devices {
		shares, memory := probe.shares(gpu), probe.memory[gpu]
		known := probe.known[i]
		known.Own.ContextBytes = (probe.used[gpu] + shares - 1) / shares
		known.Own.GranuleBytes = probe.paths[i].Granule
		known.Own.FLOPS, known.Own.Rates = ratesOf(probe.rates[gpu])
		known.Own.DeviceCopyBytesPerSecond = probe.paths[i].Inside
		known.Own.HostToDeviceBytesPerSecond, known.Own.DeviceToHostBytesPerSecond = probe.paths[i].Up, probe.paths[i].Down
		topology.Devices = append(topology.Devices, probed{Device: costmodel.Device{
			Name: known.Name, CapacityBytes: memory.Total / shares, ReservedBytes: (memory.Reserved+memory.Used+shares-1)/shares + known.Own.GranuleBytes - 1,
			WorkspaceBytes: known.WorkspaceBytes, ComputeCapability: probe.gpus[gpu].Capability, GPU: probe.gpus[gpu].UUID, Own: known.Own,
		}})
		for j, path := range probe.paths[i].To {
			if i != j {
				topology.Links = append(topology.Links, costmodel.Link{From: i, To: j, BytesPerSecond: path.BytesPerSecond, LatencySeconds: path.Latency})
			}
		}
	}
	return devicemap.WriteJSON(to, topology)
}

// shares returns the number of devices on a GPU.
func (probe *probe) shares(gpu int) (count int64) {
	for _, other := range probe.devices {
		if other == gpu {
			count++
		}
	}
	return count
}

// table returns the text for people: one row per GPU for memory, one for rates, and the copies
// between devices.
func (probe *probe) table() string {
	memory := texttab.New("GPU", "name", "memory", "held by\nothers", "by whom", "held besides\narenas")
	rates := texttab.New("GPU", "products,\nTFLOP/s", "for\nseconds", "in fp32", "attention", "other kernels,\nGB/s", "optimizer", "copies,\npayload", "from the\nhost", "to the\nhost", "between kernels,\nµs")
	memory.Right(0, 2, 3, 5)
	rates.Right(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	for _, gpu := range probe.distinct() {
		usage := probe.memory[gpu]
		memory.Row(gpu, probe.gpus[gpu].Name, costmodel.Bytes(usage.Total), costmodel.Bytes(usage.Used+usage.Reserved), probe.whose(gpu), costmodel.Bytes(probe.used[gpu]))
		flops, other := ratesOf(probe.rates[gpu])
		path := probe.paths[slices.Index(probe.devices, gpu)]
		rates.Row(gpu, rounded(flops/1e12), rounded(other.SustainedFLOPS/1e12), rounded(other.FP32FLOPS/1e12), rounded(other.AttentionFLOPS/1e12), rounded(other.BytesPerSecond/1e9), rounded(other.UpdateBytesPerSecond/1e9),
			rounded(path.Inside/1e9), rounded(path.Up/1e9), rounded(path.Down/1e9), fmt.Sprintf("%.2f", other.KernelSeconds*1e6))
	}
	return fmt.Sprintf("%s\n%s\n%s", memory, rates, probe.links())
}

// links returns a row for each pair of devices; empty for one device.
func (probe *probe) links() string {
	if len(probe.devices) < 2 {
		return ""
	}
	links := texttab.New("devices", "GPUs", "GB/s", "latency")
	links.Right(2, 3)
	var wrong strings.Builder
	for i := range probe.paths {
		for j, path := range probe.paths[i].To {
			if i == j {
				continue
			}
			way := ""
			if path.Staged {
				way = " by way of the host"
			}
			if path.Wrong != "" {
				fmt.Fprintf(&wrong, "%s\n", path.Wrong)
			}
			links.Row(fmt.Sprintf("%d → %d", i, j), fmt.Sprintf("%d → %d%s", probe.devices[i], probe.devices[j], way), rounded(path.BytesPerSecond/1e9), show.Seconds(path.Latency))
		}
	}
	return fmt.Sprintf("\n%s\n%s", links, &wrong)
}

func rounded(value float64) string { return fmt.Sprintf("%.0f", value) }

// whose lists who uses memory of a GPU: processes, and the driver.
func (probe *probe) whose(gpu int) string {
	parts := []string{"the driver " + costmodel.Bytes(probe.memory[gpu].Reserved).String()}
	for _, process := range probe.others[gpu] {
		size := "an unknown size"
		if process.Used >= 0 {
			size = costmodel.Bytes(process.Used).String()
		}
		parts = append(parts, fmt.Sprintf("process %d %s", process.ID, size))
	}
	return strings.Join(parts, ", ")
}
