//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

const mebibyte = 1 << 20

// TestMoments: a GPU's figures at the moments of two steps, of devices that are on
// it together, to the byte.
func TestMoments(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") != "" {
		t.Skip("the figures are those of GPUs that are none")
	}
	job := forms(t)["generate"]
	machine := opened(t, made(t, executor.GPUOptions{Devices: []int{2, 1, 2}}), job.Program)
	for number := range 2 {
		if _, err := machine.Step(context.Background(), &executor.Step{Number: int64(number + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := machine.Close(); err != nil {
		t.Fatal(err)
	}
	measured := machine.Measured()
	if len(measured) != 2 {
		t.Fatalf("%+v", measured)
	}
	whole := func(device int) int64 {
		return (job.Program.Devices[device].Arena + 2*mebibyte - 1) / (2 * mebibyte) * (2 * mebibyte)
	}
	var fences [3]int64
	for i := range job.Program.Instrs {
		if job.Program.Instrs[i].Op == program.Fence {
			fences[job.Program.Instrs[i].Device] += 2
		}
	}
	if fences[2] == 0 {
		t.Error("no fence was passed")
	}
	const before, context = 5 * mebibyte, 8 * mebibyte // of others, and of this one
	for i, arenas := range []int64{whole(0) + whole(2), whole(1)} {
		gpu, passed := measured[i], []int64{fences[0] + fences[2], fences[1]}[i]
		if gpu.Before != before || gpu.Context != context || gpu.Ready != context+arenas || gpu.Arenas != arenas || gpu.After != before || gpu.Fences != passed || gpu.Moved != "" || gpu.Unmeasured != "" {
			t.Errorf("%+v, and arenas are %d, fences %d", gpu, arenas, passed)
		}
		if passed > 0 && (gpu.FenceLow != gpu.Ready || gpu.FenceHigh != gpu.Ready) {
			t.Errorf("%+v", gpu)
		}
	}
	if measured[0].GPU != 2 || measured[0].Name != "Fake 2" || measured[0].UUID != "GPU-12121212-1212-1212-1212-121212121212" || len(measured[0].Devices) != 2 {
		t.Errorf("%+v", measured[0])
	}
}

// TestTables: page tables of what sleeps are there from the sleep on, until it is closed.
func TestTables(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") != "" {
		t.Skip("the sizes are those of GPUs that are none")
	}
	size := int64(4 << 20)
	machine := opened(t, made(t, executor.GPUOptions{}), parsed(t, fmt.Sprintf("device 0 arena %[1]d budget %[1]d\nbuffer 0 weights 0 +%[1]d weight\n0.0 compute load >weights\n0.1 compute unload weights\n", size)))
	now := func(ready, after int64) {
		t.Helper()
		if gpu := machine.Measured()[0]; gpu.Tables != ready || gpu.TablesAfter != after {
			t.Errorf("%+v, want %d bytes of page tables, then %d", gpu, ready, after)
		}
	}
	now(0, 0)
	if _, err := machine.Sleep(context.Background(), unwatched); err != nil {
		t.Fatal(err)
	}
	now(0, size/512)
	if _, _, err := machine.Wake(context.Background(), unwatched); err != nil {
		t.Fatal(err)
	}
	if err := machine.Close(); err != nil {
		t.Fatal(err)
	}
	now(size/512, 0)
}

// TestOthersMove: the result reports a process that comes, goes or changes during a run,
// whether the driver shows processes or not.
func TestOthersMove(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") != "" {
		t.Skip("the figures are those of GPUs that are none")
	}
	for name, is := range map[string]struct{ others, want string }{
		"came":    {"41:3,42:-,77:9", "process 77 came with 9.0 MiB"},
		"left":    {"42:-", "process 41 left with 3.0 MiB"},
		"changed": {"41:30,42:-", "process 41 went from 3.0 MiB to 30.0 MiB"},
		"hidden":  {"41:300,42:-", "297.0 MiB was allocated or released outside the arenas; the driver does not show by which process"},
		"nothing": {"41:3,42:-", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "hidden" {
				t.Setenv("FAKE_NVML_HIDES", "1")
				before, err := unused()
				if err != nil {
					t.Fatal(err)
				}
				for uuid, found := range before { // as it would have been read
					all := found.processes
					t.Cleanup(func() { found.processes = all; before[uuid] = found })
					found.processes = nil
					before[uuid] = found
				}
			}
			machine := opened(t, made(t, executor.GPUOptions{}), parsed(t, "device 0 arena 256 budget 256\nroutine a a\nbuffer 0 out 0 +256 stream\n0.0 compute forward a mb0 >out\n0.1 compute fence out\n"))
			t.Setenv("FAKE_NVML_OTHERS", is.others)
			if _, err := machine.Step(context.Background(), &executor.Step{Number: 1}); err != nil {
				t.Fatal(err)
			}
			if got := machine.Measured()[0]; got.Moved != is.want || strings.Contains(got.Unmeasured, " ") {
				t.Errorf("%+v", got)
			}
		})
	}
}
