package boundcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// CheckSpine checks that no contiguous placement on devices of the one kind there is
// has a largest load of limit or less, by the knots: groups that all others come
// before or after, which are found here. Stage after stage has some of them, and
// hands on what it has left of the groups up to the next one.
func CheckSpine(ctx context.Context, problem *graph.Problem, limit float64) error {
	kind, err := onlyKind(problem)
	if err != nil {
		return err
	}
	if len(problem.Nodes) > mostOfLine {
		return errTooLong
	}
	line := newLine(problem, kind, limit)
	for stage := range line.open {
		for first, some := range line.open[stage] {
			for _, one := range some.thin() {
				if line.pass(stage, first, one) {
					return fmt.Errorf("stage %d may end the row within %v", stage, limit)
				}
			}
			if ctx.Err() != nil || line.work > mostWork {
				return errors.Join(errTooLong, ctx.Err())
			}
		}
		line.open[stage] = nil
	}
	return nil
}

// mostOfLine nodes are ranked, by what each leads to.
const mostOfLine = 4000

// line is the row of knots. A group's rank is 2n for the n-th of them, from 1 on, and
// 2n+1 for what lies between it and the next.
type line struct {
	kind, knots int
	limit, room float64
	groups      map[int]*group
	rank        map[int]int
	outputs     []output
	time, size  []float64 // of all of a rank
	paid        map[[2]int]float64
	divisions   map[int]*division
	// open are, for each stage and the first knot that it has, what it may have to do
	// before that. Knot 0 is where the row begins.
	open []map[int]legacies
	work int
}

func newLine(problem *graph.Problem, kind int, limit float64) *line {
	const rounding = 1e-9
	line := &line{
		kind: kind, groups: grouped(problem),
		limit: limit * (1 + rounding), room: problem.Kinds[kind].Capacity * (1 + rounding),
		paid: make(map[[2]int]float64), divisions: make(map[int]*division),
	}
	if !problem.Kinds[kind].FreeTransfers {
		line.outputs = outputs(problem, &Kind{})
	}
	line.find(problem)
	line.time, line.size = make([]float64, 2*line.knots+3), make([]float64, 2*line.knots+3) // the last is the end's
	for name, own := range line.groups {
		line.time[line.rank[name]] += own.time[kind]
		line.size[line.rank[name]] += own.size
	}
	for range problem.Kinds[kind].Count {
		line.open = append(line.open, make(map[int]legacies))
	}
	line.open[0][0] = legacies{{}}
	return line
}

// find gives each group its rank.
func (line *line) find(problem *graph.Problem) {
	from, to := neighbours(problem)
	var knots []int
	ahead := make(map[int]map[int]bool)
	for name := range line.groups {
		behind := reached(name, from)
		ahead[name] = reached(name, to)
		if len(behind)+len(ahead[name]) == len(line.groups)+1 && apart(behind, ahead[name], name) {
			knots = append(knots, name)
		}
	}
	slices.SortFunc(knots, func(a, b int) int { return len(ahead[a]) - len(ahead[b]) })
	line.knots, line.rank = len(knots), make(map[int]int)
	for name := range line.groups {
		line.rank[name] = 1
		for n, knot := range knots {
			switch {
			case knot == name:
				line.rank[name] = 2 * (n + 1)
			case ahead[name][knot]:
				line.rank[name] = max(line.rank[name], 2*(n+1)+1)
			default:
			}
		}
	}
}

// apart: two sets have nothing in common but one.
func apart(some, others map[int]bool, but int) bool {
	for name := range some {
		if name != but && others[name] {
			return false
		}
	}
	return true
}

// pass lets a stage have one knot after the other from its first on; true where it
// may end the row.
func (line *line) pass(stage, first int, one legacy) bool {
	load, size := one.load, one.size
	for last := first; last <= line.knots+1; last++ {
		if last > first {
			load, size = load+line.time[2*last-1], size+line.size[2*last-1]
		}
		load, size = load+line.time[2*last], size+line.size[2*last]
		if load > line.limit || size > line.room {
			return false
		}
		all := load + line.pays(first, last)
		if all > line.limit {
			continue
		}
		if last > line.knots {
			return true
		}
		line.handOn(stage, last, line.limit-all, line.room-size)
	}
	return false
}

// pays is what a stage from one knot to another pays for outputs of which nothing
// lies where it may have a part alone.
func (line *line) pays(first, last int) float64 {
	if known, is := line.paid[[2]int{first, last}]; is {
		return known
	}
	total := 0.0
	line.work += len(line.outputs)
	for _, output := range line.outputs {
		inside, outside, unsure := false, false, false
		for _, name := range output.groups {
			rank := line.rank[name]
			unsure = unsure || rank == 2*first-1 || rank == 2*last+1
			if rank >= 2*first && rank <= 2*last {
				inside = true
			} else {
				outside = true
			}
		}
		if inside && outside && !unsure {
			total += output.cost
		}
	}
	line.paid[[2]int{first, last}] = total
	return total
}
