package page

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// clock gives the moments of a device their times. A moment lies within the pass of its units. The moments of
// a pass are evenly spread.
type clock struct {
	spans  map[passOf]steptime.Span
	update steptime.Span
	end    float64        // of all spans
	chunks []int          // the first units of the device's chunks
	unit   map[string]int // by the name of a layer or a unit
	latest int64          // the last micro-batch
	begin  float64        // of that micro-batch
}

// passOf is a pass of units. A decode has batch −1: the clock keeps the last token's.
type passOf struct {
	what  string
	first int
	batch int64
}

// clockOf is the clock of a device; nil if it has no spans.
func clockOf(spans []steptime.Span, device int, table *costmodel.Table) *clock {
	of := &clock{spans: map[passOf]steptime.Span{}, unit: map[string]int{}, begin: -1, latest: -1}
	for i := range table.Units {
		unit := &table.Units[i]
		of.unit[unit.Name] = i
		for layer := range unit.Layers {
			of.unit[unit.Layers[layer].Layer] = i
		}
	}
	for _, span := range spans {
		of.end = max(of.end, span.End)
		if span.Device != device || span.Stream != "compute" {
			continue
		}
		if span.What == "update" {
			of.update = span
		}
		if span.FirstUnit == span.EndUnit {
			continue
		}
		if !slices.Contains(of.chunks, span.FirstUnit) {
			of.chunks = append(of.chunks, span.FirstUnit)
		}
		batch := span.Batch
		switch {
		case span.What == "decode":
			batch = -1
		case batch > of.latest:
			of.latest, of.begin = batch, span.Start
		case batch == of.latest:
			of.begin = min(of.begin, span.Start)
		}
		of.spans[passOf{span.What, span.FirstUnit, batch}] = span
	}
	if len(of.spans) == 0 {
		return nil
	}
	slices.Sort(of.chunks)
	return of
}

// whatOf is the pass that a moment is in, by its name; empty: the name does not say.
func whatOf(at string) string {
	starts := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(at, word) })
	}
	switch {
	case starts("forward of", "loss forward"):
		return "forward"
	case starts("backward of", "loss backward", "recompute of", "reduction in"):
		return "backward"
	case starts("last token"):
		return "decode"
	}
	return ""
}

// passes are the moments' spans, in the order of time. A moment outside all passes has the zero span.
func (of *clock) passes(moments []timeline.Moment) []steptime.Span {
	whats, batches := make([]string, len(moments)), make([]int64, len(moments))
	was, batch := "", int64(0)
	for i := range moments {
		if whats[i] = whatOf(moments[i].At); whats[i] != "" {
			if was == "backward" && whats[i] == "forward" {
				batch++
			}
			was = whats[i]
		}
		batches[i] = batch
	}
	spans, latest := make([]steptime.Span, len(moments)), 0.
	for i := range moments {
		var span steptime.Span
		unit, known := of.unit[moments[i].Layer]
		switch action := moments[i].Action; {
		case moments[i].At == "optimizer step":
			span = of.update
		case action != nil && action.Chunk < int64(len(of.chunks)):
			what := "backward"
			if action.Kind == order.Forward {
				what = "forward"
			}
			span = of.spans[passOf{what, of.chunks[action.Chunk], action.MicroBatch}]
		case known && whats[i] == "decode":
			span = of.spans[passOf{whats[i], unit, -1}]
		case known:
			span = of.spans[passOf{whats[i], unit, of.latest - batch + batches[i]}]
		}
		if span.Start >= latest { // else the moment belongs to the pass before
			spans[i], latest = span, span.Start
		}
	}
	return spans
}

// fillIn gives a span to each moment without one. An all-gather gets the next span, which uses its result.
// Any other moment gets the span before it, and the first ones get the next.
func fillIn(spans []steptime.Span, moments []timeline.Moment) {
	var next steptime.Span
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].End > 0 {
			next = spans[i]
		} else if strings.HasPrefix(moments[i].At, "gather") {
			spans[i] = next
		}
	}
	for i := range spans {
		if spans[i].End == 0 && i > 0 {
			spans[i] = spans[i-1]
		}
		if spans[i].End == 0 { // none is before it
			spans[i] = next
		}
	}
}

// times returns the moments' times in nanoseconds; nil if fewer than a quarter of them are in a pass. If a
// pause follows a pass, rest has the pass's end at its last moment. It is 0 at all other moments.
func (of *clock) times(moments []timeline.Moment) (times, rest []int64) {
	spans, inPass := of.passes(moments), 0
	for i := range spans {
		if spans[i].End > 0 {
			inPass++
		}
	}
	const few = 4
	if inPass*few < len(moments) {
		return nil, nil
	}
	fillIn(spans, moments)
	times, rest = make([]int64, len(moments)), make([]int64, len(moments))
	now := int64(-1)
	for i := 0; i < len(moments); {
		end := i + 1
		for end < len(moments) && spans[end] == spans[i] {
			end++
		}
		span, next := spans[i], of.end
		for j := i; j < end; j++ {
			time := nanoseconds(span.Start + (span.End-span.Start)*float64(j-i+1)/float64(end-i+1))
			now = max(now+1, time)
			times[j] = now
		}
		if end < len(moments) {
			next = spans[end].Start
		}
		if over := nanoseconds(span.End); over > now && nanoseconds(next) > over {
			rest[end-1], now = over, over
		}
		i = end
	}
	times[0] = 0 // weights are there from the start
	return times, rest
}

// lastOnly reports that the moments are of the last micro-batch alone. Those before it have equal ones.
func (of *clock) lastOnly(moments []timeline.Moment) bool {
	return of.latest > 0 && !slices.ContainsFunc(moments, func(moment timeline.Moment) bool { return moment.Action != nil })
}
