package boundcheck

import (
	"context"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// onlyKind is the one kind of which there are devices: others cannot stand in a row.
func onlyKind(problem *graph.Problem) (int, error) {
	only := -1
	for kind := range problem.Kinds {
		if problem.Kinds[kind].Count == 0 {
			continue
		}
		if only >= 0 {
			return -1, errors.New("a row of several kinds of devices")
		}
		only = kind
	}
	if only < 0 {
		return -1, errors.New("no devices")
	}
	return only, nil
}

// CheckStages checks a proof that no contiguous placement on devices of the one
// kind there is has a largest load of Limit or less. Its kinds are the stages of
// the row, and a stage can have those groups alone that may be there within the
// limit, which is worked out here.
func CheckStages(ctx context.Context, problem *graph.Problem, proof *Proof) error {
	kind, err := onlyKind(problem)
	if err != nil {
		return err
	}
	if !proof.Stages || len(proof.Kinds) != problem.Kinds[kind].Count {
		return fmt.Errorf("%d rents of stages, stages: %v", len(proof.Kinds), proof.Stages)
	}
	groups := grouped(problem)
	rents := 0.0
	for _, said := range proof.Kinds {
		rents += said.Rent
	}
	if err := proof.worthMore(groups, rents); err != nil {
		return err
	}
	row := newRow(problem, groups, kind, proof.Limit)
	for stage := range proof.Kinds {
		sum := newSums(problem, groups, proof, kind, &proof.Kinds[stage])
		for name := range groups {
			if row.earliest[name] <= stage && stage <= row.latest[name] {
				sum.must[name] = true
			}
		}
		if err := sum.check(ctx); err != nil {
			return fmt.Errorf("stage %d: %w", stage, err)
		}
	}
	return nil
}

// row is where groups may be in a row of stages within a limit: all that leads to
// a group is at its stage or before, and must fit there.
type row struct {
	groups           map[int]*group
	kind, stages     int
	limit, room      float64
	earliest, latest map[int]int
}

// neighbours are the groups that each leads to, and those that lead to it.
func neighbours(problem *graph.Problem) (from, to map[int][]int) {
	from, to = make(map[int][]int), make(map[int][]int)
	for _, edge := range problem.Edges {
		tail, head := &problem.Nodes[edge[0]], &problem.Nodes[edge[1]]
		if !tail.Backward && !head.Backward && tail.Group != head.Group {
			from[tail.Group] = append(from[tail.Group], head.Group)
			to[head.Group] = append(to[head.Group], tail.Group)
		}
	}
	return from, to
}

func newRow(problem *graph.Problem, groups map[int]*group, kind int, limit float64) *row {
	const rounding = 1e-9
	row := &row{
		groups: groups, kind: kind, stages: problem.Kinds[kind].Count,
		limit: limit * (1 + rounding), room: problem.Kinds[kind].Capacity * (1 + rounding),
	}
	from, to := neighbours(problem)
	row.earliest = row.soonest(to)
	row.latest = row.soonest(from)
	for name, stage := range row.latest {
		row.latest[name] = row.stages - 1 - stage
	}
	return row
}

// soonest is for each group the first stage, counted from one end, up to which
// the stages have room for all that is before it, as the neighbours on that side
// lead there: for what is itself not sooner than some stage, the stages from that
// one on. A group waits for those of its neighbours that are not known yet.
func (row *row) soonest(near map[int][]int) map[int]int {
	known := make(map[int]int)
	var settle func(name int, open map[int]bool)
	settle = func(name int, open map[int]bool) {
		if _, done := known[name]; done || open[name] {
			return
		}
		open[name] = true
		for _, other := range near[name] {
			settle(other, open)
		}
		known[name] = row.settled(name, reached(name, near), known)
	}
	for name := range row.groups {
		settle(name, make(map[int]bool))
	}
	return known
}

// settled is a group's first stage; what is not known counts as stage 0.
func (row *row) settled(name int, before map[int]bool, known map[int]int) int {
	time, size := make([]float64, row.stages+1), make([]float64, row.stages+1)
	stage := 0
	for other := range before {
		if other == name {
			continue
		}
		at := known[other]
		stage = max(stage, at)
		time[at] += row.groups[other].time[row.kind]
		size[at] += row.groups[other].size
	}
	own := row.groups[name]
	for ; stage < row.stages; stage++ {
		sumTime, sumSize, fits := own.time[row.kind], own.size, true
		for from := stage; from >= 0 && fits; from-- {
			sumTime, sumSize = sumTime+time[from], sumSize+size[from]
			many := float64(stage - from + 1)
			fits = sumTime <= many*row.limit && sumSize <= many*row.room
		}
		if fits {
			break
		}
	}
	return stage
}

// reached is what the neighbours lead to, and the group itself.
func reached(name int, near map[int][]int) map[int]bool {
	seen := map[int]bool{name: true}
	for queue := []int{name}; len(queue) > 0; queue = queue[1:] {
		for _, other := range near[queue[0]] {
			if !seen[other] {
				seen[other] = true
				queue = append(queue, other)
			}
		}
	}
	return seen
}
