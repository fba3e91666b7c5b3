//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/weights"
)

// Loaded values are in their arenas. Upload rejects values outside of an arena before it
// reads any.
func TestUpload(t *testing.T) {
	machine := opened(t, made(t, executor.GPUOptions{Devices: []int{1, 0}}), parsed(t, "device 0 arena 4096 budget 4096\ndevice 1 arena 3000000 budget 3000000\n"))
	for _, device := range machine.devices {
		if device.end.SumStream == device.host { // a copy would wait for the checksum of the one before it
			t.Errorf("%s: bytes are summed up on the stream that copies them", device.end.Name)
		}
	}
	read := func(into []byte, from int64) error {
		for i := range into {
			into[i] = byte(from + int64(i))
		}
		return nil
	}
	var loaded int64
	before := driver.Unreleased()
	loads := []executor.Upload{
		{Device: 1, Offset: 1000, Values: weights.Range{Bytes: 2_000_000, Step: 1 << 20, Read: read}},
	}
	for at := int64(96); at < 4096; at += 1000 { // more than one part has
		loads = append(loads, executor.Upload{Device: 0, Offset: at, Values: weights.Range{Bytes: 1000, Step: 1 << 20, Read: read}})
	}
	if err := machine.Upload(context.Background(), loads, func(bytes int64) { loaded += bytes }); err != nil || loaded != 2_004_000 {
		t.Errorf("%d bytes came, %v", loaded, err)
	}
	if now := driver.Unreleased(); now != before { // a ring that is pinned then is what loading waits for
		t.Errorf("the process holds %s, and before it %s", now, before)
	}
	got := contents(t, machine)
	wanted := [][]byte{bytes.Repeat([]byte{executor.Poison}, len(got[0])), bytes.Repeat([]byte{executor.Poison}, len(got[1]))}
	for _, load := range loads {
		if err := read(wanted[load.Device][load.Offset:load.Offset+load.Values.Bytes], 0); err != nil {
			t.Error(err)
		}
	}
	for device, want := range wanted {
		if !bytes.Equal(got[device], want) {
			t.Errorf("device %d has other bytes", device)
		}
	}
	for _, load := range []executor.Upload{
		{Device: 2, Values: weights.Range{Bytes: 8}},
		{Device: -1, Values: weights.Range{Bytes: 8}},
		{Device: 1, Offset: 2999993, Values: weights.Range{Bytes: 8}},
		{Offset: -1, Values: weights.Range{Bytes: 8}},
	} {
		load.Values.Step, load.Values.Read = 1<<20, func([]byte, int64) error {
			t.Error("it was read")
			return nil
		}
		if err := machine.Upload(context.Background(), []executor.Upload{load}, func(int64) {}); err == nil || !strings.HasPrefix(err.Error(), "device ") {
			t.Errorf("%+v: %v", load, err)
		}
	}
}

// A read that fails ends the load of all GPUs, and a later load succeeds.
func TestUploadToTwoThatEnds(t *testing.T) {
	machine := opened(t, made(t, executor.GPUOptions{Devices: []int{0, 1}}), parsed(t, "device 0 arena 3000000 budget 3000000\ndevice 1 arena 3000000 budget 3000000\n"))
	broken := errors.New("broken")
	for _, fails := range []int{0, 1, 2} {
		var loads []executor.Upload
		for device := range 2 {
			loads = append(loads, executor.Upload{Device: device, Values: weights.Range{Bytes: 3_000_000, Step: 4096, Read: func(into []byte, from int64) error {
				if device == fails && from > 1_000_000 {
					return broken
				}
				for i := range into {
					into[i] = byte(device + 7)
				}
				return nil
			}}})
		}
		var loaded int64
		err := machine.Upload(context.Background(), loads, func(bytes int64) { loaded += bytes })
		if fails < 2 && !errors.Is(err, broken) || fails == 2 && (err != nil || loaded != 6_000_000) {
			t.Errorf("device %d fails: %v, %d bytes were told", fails, err, loaded)
		}
	}
	for device, got := range contents(t, machine) {
		if !bytes.Equal(got, bytes.Repeat([]byte{byte(device + 7)}, 3_000_000)) {
			t.Errorf("device %d has other bytes", device)
		}
	}
}
