package planner

import (
	"errors"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/scheduletime"
)

// errNumbers is a bound that other code does not prove.
var errNumbers = errors.New("planner: the bound of the schedule is above what its arguments prove (please report this)")

// checkNumbers proves a bound again, with other code: it lists the borders that the first GPUs can
// reach within the length, one GPU after the other, and adds up their items one by one.
func checkNumbers(numbers *scheduletime.Numbers, bound float64) error {
	length, count := (bound-numbers.Update)*(1-1e-10), len(numbers.Work)
	walk := &numbersWalk{numbers, length}
	if numbers.Line && walk.ends(count, 0) || numbers.Vee && walk.ends(count, -1) {
		return errNumbers
	}
	for turn := 1; numbers.Loops && turn < count; turn++ {
		if walk.ends(turn, 1) {
			return errNumbers
		}
	}
	return nil
}

type numbersWalk struct {
	*scheduletime.Numbers
	length float64
}

// border is where the next GPU's first and second run begin. In a V, its second run ends there.
type border struct{ first, second int }

// ends reports that the GPUs have room for all items. Their first runs have those below turn. Their
// second runs go forward from it (way 1) or back from it (−1), or there are none (0).
func (walk *numbersWalk) ends(turn, way int) bool {
	count := len(walk.Work)
	reached := map[border]bool{{0, turn}: true}
	for gpu := range walk.Free {
		next := map[border]bool{}
		for at := range reached {
			walk.add(next, at, gpu, turn, way)
		}
		reached = next
	}
	for at := range reached {
		if way < 0 && at.first == at.second || way >= 0 && at.first == turn && at.second == count {
			return true
		}
	}
	return false
}

// add adds the borders after a GPU.
func (walk *numbersWalk) add(next map[border]bool, at border, gpu, turn, way int) {
	count := len(walk.Work)
	if start := sum(walk.Forward[:at.first]); walk.rest(at, turn, way) > float64(len(walk.Free)-gpu)*(walk.length-start) {
		return // the later GPUs begin no sooner
	}
	for one := at.first + 1; one <= turn; one++ {
		if way == 0 {
			if walk.feasible(gpu, at.first, one, count, count) {
				next[border{one, at.second}] = true
			}
			continue
		}
		for other := at.second + way; other <= count && (way > 0 || other >= one); other += way {
			low, high := min(at.second, other), max(at.second, other)
			if float64(walk.Batches)*(sum(walk.Work[at.first:one])+sum(walk.Work[low:high])) > walk.length {
				break // more items take longer
			}
			if walk.feasible(gpu, at.first, one, low, high) {
				next[border{one, other}] = true
			}
		}
	}
}

func sum(list []float64) (total float64) {
	for _, one := range list {
		total += one
	}
	return total
}

// feasible reports that a GPU has time and memory for the items [a, b) and [c, d), by the arguments of
// [scheduletime.Numbers].
func (walk *numbersWalk) feasible(gpu, a, b, c, d int) bool {
	batches := float64(walk.Batches)
	start := sum(walk.Forward[:a])
	forwards, back := sum(walk.Forward[a:b])+sum(walk.Forward[c:d]), d
	if c == d {
		back = b
	}
	work := batches * (sum(walk.Work[a:b]) + sum(walk.Work[c:d]))
	memory, quickest := walk.Free[gpu]-sum(walk.Static[a:b])-sum(walk.Static[c:d]), 0.
	memory -= walk.scratch(a, b, c, d)
	total, limited := 0., !math.IsInf(memory, 1)
	var parts []part
	for _, run := range [][2]int{{a, b}, {c, d}} {
		if run[0] == run[1] {
			continue
		}
		way := sum(walk.Forward[run[0]:]) + sum(walk.Input[run[0]:])
		time := walk.length - sum(walk.Forward[:run[0]]) - sum(walk.Input[:run[0]])
		if way > time {
			return false
		}
		sets := math.Ceil(batches*way/time - 2e-9)
		saved, made := sum(walk.Saved[run[0]:run[1]]), sum(walk.Made[run[0]:run[1]])
		total += sets * saved
		if walk.Freed > 0 {
			parts = append(parts, part{sets, (saved - made) / walk.Freed})
		}
		limited = limited && made > 0
		quickest = max(quickest, sum(walk.Forward[run[0]:run[1]])/made)
	}
	again, missing := walk.again(parts, total-memory, 1e-9*total)
	if missing > 1e-9*total {
		return false
	}
	if again > 0 {
		work += math.Floor(again+2e-9) * batches * walk.Extra
	}
	tail := 0.
	if walk.Joint {
		tail = sum(walk.Input[:a])
	}
	returns := sum(walk.Forward) + sum(walk.Input[back:])
	until := min(returns-start, batches*forwards)
	if limited { // every forward keeps bytes
		until = min(until, max(0, memory)*quickest)
	}
	latest := max(start+work, returns+work-until)
	if c < d {
		second := sum(walk.Forward[:c])
		latest = max(latest, second+work-min(second-start, batches*sum(walk.Forward[a:b])))
	}
	return latest+tail <= walk.length
}

// part is a run's blocks that can be recomputed, and how many sets of their bytes there are.
type part struct{ sets, most float64 }

// again returns how many blocks free the missing bytes, and what is still missing then.
func (walk *numbersWalk) again(parts []part, missing, small float64) (count, still float64) {
	if len(parts) == 2 && parts[1].sets > parts[0].sets {
		parts[0], parts[1] = parts[1], parts[0]
	}
	for _, one := range parts {
		if missing > small {
			used := min(one.most, math.Ceil(missing/(one.sets*walk.Freed)-2e-9))
			count, missing = count+used, missing-used*one.sets*walk.Freed
		}
	}
	return count, missing
}

// rest returns the work of the items that no GPU has yet.
func (walk *numbersWalk) rest(at border, turn, way int) (work float64) {
	for item, one := range walk.Work {
		if item >= at.first && item < turn && (way >= 0 || item < at.second) || way > 0 && item >= at.second {
			work += float64(walk.Batches) * one
		}
	}
	return work
}

// scratch returns the largest of the items [a, b) and [c, d).
func (walk *numbersWalk) scratch(a, b, c, d int) (largest float64) {
	for item, one := range walk.Scratch {
		if item >= a && item < b || item >= c && item < d {
			largest = max(largest, one)
		}
	}
	return largest
}
