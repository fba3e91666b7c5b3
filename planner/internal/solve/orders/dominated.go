package orders

import (
	"encoding/binary"
	"slices"
)

// dominated reports a state that is at no point earlier than one that was seen, and has no smaller
// ring. Else it records the state, unless a GPU chose to wait: that excludes orders, so that the
// state replaces none.
func (search *searcher) dominated() bool {
	const mostStored = 1 << 20
	key := make([]byte, 0, len(search.ran))
	for _, ran := range search.ran {
		key = binary.AppendUvarint(key, uint64(ran))
	}
	times := slices.Clone(search.free)
	for i := range search.Chunks {
		for ring, bytes := range search.Chunks[i].rings() {
			if bytes > 0 {
				times = append(times, int64(search.sets[i*int(kinds)+ring]))
			}
		}
		for kind := range Weight {
			pass := Pass{kind, i}
			next, sends := search.sends(pass)
			if !sends {
				continue // on the same GPU, which runs it when it is free
			}
			_, wait, _ := search.before(next)
			to := search.Chunks[next.Chunk].GPU
			for _, end := range search.ends[index(pass)][search.ran[index(next)]:search.ran[index(pass)]] {
				times = append(times, max(end+wait, search.free[to]))
			}
		}
	}
	notLater := func(old []int64) bool {
		for i, time := range old {
			if time > times[i] {
				return false
			}
		}
		return true
	}
	old := search.seen[string(key)]
	if slices.ContainsFunc(old, notLater) {
		return true
	}
	free := !slices.ContainsFunc(search.slept, func(at int64) bool { return at >= 0 })
	if free && search.stored < mostStored {
		search.stored++
		search.seen[string(key)] = append(old, times)
	}
	return false
}
