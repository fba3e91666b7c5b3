package offload

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// The search by bytes may reach its limits or its time without an answer. Then nearest has this
// time to find some set, and tries so many exchanges to improve it.
const (
	nearestTime = 2 * time.Second
	maxSwaps    = 400
)

// option is a set that may leave.
type option struct {
	units        []int
	bytes, frees int64
}

func (state *search) options() []option {
	var out []option
	for c := range state.classes {
		for _, set := range state.classes[c].sets {
			out = append(out, option{set, state.classes[c].bytes, state.classes[c].frees})
		}
	}
	slices.SortFunc(out, func(a, b option) int { return cmp.Compare(a.units[0], b.units[0]) })
	return out
}

// nearest bisects over the memory that leaves, from the front of the chain. Then it replaces larger
// units by smaller ones as long as the rest fits.
func (state *search) nearest(ctx context.Context, limits instance.Limits) *left {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), nearestTime)
	defer cancel()
	all := state.options()
	var most int64
	for i := range all {
		most += all[i].frees
	}
	var best []option
	var found *left
	for lo, hi := max(1, state.least-state.budgets), most; lo <= hi; {
		mid := lo + (hi-lo)/2
		picked := pick(all, mid)
		if got := state.tryUnits(brief, unitsOf(picked), limits); got != nil {
			best, found = picked, got
			hi = sum(picked) - 1
			hi = min(hi, mid-1)
			continue
		}
		lo = mid + 1 + (hi-lo)>>6
	}
	if found == nil || ctx.Err() != nil {
		return found
	}
	return state.swap(brief, all, best, found, limits)
}

// pick takes units from the front until they free enough. The last one is as small as possible.
func pick(all []option, enough int64) []option {
	var out []option
	var freed int64
	for i := range all {
		if freed+all[i].frees < enough {
			out, freed = append(out, all[i]), freed+all[i].frees
			continue
		}
		last := all[i]
		for _, choice := range all[i+1:] {
			if freed+choice.frees >= enough && choice.bytes < last.bytes {
				last = choice
			}
		}
		return append(out, last)
	}
	return out
}

func sum(picked []option) int64 {
	var total int64
	for i := range picked {
		total += picked[i].frees
	}
	return total
}

func unitsOf(picked []option) []int {
	var out []int
	for i := range picked {
		out = append(out, picked[i].units...)
	}
	slices.Sort(out)
	return out
}

// swap returns units to the devices, or replaces them by smaller ones, the largest first.
func (state *search) swap(ctx context.Context, all, best []option, found *left, limits instance.Limits) *left {
	tried := 0
	for gained := true; gained; {
		gained = false
		order := slices.Clone(best)
		slices.SortStableFunc(order, func(a, b option) int { return cmp.Compare(b.bytes, a.bytes) })
		for _, out := range order {
			seen := map[int64]bool{}
			rest := slices.DeleteFunc(slices.Clone(best), func(choice option) bool { return choice.units[0] == out.units[0] })
			for _, in := range append([]option{{}}, all...) { // the empty option: no replacement
				inside := len(in.units) > 0 && slices.ContainsFunc(best, func(choice option) bool { return choice.units[0] == in.units[0] })
				if inside || in.bytes >= out.bytes || seen[in.bytes] || state.least-sum(rest)-in.frees > state.budgets {
					continue
				}
				seen[in.bytes] = true
				tried++
				if tried > maxSwaps || ctx.Err() != nil {
					return found
				}
				next := rest
				if len(in.units) > 0 {
					next = append(slices.Clone(rest), in)
				}
				if got := state.tryUnits(ctx, unitsOf(next), limits); got != nil {
					best, found, gained = next, got, true
					break
				}
			}
			if gained {
				break
			}
		}
	}
	return found
}
