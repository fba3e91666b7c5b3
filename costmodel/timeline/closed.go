package timeline

import (
	"cmp"
	"slices"
)

// closed is the fold of an engine's events for all sizes at once. An engine's events over [Summary]
// values, and the total at each moment, are linear in its figures. closed keeps, for each moment
// that may be the largest, how often each figure counts. It costs a fold per figure to make, and
// then a few sums for each answer.
type closed struct {
	terms []term
	ends  []int // of each moment's terms
}

// term is a figure, by its number, and how often it counts.
type term struct {
	figure int
	times  int64
}

// newClosed asks for the events with one figure 1 and the others 0, for each figure. The events
// must not depend on the figures, which are never negative. So a moment cannot be larger than
// another that counts every figure as often or more.
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
	// The largest sums first: a moment is only compared with those that may exceed it.
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
