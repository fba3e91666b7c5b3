package latency

import (
	"errors"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Problem is a graph on devices. The kind with free transfers is the CPUs, of
// which there is at most one kind; devices of all others are accelerators.
// Where there are CPUs, there are as many as can be used at once: this is the
// authors' reading of their files, whatever the number that these give.
type Problem struct {
	*graph.Problem

	// Calls is how often an accelerator may be called; 0 is once.
	Calls int
}

// Solution is an assignment, certified: its value is the time that a sample
// takes, as Score finds it.
type Solution struct {
	certificate.Certificate
	// Call is the call that each node is in: those of device d are numbered
	// from d × Calls, in the order in which they run. OnCPU is for the CPUs.
	Call []int
	// Method names what found the assignment, and why it was taken.
	Method string
}

// OnCPU is the call of a node that runs on the CPUs.
const OnCPU = -1

// calls is how often an accelerator may be called.
func (problem *Problem) calls() int { return max(1, problem.Calls) }

// cpu is the kind of the CPUs; -1: there are none.
func (problem *Problem) cpu() int {
	for i, kind := range problem.Kinds {
		if kind.FreeTransfers && kind.Count > 0 {
			return i
		}
	}
	return -1
}

// Accelerators are the kinds of the accelerators, one entry a device.
func (problem *Problem) Accelerators() []int {
	var kinds []int
	for i, kind := range problem.Kinds {
		for range kind.Count {
			if !kind.FreeTransfers {
				kinds = append(kinds, i)
			}
		}
	}
	return kinds
}

// Check reports every fault of the problem's form.
func (problem *Problem) Check() error {
	faults := []error{problem.Problem.Check()}
	if problem.Calls < 0 {
		faults = append(faults, fmt.Errorf("%d calls of an accelerator", problem.Calls))
	}
	free := 0
	for i, kind := range problem.Kinds {
		if !kind.FreeTransfers {
			continue
		}
		free++
		if kind.Count > 0 && !math.IsInf(kind.Capacity, 1) {
			faults = append(faults, fmt.Errorf("kinds[%d]: a capacity of %v bytes, and CPUs have none", i, kind.Capacity))
		}
	}
	if free > 1 {
		faults = append(faults, fmt.Errorf("%d kinds of CPUs; there is one at most", free))
	}
	for i := range problem.Nodes {
		if problem.Nodes[i].Backward {
			faults = append(faults, fmt.Errorf("nodes[%d] %q: of the backward pass; latency is that of a forward pass", i, problem.Nodes[i].Name))
			break
		}
	}
	return errors.Join(faults...)
}
