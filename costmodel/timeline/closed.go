package timeline

import (
	"cmp"
	"slices"
)

// closed is the fold of an engine's events for all sizes at once. The events of an engine over
// [Summary] values, and so the total at each moment, are linear in the figures that the engine is
// made of; closed keeps, for each moment that may be the largest, how often each figure counts in
// it. It costs a fold per figure to make, and then answers in the time of a few sums, which a
// search needs often.
type closed struct {
	terms []term
	ends  []int // of each moment's terms
}

// term is a figure, by its number, and how often it counts.
type term struct {
	figure int
	times  int64
}

// newClosed asks for the events if one figure is 1 and all others are 0, for each in turn. The
// events must be the same ones whatever the figures are, and these are never negative: a moment
// that counts none of them more often than another does cannot be larger than it.
func newClosed(figures int, events func(value []int64) producer) closed {
	var moments [][]int64 // how often each figure counts
	var totals []int64
	value := make([]int64, figures)
	for figure := range value {
		value[figure] = 1
		totals = momentsOf(events(value), totals[:0])
		if moments == nil {
			moments = make([][]int64, len(totals))
			for at := range moments {
				moments[at] = make([]int64, figures)
			}
		}
		for at, total := range totals {
			moments[at][figure] = total
		}
		value[figure] = 0
	}
	// The largest sums first, so that a moment is only compared with those that it may lie below.
	slices.SortStableFunc(moments, func(a, b []int64) int { return cmp.Compare(sumOf(b), sumOf(a)) })
	var maxima [][]int64
	var out closed
	for _, moment := range moments {
		if slices.ContainsFunc(maxima, func(larger []int64) bool { return below(moment, larger) }) {
			continue
		}
		maxima = append(maxima, moment)
		for figure, times := range moment {
			if times != 0 {
				out.terms = append(out.terms, term{figure, times})
			}
		}
		out.ends = append(out.ends, len(out.terms))
	}
	return out
}

// momentsOf appends what there is at each moment.
func momentsOf(events producer, out []int64) []int64 {
	var now int64
	events(func(event stepEvent) {
		now += event.Change.Total()
		if event.What != "" {
			out = append(out, now+event.Over.Total())
		}
	})
	return out
}

// below reports that no figure counts more often in a than in b.
func below(a, b []int64) bool {
	for figure := range a {
		if a[figure] > b[figure] {
			return false
		}
	}
	return true
}

func sumOf(values []int64) int64 {
	var all int64
	for _, value := range values {
		all += value
	}
	return all
}

// peak is the largest moment with these figures.
func (form *closed) peak(value []int64) int64 {
	var most int64
	begin := 0
	for _, end := range form.ends {
		var total int64
		for _, term := range form.terms[begin:end] {
			total += term.times * value[term.figure]
		}
		most = max(most, total)
		begin = end
	}
	return most
}
