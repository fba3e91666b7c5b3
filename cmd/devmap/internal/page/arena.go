package page

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// ofClass is the category of a buffer's class in a plan.
var ofClass = map[program.Class]int{
	program.Workspace: ofWorkspace, program.Weight: ofParams, program.Master: ofOptimizer, program.State: ofOptimizer, program.Gradient: ofGrads,
	program.Cache: ofCache, program.Feed: ofActivations, program.Saved: ofActivations, program.Slot: ofComm, program.Stream: ofActivations,
	program.Scratch: ofActivations, program.Result: ofActivations,
}

// ticksPer is the picoseconds of a nanosecond.
const ticksPer = 1000

// played is a program with its simulation.
type played struct {
	*program.Program
	result *simulate.Result
	scale  int64 // ticks of the page's unit
}

func (of *played) at(ticks int64) int64 { return ticks / of.scale }

// played adds the memory of a simulated program: curves over time, and the arenas.
func (page *Page) played(of *played, devices []devicemap.Prediction) {
	page.Arenas = &arenas{}
	points, rows := share(maxPoints, len(of.Devices), fewPoints, manyPoints), share(maxAlive, len(of.Devices), categoryCount, maxAlive)
	for number := range of.Devices {
		device := int(of.Devices[number].ID)
		samples, peak, live := of.memory(number)
		if len(samples) == 0 || devices[device].Predicted.PeakAllocatedBytes != of.Devices[number].Arena {
			continue
		}
		one := page.ofSamples(samples, peak, points)
		one.Axis = "time"
		one.Live = page.alive(live, rows)
		page.add(one, []int{device}, devices)
		page.GPUs[device].Modules = page.modules(of.kept(number), share(maxModules, len(devices), 4, maxModules))
		page.Arenas.Maps = append(page.Arenas.Maps, page.arena(of, number, samples[peak].x, share(maxRects, len(of.Devices), 24, maxRects)))
		page.Arenas.Maps[len(page.Arenas.Maps)-1].Idle = idleOf(&one)
	}
	if len(page.Arenas.Maps) == 0 {
		page.Arenas = nil
	}
}

// memory is the live bytes of a device's arena over time, with the bytes that are idle, and what is
// there at the peak.
func (of *played) memory(number int) (samples []sample, peak int, live []held) {
	began := map[int64]string{} // what an instruction that begins then does
	for i := of.Devices[number].First; i < of.Devices[number].End; i++ {
		if instr := &of.Instrs[i]; of.result.End[i] > of.result.Start[i] {
			began[of.result.Start[i]] = of.label(instr)
		}
	}
	type turn struct {
		time   int64
		buffer int32
		begins bool
	}
	var turns []turn
	for _, life := range of.result.Devices[number].Lives {
		if life.To > life.From {
			turns = append(turns, turn{life.From, life.Buffer, true}, turn{life.To, life.Buffer, false})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.time, b.time) })
	arena := of.Devices[number].Arena
	var now sizes
	most := int64(0) // the time of the peak
	there := map[int32]bool{}
	for i := range of.Buffers {
		if buffer := &of.Buffers[i]; int(buffer.Device) == number && buffer.Class.Throughout() {
			now[ofClass[buffer.Class]] += buffer.Bytes
			there[int32(i)] = true
		}
	}
	note := func(time int64, label string) {
		bytes := now
		bytes[ofIdle] = arena - now.total()
		x := of.at(time)
		if len(samples) > 0 {
			x = max(x, samples[len(samples)-1].x+1)
		}
		samples = append(samples, sample{x, label, bytes, arena})
		if bytes[ofIdle] < samples[peak].bytes[ofIdle] {
			peak, most = len(samples)-1, time
		}
	}
	note(0, "weights and what stays")
	for i := 0; i < len(turns); {
		time, label := turns[i].time, ""
		for ; i < len(turns) && turns[i].time == time; i++ {
			buffer := &of.Buffers[turns[i].buffer]
			size, verb := buffer.Bytes, "allocates "
			if !turns[i].begins {
				size, verb = -size, "frees "
			}
			now[ofClass[buffer.Class]] += size
			if turns[i].begins || label == "" {
				label = verb + buffer.Name
			}
		}
		if does, known := began[time]; known {
			label = does + ": " + label
		}
		note(time, label)
	}
	// What is there at the peak.
	for _, life := range of.result.Devices[number].Lives {
		if life.From <= most && most < life.To {
			there[life.Buffer] = true
		}
	}
	return samples, peak, of.held(number, there, samples[peak].bytes)
}

// idleOf are a curve's idle bytes.
func idleOf(one *curve) (out steps) {
	for i := range one.Bands {
		if of := &one.Bands[i]; of.Category == ofIdle {
			out.X, out.Bytes = one.X, of.Bytes
			if of.Bytes == nil {
				out.X, out.Bytes = []int64{0}, []int64{of.Constant}
			}
		}
	}
	return out
}

// copied is the number of a copy at the end of a buffer's name.
var copied = regexp.MustCompile(`\[\d+\]$`)

// held lists buffers, with copies for several micro-batches as one, and the idle bytes.
func (of *played) held(number int, there map[int32]bool, want sizes) []held {
	var all []held
	index := map[string]int{}
	for i := range of.Buffers {
		buffer := &of.Buffers[i]
		if int(buffer.Device) != number || !there[int32(i)] {
			continue
		}
		name := copied.ReplaceAllString(buffer.Name, "")
		at, known := index[name]
		if !known {
			at, index[name] = len(all), len(all)
			all = append(all, held{owner: name, what: string(buffer.Class)})
		}
		all[at].bytes[ofClass[buffer.Class]] += buffer.Bytes
		all[at].count++
	}
	var sum sizes
	for _, one := range all {
		for category, size := range one.bytes {
			sum[category] += size
		}
	}
	return append(all, held{owner: "idle bytes of the arena", bytes: sizes{ofIdle: want.total() - sum.total()}})
}

// kept is what units have throughout.
func (of *played) kept(number int) (all []held) {
	for i := range of.Buffers {
		buffer := &of.Buffers[i]
		if int(buffer.Device) != number || !buffer.Class.Throughout() {
			continue
		}
		name := buffer.Name
		if unit := unitOf.FindStringSubmatch(name); unit != nil {
			name = unit[1]
		}
		one := held{owner: name}
		one.bytes[ofClass[buffer.Class]] = buffer.Bytes
		if last := len(all) - 1; last >= 0 && all[last].owner == name {
			all[last].bytes[ofClass[buffer.Class]] += buffer.Bytes
			continue
		}
		all = append(all, one)
	}
	return all
}

// unitOf is the unit in a buffer's name.
var unitOf = regexp.MustCompile(`^(.+)\.(?:weights|master|state|grads|cache|feed)(?:\[\d+\])?$`)

// arena is the map of a device's arena, with at most so many rectangles.
func (page *Page) arena(of *played, number int, peak int64, most int) arena {
	device, end := &of.Devices[number], of.at(of.result.Makespan)
	out := arena{Device: int(device.ID), SizeBytes: device.Arena, Makespan: end, Peak: peak}
	var all []rect
	for i := range of.Buffers {
		if buffer := &of.Buffers[i]; int(buffer.Device) == number && buffer.Class.Throughout() {
			all = append(all, rect{buffer, buffer.Offset, buffer.Offset + buffer.Bytes, 0, end, 1})
		}
	}
	for _, life := range of.result.Devices[number].Lives {
		buffer := &of.Buffers[life.Buffer]
		if from, to := of.at(life.From), of.at(life.To); to > from {
			all = append(all, rect{buffer, buffer.Offset, buffer.Offset + buffer.Bytes, from, to, 1})
		}
	}
	joined := joinRects(all, most)
	if len(joined) < len(all) {
		out.Joined = len(all)
	}
	for _, one := range joined {
		kind := slices.Index(page.Arenas.Kinds, string(one.Class))
		if kind < 0 {
			kind = len(page.Arenas.Kinds)
			page.Arenas.Kinds = append(page.Arenas.Kinds, string(one.Class))
		}
		name := one.Name
		if one.count > 1 {
			name = fmt.Sprintf("%s and %d more", one.Name, one.count-1)
		}
		into := &out.Rects
		into.Address, into.Bytes = append(into.Address, one.low), append(into.Bytes, one.high-one.low)
		into.From, into.To = append(into.From, one.from), append(into.To, one.to)
		into.Kind, into.Name = append(into.Kind, kind), append(into.Name, page.name(name))
	}
	return out
}

// rect is a buffer's place and time, or that of several that touch.
type rect struct {
	*program.Buffer
	low, high, from, to int64
	count               int
}

// joinRects joins rectangles of one class until there are at most so many: neighbours in the arena with
// equal times, then lives of one place that follow one another, the shortest gaps first.
func joinRects(all []rect, most int) []rect {
	if len(all) <= most {
		return all
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b rect) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.low, b.low))
	})
	all = merged(all, func(last, next *rect) bool {
		return last.from == next.from && last.to == next.to && last.high == next.low
	})
	slices.SortStableFunc(all, func(a, b rect) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.high, b.high), cmp.Compare(a.from, b.from))
	})
	for gap := int64(1); len(all) > most && gap < 1<<60; gap *= 4 {
		all = merged(all, func(last, next *rect) bool {
			return last.low == next.low && last.high == next.high && next.from-last.to <= gap
		})
	}
	for size := int64(1 << 10); len(all) > most && size < 1<<60; size *= 4 {
		all = merged(all, func(last, next *rect) bool { return next.low-last.high <= size && next.high-last.low <= size })
	}
	return all
}

// merged joins neighbours of one class in a list.
func merged(all []rect, join func(last, next *rect) bool) (out []rect) {
	for i := range all {
		next := &all[i]
		if len(out) > 0 {
			if last := &out[len(out)-1]; last.Class == next.Class && join(last, next) {
				last.low, last.high = min(last.low, next.low), max(last.high, next.high)
				last.from, last.to = min(last.from, next.from), max(last.to, next.to)
				last.count += next.count
				continue
			}
		}
		out = append(out, *next)
	}
	return out
}
