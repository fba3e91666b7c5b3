package planner

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/scheduletime"
)

// errNumbers is a bound that other code does not prove.
var errNumbers = errors.New("planner: the bound of the schedule is above what its arguments prove (please report this)")

// checkNumbers proves a bound again, with other code. Stages in line are a dynamic program over the
// items and GPUs. Memory is checked at the points where one more item is recomputed.
func checkNumbers(numbers *scheduletime.Numbers, bound float64) error {
	batches, count := float64(numbers.Batches), len(numbers.Work)
	before, work := make([]float64, count+1), make([]float64, count+1)
	for item := range count {
		before[item+1], work[item+1] = before[item]+numbers.Forward[item], work[item]+batches*numbers.Work[item]
		if numbers.Joint {
			before[item+1] += numbers.Input[item]
		}
	}
	heads := 0.
	for gpu := range numbers.GPUs {
		heads += before[min(gpu, count)]
	}
	gpus := float64(numbers.GPUs)
	proved := (work[count] + heads) / gpus
	if numbers.Line {
		longest := make([]float64, count+1) // of the stages so far, by their end
		for item := range longest {
			longest[item] = math.Inf(1)
		}
		longest[0] = 0
		for range numbers.GPUs {
			next := make([]float64, count+1)
			for end := range next {
				next[end] = math.Inf(1)
				for from := 0; from <= end; from++ {
					next[end] = min(next[end], max(longest[from], before[from]+work[end]-work[from]))
				}
			}
			longest = next
		}
		proved = max(proved, longest[count])
	}
	proved = max(proved, wholePoint(numbers, before))
	if proved = max(proved, memoryPoint(numbers, (work[count]+heads)/gpus)); bound > proved {
		return errNumbers
	}
	return nil
}

// wholePoint returns the shortest length of those at which one more block fits a GPU that have time
// for all blocks and the largest other item.
func wholePoint(numbers *scheduletime.Numbers, before []float64) float64 {
	work, count, largest := numbers.Equal()
	work, largest = work*float64(numbers.Batches), largest*float64(numbers.Batches)
	if numbers.Line || work == 0 {
		return 0
	}
	blocks := func(time float64) int { return int(max(0, time)/work + 1e-6) }
	best := math.Inf(1)
	for gpu := range numbers.GPUs {
		for with := range numbers.GPUs { // the GPU of the largest item
			for number := range count + 1 {
				length := before[min(gpu, len(before)-1)] + float64(number)*work
				if gpu == with {
					length += largest
				}
				total, fits := 0, true
				for other := range numbers.GPUs {
					time := length - before[min(other, len(before)-1)]
					if other == with {
						if time -= largest; time < -1e-6*length {
							fits = false
						}
					}
					total += blocks(time)
				}
				if fits && total >= count {
					best = min(best, length)
				}
			}
		}
	}
	return best
}

// memoryPoint returns the length at which memory suffices and all work fits. The more is
// recomputed, the shorter the first and the longer the second, so it is where the two meet.
func memoryPoint(numbers *scheduletime.Numbers, plain float64) float64 {
	type part struct{ area, seconds float64 }
	var parts []part
	area := 0.
	for item := range numbers.Work {
		life := 0.
		for later := item + 1; later < len(numbers.Work); later++ {
			life += numbers.Forward[later] + numbers.Input[later]
		}
		life *= float64(numbers.Batches)
		area += life * numbers.Saved[item]
		if freed := life * (numbers.Saved[item] - numbers.Made[item]); freed > 0 {
			parts = append(parts, part{freed, float64(numbers.Batches) * numbers.Extra[item]})
		}
	}
	if area <= 0 {
		return 0
	}
	if numbers.Free <= 0 {
		return math.Inf(1)
	}
	slices.SortFunc(parts, func(one, other part) int { return cmp.Compare(other.area*one.seconds, one.area*other.seconds) })
	needs, takes := area/numbers.Free, plain
	for _, one := range parts {
		less, more := one.area/numbers.Free, one.seconds/float64(numbers.GPUs)
		if needs-less <= takes+more { // they meet within this part
			if less+more > 0 && needs > takes {
				return needs - (needs-takes)/(less+more)*less
			}
			return max(takes, min(needs, takes))
		}
		needs, takes = needs-less, takes+more
	}
	return needs
}
