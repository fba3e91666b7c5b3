package planner

import (
	"github.com/devmap-dev/devmap/planner/internal/anymemory"
	"github.com/devmap-dev/devmap/planner/internal/anytime"
	"github.com/devmap-dev/devmap/planner/internal/chainmemory"
	"github.com/devmap-dev/devmap/planner/internal/chaintime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/replica"
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
	anymemory.Method{},
	chaintime.Method{},
	stagetime.Method{},
	anytime.Method{},
}

// methodFor is the method of an instance: there is one for every objective and
// form of map.
func methodFor(in *instance.Instance) instance.Method {
	for _, method := range methods {
		if method.Serves(in) {
			return method
		}
	}
	panic("planner: no method for " + string(in.Objective))
}
