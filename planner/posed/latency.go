package posed

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/pose"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/latency"
)

// mostCalls is how often an accelerator is called where it may be several
// times: the authors' q, of which they tried 2 and more.
const mostCalls = 4

// solveLatency places nodes so that one sample is through as early as it can
// be. Its answer has a device for each accelerator and one for all CPUs.
func solveLatency(ctx context.Context, file *benchfile.DNNPartitioning, set Settings) (*Answer, error) {
	problem, form := pose.Latency(file), "one call an accelerator"
	if set.Anywhere {
		problem.Calls, form = mostCalls, fmt.Sprintf("up to %d calls an accelerator", mostCalls)
	}
	found, err := latency.Solve(ctx, problem, graph.Settings{Progress: set.Progress})
	var none *graph.InfeasibleError
	if errors.As(err, &none) {
		return nil, &InfeasibleError{none.InOrder, err}
	}
	if err != nil {
		return nil, err
	}
	calls, _, err := problem.Score(found.Call)
	if err != nil {
		return nil, err
	}
	answer := &Answer{
		Certificate: found.Certificate, Objective: "latency", Form: form, Method: found.Method, Unit: "ms",
		Write: func(to io.Writer) error { return pose.WriteLatency(to, file, problem, found) },
	}
	each := max(1, problem.Calls)
	for i, call := range calls {
		if i%each == 0 {
			answer.Devices = append(answer.Devices, Device{Name: fmt.Sprintf("%d accelerator", i/each)})
		}
		device := &answer.Devices[i/each]
		device.Nodes += call.Nodes
		device.Time += call.Time
		device.Transfers += call.Transfer
		device.Bytes += call.Size
	}
	if file.CPUs == 0 {
		return answer, nil
	}
	cpus := Device{Name: "CPUs"}
	for node, call := range found.Call {
		if call == latency.OnCPU {
			cpus.Nodes++
			cpus.Time += file.Nodes[node].CPUTime
			cpus.Bytes += file.Nodes[node].Size
		}
	}
	answer.Devices = append(answer.Devices, cpus)
	return answer, nil
}
