//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/fixtures"
)

// elsewhere are the kernels whose libraries no fake is of.
var elsewhere = []string{"gemm"}

// Every kernel of every family, in every way of running it, is prepared: it has an
// entry, its operands and dims are those that its lines name, and a module has its
// function.
func TestPrepared(t *testing.T) {
	for family, config := range backendtest.Families {
		graph := fixtures.Must(backendtest.Graph(config))(t)
		for way, wanted := range backendtest.Workloads() {
			if wanted.Mode == costmodel.Load || backendtest.Forwards(family) && (wanted.Mode == costmodel.Train || wanted.NewTokens > 0) {
				continue
			}
			for _, schedule := range []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.ZBH1, costmodel.VHalf} {
				if schedule != costmodel.OneFOneB && wanted.Mode != costmodel.Train {
					continue
				}
				t.Run(fmt.Sprint(family, " ", way, " ", schedule), func(t *testing.T) {
					job := fixtures.Must(backendtest.Cut{Devices: 2, Schedule: schedule, MicroBatches: 2}.Job(graph, wanted))(t)
					prepares(t, job)
				})
			}
		}
	}
}

// prepares runs two steps of a job on the fake driver.
func prepares(t *testing.T, job *executor.Job) {
	t.Helper()
	bound := fixtures.Must(bind.New(job.Graph, job.Workload, job.Recipe, job.Program))(t)
	found := fixtures.Must(New(executor.GPUOptions{Devices: []int{0, 0}}))(t)
	backend, is := found.(*backend)
	if !is {
		t.Fatalf("%T", found)
	}
	backend.kernels = maps.Clone(backend.kernels)
	for _, name := range elsewhere {
		backend.kernels[name] = func(*kernel.Call) (kernel.Launch, error) {
			return func(*kernel.Step) error { return nil }, nil
		}
	}
	machine := fixtures.Must(found.Open(context.Background(), bound))(t)
	for number := range int64(2) {
		if _, err := machine.Step(context.Background(), &executor.Step{Number: number + 1}); err != nil {
			t.Error(err)
		}
	}
	if err := machine.Close(); err != nil || driver.Unreleased() != "" {
		t.Errorf("%v; the process still holds %s", err, driver.Unreleased())
	}
}
