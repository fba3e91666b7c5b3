//go:build cuda && linux && cgo && amd64

package cuda

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// work is how far a computation was given: a tap comes between two kernels.
type work struct {
	*prepared
	run, kernel, count          int
	begun, came, tapped, looked bool
}

// compute gives what an instruction does to its arena, up to the next tap.
func (lane *lane) compute(index int32) (whole bool, err error) {
	work := &lane.work
	if !work.begun {
		if err := lane.begin(index); err != nil {
			return false, err
		}
	}
	for ; work.run < len(work.runs); work.run++ {
		if tapped, err := lane.pass(index, &work.runs[work.run]); tapped || err != nil {
			return false, err
		}
		work.kernel, work.came, work.tapped, work.looked = 0, false, false, false
	}
	if err := lane.finish(work.prepared); err != nil {
		return false, err
	}
	lane.computed = work.prepared
	work.reset()
	return true, nil
}

// reset is before the next computation.
func (now *work) reset() { *now = work{} }

// begin gives what comes before an instruction's kernels: the squared norms that
// came in, or none.
func (lane *lane) begin(index int32) (err error) {
	work := &lane.work
	if work.prepared = lane.kept[index]; work.prepared == nil {
		if work.prepared, err = lane.prepare(index); err != nil {
			return err
		}
	}
	work.begun, lane.of.Past = true, lane.bound.Past(index)
	if began := lane.events[index].began; began != nil {
		if err := lane.stream.Record(began); err != nil {
			return err
		}
	}
	if lane.trap.at(lane.step, index) {
		if err := lane.device.kernels.Hang(lane.stream, lane.trap.flags()); err != nil {
			return err
		}
	}
	norms := work.norms
	switch {
	case norms == nil:
		return nil
	case norms.From < 0:
		return lane.stream.Fill(lane.device.at(norms.To), 0, 4*norms.Count)
	}
	return lane.stream.Copy(lane.device.at(norms.To), lane.device.at(norms.From), 4*norms.Count)
}

// pass gives the kernels of one unit up to the next tap.
func (lane *lane) pass(index int32, pass *pass) (tapped bool, err error) {
	work := &lane.work
	if !work.came {
		work.came = true
		if err := lane.copy(pass.before); err != nil {
			return false, err
		}
	}
	for ; work.kernel < len(pass.launches); work.kernel++ {
		if tapped, err := lane.tap(index); tapped || err != nil {
			return tapped, err
		}
		if err := pass.launches[work.kernel](&lane.of); err != nil {
			return false, err
		}
		work.count, work.tapped = work.count+1, false
	}
	if !work.looked {
		work.looked = true
		for _, launch := range pass.finite {
			if err := launch(&lane.of); err != nil {
				return false, err
			}
		}
	}
	if work.run == len(work.runs)-1 {
		if tapped, err := lane.tap(index); tapped || err != nil {
			return tapped, err
		}
	}
	return false, lane.copy(pass.after)
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
func (lane *lane) finish(made *prepared) error {
	if total := made.total; total != nil {
		if err := lane.device.kernels.Total(lane.stream, lane.device.at(total.To), lane.device.at(total.From), total.Count); err != nil {
			return err
		}
	}
	for _, tail := range made.tails {
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

// infinite looks at the words of an instruction that has ended. Of several devices'
// findings the step tells the one whose line was given first: what follows from it
// was given behind it.
func (lane *lane) infinite(moment *moment) error {
	if moment.made == nil {
		return nil
	}
	var first *executor.ValueError
	for i := range moment.made.found {
		found := &moment.made.found[i]
		if value, name := found.told(); name != "" && first == nil {
			instr := &lane.program.Instrs[lane.lines[moment.line]]
			first = &executor.ValueError{Unit: found.unit, Tensor: name, Op: instr.Op, MicroBatch: instr.MicroBatch, Step: lane.step.Number, Value: value}
		}
		if moment.made != lane.kept[lane.lines[moment.line]] { // it was prepared for this once
			lane.device.words.give(found.word)
		}
	}
	if first == nil {
		return nil
	}
	lane.board.post(func() {
		if lane.board.fault == nil {
			lane.board.fault = first
		}
		if lane.board.value == nil || moment.given < lane.board.valueGiven {
			lane.board.value, lane.board.valueGiven = first, moment.given
		}
	})
	return first
}
