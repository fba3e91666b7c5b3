package costmodel

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TopologyVersion is the format of a topology file.
const TopologyVersion = "devmap.topology/v1"

// Topology is the devices and the links between them.
type Topology struct {
	Devices []Device
	Links   []Link
	// HostMemoryBytes is what offloaded units may take of the host's memory;
	// 0: no bound is known.
	HostMemoryBytes int64
}

// Device is one GPU.
type Device struct {
	Name string `json:"name"`
	// CapacityBytes is all its memory; ReservedBytes of it is held by others,
	// by the driver, or set aside.
	CapacityBytes int64 `json:"capacity_bytes"`
	ReservedBytes int64 `json:"reserved_bytes"`
	// WorkspaceBytes is one cuBLAS workspace, ContextBytes the context with
	// loaded kernels.
	WorkspaceBytes int64 `json:"workspace_bytes"`
	ContextBytes   int64 `json:"context_bytes"`
	// FLOPS is the rate of 16-bit matrix products, in FLOP/s; 0: unknown.
	FLOPS float64 `json:"flops,omitzero"`
	// Rates are the others; 0: unknown, and what needs them counts nothing.
	Rates
	// Slack is the least and most that the allocator's pool takes beyond a
	// peak, as a fraction of it.
	Slack [2]float64 `json:"slack,omitzero"`
	// Host names the machine that the device is in; empty: all are in one.
	Host string `json:"host,omitzero"`
}

// Budget is what a device may hold: capacity less what is reserved.
func (d *Device) Budget() int64 { return d.CapacityBytes - d.ReservedBytes }

// Link joins two devices.
type Link struct {
	From           int     `json:"from"`
	To             int     `json:"to"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	LatencySeconds float64 `json:"latency_seconds"`
}

// maxCapacity and MaxDevices bound a topology so that sums stay in an int64.
const maxCapacity = 1 << 50

// MaxDevices bounds a topology.
const MaxDevices = 4096

// Check reports a topology on which nothing can be placed.
func (t *Topology) Check() error {
	if len(t.Devices) == 0 || len(t.Devices) > MaxDevices {
		return fmt.Errorf("devices: %d devices, not 1 to %d", len(t.Devices), MaxDevices)
	}
	if t.HostMemoryBytes < 0 {
		return fmt.Errorf("host_memory_bytes: %d is negative", t.HostMemoryBytes)
	}
	for i := range t.Devices {
		if err := t.Devices[i].check(); err != nil {
			return fmt.Errorf("devices[%d]: %w", i, err)
		}
	}
	for i := range t.Links {
		if err := t.Links[i].check(len(t.Devices)); err != nil {
			return fmt.Errorf("links[%d]: %w", i, err)
		}
	}
	return nil
}

func (d *Device) check() error {
	switch {
	case d.CapacityBytes <= 0:
		return fmt.Errorf("a capacity of %d bytes holds nothing", d.CapacityBytes)
	case min(d.ReservedBytes, d.WorkspaceBytes, d.ContextBytes) < 0:
		return fmt.Errorf("a negative size (reserved %d, workspace %d, context %d bytes)", d.ReservedBytes, d.WorkspaceBytes, d.ContextBytes)
	case !within(d.FLOPS, 0, 1e21) || !within(d.Slack[0], 0, 100) || !within(d.Slack[1], d.Slack[0], 100):
		return fmt.Errorf("flops %v or slack %v makes no sense", d.FLOPS, d.Slack)
	case !d.sane():
		return fmt.Errorf("the rates %+v make no sense", d.Rates)
	case max(d.WorkspaceBytes, d.ContextBytes) > maxCapacity:
		return errors.New("a workspace or context of more than 2^50 bytes")
	case d.CapacityBytes > maxCapacity:
		return fmt.Errorf("a capacity of %d bytes is more than 2^50", d.CapacityBytes)
	case d.Budget() <= 0:
		return fmt.Errorf("%v of %v is reserved: nothing is left", Bytes(d.ReservedBytes), Bytes(d.CapacityBytes))
	}
	return nil
}

// within is false for NaN.
func within(v, low, high float64) bool { return v >= low && v < high }

func (l *Link) check(devices int) error {
	if min(l.From, l.To) < 0 || max(l.From, l.To) >= devices || l.From == l.To {
		return fmt.Errorf("from %d to %d is no link between two of the %d devices", l.From, l.To, devices)
	}
	if l.BytesPerSecond == 0 || !within(l.BytesPerSecond, 0, 1e18) || !within(l.LatencySeconds, 0, 1e9) {
		return fmt.Errorf("%v bytes/s with %v s latency is no link", l.BytesPerSecond, l.LatencySeconds)
	}
	return nil
}

type fileTopology struct {
	FormatVersion string       `json:"format_version"`
	Devices       []fileDevice `json:"devices"`
	Links         []Link       `json:"links,omitzero"`
	HostMemory    int64        `json:"host_memory_bytes,omitzero"`
}

type fileDevice struct {
	Name           string      `json:"name"`
	CapacityBytes  int64       `json:"capacity_bytes"`
	ReservedBytes  int64       `json:"reserved_bytes,omitzero"`
	WorkspaceBytes *int64      `json:"workspace_bytes,omitzero"`
	ContextBytes   *int64      `json:"context_bytes,omitzero"`
	FLOPS          *float64    `json:"flops,omitzero"`
	Slack          *[2]float64 `json:"slack,omitzero"`
	Host           string      `json:"host,omitzero"`
	Rates
}

// over lays the fields that the file gives over a known GPU's.
func (f *fileDevice) over(d Device) Device {
	d.Name, d.CapacityBytes, d.ReservedBytes, d.Host = f.Name, f.CapacityBytes, f.ReservedBytes, f.Host
	if f.WorkspaceBytes != nil {
		d.WorkspaceBytes = *f.WorkspaceBytes
	}
	if f.ContextBytes != nil {
		d.ContextBytes = *f.ContextBytes
	}
	if f.FLOPS != nil {
		d.FLOPS = *f.FLOPS
	}
	if f.Slack != nil {
		d.Slack = *f.Slack
	}
	d.Rates = f.Rates.over(d.Rates)
	return d
}

// ReadTopology reads a devmap.topology/v1 file. base gives the constants of a
// GPU by name, for fields that the file leaves out.
func ReadTopology(path string, base func(name string) Device) (*Topology, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	const most = 16 << 20
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	if len(data) > most {
		return nil, &modelgraph.SyntaxError{File: path, Msg: fmt.Sprintf("larger than the %d MiB that a topology may have", most>>20)}
	}
	return ParseTopology(path, data, base)
}

// ParseTopology is [ReadTopology] of bytes; file stands in errors.
func ParseTopology(file string, data []byte, base func(name string) Device) (*Topology, error) {
	var ft fileTopology
	if err := modelgraph.DecodeJSON(file, data, &ft, true); err != nil {
		return nil, err
	}
	if ft.FormatVersion != TopologyVersion {
		return nil, &modelgraph.SyntaxError{File: file, Place: "format_version", Msg: fmt.Sprintf("%q is not %q", ft.FormatVersion, TopologyVersion)}
	}
	t := &Topology{Links: ft.Links, HostMemoryBytes: ft.HostMemory}
	for _, fd := range ft.Devices {
		d := fd.over(base(fd.Name))
		t.Devices = append(t.Devices, d)
	}
	if err := t.Check(); err != nil {
		return nil, &modelgraph.SyntaxError{File: file, Msg: err.Error()}
	}
	return t, nil
}

// MarshalJSON writes the topology in the form that ReadTopology reads.
func (t Topology) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		FormatVersion string   `json:"format_version"`
		Devices       []Device `json:"devices"`
		Links         []Link   `json:"links,omitzero"`
		HostMemory    int64    `json:"host_memory_bytes,omitzero"`
	}{TopologyVersion, t.Devices, t.Links, t.HostMemoryBytes})
}
