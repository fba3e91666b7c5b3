package page

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Limits of a page's size. They are shared by all curves, maps and lanes.
const (
	maxPoints   = 7500 // of all curves
	fewPoints   = 24   // of a curve at least
	manyPoints  = 1200 // of a curve at most
	maxRects    = 7000
	maxSpans    = 18000
	maxAlive    = 9000 // rows of live buffers
	maxModules  = 6000
	maxCurveFew = 400 // curves; more are left out
)

// share is one of count equal parts of a limit, between two others.
func share(limit, count, least, most int) int { return max(least, min(most, limit/max(1, count))) }

// sample is a moment of a curve.
type sample struct {
	x     int64
	label string
	bytes sizes
	total int64
}

// used are the bytes that are not idle.
func (moment sample) used() int64 { return moment.total - moment.bytes[ofIdle] }

// ofSamples returns a curve of at most so many points. It keeps the first sample, the last, the peak,
// and the least and the most in each part of the others.
func (page *Page) ofSamples(samples []sample, peak, most int) curve {
	chosen := []int{0, len(samples) - 1, peak}
	parts := max(1, (most-len(chosen))/2)
	for part := range parts {
		first, end := part*len(samples)/parts, (part+1)*len(samples)/parts
		low, high := first, first
		for i := first; i < end; i++ {
			if samples[i].used() < samples[low].used() {
				low = i
			}
			if samples[i].used() > samples[high].used() {
				high = i
			}
		}
		if first < end {
			chosen = append(chosen, low, high)
		}
	}
	slices.Sort(chosen)
	chosen = slices.Compact(chosen)
	out := curve{Moments: len(samples), Peak: slices.Index(chosen, peak)}
	for _, at := range chosen {
		out.X = append(out.X, samples[at].x)
		out.Label = append(out.Label, page.name(samples[at].label))
		out.Total = append(out.Total, samples[at].total)
	}
	for number := range categoryCount {
		one := band{Category: number}
		for _, at := range chosen {
			one.Bytes = append(one.Bytes, samples[at].bytes[number])
		}
		switch low, high := slices.Min(one.Bytes), slices.Max(one.Bytes); {
		case low == 0 && high == 0:
			continue
		case low == high:
			one.Constant, one.Bytes = low, nil
		}
		out.Bands = append(out.Bands, one)
	}
	return out
}

// followed adds the curves of steps that were followed moment by moment. GPUs with equal steps share
// one. clockOf has the times of a GPU, or nil. devices are the plan's; a step that does not have its printed peak gets none.
func (page *Page) followed(steps []timeline.Step, devices []devicemap.Prediction, clockOf func(device int) *clock) {
	type kind struct {
		step    timeline.Step
		trace   timeline.Trace
		devices []int
	}
	var kinds []kind
	for device := range devices {
		step, budget := steps[device], devices[device].Budget
		like := func(one kind) bool { return one.step.Same(step) && devices[one.devices[0]].Budget == budget }
		if at := slices.IndexFunc(kinds, like); at >= 0 {
			kinds[at].devices = append(kinds[at].devices, device)
			continue
		}
		trace := step.Trace()
		if len(trace.Moments) == 0 || trace.Moments[trace.Peak].Memory.Total() != devices[device].Predicted.PeakAllocatedBytes {
			continue
		}
		like = func(one kind) bool {
			return devices[one.devices[0]].Budget == budget && equalTraces(&one.trace, &trace)
		}
		if at := slices.IndexFunc(kinds, like); at >= 0 {
			kinds[at].devices = append(kinds[at].devices, device)
			continue
		}
		kinds = append(kinds, kind{step, trace, []int{device}})
	}
	points, rows := share(maxPoints, len(kinds), fewPoints, manyPoints), share(maxAlive, len(kinds), categoryCount, maxAlive)
	for i := range kinds {
		kind := &kinds[i]
		axis, note := "order", "The moments are in their order; their times are not known."
		var times, rest []int64
		if clock := clockOf(kind.devices[0]); clock != nil {
			if times, rest = clock.times(kind.trace.Moments); times != nil {
				axis, note = "time", ""
				if clock.lastOnly(kind.trace.Moments) {
					note = fmt.Sprintf("Micro-batch %d of %d is shown: those before it are the same.", clock.latest+1, clock.latest+1)
				}
			}
		}
		samples, peak := samplesOf(kind.trace.Moments, times, rest, kind.trace.Peak)
		one := page.ofSamples(samples, peak, points)
		one.Axis, one.Note = axis, note
		one.Live = page.alive(holdingsOf(kind.trace.Live), rows)
		page.add(one, kind.devices, devices)
		for _, device := range kind.devices {
			page.GPUs[device].Modules = page.modules(holdingsOf(kind.trace.Throughout), share(maxModules, len(devices), 4, maxModules))
		}
	}
}

// samplesOf are the samples of moments, and where the peak is among them. A pause after a moment is one too.
// Without times, samples are in their order.
func samplesOf(moments []timeline.Moment, times, rest []int64, peak int) (samples []sample, at int) {
	for i := range moments {
		moment := &moments[i]
		one := sample{int64(i), moment.At, byCategory(&moment.Memory), moment.Memory.Total()}
		if times != nil {
			one.x = times[i]
		}
		if i == peak {
			at = len(samples)
		}
		samples = append(samples, one)
		if times != nil && rest[i] > 0 {
			samples = append(samples, sample{rest[i], "after " + moment.At, byCategory(&moment.After), moment.After.Total()})
		}
	}
	return samples, at
}

// equalTraces reports steps with the same moments.
func equalTraces(one, other *timeline.Trace) bool {
	return one.Peak == other.Peak && slices.EqualFunc(one.Moments, other.Moments, func(a, b timeline.Moment) bool { return a.Peak == b.Peak })
}

// add adds a curve of some devices.
func (page *Page) add(one curve, of []int, devices []devicemap.Prediction) {
	first := &devices[of[0]]
	one.Devices, one.Title, one.BudgetBytes = of, namesOf(of), max(0, first.Budget-first.Predicted.OverheadBytes)
	number := len(page.Memory)
	page.Memory = append(page.Memory, one)
	for _, device := range of {
		page.GPUs[device].Memory = &number
	}
}

// namesOf names GPUs: "GPUs 0–3, 6".
func namesOf(devices []int) string {
	if len(devices) == 1 {
		return fmt.Sprintf("GPU %d", devices[0])
	}
	text := "GPUs "
	for i := 0; i < len(devices); {
		end := i + 1
		for end < len(devices) && devices[end] == devices[end-1]+1 {
			end++
		}
		if i > 0 {
			text += ", "
		}
		if text += fmt.Sprint(devices[i]); end > i+1 {
			text += fmt.Sprintf("–%d", devices[end-1])
		}
		i = end
	}
	return text
}

// holding is what one owner has.
type holding struct {
	owner, what string
	bytes       sizes
	count       int
}

func holdingsOf(holdings []timeline.Holding) (all []holding) {
	for _, one := range holdings {
		what := ""
		if one.Passing {
			what = "at this moment"
		}
		all = append(all, holding{one.Owner, what, byCategory(&one.Memory), 1})
	}
	return all
}

// alive lists what is there at a peak, the largest first. Rows beyond so many are joined by category.
func (page *Page) alive(all []holding, most int) []alive {
	var rows []alive
	for _, one := range all {
		for number, size := range one.bytes {
			if size == 0 {
				continue
			}
			row := alive{Name: page.name(one.owner), What: one.what, Category: number, Bytes: size}
			if one.count > 1 {
				row.Count = one.count
			}
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b alive) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if len(rows) <= most {
		return rows
	}
	keep := max(0, most-categoryCount)
	rest := make([]alive, categoryCount)
	for _, row := range rows[keep:] {
		rest[row.Category].Bytes += row.Bytes
		rest[row.Category].Count += max(1, row.Count)
	}
	rows = rows[:keep]
	for number := range rest {
		if rest[number].Count > 0 {
			rest[number].Name, rest[number].Category = page.name("smaller ones"), number
			rows = append(rows, rest[number])
		}
	}
	return rows
}
