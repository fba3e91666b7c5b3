package scheduletime

import (
	"cmp"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Numbers are what a bound of every choice rests on: the least that each item of the chain takes.
// It is the least of all schedules of the question and of all GPUs. Times are seconds of a
// micro-batch.
type Numbers struct {
	GPUs, Batches int
	// Line: all schedules have one stage on each GPU, in order. Otherwise only the number of chunks
	// before each GPU's first is known.
	Line bool
	// Joint: no schedule splits a backward, so the gradients of earlier items follow a GPU's last pass.
	Joint bool
	// Forward and Input are on the way to the end of the chain and back. Work is all passes without
	// recomputation, Extra what recomputation adds to it.
	Forward, Input, Work, Extra []float64
	// Saved are the bytes of a micro-batch that an item keeps from forward to backward, Made those
	// with recomputation. Free is the memory of all GPUs without what is there throughout.
	Saved, Made []float64
	Free        float64
}

// The arguments for a bound.
const (
	byLine   = "work of stages in line"
	byShare  = "equal shares of the work"
	byWhole  = "whole blocks on each GPU"
	byMemory = "lifetimes and recomputation within all memory"
)

// Numbers returns the numbers of a question, from the tables of its schedules with no block
// recomputed and with all.
func (question *Question) Numbers() (*Numbers, error) {
	count := question.Items.Count()
	out := &Numbers{GPUs: len(question.Topology.Devices), Line: true, Joint: true}
	for _, list := range []*[]float64{&out.Forward, &out.Input, &out.Work, &out.Extra, &out.Saved, &out.Made} {
		*list = slices.Repeat([]float64{math.Inf(1)}, count)
	}
	for device := range question.Topology.Devices {
		out.Free += float64(question.Topology.Devices[device].Budget())
	}
	static, found := math.Inf(1), ErrNone
	for _, kind := range question.Kinds {
		none, err := question.Table(kind, make([]bool, len(question.Blocks)))
		if err != nil {
			found = err
			continue
		}
		all, err := question.Table(kind, slices.Repeat([]bool{true}, len(question.Blocks)))
		if err != nil {
			return nil, err
		}
		out.Line, out.Joint = out.Line && !kind.Chunked(), out.Joint && !kind.Split()
		out.Batches = int(max(1, none.Workload.MicroBatches))
		static = min(static, out.add(question, none, all))
		found = nil
	}
	out.Free -= static
	return out, found
}

// add lowers the numbers to those of a schedule's tables, and returns the bytes that are there
// throughout.
func (numbers *Numbers) add(question *Question, none, all *costmodel.Table) (static float64) {
	for item := range numbers.Work {
		var saved, made float64
		for _, unit := range question.Items.Units(item) {
			saved, made = saved+float64(unitBytes(&none.Units[unit]).least()), made+float64(unitBytes(&all.Units[unit]).least())
			one := &none.Units[unit]
			static += float64(max(one.Params, one.Regions.Weights) + max(0, one.OptimizerState))
		}
		numbers.Saved[item], numbers.Made[item] = min(numbers.Saved[item], saved), min(numbers.Made[item], made)
		for device := range question.Topology.Devices {
			var plain, again seconds
			for _, unit := range question.Items.Units(item) {
				plain.add(unitTimes(none, question.Topology, device, unit))
				again.add(unitTimes(all, question.Topology, device, unit))
			}
			numbers.Forward[item] = min(numbers.Forward[item], plain.forward)
			numbers.Input[item] = min(numbers.Input[item], plain.input)
			numbers.Work[item] = min(numbers.Work[item], plain.forward+plain.input+plain.weight)
			numbers.Extra[item] = min(numbers.Extra[item], max(0, again.input+again.weight-plain.input-plain.weight))
		}
	}
	return static
}

// Bound returns a lower bound of the step of every choice, in seconds, and the argument for it:
//   - A GPU begins after the forwards of the items before its first, and then has all its work. If
//     backwards are whole, those of these items follow.
//     Stages in line that take as many items as fit a length show whether the length is possible.
//     Otherwise the sum over all GPUs counts, and how many whole blocks each has time for.
//   - What an item keeps lives while a micro-batch passes all later items and comes back. Over all
//     micro-batches, bytes × time fit in the free memory × the length. Recomputation makes fewer
//     bytes of more work; the best part of each item is found as for a knapsack.
func (numbers *Numbers) Bound() (float64, string) {
	best, why := numbers.shares(0), byShare
	if numbers.Line {
		if line := numbers.least(numbers.inLine); line > best {
			best, why = line, byLine
		}
	} else if whole := numbers.least(numbers.inWhole); whole > best {
		best, why = whole, byWhole
	}
	if memory := numbers.memory(best); memory > best*(1+1e-9) {
		best, why = memory, byMemory
	}
	return best * (1 - 1e-9), why
}

// shares returns the length if all GPUs work to the end, with more seconds of work.
func (numbers *Numbers) shares(more float64) float64 {
	sum, before := more, 0.
	for _, work := range numbers.Work {
		sum += float64(numbers.Batches) * work
	}
	for gpu := 1; gpu < numbers.GPUs && gpu <= len(numbers.Forward); gpu++ {
		before += numbers.around(gpu - 1)
		sum += before
	}
	return sum / float64(numbers.GPUs)
}

// around returns the time that a GPU does not work in as an item is before its first.
func (numbers *Numbers) around(item int) float64 {
	if numbers.Joint {
		return numbers.Forward[item] + numbers.Input[item]
	}
	return numbers.Forward[item]
}

// least returns the least possible length, by bisection.
func (numbers *Numbers) least(possible func(length float64) bool) float64 {
	low, high := 0., 0.
	for item := range numbers.Work {
		high += numbers.Forward[item] + float64(numbers.Batches)*numbers.Work[item]
	}
	for range 60 {
		middle := (low + high) / 2
		if possible(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}

// inLine reports that stages of this length hold all items.
func (numbers *Numbers) inLine(length float64) bool {
	item, before := 0, 0.
	for range numbers.GPUs {
		at := before
		for item < len(numbers.Work) {
			at += float64(numbers.Batches) * numbers.Work[item]
			if at > length {
				break
			}
			before += numbers.around(item)
			item++
		}
	}
	return item == len(numbers.Work)
}

// Equal returns the commonest work of an item and the number of items that have it, and the largest
// work of another item.
func (numbers *Numbers) Equal() (work float64, count int, largest float64) {
	for _, one := range numbers.Work {
		same := 0
		for _, other := range numbers.Work {
			if math.Abs(one-other) <= 1e-9*one {
				same++
			}
		}
		if same > count {
			work, count = one, same
		}
	}
	for _, one := range numbers.Work {
		if math.Abs(one-work) > 1e-9*work {
			largest = max(largest, one)
		}
	}
	return work, count, largest
}

// inWhole reports that GPUs have room for the equal items, which are not cut, and for the largest
// other one, in this length.
func (numbers *Numbers) inWhole(length float64) bool {
	work, count, largest := numbers.Equal()
	work, largest = work*float64(numbers.Batches)*(1-1e-9), largest*float64(numbers.Batches)
	total, loss, before := 0., math.Inf(1), 0.
	for gpu := range numbers.GPUs {
		if gpu > 0 && gpu <= len(numbers.Forward) {
			before += numbers.around(gpu - 1)
		}
		free := math.Floor(max(0, length-before) / work)
		total += free
		if length-before >= largest {
			loss = min(loss, free-math.Floor((length-before-largest)/work))
		}
	}
	return total-loss >= float64(count)
}

// memory returns the least length, at least the given one, within the free memory.
func (numbers *Numbers) memory(least float64) float64 {
	count := len(numbers.Work)
	type part struct{ area, seconds float64 } // that recomputing an item frees, and takes
	parts, area, after := make([]part, count), 0., 0.
	for item := count - 1; item >= 0; item-- {
		area += float64(numbers.Batches) * after * numbers.Saved[item]
		if freed := numbers.Saved[item] - numbers.Made[item]; freed > 0 {
			parts[item] = part{float64(numbers.Batches) * after * freed, float64(numbers.Batches) * numbers.Extra[item]}
		}
		after += numbers.Forward[item] + numbers.Input[item]
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(b.area*a.seconds, a.area*b.seconds) })
	possible := func(length float64) bool {
		missing, more := area-length*numbers.Free, 0.
		for _, one := range parts {
			if missing <= 0 {
				break
			}
			if one.area > 0 {
				used := min(1, missing/one.area)
				missing, more = missing-used*one.area, more+used*one.seconds
			}
		}
		return missing <= area*1e-12 && numbers.shares(more) <= length
	}
	low, high := least, least
	for range 60 {
		if possible(high) {
			break
		}
		low, high = high, 2*high
	}
	for range 60 {
		if middle := (low + high) / 2; possible(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}
