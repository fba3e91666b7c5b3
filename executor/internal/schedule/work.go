package schedule

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// Args are the arguments of a call in a step.
type Args struct {
	Queue     Queue
	Number    int64 // of the step
	Past      int64 // tokens that came before
	Optimizer *executor.Optimizer
}

// Call gives work to a queue.
type Call func(args *Args) error

// Calls are calls in order.
type Calls []Call

// Give makes the calls up to the first error.
func (calls Calls) Give(args *Args) error {
	for _, call := range calls {
		if err := call(args); err != nil {
			return err
		}
	}
	return nil
}

// Work is what an instruction computes.
type Work struct {
	calls Calls
	// taps are places among the calls at which the host may look: before each kernel, and
	// after the last.
	taps []int
	// Ended is called, if it is not nil, when all calls have ended. It returns the first
	// number that is NaN or infinite, with unit, tensor and value, or nil.
	Ended func() *executor.ValueError
}

// Kernels makes the calls of an instruction that runs kernels.
type Kernels interface {
	// Kernel returns the call of a kernel of a run.
	Kernel(run, number int) Call
	// Search returns the calls that look for NaN and infinities in the results of a run.
	Search(run int) []Call
	// Total returns the call that adds up squared norms.
	Total(total *bind.Total) Call
}

// NewWork puts the calls of an instruction in order: kernels with the copies and fills
// around them.
func NewWork(of *bind.Instr, device Driver, kernels Kernels) *Work {
	work := new(Work)
	if norms := of.Norms; norms != nil && norms.From < 0 {
		work.fill(device, norms.To, 4*norms.Count)
	} else if norms != nil {
		work.copies(device, []bind.Copy{{To: norms.To, From: norms.From, Bytes: 4 * norms.Count}})
	}
	for i := range of.Runs {
		run := &of.Runs[i]
		work.copies(device, run.Before)
		for j := range run.Kernels {
			work.taps = append(work.taps, len(work.calls))
			work.calls = append(work.calls, kernels.Kernel(i, j))
		}
		work.calls = append(work.calls, kernels.Search(i)...)
		if i == len(of.Runs)-1 {
			work.taps = append(work.taps, len(work.calls))
		}
		work.copies(device, run.After)
	}
	if of.Total != nil {
		work.calls = append(work.calls, kernels.Total(of.Total))
	}
	for _, tail := range of.Unwritten {
		work.fill(device, tail.Offset, tail.Bytes)
	}
	return work
}

func (work *Work) copies(device Driver, all []bind.Copy) {
	for _, one := range all {
		to, from := device.Address(one.To), device.Address(one.From)
		work.calls = append(work.calls, func(args *Args) error { return args.Queue.Copy(to, from, one.Bytes) })
	}
}

// fill clears bytes.
func (work *Work) fill(device Driver, offset, bytes int64) {
	at := device.Address(offset)
	work.calls = append(work.calls, func(args *Args) error { return args.Queue.Fill(at, 0, bytes) })
}

// Run gives all of the work to a queue.
func (work *Work) Run(args *Args) error { return work.calls.Give(args) }

// progress is how far a lane has given some work to its queue.
type progress struct {
	*Work
	call, tap int // the next ones
}

// compute gives the work of an instruction, up to the next tap.
func (lane *lane) compute(index int32) (whole bool, err error) {
	work := &lane.work
	if work.Work == nil {
		if err := lane.begin(index); err != nil {
			return false, err
		}
	}
	for work.call < len(work.calls) || work.tap < len(work.taps) {
		if work.tap < len(work.taps) && work.taps[work.tap] == work.call {
			tap := lane.step.Taps[executor.Tap{Instr: index, Kernel: work.tap}]
			work.tap++
			if tap != nil {
				return false, lane.park(tap)
			}
			continue
		}
		if err := work.calls[work.call](&lane.args); err != nil {
			return false, err
		}
		work.call++
	}
	lane.computed, lane.work = work.Work, progress{}
	return true, nil
}

// begin prepares an instruction's work, and records its beginning.
func (lane *lane) begin(index int32) (err error) {
	if lane.work.Work, err = lane.Work(index); err != nil {
		return err
	}
	lane.args.Past = lane.Past(index)
	if began := lane.events[index].began; began != nil {
		if err := lane.queue.Record(began); err != nil {
			return err
		}
	}
	if lane.Fault.at(lane.step, index) {
		return lane.Fault.Give(&lane.args)
	}
	return nil
}

// Fault is a call that is given before an instruction of a step, to test what follows.
type Fault struct {
	Instr int32
	Step  int64
	Give  Call
	Says  string // its description, if it can make a step hang
}

func (fault *Fault) at(step *executor.Step, index int32) bool {
	return fault != nil && fault.Instr == index && fault.Step == step.Number
}
