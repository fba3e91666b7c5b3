package devicemap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
)

// ReadFlat reads a JSON object of module path → device. Values that name no
// device are kept as faults, so that a check can report all at once; only
// what is no such object at all is an error.
func ReadFlat(file string, data []byte) (Flat, []Fault, error) {
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

// parseDevice reads an index, "cpu", "disk" or "cuda:1", as Transformers
// does. "0" is a string and no device there.
func parseDevice(module string, v jsontext.Value) (Device, *Fault) {
	fault := func(kind FaultKind, format string, args ...any) (Device, *Fault) {
		return Nowhere, &Fault{Kind: kind, Module: module, Message: fmt.Sprintf(format, args...)}
	}
	if v.Kind() == '0' {
		n, err := strconv.Atoi(string(v))
		switch {
		case err != nil:
			return fault(DeviceNotANumber, "%s is not a device index", short(v))
		case n < 0:
			return fault(UnknownDevice, "device %d is negative", n)
		}
		return Device(n), nil
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return fault(DeviceNotANumber, "%s is not a device (an index, \"cpu\" or \"disk\")", short(v))
	}
	switch s {
	case "cpu":
		return CPU, nil
	case "disk":
		return Disk, nil
	case "cuda":
		return 0, nil
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(s, "cuda:")); err == nil && n >= 0 {
		if strings.HasPrefix(s, "cuda:") {
			return Device(n), nil
		}
		return fault(DeviceNotANumber, "%q is a string: write the number %d", s, n)
	}
	return fault(DeviceNotANumber, "%q is not a device (an index, \"cpu\" or \"disk\")", s)
}

// short is a value on one line, cut where it is long.
func short(v jsontext.Value) string {
	line := strings.Join(strings.Fields(string(v)), " ")
	if len(line) > 40 {
		return strings.ToValidUTF8(line[:40], "") + "…"
	}
	return line
}
