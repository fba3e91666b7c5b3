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

// Device is the index of a device, or a tier: [CPU] or [Disk].
type Device int

// The tiers, and Nowhere for a unit without a place.
const (
	CPU     Device = -1
	Disk    Device = -2
	Nowhere Device = -3
)

// String returns the index or the tier's name.
func (place Device) String() string {
	switch place {
	case CPU:
		return "cpu"
	case Disk:
		return "disk"
	case Nowhere:
		return "no device"
	}
	return fmt.Sprint(int(place))
}

// MarshalJSON writes the index or the tier's name.
func (place Device) MarshalJSON() ([]byte, error) {
	if place < 0 {
		return json.Marshal(place.String())
	}
	return json.Marshal(int(place))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (place *Device) UnmarshalJSON(data []byte) error {
	device, fault := parseDevice("", data)
	if fault != nil {
		return errors.New(fault.Message.String())
	}
	*place = device
	return nil
}

// parseDevice reads an index, "cpu", "disk" or "cuda:1", as Transformers does. The string "0" is
// not a device in Transformers.
func parseDevice(module string, value jsontext.Value) (Device, *Fault) {
	fault := func(kind string, format string, args ...any) (Device, *Fault) {
		return Nowhere, &Fault{Kind: kind, Module: module, Message: costmodel.Messagef(format, args...)}
	}
	if value.Kind() == '0' {
		count, err := strconv.Atoi(string(value))
		switch {
		case err != nil:
			return fault(deviceNotANumber, "%s is not a device index", short(value))
		case count < 0:
			return fault(unknownDevice, "device %d is negative", count)
		}
		return Device(count), nil
	}
	var text string
	if value.Kind() == 'n' || json.Unmarshal(value, &text) != nil {
		return fault(deviceNotANumber, "%s is not a device (an index, \"cpu\" or \"disk\")", short(value))
	}
	switch text {
	case "cpu":
		return CPU, nil
	case "disk":
		return Disk, nil
	case "cuda":
		return 0, nil
	}
	if count, err := strconv.Atoi(strings.TrimPrefix(text, "cuda:")); err == nil && count >= 0 {
		if strings.HasPrefix(text, "cuda:") {
			return Device(count), nil
		}
		return fault(deviceNotANumber, "%q is a string: write the number %d", text, count)
	}
	return fault(deviceNotANumber, "%q is not a device (an index, \"cpu\" or \"disk\")", text)
}

// short returns a value on one line, cut to 40 bytes.
func short(value jsontext.Value) string {
	line := strings.Join(strings.Fields(string(value)), " ")
	if len(line) > 40 {
		return strings.ToValidUTF8(line[:40], "") + "…"
	}
	return line
}
