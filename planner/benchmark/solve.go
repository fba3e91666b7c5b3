package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Settings are the options of [Solve]. The zero value is fine.
type Settings struct {
	// Data and Tensor are the degrees of data and of tensor parallelism of each
	// stage of a Piper file: its replicas, and the devices of each. 0 is 1; below
	// 0 each stage has the degrees that suit it best.
	Data, Tensor int
	// Progress, if not nil, is called with every better value and bound, by the
	// goroutine that solves. What is least is +Inf before the first answer.
	Progress func(value, lowerBound float64)
}

// Answer is a placement with its certificate. Its Value is the largest load, in
// Unit; LowerBound, Bound, Status and Gap say what is proved of it.
type Answer struct {
	certificate.Certificate
	// Form is that of the placement; Method the algorithm that found it, and why
	// it was taken.
	Form, Method string
	// Unit is that of all times, as the file has them.
	Unit    string
	Devices []Device
	// Write writes the answer as the file's authors do, for their programs.
	Write func(io.Writer) error
}

// Device is one device and what it has to do; one without nodes is idle.
type Device struct {
	Name  string
	Nodes int
	// Time is that of its nodes, Transfers that of what it sends and receives,
	// for the weights of its replicas too, in the answer's unit; its load is
	// their sum.
	Time, Transfers float64
	Bytes           float64
}

// InfeasibleError says that no placement keeps the file's rules, or that none
// was found, and why.
type InfeasibleError struct{ error }

// Solve places the nodes of a dnn-partitioning or a Piper file so that the
// largest load is the least there is. A PipeDream profile names no devices, and is an
// error.
//
// The end of ctx leaves the best placement so far, with its bound, or ctx's
// error where there is none. A file whose rules no placement keeps is an
// [*InfeasibleError].
func Solve(ctx context.Context, file benchfile.File, set Settings) (*Answer, error) {
	switch f := file.(type) {
	case *benchfile.DNNPartitioning:
		if !set.alone() {
			return nil, errors.New("the parts of a dnn-partitioning file have a device each: they are neither replicated nor tensor-parallel")
		}
		return solveDNN(ctx, f, set)
	case *benchfile.Piper:
		return solvePiper(ctx, f, set)
	}
	return nil, fmt.Errorf("a %T names no devices: there is nothing to solve", file)
}

// count is how many of the nodes each device has.
func count(place []int, devices int) []int {
	nodes := make([]int, devices)
	for _, device := range place {
		nodes[device]++
	}
	return nodes
}
