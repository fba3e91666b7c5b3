package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Unprepared is Table for a quantised base that PEFT did not prepare, so that
// the rest of it stays in 16 bits; flat: NF4 without nested statistics.
func Unprepared(g *modelgraph.Graph, w costmodel.Workload, flat bool) (*costmodel.Table, error) {
	e := estimator{g: g, w: w, engine: engineOf(&w), costs: make([]ops.Cost, len(g.Layers)), linears: linears(g), flat: flat}
	return e.table(w)
}

// NF4 is nf4.
func NF4(n int64, flat bool) []int64 { return nf4(n, flat) }
