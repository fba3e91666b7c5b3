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

// Map gives the device of each unit of a graph, by the unit's index.
type Map []Device

// Flat is a device map as engines read it: module path → device. It is in module order, its modules
// do not overlap, and it covers every parameter and buffer.
type Flat []struct {
	Key    string
	Device Device
}

// Flatten returns the map in the framework's module paths.
func (placement Map) Flatten(graph *modelgraph.Graph) Flat {
	var flat Flat
	for unit := range graph.Units {
		for _, key := range graph.Units[unit].Keys {
			flat = append(flat, Flat{{key, placement[unit]}}...)
		}
	}
	return flat
}

// MarshalJSON writes an object in the map's order: numbers for devices, "cpu" and "disk" for tiers.
func (flat Flat) MarshalJSON() ([]byte, error) {
	var buffer bytes.Buffer
	buffer.WriteByte('{')
	for i, entry := range flat {
		if i > 0 {
			buffer.WriteByte(',')
		}
		key, err := jsontext.AppendQuote(nil, entry.Key)
		if err != nil {
			return nil, err
		}
		buffer.Write(key)
		buffer.WriteByte(':')
		if entry.Device < 0 {
			fmt.Fprintf(&buffer, "%q", entry.Device.String())
		} else {
			fmt.Fprint(&buffer, int(entry.Device))
		}
	}
	buffer.WriteByte('}')
	return buffer.Bytes(), nil
}

// Pin fixes the units that a pattern names to a device, as in Pin{Pattern: "model.layers.0*",
// Device: 1}. The pattern is the path of a unit, of a layer, or of a module around them. A trailing
// * matches any ending.
type Pin struct {
	Pattern string
	Device  int
}

// places returns the device indices of the units.
func (placement Map) places() []int {
	if placement == nil {
		return nil
	}
	out := make([]int, len(placement))
	for unit, device := range placement {
		out[unit] = int(device)
	}
	return out
}

// readFlat reads a JSON object of module path → device. Values that name no device become faults,
// so that a check can report all at once. Other text is an error.
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
		device, fault := parseDevice(name, value)
		if fault != nil {
			faults = append(faults, *fault)
		}
		flat = append(flat, Flat{{name, device}}...)
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
