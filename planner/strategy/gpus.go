package strategy

import (
	"context"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// mostGPUs bounds the search for enough.
const mostGPUs = 64

// moreGPUs is the least number of GPUs like the first that is enough: it
// doubles, then bisects.
func (p *Problem) moreGPUs(ctx context.Context) []Change {
	on := func(n int) (Row, bool) {
		q := *p
		q.Pins = nil // they name devices
		q.Topology = &costmodel.Topology{Devices: slices.Repeat(p.Topology.Devices[:1], n)}
		if p.Workload.ShardDegree > 0 && n%int(p.Workload.ShardDegree) != 0 {
			return Row{}, false
		}
		r, ok := q.edited(ctx)
		return r, ok && r.Fits()
	}
	low := len(p.Topology.Devices)
	high := 2 * low
	for ; high <= mostGPUs; high *= 2 {
		if _, ok := on(high); ok {
			break
		}
		low = high
	}
	if high > mostGPUs || ctx.Err() != nil {
		return nil
	}
	for low+1 < high {
		if mid := (low + high) / 2; fits(on(mid)) {
			high = mid
		} else {
			low = mid
		}
	}
	r, ok := on(high)
	if !ok { // interrupted
		return nil
	}
	return []Change{p.change(fmt.Sprintf("%d GPUs", high), r)}
}

func fits(_ Row, ok bool) bool { return ok }
