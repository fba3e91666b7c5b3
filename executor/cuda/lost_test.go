//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// illegalAddress is CUDA_ERROR_ILLEGAL_ADDRESS: after it the context answers every call
// with the same.
const illegalAddress = 700

// A GPU that is lost in a step ends the step, whatever the others wait for (for an hour
// here). The error names it and its instruction. No GPU is called after that.
func TestLost(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") != "" {
		t.Skip("a real GPU does not heal: TestDeadGPU is for that")
	}
	for name, is := range map[string]struct {
		alone, with string
		transport   executor.Transport
	}{
		"all contexts end, peer": {"", "[GPU 0 (Fake 0)]", executor.PeerTransport}, "all contexts end, host": {"", "[GPU 0 (Fake 0)]", executor.HostTransport},
		"one ends, peer": {"1", "[]", executor.PeerTransport}, "one ends, host": {"1", "[]", executor.HostTransport},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FAKE_CUDA_ALONE", is.alone)
			machine := opened(t, made(t, executor.GPUOptions{Devices: []int{0, 1}, Transport: is.transport, StallLimit: time.Hour, Fault: executor.Fault{Kind: executor.LoseStep, At: 2}}), parsed(t, backendtest.PassOn(1, 3)))
			defer heal(t, machine) // a test that fails leaves the others their GPUs
			if _, err := machine.Step(context.Background(), &executor.Step{Number: 1}); err != nil {
				t.Fatal(err)
			}
			times, err := machine.Step(context.Background(), &executor.Step{Number: 2})
			var lost *executor.LostError
			if times != nil || !errors.As(err, &lost) || fmt.Sprint(lost.GPUs, lost.With) != "[GPU 1 (Fake 1)] "+is.with {
				t.Fatalf("%v, %v", times, err)
			}
			for _, want := range []string{"GPU 1 (Fake 1) is lost", "CUDA_ERROR_ILLEGAL_ADDRESS (700)", "device 1, compute: ", "behind the last that is known to have ended: 1."} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s\nis without %q", err, want)
				}
			}
			if err := machine.Read(0, 0, make([]byte, 8)); err == nil {
				t.Error("a machine without its GPU was read from")
			}
		})
	}
}

// heal closes a machine as it is to be closed, which asks nothing of GPUs, and then the
// one that could be closed if its GPUs were as if nothing had been.
func heal(t *testing.T, machine *machine) {
	t.Helper()
	if err := machine.Close(); err != nil {
		t.Error(err)
	}
	t.Setenv("FAKE_CUDA_HEALED", "1")
	for machine.everywhere(func(*device) error { return driver.Synchronize() }) != nil {
		time.Sleep(time.Millisecond) // the fake looks every one
	}
	machine.left = false
	if err := machine.Close(); err != nil {
		t.Error(err)
	}
}

// The next call reports a GPU that is lost outside of steps. Close makes no calls to it.
func TestLostOutsideSteps(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") != "" {
		t.Skip("a real GPU does not heal")
	}
	t.Setenv("FAKE_CUDA_ALONE", "1")
	machine := opened(t, made(t, executor.GPUOptions{Devices: []int{0, 1}}), parsed(t, backendtest.PassOn(1, 2)))
	device := machine.devices[1]
	err := device.do(func() error {
		return errors.Join(device.kernels.Hang(device.host, nowhere), device.host.Synchronize())
	})
	var lost *executor.LostError
	if !errors.As(err, &lost) || fmt.Sprint(lost.GPUs) != "[GPU 1 (Fake 1)]" {
		t.Errorf("%v", err)
	}
	if err := machine.Read(1, 0, make([]byte, 8)); !errors.As(err, &lost) {
		t.Errorf("read: %v", err)
	}
	if err := machine.Read(0, 0, make([]byte, 8)); err != nil {
		t.Errorf("the other one: %v", err)
	}
	heal(t, machine)
}

// TestAnswers: the driver's error shows whether a GPU is lost.
func TestAnswers(t *testing.T) {
	machine := opened(t, made(t, executor.GPUOptions{Devices: []int{0, 1}}), parsed(t, backendtest.PassOn(1, 2)))
	err := machine.devices[1].do(func() error { return &driver.Error{Call: "cuStreamSynchronize", Code: illegalAddress} })
	if want := "GPU 1 (Fake 1) is lost: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): as the fake says"; err == nil || err.Error() != want && os.Getenv("DEVMAP_TEST_GPU") == "" {
		t.Errorf("%v, want %s", err, want)
	}
	if err := machine.devices[1].do(func() error { return &driver.Error{Call: "cuMemCreate", Code: driver.OutOfMemory} }); errors.As(err, new(*executor.LostError)) {
		t.Error(err)
	}
}

// lostBy is how TestDeadGPU's messages go.
var lostBy = flag.String("transport", string(executor.AutoTransport), "of the test of a GPU that is lost")

// TestDeadGPU: the last of all GPUs is lost in a step. The step ends in time, says which
// it is and what the driver says, and the process can end. No other test may follow it
// in the process.
func TestDeadGPU(t *testing.T) {
	onGPU(t)
	options := executor.GPUOptions{Devices: spread(t, 2), Transport: executor.Transport(*lostBy), Fault: executor.Fault{Kind: executor.LoseStep, At: 2}}
	machine := open(t, made(t, options), parsed(t, backendtest.PassOn(1, 3)))
	nothing(machine)
	if _, err := machine.Step(context.Background(), &executor.Step{Number: 1}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_, err := machine.Step(context.Background(), &executor.Step{Number: 2})
	t.Logf("%v later: %v", time.Since(begin), err)
	var lost *executor.LostError
	var driverErr *driver.Error
	if !errors.As(err, &lost) || len(lost.GPUs) != 1 || lost.GPUs[0] != machine.devices[1].gpu.place() || !errors.As(err, &driverErr) || driverErr.Code != illegalAddress {
		t.Error("it is not told so")
	}
	for _, device := range machine.devices {
		t.Logf("device %d on %s answers: %v", device.plan.ID, device.gpu.place(), device.do(answers))
	}
	begin = time.Now()
	t.Logf("closed: %v after %v; held: %s", machine.Close(), time.Since(begin), driver.Unreleased())
}

// The error names a GPU that another process uses exclusively, and nothing leaks.
func TestTaken(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") != "" {
		t.Skip("it would take another process")
	}
	t.Setenv("FAKE_CUDA_TAKEN", "1")
	_, err := made(t, executor.GPUOptions{}).Open(context.Background(), &bind.Bound{Program: parsed(t, backendtest.PassOn(1, 2))})
	if want := "device 1 on GPU 1 (Fake 1): another process has it for itself: cuDevicePrimaryCtxRetain: CUDA_ERROR_DEVICE_UNAVAILABLE (46): as the fake says"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if leaked := driver.Unreleased(); leaked != "" {
		t.Errorf("the process still holds %s", leaked)
	}
}
