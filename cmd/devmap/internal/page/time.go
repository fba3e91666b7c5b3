package page

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/executor/program"
)

// perSecond is nanoseconds.
const perSecond = 1e9

// spanOf is a part of a lane, in the page's units.
type spanOf struct {
	start, end  int64
	kind, label string
	batch       int64
}

// laneOf is a lane before its spans are joined.
type laneOf struct {
	device       int
	name, stream string
	spans        []spanOf
	busy         int64
}

// lanes adds lanes. Spans beyond the limit are joined with their neighbours.
func (of *lanes) lanes(page *Page, all []laneOf) {
	most := share(maxSpans, len(all), 40, maxSpans)
	kinds := map[string]int{}
	for i := range all {
		from := &all[i]
		slices.SortStableFunc(from.spans, func(a, b spanOf) int { return cmp.Compare(a.start, b.start) })
		one := lane{Device: from.device, Name: from.name, Stream: from.stream, Busy: from.busy}
		if one.Stream == "compute" {
			one.Bubble = max(0, of.Makespan-one.Busy)
		}
		for _, span := range joinSpans(from.spans, most) {
			kind, known := kinds[span.kind]
			if !known {
				kind, kinds[span.kind] = len(of.Kinds), len(of.Kinds)
				of.Kinds = append(of.Kinds, span.kind)
			}
			one.Start, one.Length = append(one.Start, span.start), append(one.Length, span.end-span.start)
			one.Kind, one.Batch = append(one.Kind, kind), append(one.Batch, span.batch)
			one.Label = append(one.Label, page.name(span.label))
		}
		of.Lanes = append(of.Lanes, one)
	}
}

// joinSpans joins spans that follow each other until there are at most so many: those of one kind and
// micro-batch without a gap, then those with short gaps.
func joinSpans(all []spanOf, most int) []spanOf {
	for gap := int64(0); len(all) > most && gap < 1<<60; gap = max(1, 2*gap) {
		var out []spanOf
		for _, next := range all {
			if len(out) > 0 {
				last := &out[len(out)-1]
				if last.kind == next.kind && (last.batch == next.batch || gap > 0) && next.start-last.end <= gap {
					if last.batch != next.batch {
						last.batch = -1
					}
					if last.label != next.label {
						last.label = last.kind
					}
					last.end = max(last.end, next.end)
					continue
				}
			}
			out = append(out, next)
		}
		if gap > 1<<40 && len(out) == len(all) { // kinds alternate
			half := out[:0]
			for i := 0; i < len(out); i += 2 {
				one := out[i]
				one.end, one.batch = out[min(i+1, len(out)-1)].end, -1
				half = append(half, one)
			}
			out = half
		}
		all = out
	}
	return all
}

// timed adds the lanes of a step that the cost model times.
func (page *Page) timed(spans []steptime.Span, unit func(first, end int) string) {
	page.Time = &lanes{Unit: "ns"}
	index := map[string]int{}
	var all []laneOf
	for _, span := range spans {
		start, end := nanoseconds(span.Start), nanoseconds(span.End)
		page.Time.Makespan = max(page.Time.Makespan, end)
		name := fmt.Sprintf("GPU %d %s", span.Device, span.Stream)
		at, known := index[name]
		if !known {
			at, index[name] = len(all), len(all)
			all = append(all, laneOf{device: span.Device, name: name, stream: span.Stream})
		}
		label := span.What
		if span.FirstUnit < span.EndUnit {
			label += " of " + unit(span.FirstUnit, span.EndUnit)
		}
		all[at].spans = append(all[at].spans, spanOf{start, end, span.What, label, span.Batch})
		all[at].busy += end - start
	}
	slices.SortStableFunc(all, func(a, b laneOf) int { return cmp.Compare(a.device, b.device) })
	page.Time.lanes(page, all)
}

func nanoseconds(seconds float64) int64 { return int64(math.Round(seconds * perSecond)) }

// simulated adds the lanes of a simulated program, its critical path and its longest waits.
func (page *Page) simulated(of *simulation) {
	page.Time = &lanes{Unit: "ns", Makespan: of.at(of.result.Makespan)}
	if !of.Timed {
		page.Time.Unit = "forward"
	}
	var all []laneOf
	lanes := map[[2]int32]int{}
	for number := range of.Devices {
		device := &of.Devices[number]
		for stream, name := range device.Streams {
			lanes[[2]int32{int32(number), int32(stream)}] = len(all)
			kind := "send"
			if name == "compute" {
				kind = name
			}
			all = append(all, laneOf{device: int(device.ID), name: fmt.Sprintf("GPU %d %s", device.ID, toward.ReplaceAllString(name, "$1 GPU $2")), stream: kind, busy: of.at(of.result.Devices[number].Busy[stream])})
		}
	}
	type gap struct {
		lane     int
		from, to int64
		label    string
	}
	var gaps []gap
	for i := range of.Instrs {
		instr := &of.Instrs[i]
		start, end := of.at(of.result.Start[i]), of.at(of.result.End[i])
		if end <= start {
			continue
		}
		at := lanes[[2]int32{instr.Device, instr.Stream}]
		label := of.label(instr)
		if count := len(all[at].spans); count > 0 && all[at].stream == "compute" {
			if last := all[at].spans[count-1].end; start > last {
				gaps = append(gaps, gap{at, last, start, label})
			}
		}
		all[at].spans = append(all[at].spans, spanOf{start, end, kindOf(instr.Op), label, int64(instr.MicroBatch)})
	}
	page.Time.lanes(page, all)
	const mostWaits = 200
	slices.SortStableFunc(gaps, func(a, b gap) int { return cmp.Compare(b.to-b.from, a.to-a.from) })
	for _, one := range gaps[:min(len(gaps), mostWaits)] {
		page.Time.Waits = append(page.Time.Waits, wait{one.lane, one.from, one.to, page.name(one.label)})
	}
	page.path(of, lanes)
}

// path adds the critical path. It names spans, which may be joined.
func (page *Page) path(of *simulation, lanes map[[2]int32]int) {
	type place struct{ lane, span int }
	const mostPath = 1500
	var last place
	for _, i := range of.result.Path {
		instr := &of.Instrs[i]
		number := lanes[[2]int32{instr.Device, instr.Stream}]
		one, start := &page.Time.Lanes[number], of.at(of.result.Start[i])
		span := sortedBefore(one.Start, start)
		if now := (place{number, span}); span >= 0 && now != last && of.result.End[i] > of.result.Start[i] && len(page.Time.Path) < mostPath {
			page.Time.Path = append(page.Time.Path, [2]int{number, span})
			last = now
		}
	}
}

// sortedBefore is the index of the last value that is at most another; −1: none is.
func sortedBefore(values []int64, most int64) int {
	at, _ := slices.BinarySearch(values, most+1)
	return at - 1
}

// kindOf is what an instruction does, in the words of the page.
func kindOf(op program.Op) string {
	switch op {
	case program.Send, program.Recv:
		return "transfer"
	case program.Step:
		return "update"
	default:
		return op.String()
	}
}

// label names an instruction.
func (of *simulation) label(instr *program.Instr) string {
	text := instr.Op.String()
	if instr.Routine >= 0 {
		text += " " + of.Routines[instr.Routine].Name
	}
	if instr.Channel >= 0 {
		text += " " + of.Channels[instr.Channel].Name
	}
	return text
}

// toward matches the name of a stream of transfers, as "to1".
var toward = regexp.MustCompile(`^(to|from)(\d+)$`)
