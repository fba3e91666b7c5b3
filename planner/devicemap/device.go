package devicemap

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/costmodel"
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
		return errors.New(fault.Message.String())
	}
	*d = device
	return nil
}

// parseDevice reads an index, "cpu", "disk" or "cuda:1", as Transformers
// does. "0" is a string and no device there.
func parseDevice(module string, v jsontext.Value) (Device, *Fault) {
	fault := func(kind string, format string, args ...any) (Device, *Fault) {
		return Nowhere, &Fault{Kind: kind, Module: module, Message: costmodel.Messagef(format, args...)}
	}
	if v.Kind() == '0' {
		n, err := strconv.Atoi(string(v))
		switch {
		case err != nil:
			return fault(deviceNotANumber, "%s is not a device index", short(v))
		case n < 0:
			return fault(unknownDevice, "device %d is negative", n)
		}
		return Device(n), nil
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return fault(deviceNotANumber, "%s is not a device (an index, \"cpu\" or \"disk\")", short(v))
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
		return fault(deviceNotANumber, "%q is a string: write the number %d", s, n)
	}
	return fault(deviceNotANumber, "%q is not a device (an index, \"cpu\" or \"disk\")", s)
}

// short is a value on one line, cut where it is long.
func short(v jsontext.Value) string {
	line := strings.Join(strings.Fields(string(v)), " ")
	if len(line) > 40 {
		return strings.ToValidUTF8(line[:40], "") + "…"
	}
	return line
}
