//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/modelgraph"
)

// MostAreas is how many areas one launch of [Finite] takes, mostChunks how many stretches of 16
// bytes each may have.
const (
	MostAreas  = 32
	mostChunks = 1 << 30
)

// Area is a matrix that may have a NaN or an infinity. The kernel reads every value of an
// area that is Looked at, and the others only if it finds one there. An optimizer watches what it
// updates: the kernel reads Watched areas only after an update wrote a NaN or an infinity.
type Area struct {
	Matrix
	Looked, Watched bool
}

// Finite returns a launch that looks for NaN and infinities. The word at found may be in pinned
// memory. It becomes 4·area + 1 for NaN, + 2 for +Inf or + 3 for −Inf, for the first area that has
// any. It keeps its value if the areas that are Looked at have none. The kernel reads these once,
// at memory speed.
func Finite(kernels *Kernels, areas []Area, found driver.Address) (Launch, error) {
	function, err := kernels.Function("finite")
	var odd driver.Address
	if err == nil && slices.ContainsFunc(areas, func(area Area) bool { return area.Watched }) {
		odd, _, err = kernels.global("update", "odd")
	}
	if err != nil {
		return nil, err
	}
	arguments := new(driver.Arguments).Int64(int64(len(areas))).Address(odd)
	looked := int64(0)
	for i := range MostAreas {
		var area Area
		if i < len(areas) {
			area = areas[i]
		}
		if area.Stride == area.Columns { // one row
			area.Rows, area.Columns = min(area.Rows, 1), area.Rows*area.Columns
		}
		per, kind := int64(8), int64(0)
		if area.DType == modelgraph.F32 {
			per, kind = 4, 1
		}
		chunks := area.Rows * over(area.Columns, per)
		if chunks >= mostChunks {
			return nil, fmt.Errorf("an area of %d × %d values is more than is looked through", area.Rows, area.Columns)
		}
		if area.Looked {
			looked, kind = looked+chunks, kind|2
		}
		if area.Watched {
			kind |= 4
		}
		arguments.Address(area.Address).Int64(area.Rows).Int64(area.Columns).Int64(area.Stride).Int64(kind)
	}
	arguments.Address(found)
	shape := driver.Shape{Grid: [3]uint32{uint32(min(1024, max(1, over(looked, 1024)))), 1, 1}, Block: [3]uint32{256, 1, 1}}
	return func(step *Step) error { return streamOf(step).Launch(function, shape, arguments) }, nil
}
