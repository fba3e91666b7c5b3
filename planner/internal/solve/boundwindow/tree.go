package boundwindow

import (
	"container/heap"
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// branch is a part of the placements within the limit: those that keep its
// windows. Together the open ones hold every placement that may be better than
// the limit.
type branch struct {
	windows
	bound float64
	// from is where its multipliers begin: those of the branch it is a half of.
	from  *dual
	depth int
}

// Tree divides the placements on stages of one kind into branches, the one of
// the least bound first (Land and Doig, Econometrica 28, 1960).
type Tree struct {
	*form
	open  branches
	limit float64
	// Found hears of every placement of the items that a bound's answer gives.
	Found func(stage []int)
	// Windows, if set, knows more of the windows within a limit: the first and the
	// last stage of each item.
	Windows func(ctx context.Context, limit float64) (first, last []int, ok bool)
	begun   bool
	// refuted is the least bound of the branches that are closed; +Inf: none.
	refuted float64
	// root are the multipliers of the first branch; nil: not yet.
	root *dual
}

// branches are a heap by bound, the deeper first.
type branches []*branch

func (open branches) Len() int { return len(open) }
func (open branches) Less(i, j int) bool {
	if open[i].bound != open[j].bound {
		return open[i].bound < open[j].bound
	}
	return open[i].depth > open[j].depth
}
func (open branches) Swap(i, j int) { open[i], open[j] = open[j], open[i] }
func (open *branches) Push(x any)   { *open = append(*open, x.(*branch)) } //nolint:forcetypeassert,errcheck // heap's
func (open *branches) Pop() any {
	last := (*open)[len(*open)-1]
	*open = (*open)[:len(*open)-1]
	return last
}

// NewTree is nil where devices are of several kinds, or items too many.
func NewTree(nets *netlist.Netlist, before, after [][]int, limit float64) *Tree {
	kind := onlyKind(nets)
	if kind < 0 {
		return nil
	}
	tree := &Tree{form: newForm(nets, before, after, kind), limit: limit, refuted: math.Inf(1)}
	tree.stages = min(tree.stages, len(nets.Nodes))
	all := tree.everywhere()
	tree.open = branches{{windows: all}}
	return tree
}

// within is a tree of all placements within another limit, which begins with the
// multipliers that this one's first branch came to.
func (tree *Tree) within(limit float64) *Tree {
	return &Tree{
		form: tree.form, limit: limit, refuted: math.Inf(1), root: tree.root,
		Found: tree.Found, Windows: tree.Windows, open: branches{{windows: tree.everywhere(), from: tree.root}},
	}
}

// onlyKind is the kind of devices in use; −1 where they are of several kinds, or
// just one device, or items are too many.
func onlyKind(nets *netlist.Netlist) int {
	kind := nets.OnlyKind()
	if kind < 0 || nets.Count[kind] < 2 || len(nets.Nodes) > maxItems || len(nets.Nodes)*nets.Count[kind] > maxFree {
		return -1
	}
	return kind
}

// What a bound is made for: cones are tables of items × items, and networks have
// a node for each item and boundary.
const (
	maxItems = 4000
	maxFree  = 64_000
)

// Lower lowers the limit, to the value of a better placement.
func (tree *Tree) Lower(limit float64) { tree.limit = min(tree.limit, limit) }

// Bound is what no placement is below.
func (tree *Tree) Bound() float64 {
	bound := math.Min(tree.limit, tree.refuted)
	if len(tree.open) > 0 {
		bound = math.Min(bound, tree.open[0].bound)
	}
	return bound
}

// Done says that nothing is left to divide.
func (tree *Tree) Done() bool { return len(tree.open) == 0 }

// Step bounds the first branch, and divides it where that leaves a gap.
func (tree *Tree) Step(ctx context.Context) {
	at := heap.Pop(&tree.open).(*branch) //nolint:forcetypeassert,errcheck // heap's
	if at.bound >= tree.limit {
		return
	}
	if !tree.begun {
		tree.begun = true
		tree.confine(ctx, &at.windows)
	}
	dual, ok := tree.bounded(ctx, at)
	if !ok || at.bound >= tree.limit {
		return
	}
	if ctx.Err() != nil {
		heap.Push(&tree.open, at)
		return
	}
	item, boundary := dual.choose()
	if item < 0 {
		// One placement is left: its own load is the bound.
		tree.Found(at.first)
		tree.refuted = math.Min(tree.refuted, math.Max(at.bound, tree.load(at.first)))
		return
	}
	early, late := at.clone(), at.clone()
	each(tree.cones.before[item], func(other int) { early.last[other] = min(early.last[other], boundary) })
	each(tree.cones.after[item], func(other int) { late.first[other] = max(late.first[other], boundary+1) })
	for _, half := range []windows{early, late} {
		heap.Push(&tree.open, &branch{windows: half, bound: at.bound, from: dual, depth: at.depth + 1})
	}
	dual.forget()
}

// forget gives back all but what another begins with: thousands of branches wait.
func (dual *dual) forget() {
	dual.cuts, dual.slope, dual.way, dual.best = nil, multipliers{}, multipliers{}, multipliers{}
}

// The steps of the bound, for the first branch and for others.
const (
	rootSteps, branchSteps = 300, 10
	rounds                 = 4
)

// confine narrows the windows of all placements within the limit.
func (tree *Tree) confine(ctx context.Context, within *windows) {
	if tree.Windows == nil {
		return
	}
	if first, last, ok := tree.Windows(ctx, tree.limit); ok {
		for item := range first {
			within.first[item] = max(within.first[item], first[item])
			within.last[item] = min(within.last[item], last[item])
		}
	}
}

// bounded raises a branch's bound and narrows its windows, in turn; false where
// nothing is in it.
func (tree *Tree) bounded(ctx context.Context, at *branch) (out *dual, ok bool) {
	steps := branchSteps
	if at.from == nil {
		steps = rootSteps
		defer func() { tree.root = out }()
	}
	for range rounds {
		if !tree.settle(&at.windows, tree.limit) {
			return nil, false
		}
		out = newDual(tree.form, at.clone(), tree.limit)
		if at.from != nil {
			out.inherit(at.from)
		}
		out.improve(ctx, steps)
		at.from = out
		if math.IsInf(out.evaluate(ctx), -1) {
			return out, true
		}
		if at.bound = math.Max(at.bound, out.proved()*(1-graph.Rounding)); at.bound >= tree.limit {
			return out, true
		}
		if stage := out.answer(); stage != nil {
			tree.Found(stage)
		}
		if !out.fix(ctx, &at.windows) {
			return out, true
		}
	}
	return out, true
}

// choose is the item and the boundary that divide a branch most evenly: on both
// sides as much work as can be is decided with it. Of many items some are looked
// at. −1: all is decided.
func (dual *dual) choose() (item, boundary int) {
	item, most := -1, -1.0
	for j, cut := range dual.cuts {
		stride := 1 + len(cut.free)/candidates
		for i := 0; i < len(cut.free); i += stride {
			free := cut.free[i]
			low, high := 0.0, 0.0
			for _, other := range cut.free {
				if has(dual.cones.before[free], int(other)) {
					low += dual.time[other] + dual.small
				}
				if has(dual.cones.after[free], int(other)) {
					high += dual.time[other] + dual.small
				}
			}
			if even := math.Min(low, high); even > most {
				item, boundary, most = int(free), j, even
			}
		}
	}
	return item, boundary
}

// candidates are the items looked at for one boundary, about.
const candidates = 40

// answer is the placement of the boundaries' latest answers, each item before
// the first boundary that has it.
func (dual *dual) answer() []int {
	stage := make([]int, len(dual.time))
	for item := range stage {
		for stage[item] < len(dual.cuts) && !dual.cuts[stage[item]].before(item) {
			stage[item]++
		}
	}
	return stage
}

// inherit begins with another's multipliers.
func (dual *dual) inherit(from *dual) {
	copy(dual.weight, from.weight)
	copy(dual.rent, from.rent)
	dual.lead = math.Max(from.lead, 0.002)
	for wire, share := range dual.share {
		sum := 0.0
		for i := range share {
			if at := dual.tail[wire][0] + i - from.tail[wire][0]; at >= 0 && at < len(from.share[wire]) {
				share[i] = from.share[wire][at]
			}
			sum += share[i]
		}
		for i := range share {
			if sum > 0 {
				share[i] /= sum
			} else {
				share[i] = 1 / float64(len(share))
			}
		}
	}
	dual.best.take(&dual.multipliers)
}
