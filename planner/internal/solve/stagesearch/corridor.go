package stagesearch

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// corridor looks for the best placement near one at hand: each boundary of the
// row may become one of some hundred down-sets near its own (near.go), and the
// best choice for all boundaries at once is a shortest way through them, stage
// by stage (the corridor method: Sniedovich and Voß, Control and Cybernetics 35,
// 2006). Where capacities are tight a load often falls only if item after item
// makes room along the whole row, which no move of one or two items finds.
type corridor struct {
	*Chain
	random *rand.PCG
	at     []int32 // the device of a place in the row
	// stage is an item's place in the row; sets are those of each boundary, of
	// which the first is its own.
	stage []int32
	sets  [][]near
	key   []uint64 // of the items, for hashes of sets
	// other are the stages of another placement, whose boundaries are joined in;
	// nil: none. good are some of earlier rounds.
	other []int32
	good  [][]int32
	inside
	// unit is the load that counts as 1, limit what no load may be above, most
	// what no device may hold more than of its capacity.
	unit, limit, most float64
	// work is how many items were added or taken, or tried for a set, so far.
	work int
}

// step is the best way to a set: its energy, and the set before the stage.
type step struct {
	energy float64
	from   int32
}

func newCorridor(chain *Chain, random *rand.PCG) *corridor {
	walk := &corridor{
		Chain: chain, random: random, at: make([]int32, chain.devices), stage: make([]int32, chain.items),
		sets: make([][]near, chain.devices+1), key: make([]uint64, chain.items), inside: newInside(chain),
	}
	for item := range walk.key {
		walk.key[item] = random.Uint64()
	}
	return walk
}

// narrowest and widest are the sets of a boundary that differ from its own in two
// items, about.
const narrowest, widest = 32, 512

// around is the corridor around the placement at hand; made when first needed.
func (anneal *annealer) around() *corridor {
	if anneal.walk == nil {
		anneal.walk = newCorridor(anneal.Chain, anneal.random)
	}
	walk := anneal.walk
	copy(walk.at, anneal.at)
	for item, device := range anneal.place {
		walk.stage[item] = anneal.rank[device]
	}
	walk.limit, walk.most = max(slices.Max(anneal.load), anneal.bestLoad), 1
	walk.unit = walk.limit
	for device, bytes := range anneal.bytes {
		if bytes > anneal.capacity[device] {
			walk.most = max(walk.most, bytes/anneal.capacity[device])
		}
	}
	return walk
}

// adopt takes the corridor's stages.
func (anneal *annealer) adopt(walk *corridor) {
	for item, stage := range walk.stage {
		anneal.place[item] = walk.at[stage]
	}
	anneal.refresh()
}

// tighten goes on from the placement at hand to the best in a corridor around it,
// and from there again, until wider corridors have nothing better or so much work
// was done.
func (anneal *annealer) tighten(ctx context.Context, work int) {
	walk := anneal.around()
	walk.widen(ctx, walk.work+work)
	anneal.adopt(walk)
}

// join joins the placement at hand with each of some earlier ones; false where nothing
// was better.
func (anneal *annealer) join(ctx context.Context) (better bool) {
	walk := anneal.around()
	for _, walk.other = range walk.good {
		walk.grow(ctx, narrowest/2)
		better = walk.better(ctx) || better
	}
	walk.other = nil
	anneal.adopt(walk)
	return better
}

// keep keeps the placement at hand for later ones to be joined with, in the stead of
// the oldest where there are many.
func (anneal *annealer) keep() {
	const many = 6
	walk := anneal.around()
	if slices.ContainsFunc(walk.good, func(known []int32) bool { return slices.Equal(known, walk.stage) }) {
		return
	}
	walk.good = append(walk.good, slices.Clone(walk.stage))
	if len(walk.good) > many {
		walk.good = walk.good[1:]
	}
}

// widen goes on from corridor to corridor until wider ones have nothing better.
func (walk *corridor) widen(ctx context.Context, end int) {
	for width := narrowest; width <= widest && walk.work < end && ctx.Err() == nil; {
		walk.grow(ctx, width)
		if !walk.better(ctx) {
			width *= 2
		}
	}
}

// better replaces the stages by the best in the corridor; false where they are
// that already, or the context ends.
func (walk *corridor) better(ctx context.Context) bool {
	ways, now := make([][]step, walk.devices+1), 0.0
	ways[0] = []step{{0, -1}}
	for k := range walk.devices {
		ways[k+1] = walk.through(ctx, k, ways[k])
		walk.begin(k)
		now += walk.energy()
	}
	if ctx.Err() != nil || !(ways[walk.devices][0].energy < now*(1-1e-9)) {
		return false
	}
	was, set := slices.Clone(walk.stage), ways[walk.devices][0].from
	for k := walk.devices - 1; k > 0; k-- {
		for at := set; at > 0; at = walk.sets[k][at].parent {
			if item := walk.sets[k][at].item; was[item] < int32(k) {
				walk.stage[item]++
			} else {
				walk.stage[item]--
			}
		}
		set = ways[k][set].from
	}
	return true
}

// energy is that of the stage at hand, as the annealer's at its highest power;
// bytes over a capacity are dear.
func (walk *corridor) energy() float64 {
	energy := raised(walk.load / walk.unit)
	if capacity := walk.capacity[walk.device]; walk.bytes > capacity {
		energy += raised(dear + walk.bytes/capacity)
	}
	return energy
}

// dear is how far above a load that counts as 1 a byte over a capacity is.
const dear = 0.1

func raised(scaled float64) float64 {
	for range highest {
		scaled *= scaled
	}
	return scaled
}

// through goes on from the sets before a stage to those after it.
func (walk *corridor) through(ctx context.Context, k int, before []step) []step {
	after := make([]step, len(walk.sets[k+1]))
	for i := range after {
		after[i].energy = math.Inf(1)
	}
	walk.begin(k)
	for i, come := range before {
		if math.IsInf(come.energy, 1) || i%looked == looked-1 && ctx.Err() != nil {
			continue
		}
		kept := walk.content
		walk.move(k, int32(i))
		walk.ends(walk.sets[k+1], 0, step{come.energy, int32(i)}, after)
		walk.move(k, int32(i))
		walk.content = kept // without what rounding has added
	}
	return after
}

// looked is after how many sets the clock is looked at.
const looked = 16

// begin makes a stage that at hand, as it is.
func (walk *corridor) begin(k int) {
	walk.empty(walk.at[k])
	for item, stage := range walk.stage {
		walk.left[item], walk.right[item] = stage < int32(k), stage < int32(k)
	}
	for item, stage := range walk.stage {
		if stage == int32(k) {
			walk.toggle(int32(item), walk.right)
		}
	}
}

// move takes the stage's first boundary to one of its sets, or back.
func (walk *corridor) move(k int, set int32) {
	for at := set; at > 0; at = walk.sets[k][at].parent {
		walk.toggle(walk.sets[k][at].item, walk.left)
		walk.work++
	}
}

// ends tries a set after the stage, and those that grew from it.
func (walk *corridor) ends(sets []near, at int32, come step, after []step) {
	if walk.wrong == 0 && walk.load <= walk.limit && walk.bytes <= walk.most*walk.capacity[walk.device] {
		if energy := come.energy + walk.energy(); energy < after[at].energy {
			after[at] = step{energy, come.from}
		}
	}
	for next := sets[at].child; next > 0; next = sets[next].next {
		kept := walk.content
		walk.toggle(sets[next].item, walk.right)
		walk.ends(sets, next, come, after)
		walk.toggle(sets[next].item, walk.right)
		walk.content = kept
		walk.work += 2
	}
}
