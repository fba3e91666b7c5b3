//go:build cuda && linux && cgo && amd64

package cuda

import (
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// work is how far a computation was given: a tap comes between two kernels.
type work struct {
	bound               bind.Instr
	run, kernel, count  int
	begun, came, tapped bool
}

// compute gives what an instruction does to its arena, up to the next tap.
func (lane *lane) compute(index int32) (whole bool, err error) {
	work := &lane.work
	if !work.begun {
		if err := lane.begin(index); err != nil {
			return false, err
		}
	}
	for ; work.run < len(work.bound.Runs); work.run++ {
		if tapped, err := lane.runs(index, &work.bound.Runs[work.run]); tapped || err != nil {
			return false, err
		}
		work.kernel, work.came, work.tapped = 0, false, false
	}
	if err := lane.finish(&work.bound); err != nil {
		return false, err
	}
	lane.work = lane.work.none()
	return true, nil
}

func (work) none() work { return work{} }

// begin gives what comes before an instruction's kernels: the squared norms that
// came in, or none.
func (lane *lane) begin(index int32) (err error) {
	work := &lane.work
	if work.bound, err = lane.instr(index); err != nil {
		return err
	}
	work.begun = true
	if err := lane.stream.Record(lane.events[index].began); err != nil {
		return err
	}
	norms := work.bound.Norms
	switch {
	case norms == nil:
		return nil
	case norms.From < 0:
		return lane.stream.Fill(lane.device.at(norms.To), 0, 4*norms.Count)
	}
	return lane.stream.Copy(lane.device.at(norms.To), lane.device.at(norms.From), 4*norms.Count)
}

// runs gives the kernels of one unit up to the next tap.
func (lane *lane) runs(index int32, run *bind.Run) (tapped bool, err error) {
	work := &lane.work
	if !work.came {
		work.came = true
		if err := lane.copy(run.Before); err != nil {
			return false, err
		}
	}
	for ; work.kernel < len(run.Kernels); work.kernel++ {
		if tapped, err := lane.tap(index); tapped || err != nil {
			return tapped, err
		}
		if err := kernel.Run(lane.backend.kernels, lane.call(run, &run.Kernels[work.kernel])); err != nil {
			return false, err
		}
		work.count, work.tapped = work.count+1, false
	}
	if work.run == len(work.bound.Runs)-1 {
		if tapped, err := lane.tap(index); tapped || err != nil {
			return tapped, err
		}
	}
	return false, lane.copy(run.After)
}

// tap parks the stream where somebody wants to look.
func (lane *lane) tap(index int32) (tapped bool, err error) {
	tap := lane.step.Taps[executor.Tap{Instr: index, Kernel: lane.work.count}]
	if tap == nil || lane.work.tapped {
		return false, nil
	}
	lane.work.tapped = true
	return true, lane.park(tap)
}

// finish gives what comes behind an instruction's kernels.
func (lane *lane) finish(bound *bind.Instr) error {
	if total := bound.Total; total != nil {
		if err := lane.device.kernels.Total(lane.stream, lane.device.at(total.To), lane.device.at(total.From), total.Count); err != nil {
			return err
		}
	}
	for _, tail := range bound.Tails {
		if err := lane.stream.Fill(lane.device.at(tail.Offset), 0, tail.Bytes); err != nil {
			return err
		}
	}
	return nil
}

func (lane *lane) copy(all []bind.Copy) error {
	for _, one := range all {
		if err := lane.stream.Copy(lane.device.at(one.To), lane.device.at(one.From), one.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// call is a kernel with its matrices, good until the next one.
func (lane *lane) call(run *bind.Run, code *recipe.Kernel) *kernel.Call {
	call := &kernel.Call{
		Kernel: code, Past: run.Past, Begins: run.Begins, Step: lane.step.Number, Optimizer: &lane.step.Optimizer,
		Stream: lane.stream, Kernels: lane.device.kernels, Workspace: lane.device.workspace,
	}
	lane.operands = lane.operands[:0]
	for i := range code.Operands {
		tensor, area := code.Operands[i].Tensor, run.Area(&code.Operands[i])
		lane.operands = append(lane.operands, lane.matrix(area))
		if len(run.Uses) == 0 || len(run.Uses[tensor]) == 0 {
			continue
		}
		if call.Uses == nil {
			call.Uses = make([][]kernel.Matrix, len(code.Operands))
		}
		for _, offset := range run.Uses[tensor] {
			use := area
			use.Offset += offset - run.Offsets[tensor]
			call.Uses[i] = append(call.Uses[i], lane.matrix(use))
		}
	}
	call.Operands = lane.operands
	return call
}

func (lane *lane) matrix(area bind.Area) kernel.Matrix {
	return kernel.Matrix{Address: lane.device.at(area.Offset), DType: area.DType, Rows: area.Rows, Columns: area.Columns, Stride: area.Stride}
}
