package cpu

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/fixtures"
)

// compiled is the job of a family, its units in equal runs round the devices.
func compiled(tb testing.TB, family string, wanted costmodel.Workload, devices, runs int) *executor.Job {
	tb.Helper()
	job := fixtures.Must(backendtest.Compiled(family, wanted, devices, runs))(tb)
	return job
}

// Every way of running a program at once gives the bytes of running it in turn,
// step after step, whatever the number of processors.
func TestStepsAreOne(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	forms := fixtures.Must(backendtest.Forms("llama-tied", "gemma3_text"))(t)
	for name, job := range forms {
		t.Run(name, func(t *testing.T) {
			want := make([][]byte, len(job.Program.Devices))
			for i := range want {
				want[i] = bytes.Repeat([]byte{executor.Poison}, int(job.Program.Devices[i].Arena))
			}
			for range 2 {
				if err := backendtest.InTurn(job.Program, want, makes); err != nil {
					t.Fatal(err)
				}
			}
			for _, processors := range []int{1, 2, 4} {
				runtime.GOMAXPROCS(processors)
				machine := opened(t, &newHeap().backend, job.Program)
				for range 2 {
					if _, err := machine.Step(context.Background(), toy(machine, func(int32) error {
						runtime.Gosched()
						return nil
					})); err != nil {
						t.Fatal(err)
					}
				}
				for i := range want {
					if !bytes.Equal(machine.arenas[i], want[i]) {
						t.Errorf("%d processors: device %d has other bytes", processors, i)
					}
				}
			}
		})
	}
}
