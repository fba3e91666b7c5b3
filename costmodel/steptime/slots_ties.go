package steptime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// tiedUse is a unit that reads a weight of one's own or of another unit, and what its gradient takes.
type tiedUse struct {
	unit  int
	grads int64
}

// tiedUses are, for every weight that several units read, these units in the order of the chain.
func tiedUses(units []costmodel.Unit) [][]tiedUse {
	type tensor struct {
		owner int
		name  string
	}
	var out [][]tiedUse
	seen := make(map[tensor]int)
	for unit := range units {
		for _, tie := range units[unit].Regions.Tied {
			key := tensor{tie.Owner, tie.Tensor}
			group, ok := seen[key]
			if !ok {
				group = len(out)
				seen[key] = group
				out = append(out, []tiedUse{{tie.Owner, tie.Grads}})
			}
			out[group] = append(out[group], tiedUse{unit, tie.Grads})
		}
	}
	return out
}

// ties sends the gradient of every use of a tied weight to all other devices with a copy of it, and
// returns the last arrival.
func (line *line) ties(place []int) (end int64) {
	for _, uses := range line.tied {
		for _, use := range uses {
			sent := map[int]bool{place[use.unit]: true}
			for _, to := range uses {
				if device := place[to.unit]; !sent[device] && use.grads > 0 {
					sent[device] = true
					end = max(end, line.sendTied(use, place[use.unit], device))
				}
			}
		}
	}
	return end
}

// sendTied sends a use's gradient after its last backward, and after the stream's earlier messages.
func (line *line) sendTied(use tiedUse, from, to int) (arrived int64) {
	ready, rank := line.lastBackward(use.unit)
	stream := line.stream(rank, slices.Index(line.devices, to))
	busy, latency := line.Message(from, to, use.grads)
	stream.clock = max(stream.clock, ready) + busy
	return stream.clock + latency
}

// lastBackward is when the last backward of a unit has run, and on which rank.
func (line *line) lastBackward(unit int) (end int64, rank int) {
	for i := range line.stages {
		stage := &line.stages[i]
		if unit < stage.first || unit >= stage.end {
			continue
		}
		for i := range stage.units { // units that pass run with the next one
			if last := i == len(stage.units)-1; stage.units[i].unit >= unit || last {
				return stage.units[i].ended, stage.rank
			}
		}
		back, learn := int64(0), int64(0) // of the units that a backward reaches first
		for after := unit; after < stage.end; after++ {
			took := line.Unit(after, line.devices[stage.rank])
			back, learn = back+took.Recompute+took.Backward, learn+took.Learn
		}
		if stage.whole.ended > stage.learn.ended {
			return stage.whole.began + back + learn, stage.rank
		}
		if line.table.Units[unit].Regions.Learns {
			return stage.learn.began + learn, stage.rank
		}
		for before := stage.first; before < unit; before++ {
			if !line.table.Units[before].Regions.Passes { // nothing is waited for but before the first
				return stage.backward.began + back, stage.rank
			}
		}
		return stage.backward.ended, stage.rank
	}
	return 0, 0
}
