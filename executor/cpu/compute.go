package cpu

import (
	"encoding/binary"
	"math"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
)

// compute carries out what an instruction does to its arena.
func (worker *worker) compute(index int32, instr *program.Instr) error {
	bound, err := worker.instr(index)
	if err != nil {
		return err
	}
	if bound.Norms != nil {
		worker.norms(bound.Norms)
	}
	count := 0
	for i := range bound.Runs {
		run := &bound.Runs[i]
		worker.copy(run.Before)
		for j := range run.Kernels {
			if err := worker.tap(index, count); err != nil {
				return err
			}
			count++
			if err := kernel.Run(worker.call(run, &run.Kernels[j])); err != nil {
				return err
			}
		}
		if err := worker.finite(run, instr); err != nil {
			return err
		}
		if i == len(bound.Runs)-1 {
			if err := worker.tap(index, count); err != nil {
				return err
			}
		}
		worker.copy(run.After)
	}
	if bound.Total != nil {
		worker.total(bound.Total)
	}
	for _, tail := range bound.Tails {
		clear(worker.arena[tail.Offset : tail.Offset+tail.Bytes])
	}
	return nil
}

func (worker *worker) tap(index int32, count int) error {
	if tap := worker.step.Taps[executor.Tap{Instr: index, Kernel: count}]; tap != nil {
		return tap()
	}
	return nil
}

func (worker *worker) copy(all []bind.Copy) {
	for _, one := range all {
		copy(worker.arena[one.To:one.To+one.Bytes], worker.arena[one.From:one.From+one.Bytes])
	}
}

// norms begins with the squared norms that came in, or with none.
func (worker *worker) norms(norms *bind.Norms) {
	into := worker.arena[norms.To : norms.To+4*norms.Count]
	if norms.From < 0 {
		clear(into)
		return
	}
	copy(into, worker.arena[norms.From:norms.From+4*norms.Count])
}

// total adds up in float64, in the order of the parameters: the sum is the same
// however they lie on devices.
func (worker *worker) total(total *bind.Total) {
	sum := 0.
	for i := range total.Count {
		sum += float64(math.Float32frombits(binary.LittleEndian.Uint32(worker.arena[total.From+4*i:])))
	}
	binary.LittleEndian.PutUint32(worker.arena[total.To:], math.Float32bits(float32(sum)))
}
