package benchmark

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// alone reports that each stage has one device.
func (set *Settings) alone() bool { return cmp.Or(set.Data, 1) == 1 && cmp.Or(set.Tensor, 1) == 1 }

// solvePiper cuts a Piper file into pipeline stages of one or more devices each.
func solvePiper(ctx context.Context, file *benchfile.Piper, set Settings) (*Answer, error) {
	degree := func(given int) int { return max(0, cmp.Or(given, 1)) } // 0: any
	problem, err := piperProblem(file, file.MaxDevices, file.MaxMemory, file.Bandwidth, degree(set.Data), degree(set.Tensor))
	if err != nil {
		return nil, err
	}
	found, err := stages.Solve(ctx, problem, set.Progress)
	var none *stages.InfeasibleError
	if errors.As(err, &none) {
		return nil, &InfeasibleError{err}
	}
	if err != nil {
		return nil, err
	}
	answer := &Answer{
		Certificate: found.Certificate, Form: "contiguous", Method: found.Method, Unit: "per micro-batch, in the file's unit",
		Write: func(to io.Writer) error { return writePipeline(to, file, &found.Plan) },
	}
	if !set.alone() {
		answer.Form += ", parallel stages"
	}
	nodes := count(found.Stage, len(found.Loads))
	for i, load := range found.Loads {
		name := fmt.Sprintf("stage %d", i)
		if !set.alone() {
			name += fmt.Sprintf(", %d × %d", load.Data, load.Tensor)
		}
		answer.Devices = append(answer.Devices, Device{name, nodes[i], load.Compute, load.Transfers + load.Resync, load.Memory})
	}
	return answer, nil
}
