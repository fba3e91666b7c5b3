package page

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// clock gives the moments of a device their times. A moment is within the pass of its units, and the
// moments of a pass are evenly spread.
type clock struct {
	spans  map[passOf]steptime.Span
	last   map[passOf]steptime.Span // without the micro-batch: of the last one
	update steptime.Span
	chunks []int          // the first units of the device's chunks
	unit   map[string]int // by the name of a layer or a unit
	begin  float64        // of the last micro-batch
	latest int64          // that micro-batch
}

// passOf is a pass of units; batch is −1 in a clock's last.
type passOf struct {
	what  string
	first int
	batch int64
}

// clockOf is the clock of a device; nil if it has no spans.
func clockOf(spans []steptime.Span, device int, table *costmodel.Table) *clock {
	of := &clock{spans: map[passOf]steptime.Span{}, last: map[passOf]steptime.Span{}, unit: map[string]int{}}
	for i := range table.Units {
		unit := &table.Units[i]
		of.unit[unit.Name] = i
		for layer := range unit.Layers {
			of.unit[unit.Layers[layer].Layer] = i
		}
	}
	var latest int64 = -1
	for _, span := range spans {
		if span.Device != device || span.Stream != "compute" {
			continue
		}
		if span.What == "update" {
			of.update = span
		}
		if span.FirstUnit == span.EndUnit {
			continue
		}
		of.spans[passOf{span.What, span.FirstUnit, span.Batch}] = span
		if !slices.Contains(of.chunks, span.FirstUnit) {
			of.chunks = append(of.chunks, span.FirstUnit)
		}
		key := passOf{span.What, span.FirstUnit, -1}
		if was, known := of.last[key]; !known || span.Batch >= was.Batch {
			of.last[key] = span
		}
		if span.What != "decode" {
			latest = max(latest, span.Batch)
		}
	}
	if len(of.spans) == 0 {
		return nil
	}
	slices.Sort(of.chunks)
	of.latest = latest
	of.begin = -1
	for _, span := range of.last {
		if span.What != "decode" && span.Batch == latest && (of.begin < 0 || span.Start < of.begin) {
			of.begin = span.Start
		}
	}
	return of
}

// of is the span of a moment; false: it is in no pass.
func (of *clock) of(moment *timeline.Moment) (steptime.Span, bool) {
	what := ""
	switch at := moment.At; {
	case strings.HasPrefix(at, "forward"), strings.HasPrefix(at, "gather"):
		what = "forward"
	case strings.HasPrefix(at, "backward"), strings.HasPrefix(at, "recompute"), strings.HasPrefix(at, "reduc"), strings.HasPrefix(at, "join"):
		what = "backward"
	case strings.HasPrefix(at, "last token"):
		what = "decode"
	case at == "optimizer step":
		return of.update, of.update.End > 0
	}
	if action := moment.Action; action != nil {
		if action.Chunk >= int64(len(of.chunks)) {
			return steptime.Span{}, false
		}
		if what = "backward"; action.Kind == order.Forward {
			what = "forward"
		}
		span, known := of.spans[passOf{what, of.chunks[action.Chunk], action.MicroBatch}]
		return span, known
	}
	unit, known := of.unit[moment.Layer]
	if !known {
		return steptime.Span{}, false
	}
	span, known := of.last[passOf{what, unit, -1}]
	return span, known
}

// times are the moments' times in nanoseconds, in their order; nil if few of them are in a pass.
func (of *clock) times(moments []timeline.Moment) []int64 {
	spans, inPass := make([]steptime.Span, len(moments)), 0
	for i := range moments {
		span, known := of.of(&moments[i])
		if !known {
			continue
		}
		spans[i] = span
		inPass++
	}
	const few = 4
	if inPass*few < len(moments) {
		return nil
	}
	out := make([]int64, len(moments))
	now := int64(-1)
	if lastOnly(moments) {
		now = nanoseconds(of.begin) - 1
	}
	for i := 0; i < len(moments); {
		end := i + 1
		for end < len(moments) && spans[end] == spans[i] {
			end++
		}
		for j := i; j < end; j++ {
			time := int64(0)
			if span := spans[j]; span.End > 0 {
				time = nanoseconds(span.Start + (span.End-span.Start)*float64(j-i+1)/float64(end-i+1))
			}
			now = max(now+1, time)
			out[j] = now
		}
		i = end
	}
	out[0] = 0 // weights are there from the start
	return out
}

// lastOnly reports moments of the last micro-batch alone: those before it are equal.
func lastOnly(moments []timeline.Moment) bool {
	return !slices.ContainsFunc(moments, func(moment timeline.Moment) bool { return moment.Action != nil })
}
