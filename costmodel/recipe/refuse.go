package recipe

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// refuse is the error that a field of the workload is at fault.
func refuse(field string, value any, format string, args ...any) error {
	return costmodel.Refuse(costmodel.Set(field, value), format, args...)
}

// unrunnable is the error of a layer without kernels: its kind, and the nearest that has some.
// Other engines can be planned.
func unrunnable(layer *modelgraph.Layer, format string, args ...any) error {
	return refuse("runtime", costmodel.Devmap, "devmap's engine cannot run layer %q: %s; another %v plans it", layer.Name, fmt.Sprintf(format, args...), costmodel.Setting{Field: "runtime"})
}
