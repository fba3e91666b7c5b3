package bind_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/modelgraph"
)

// workloads are all ways to run a small model.
func workloads() map[string]costmodel.Workload {
	train := costmodel.Workload{Mode: costmodel.Train, Seq: 6, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
	full, mixed, single := train, train, train
	full.Recompute = costmodel.RecomputeFull
	mixed.Precision = costmodel.BF16Mixed
	single.Precision, single.Optimizer = costmodel.FP32True, costmodel.SGD
	infer := costmodel.Workload{Mode: costmodel.Infer, Seq: 6, Precision: costmodel.BF16True}
	generate, load := infer, infer
	generate.NewTokens = 3
	load.Mode = costmodel.Load
	return map[string]costmodel.Workload{"train": train, "recompute": full, "mixed": mixed, "fp32": single, "infer": infer, "generate": generate, "load": load}
}

var schedules = []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved, ""}

// every calls f with jobs of every family, way to run, schedule and number of
// devices.
func every(t *testing.T, f func(t *testing.T, name string, job *executor.Job)) {
	t.Helper()
	for family, config := range backendtest.Families {
		graph, err := backendtest.Graph(config)
		if err != nil {
			t.Fatal(err)
		}
		for name, workload := range workloads() {
			if backendtest.Forwards(family) && (workload.Mode == costmodel.Train || workload.NewTokens > 0) {
				continue
			}
			t.Run(family+" "+name, func(t *testing.T) {
				for devices := 1; devices <= 4; devices++ {
					for _, schedule := range schedules {
						for _, parts := range []int64{1, 3} {
							label := fmt.Sprintf("%d devices, %s, %d micro-batches", devices, schedule, parts)
							job, err := draw(graph, workload, schedule, devices, parts)
							if err != nil {
								t.Fatalf("%s: %v", label, err)
							}
							f(t, label, job)
						}
					}
				}
			})
		}
	}
}

func draw(graph *modelgraph.Graph, workload costmodel.Workload, schedule costmodel.ScheduleKind, devices int, parts int64) (*executor.Job, error) {
	workload.MicroBatches, workload.Batch = parts, 2*parts
	random := rand.New(rand.NewPCG(uint64(devices), uint64(parts)))
	place := backendtest.Runs(devices, 1, random)
	workload.Strategy, workload.Schedule = costmodel.Pipeline, schedule
	switch schedule {
	case "":
		workload.Strategy, place = costmodel.DeviceMap, backendtest.Anywhere(devices, random)
	case costmodel.Interleaved:
		workload.VirtualStages, place = 2, backendtest.Runs(devices, 2, random)
	}
	return backendtest.Job(graph, workload, devices, place)
}

func TestEvery(t *testing.T) {
	every(t, func(t *testing.T, name string, job *executor.Job) {
		t.Helper()
		if _, err := bind.New(job.Graph, job.Workload, job.Recipe, job.Program); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	})
}
