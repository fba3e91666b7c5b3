//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"errors"
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

// TestLaunch: a graph that writes ids to the host writes to two places in turn, and the next position
// is not written again. A graph that writes none makes earlier ids invalid.
func TestLaunch(t *testing.T) {
	machine := bound(t, forms(t)["generate"], executor.GPUOptions{Devices: []int{0, 1, 0}}, func(*kernel.Call, *kernel.Step) error { return nil })
	device := machine.devices[0]
	stream, from := device.stream(0), device.at(0)
	if err := device.do(func() (err error) {
		graph, err := stream.Capture(func() error { return stream.FillWord(from, 0) })
		if err != nil {
			return err
		}
		pinned, err := driver.Pin(kernel.SaidBytes)
		if err != nil {
			return errors.Join(err, graph.Destroy())
		}
		defer func() { err = errors.Join(err, graph.Destroy(), pinned.Free()) }()
		for past := range int64(5) {
			if err := device.launch(graph, &schedule.Args{Queue: stream, Past: past}, pinned, from); err != nil {
				return err
			}
			data, err := calls{device}.Carry(stream, nil, from)
			if want := &pinned.Data[past%2*kernel.SaidApart]; err != nil || cap(data) == 0 || &data[:1][0] != want {
				t.Errorf("after %d tokens, ids are elsewhere: %v", past, err)
			}
			// A queue of nil cannot be written to.
			if err := device.kernels.SetPlace(nil, past+1); err != nil {
				return err
			}
		}
		// A launch that fails leaves the position as it is.
		if err := device.launch(graph, &schedule.Args{Queue: machine.devices[1].stream(0), Past: 7}, pinned, from); err == nil || device.said != nil {
			t.Errorf("on a queue of another GPU: %v", err)
		}
		if err := device.kernels.SetPlace(nil, 5); err != nil {
			return err
		}
		device.said = pinned.Data
		if err := device.launch(graph, &schedule.Args{Queue: stream, Past: 5}, nil, 0); err != nil || device.said != nil {
			t.Errorf("%d bytes of an earlier graph, %v", len(device.said), err)
		}
		return stream.Synchronize()
	}); err != nil {
		t.Error(err)
	}
}
