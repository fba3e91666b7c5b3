package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Settings are the options of [Solve]. The zero value works.
type Settings struct {
	// Data and Tensor are the degrees of each stage of a Piper file: replicas, and devices per
	// replica. 0 is 1. Below 0, each stage chooses its degrees.
	Data, Tensor int
	// Progress, if not nil, is called with every better value and bound, in the goroutine of
	// [Solve]. The value is +Inf before the first answer.
	Progress func(value, lowerBound float64)
}

// Answer is a placement with its certificate. Its Value is the largest load in Unit. LowerBound,
// Bound, Status and Gap say what is proved.
type Answer struct {
	certificate.Certificate
	// Form describes the placement. Method names the algorithm and why it was chosen.
	Form, Method string
	// Unit is the unit of all times in the file.
	Unit    string
	Devices []Device
	// Write writes the answer in the format of the file's authors.
	Write func(io.Writer) error
}

// Device is one device and its load. An idle device has no nodes.
type Device struct {
	Name  string
	Nodes int
	// Time is the load of its nodes. Transfers is the time to send and receive, including its
	// replicas' weights. Both are in the answer's unit, and their sum is the device's load.
	Time, Transfers float64
	Bytes           float64
}

// InfeasibleError says that no placement satisfies the file's rules, or that none was found, and
// why.
type InfeasibleError struct{ error }

// Solve places the nodes of a dnn-partitioning or a Piper file so that the largest load is minimal.
// A PipeDream profile names no devices, so it is an error.
//
// If ctx ends, Solve returns the best placement so far with its bound, or ctx's error if it has
// none. If no placement satisfies the file's rules, the error is an [*InfeasibleError].
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

// count returns the number of nodes of each device.
func count(place []int, devices int) []int {
	nodes := make([]int, devices)
	for _, device := range place {
		nodes[device]++
	}
	return nodes
}
