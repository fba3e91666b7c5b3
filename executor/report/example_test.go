package report_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// A region that a run did not write to its end was not what the plan says.
func Example() {
	job := &executor.Job{
		Graph: &modelgraph.Graph{}, Workload: &costmodel.Workload{Mode: costmodel.Infer},
		Program: &program.Program{Devices: []program.Device{{Arena: 4096}}},
	}
	prediction := &report.Prediction{Devices: []devicemap.Prediction{{Predicted: devicemap.Predicted{PeakAllocatedBytes: 4096}}}}
	measured := &executor.Result{Growth: 1 << 20, Devices: []executor.DeviceResult{{
		Touched: 4000, Regions: []executor.RegionResult{{Name: "state", PlannedBytes: 4096, TouchedBytes: 4000}},
	}}}

	made := report.Of(prediction, job, measured)
	fmt.Println(made.Verdict)
	for _, reason := range made.Reasons {
		fmt.Println(reason)
	}
	// Output:
	// fail
	// device 0: the last 96 of the 4096 bytes of region state were never written
	// the process grew 1.0 MiB (limit 64.0 MiB: 4.0 KiB of arenas and 64.0 MiB)
}
