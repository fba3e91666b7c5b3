package stagesearch

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
	"github.com/devmap-dev/devmap/planner/internal/solve/pairs"
)

// bind works out which of two stages' items must come before which, and which must
// stay for others that stand between; false where all must.
func (part *parter) bind(items []int32, one, two int32) bool {
	for _, item := range items {
		part.kept.Before[item], part.kept.After[item] = part.kept.Before[item][:0], part.kept.After[item][:0]
		part.kept.Fixed[item], part.mark[item] = part.sideOf(item, one, two), -1
	}
	for _, item := range items {
		part.follow(item, one, two)
	}
	part.spread(items)
	return slices.ContainsFunc(items, func(item int32) bool { return part.kept.Fixed[item] == netlist.Neither })
}

// sideOf is the side that an item must have: for what stands between the two stages,
// or as it runs on one alone.
func (part *parter) sideOf(item, one, two int32) byte {
	between := func(other int32) bool {
		at := part.rank[part.place[other]]
		return at > part.rank[one] && at < part.rank[two]
	}
	switch {
	case !part.runs(item, two) || slices.ContainsFunc(part.after.of(item), between):
		return netlist.Taken
	case !part.runs(item, one) || slices.ContainsFunc(part.before.of(item), between):
		return netlist.Left
	default:
		return netlist.Neither
	}
}

// follow finds all of two stages that must come after an item: a way between them
// leads through no other stage but those that have bound it already.
func (part *parter) follow(item, one, two int32) {
	found := part.kept.After[item]
	found = append(found, item)
	part.mark[item] = item
	for i := 0; i < len(found); i++ {
		for _, other := range part.after.of(found[i]) {
			if at := part.place[other]; part.mark[other] != item && (at == one || at == two) {
				part.mark[other] = item
				found = append(found, other)
			}
		}
	}
	part.kept.After[item] = found[1:]
	for _, other := range found[1:] {
		part.kept.Before[other] = append(part.kept.Before[other], item)
	}
}

// spread binds those too that the bound are in order with.
func (part *parter) spread(items []int32) {
	for _, item := range items {
		side, others := part.kept.Fixed[item], part.kept.Before[item]
		switch side {
		case netlist.Left:
			others = part.kept.After[item]
		case netlist.Neither:
			others = nil
		default:
		}
		for _, other := range others {
			part.kept.Fixed[other] = side
		}
	}
}

// pairWidth bounds the states of a pair.
var pairWidth = netlist.Width{Step: 1500, All: 100_000}

// layOut is the frontier of two stages' items. Where all are too wide it is that of a
// part of them, and the others stay; nil where the context ends.
func (part *parter) layOut(ctx context.Context, items []int32, one int32, pair *pairs.Pair) *netlist.Frontier {
	budget, fixed := pair.Budget(items), slices.Clone(part.kept.Fixed)
	frontier := part.nets.LayOutKept(ctx, items, part.used, part.width, budget, &part.kept)
	const fewest = 4
	for most := len(items) * 2 / 3; frontier == nil && most >= fewest && ctx.Err() == nil; most = most * 2 / 3 {
		copy(part.kept.Fixed, fixed)
		part.loosen(items, most, one)
		frontier = part.nets.LayOutKept(ctx, items, part.used, part.width, budget, &part.kept)
	}
	return frontier
}

// isNear and isLoose are what an item of a pair may be.
const isNear, isLoose = 1, 2

// loosen lets no more than so many of a pair's items go to the other side: one that
// may, drawn at random, and, item by item, what shares a wire with those and then may.
func (part *parter) loosen(items []int32, most int, one int32) {
	clear(part.loose)
	for range most {
		item := part.looser(items, one)
		if item < 0 {
			break
		}
		part.loose[item] = isLoose
		for _, wire := range part.wires.of(item) {
			for _, other := range part.nets.Wires[wire].Members {
				part.loose[other] = max(part.loose[other], isNear)
			}
		}
	}
	for _, item := range items {
		switch {
		case part.loose[item] == isLoose || part.kept.Fixed[item] != netlist.Neither:
		case part.place[item] == one:
			part.kept.Fixed[item] = netlist.Taken
		default:
			part.kept.Fixed[item] = netlist.Left
		}
	}
}

// looser is an item that may go over once those do that are loose, near them if there
// is one; −1: none is left.
func (part *parter) looser(items []int32, one int32) int32 {
	found, nearest, count := int32(-1), int32(0), 0
	for _, item := range items {
		at := part.loose[item]
		if at == isLoose || at < nearest || !part.may(item, one) {
			continue
		}
		if at > nearest {
			nearest, count = at, 0
		}
		count++
		if part.below(count) == 0 {
			found = item
		}
	}
	return found
}

// may says whether an item may go over once those do that are loose.
func (part *parter) may(item, one int32) bool {
	first := part.place[item] == one
	follow := part.kept.Before[item]
	if first {
		follow = part.kept.After[item]
	}
	return part.kept.Fixed[item] == netlist.Neither && !slices.ContainsFunc(follow, func(other int32) bool {
		return part.loose[other] != isLoose && (part.place[other] == one) == first
	})
}
