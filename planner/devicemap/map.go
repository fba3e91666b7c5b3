package devicemap

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Device is a device index, or one of the tiers below the GPUs.
type Device int

// The tiers, and a unit without a place.
const (
	CPU     Device = -1
	Disk    Device = -2
	Nowhere Device = -3
)

// String is the index or the tier's name.
func (d Device) String() string {
	switch d {
	case CPU:
		return "cpu"
	case Disk:
		return "disk"
	case Nowhere:
		return "no device"
	}
	return fmt.Sprint(int(d))
}

// Map gives each unit of a graph, by index, its device.
type Map []Device

// Entry is one line of a flat device map.
type Entry struct {
	Key    string
	Device Device
}

// Flat is a device map as engines read it: module path → device, in module
// order, disjoint, covering every parameter and buffer.
type Flat []Entry

// Flatten spells a map out in the framework's module paths.
func (m Map) Flatten(g *modelgraph.Graph) Flat {
	var f Flat
	for u := range g.Units {
		for _, k := range g.Units[u].Keys {
			f = append(f, Entry{k, m[u]})
		}
	}
	return f
}

// MarshalJSON writes an object in the map's order: numbers for devices,
// "cpu" and "disk" for tiers.
func (f Flat) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := jsontext.AppendQuote(nil, e.Key)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		if e.Device < 0 {
			fmt.Fprintf(&b, "%q", e.Device.String())
		} else {
			fmt.Fprint(&b, int(e.Device))
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Stage is a stretch of units that follow each other on one device.
type Stage struct {
	Stage  int      `json:"stage"`
	Device Device   `json:"device"`
	Units  []string `json:"units"`
	// The seconds are nil where they are not known or were not asked for.
	*steptime.StageTimes
}

// MarshalJSON writes the index or the tier's name.
func (d Device) MarshalJSON() ([]byte, error) {
	if d < 0 {
		return json.Marshal(d.String())
	}
	return json.Marshal(int(d))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Device) UnmarshalJSON(data []byte) error {
	device, fault := parseDevice("", data)
	if fault != nil {
		return errors.New(fault.Message)
	}
	*d = device
	return nil
}

// Stages cuts a map where the device changes, in order of execution.
func (m Map) Stages(g *modelgraph.Graph) []Stage {
	var out []Stage
	for u := range g.Units {
		if n := len(out); n == 0 || out[n-1].Device != m[u] {
			out = append(out, Stage{Stage: n, Device: m[u]})
		}
		last := &out[len(out)-1]
		last.Units = append(last.Units, g.Units[u].Name)
	}
	return out
}

// TimedStages are [Map.Stages] with the seconds of each.
func TimedStages(g *modelgraph.Graph, t *costmodel.Table, topo *costmodel.Topology, m Map) []Stage {
	out := m.Stages(g)
	at := make([]costmodel.Interval, len(out))
	end := 0
	for i := range out {
		at[i] = costmodel.Interval{First: end, End: end + len(out[i].Units)}
		end = at[i].End
	}
	if times, err := steptime.Stages(t, topo, m.places(), at); err == nil {
		for i := range out {
			out[i].StageTimes = &times[i]
		}
	}
	return out
}
