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

// methods lists all methods; the first that serves an instance solves it. Package offload is not
// listed: it runs after one of these finds that nothing fits.
var methods = []instance.Method{
	replica.Method{},
	chainmemory.Method{},
	stagememory.Method{},
	assignmemory.Method{},
	chaintime.Method{},
	stagetime.Method{},
	assigntime.Method{},
}

// methodFor returns the method of an instance. Every objective and form of map has one, so an error
// is a bug of devmap.
func methodFor(in *instance.Instance) (instance.Method, error) {
	for _, method := range methods {
		if method.Serves(in) {
			return method, nil
		}
	}
	return nil, fmt.Errorf("planner: %w", &certificate.FaultError{Msg: fmt.Sprintf("no method answers for the objective %q under %s", in.Objective, in.Costs.Workload.Strategy)})
}
