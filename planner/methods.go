package planner

import (
	"fmt"

	"github.com/devmap-dev/devmap/planner/internal/assignmemory"
	"github.com/devmap-dev/devmap/planner/internal/assigntime"
	"github.com/devmap-dev/devmap/planner/internal/chainmemory"
	"github.com/devmap-dev/devmap/planner/internal/chaintime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/replica"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/stagememory"
	"github.com/devmap-dev/devmap/planner/internal/stagetime"
)

// methods are all there are; the first that serves an instance is asked.
// Package offload stands apart, as it is asked where one of these says that
// nothing fits.
var methods = []instance.Method{
	replica.Method{},
	chainmemory.Method{},
	stagememory.Method{},
	assignmemory.Method{},
	chaintime.Method{},
	stagetime.Method{},
	assigntime.Method{},
}

// methodFor is the method of an instance. There is one for every objective and
// form of map, so that an error is a fault of ours.
func methodFor(in *instance.Instance) (instance.Method, error) {
	for _, method := range methods {
		if method.Serves(in) {
			return method, nil
		}
	}
	return nil, fmt.Errorf("planner: %w", &certificate.FaultError{Msg: fmt.Sprintf("no method answers for the objective %q under %s", in.Objective, in.Costs.Workload.Strategy)})
}
