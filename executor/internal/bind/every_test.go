package bind_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
)

// every calls f with a third of all jobs of every family, way to run, schedule and number of
// devices.
func every(t *testing.T, f func(t *testing.T, name string, job *executor.Job)) {
	t.Helper()
	number := 0
	for family, config := range backendtest.Families {
		graph, err := backendtest.Graph(config)
		if err != nil {
			t.Fatal(err)
		}
		for name, workload := range backendtest.Workloads() {
			if backendtest.Forwards(family) && (workload.Mode == costmodel.Train || workload.NewTokens > 0) {
				continue
			}
			t.Run(family+" "+name, func(t *testing.T) {
				for devices := 1; devices <= 4; devices++ {
					for _, schedule := range backendtest.Schedules {
						for _, parts := range []int64{1, 3} {
							number++
							if number%3 != 0 {
								continue
							}
							label := fmt.Sprintf("%d devices, %s, %d micro-batches", devices, schedule, parts)
							job, err := backendtest.Cut{Devices: devices, Schedule: schedule, MicroBatches: parts, Seed: uint64(parts)}.Job(graph, workload)
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
