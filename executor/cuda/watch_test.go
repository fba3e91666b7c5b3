//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// A GPU at something that does not end ends the step, which says where everything
// stands, and is not waited for.
func TestHang(t *testing.T) {
	machine := opened(t, made(t, executor.GPUOptions{Devices: []int{0, 1}, StallLimit: 100 * time.Millisecond, Fault: executor.Fault{Kind: executor.HangStep, At: 2}}), parsed(t, backendtest.PassOn(1, 2)))
	if _, err := machine.Step(context.Background(), &executor.Step{Number: 1}); err != nil {
		t.Fatal(err)
	}
	times, err := machine.Step(context.Background(), &executor.Step{Number: 2})
	var hang *executor.HangError
	if times != nil || !errors.As(err, &hang) || hang.After < 100*time.Millisecond || err.Error() != hang.Error() {
		t.Fatalf("%v, %v", times, err)
	}
	for _, want := range []string{
		"device 0, compute: 0 of 2 lines have ended, 2 were given; behind the last that is known to have ended: 0.0 compute forward a mb0 >out, before which is a kernel that does not end, as hang@step:2 asks",
		"device 0, to1: 0 of 2 lines have ended, 2 were given; behind the last that is known to have ended: 0.1 to1 send mb0 act[1]#0 out after compute:0.0; it waits for 0.0 compute forward a mb0 >out",
		"device 1, compute: 0 of 6 lines have ended, ",
		"1.0 compute recv mb0 act[1]#0 >slot[0]; it waits for 0.1 to1 send",
		"channel act[1], device 0 to device 1, 1 slots: of 2 messages 0 were sent, 0 received, 0 freed",
	} {
		if !strings.Contains(hang.State, want) {
			t.Errorf("%s\nis without %q", hang.State, want)
		}
	}
	if err := machine.Read(0, 0, make([]byte, 8)); err == nil {
		t.Error("a GPU that hangs was read from")
	}
	if err := machine.Close(); err != nil {
		t.Error(err)
	}
	machine.trap.flag.Data[0] = 1 // now it ends
	machine.left = false
	if err := errors.Join(machine.Close(), machine.Close()); err != nil {
		t.Error(err)
	}
}

// An instruction without an event at its beginning has a time too.
func TestTimes(t *testing.T) {
	const lines, size = 20, 1 << 16
	var text strings.Builder
	fmt.Fprintf(&text, "device 0 arena %d budget %[1]d\nroutine a a\nbuffer 0 a.weights 0 +%d weight\nbuffer 0 out %[2]d +256 stream\n0.0 compute load >a.weights\n", size+256, size)
	for i := range lines {
		fmt.Fprintf(&text, "0.%d compute forward a mb%d a.weights >out\n", i+1, i)
	}
	fmt.Fprintf(&text, "0.%d compute unload a.weights\n", lines+1)
	machine := opened(t, made(t, executor.GPUOptions{}), parsed(t, text.String()))
	if err := machine.Fill(0, 0, size, 0); err != nil {
		t.Fatal(err)
	}
	times, err := machine.Step(context.Background(), &executor.Step{Number: 1})
	if err != nil {
		t.Fatal(err)
	}
	if of := times.Devices[0]; of.Forward < 9*of.Wait || of.Forward < lines*10*time.Microsecond {
		t.Errorf("%+v of %v", of, times.Step)
	}
}

// A hang before the first step has the same report as one in a step.
func TestHangBeforeSteps(t *testing.T) {
	machine := opened(t, made(t, executor.GPUOptions{Devices: []int{0, 0}, StallLimit: 100 * time.Millisecond}), parsed(t, backendtest.PassOn(1, 2)))
	device := machine.devices[0]
	err := device.do(func() error {
		flag, err := driver.Pin(4)
		if err != nil {
			return err
		}
		clear(flag.Data)
		hung := errors.Join(device.kernels.Hang(device.stream(1), flag.Address()), machine.finish(device, "here"))
		flag.Data[0] = 1
		return errors.Join(hung, device.stream(1).Synchronize(), flag.Free())
	})
	var hang *executor.HangError
	if !errors.As(err, &hang) || hang.State != "here" || !machine.left {
		t.Errorf("%v", err)
	}
	machine.left = false
}
