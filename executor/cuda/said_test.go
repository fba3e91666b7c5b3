//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// TestSaid: ids that a decode has written to the host are not carried, once, and not after a kernel
// of another instruction.
func TestSaid(t *testing.T) {
	machine := bound(t, forms(t)["generate"], executor.GPUOptions{Devices: []int{0, 0, 0}}, func(*kernel.Call, *kernel.Step) error { return nil })
	var made *prepared
	for _, made = range machine.works.cached {
		if made != nil && made.decodes {
			break
		}
	}
	device := made.device
	stream, from, to := device.stream(0), device.at(0), []byte{1, 1, 1, 1}
	var pinned *driver.Pinned
	if err := device.do(func() (err error) { pinned, err = driver.Pin(4); return err }); err != nil {
		t.Fatal(err)
	}
	copy(pinned.Data, to)
	said := []byte{2, 2, 2, 2, 3, 3}
	for _, test := range []struct {
		name   string
		before func() error
		from   schedule.Address
		said   bool
	}{
		{"after a graph", func() error { device.said, device.saidFrom = said, from; return nil }, from, true},
		{"again", func() error { return nil }, from, false},
		{"of another address", func() error { device.said = said; return nil }, from + 4, false},
		{"after another kernel", func() error {
			device.said = said
			return made.Kernel(0, 0)(&schedule.Args{Queue: stream, Past: 1})
		}, from, false},
	} {
		if err := device.do(func() error {
			if err := test.before(); err != nil {
				return err
			}
			data, err := calls{device}.Carry(stream, pinned.Data, test.from)
			if got := bytes.Equal(data, said[:4]); got != test.said {
				t.Errorf("%s: %v", test.name, data)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := device.do(func() error { device.said = nil; return pinned.Free() }); err != nil {
		t.Error(err)
	}
}
