package boundspine

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// begun is what a stage has to do at least, when it has its first item of the spine,
// for parts of the block before that.
type begun struct{ load, size float64 }

// walk goes along a row with stage after stage, within a limit.
type walk struct {
	*row
	limit, room float64
	// reached are, for each stage and each item of the spine that is its first, what
	// it may have begun with, by its load.
	reached [][][]begun
}

// reach tells the first stage that each of the spine's items may have within a
// limit; the number of stages where there is none. ok is whether some stage can
// end the row, as far as is known when the context ends.
func (row *row) reach(ctx context.Context, limit float64) (first []int, ok bool) {
	along := &walk{row: row, limit: limit * (1 + graph.Rounding), room: row.room * (1 + graph.Rounding)}
	for range row.stages {
		along.reached = append(along.reached, make([][]begun, len(row.items)))
	}
	along.put(0, 0, begun{})
	first = slices.Repeat([]int{row.stages}, len(row.items))
	for stage := range along.reached {
		for a := range row.items {
			if ctx.Err() != nil {
				return first, true
			}
			for _, one := range along.thinned(along.reached[stage][a]) {
				for i := a; i <= along.stretch(stage, a, one); i++ {
					first[i] = min(first[i], stage)
				}
			}
		}
		along.reached[stage] = nil
	}
	return first, first[len(first)-1] < row.stages
}

// stretch lets a stage have the spine from a up to one item after the other, and
// goes on from there; it returns the last it can have.
func (along *walk) stretch(stage, a int, one begun) (last int) {
	last = a - 1
	for b := a; b < a+len(along.paid[a]); b++ {
		load := one.load + along.timeTo[2*b+2] - along.timeTo[2*a+1]
		size := one.size + along.sizeTo[2*b+2] - along.sizeTo[2*a+1]
		if load > along.limit || size > along.room {
			break
		}
		if load += along.paid[a][b-a]; load > along.limit {
			continue // a longer stretch may pay less
		}
		if last = b; b < len(along.items)-1 {
			along.divide(stage, b, along.limit-load, along.room-size)
		}
	}
	return last
}

// divide divides the block behind a stage's last item of the spine, where the stage
// has so much load and room left, and stages without such an item may come between
// it and the next.
func (along *walk) divide(stage, b int, load, room float64) {
	of := &along.splits[b+1]
	if of.none.left <= load {
		along.put(stage+1, b+1, begun{of.none.right, of.size})
	}
	for to := stage + 1; len(of.rows) > 0 && along.ends(to, b+1, begun{}); to++ {
		if of.all.left <= load && of.size <= room {
			along.put(to, b+1, begun{of.all.right, 0})
		}
		best := math.Inf(1)
		for i := len(of.rows) - 1; i >= 0; i-- {
			row := &of.rows[i]
			at := row.within(load-of.mixed.left, best)
			if at >= 0 && row.least[at] <= room && row.right[at] < best {
				best = row.right[at]
				along.put(to, b+1, begun{best + of.mixed.right, of.size - min(row.most[at], room)})
			}
		}
		if load >= of.most && room >= of.size {
			break // more stages are of no use
		}
		load, room = load+max(0, along.limit-of.middle), room+along.room
	}
}

// put notes what a stage may have begun with.
func (along *walk) put(stage, a int, one begun) {
	one.size = max(one.size, 0)
	if along.ends(stage, a, one) {
		some := &along.reached[stage][a]
		if len(along.block[a]) == 0 {
			*some = []begun{one}
			return
		}
		if *some == nil {
			*some = slices.Repeat([]begun{{math.Inf(1), math.Inf(1)}}, loadCells+1)
		}
		had := &(*some)[int(one.load/along.limit*loadCells)]
		had.load, had.size = min(had.load, one.load), min(had.size, one.size)
	}
}

// ends says that a stage can have begun with so much, and that all that is left then
// fits it and those after it.
func (along *walk) ends(stage, a int, one begun) bool {
	many, end := float64(along.stages-stage), len(along.timeTo)-1
	return stage < along.stages && one.load <= along.limit && one.size <= along.room &&
		one.load+along.timeTo[end]-along.timeTo[2*a+1] <= many*along.limit &&
		one.size+along.sizeTo[end]-along.sizeTo[2*a+1] <= many*along.room
}

// What is begun with loads of one cell is one; of what is then near in load and in
// size one is kept.
const (
	loadCells = 1500
	cells     = 150
)

// thinned drops what another is no worse than in both, and joins what is near.
func (along *walk) thinned(some []begun) []begun {
	var kept []begun
	largest := 0.0 // size of those that the last is joined of
	for _, one := range some {
		if last := len(kept) - 1; last >= 0 {
			if kept[last].size <= one.size {
				continue
			}
			if one.load < kept[last].load+along.limit/cells && one.size > largest-along.room/cells {
				kept[last].size = one.size
				continue
			}
		}
		if !math.IsInf(one.size, 1) {
			kept, largest = append(kept, one), one.size
		}
	}
	return kept
}
