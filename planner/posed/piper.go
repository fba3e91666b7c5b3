package posed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/pose"
	"github.com/devmap-dev/devmap/planner/internal/solve/parallelstages"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// alone: each stage has one device.
func (set *Settings) alone() bool { return cmp.Or(set.Data, 1) == 1 && cmp.Or(set.Tensor, 1) == 1 }

func solvePiper(ctx context.Context, file *benchfile.Piper, set Settings) (*Answer, error) {
	if set.Anywhere {
		return nil, errors.New("the stages are a pipeline's, each the difference of two down-sets: not anywhere")
	}
	if set.Latency {
		return nil, errors.New("a Piper file poses a pipeline's slowest stage, in training: it has no latency of a sample")
	}
	if !set.alone() {
		return solveParallel(ctx, file, set)
	}
	problem, err := pose.Piper(file, file.MaxDevices, file.MaxMemory, file.Bandwidth)
	if err != nil {
		return nil, err
	}
	found, err := stages.Solve(ctx, problem, stages.Settings{Progress: set.Progress})
	var none *stages.InfeasibleError
	if errors.As(err, &none) {
		return nil, &InfeasibleError{false, err}
	}
	if err != nil {
		return nil, err
	}
	answer := &Answer{
		Certificate: found.Certificate, Objective: largestLoad, Form: "contiguous", Method: found.Method, Unit: "per micro-batch, in the file's unit",
		Write: func(to io.Writer) error { return pose.WritePiper(to, file, found) },
	}
	nodes := count(found.Stage, len(found.Loads))
	for i, load := range found.Loads {
		answer.Devices = append(answer.Devices, Device{fmt.Sprintf("stage %d", i), nodes[i], load.Time, load.Transfers, load.Memory})
	}
	return answer, nil
}

// solveParallel answers where stages may have more than a device each.
func solveParallel(ctx context.Context, file *benchfile.Piper, set Settings) (*Answer, error) {
	degree := func(given int) int { return max(0, cmp.Or(given, 1)) } // 0: any
	problem, err := pose.ParallelPiper(file, file.MaxDevices, file.MaxMemory, file.Bandwidth, degree(set.Data), degree(set.Tensor))
	if err != nil {
		return nil, err
	}
	found, err := parallelstages.Solve(ctx, problem, parallelstages.Settings{Progress: set.Progress})
	var none *parallelstages.InfeasibleError
	if errors.As(err, &none) {
		return nil, &InfeasibleError{false, err}
	}
	if err != nil {
		return nil, err
	}
	answer := &Answer{
		Certificate: found.Certificate, Objective: largestLoad, Form: "contiguous, parallel stages", Method: found.Method, Unit: "per micro-batch, in the file's unit",
		Write: func(to io.Writer) error { return pose.WriteParallelPiper(to, file, &found.Plan) },
	}
	nodes := count(found.Stage, len(found.Loads))
	for i, load := range found.Loads {
		name := fmt.Sprintf("stage %d, %d × %d", i, load.Data, load.Tensor)
		answer.Devices = append(answer.Devices, Device{name, nodes[i], load.Compute, load.Transfers + load.Resync, load.Memory})
	}
	return answer, nil
}
