package devicemap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
)

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

// places are the device indices of the units.
func (m Map) places() []int {
	if m == nil {
		return nil
	}
	out := make([]int, len(m))
	for u, d := range m {
		out[u] = int(d)
	}
	return out
}

// readFlat reads a JSON object of module path → device. Values that name no
// device are kept as faults, so that a check can report all at once; only
// what is no such object at all is an error.
func readFlat(file string, data []byte) (Flat, []Fault, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil, nil, notAMap(file, err)
	}
	var flat Flat
	var faults []Fault
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil {
			return nil, nil, notAMap(file, err)
		}
		name := key.String()
		value, err := dec.ReadValue()
		if err != nil {
			return nil, nil, notAMap(file, err)
		}
		d, fault := parseDevice(name, value)
		if fault != nil {
			faults = append(faults, *fault)
		}
		flat = append(flat, Entry{name, d})
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, nil, notAMap(file, err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, nil, notAMap(file, errors.New("there is more after the object"))
	}
	return flat, faults, nil
}

func notAMap(file string, err error) error {
	msg := "a device map is one JSON object of module path → device"
	if err != nil {
		msg += ": " + strings.TrimPrefix(err.Error(), "jsontext: ")
	}
	return &modelgraph.SyntaxError{File: file, Msg: msg}
}
