package page

import (
	"cmp"
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

// simulation is a program with its simulation.
type simulation struct {
	*program.Program
	result *simulate.Result
	scale  int64 // ticks of the page's unit
}

func (of *simulation) at(ticks int64) int64 { return ticks / of.scale }

// arenaMemory adds the memory of a simulated program: curves over time, and the arenas.
func (page *Page) arenaMemory(of *simulation, devices []devicemap.Prediction) {
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
		page.GPUs[device].Modules = page.modules(of.throughout(number), share(maxModules, len(devices), 4, maxModules))
		page.Arenas.Maps = append(page.Arenas.Maps, page.arena(of, number, samples[peak].x, share(maxRects, len(of.Devices), 24, maxRects)))
		page.Arenas.Maps[len(page.Arenas.Maps)-1].Idle = idleOf(&one)
	}
	if len(page.Arenas.Maps) == 0 {
		page.Arenas = nil
	}
}

// began is what an instruction that begins at a time does.
func (of *simulation) began(number int) map[int64]string {
	does := map[int64]string{}
	for i := of.Devices[number].First; i < of.Devices[number].End; i++ {
		if instr := &of.Instrs[i]; of.result.End[i] > of.result.Start[i] {
			does[of.result.Start[i]] = of.label(instr)
		}
	}
	return does
}

// turn is the begin or the end of a buffer's life.
type turn struct {
	time   int64
	buffer int32
	begins bool
}

// turns are the turns of a device, by time.
func (of *simulation) turns(number int) (all []turn) {
	for _, life := range of.result.Devices[number].Lives {
		if life.To > life.From {
			all = append(all, turn{life.From, life.Buffer, true}, turn{life.To, life.Buffer, false})
		}
	}
	slices.SortStableFunc(all, func(a, b turn) int { return cmp.Compare(a.time, b.time) })
	return all
}

// alive adds the buffers of a device that live at a time.
func (of *simulation) alive(number int, time int64, there map[int32]bool) {
	for _, life := range of.result.Devices[number].Lives {
		if life.From <= time && time < life.To {
			there[life.Buffer] = true
		}
	}
}

// memory returns a device's arena over time: the bytes of each category and the idle ones. live is what
// is there at the peak.
func (of *simulation) memory(number int) (samples []sample, peak int, live []holding) {
	began, turns, arena := of.began(number), of.turns(number), of.Devices[number].Arena
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
	note(0, "weights and states")
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
	of.alive(number, most, there)
	return samples, peak, of.holdings(number, there, samples[peak].bytes)
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

// holdings lists buffers, with copies for several micro-batches as one, and the idle bytes.
func (of *simulation) holdings(number int, there map[int32]bool, want sizes) []holding {
	var all []holding
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
			all = append(all, holding{owner: name, what: string(buffer.Class)})
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
	return append(all, holding{owner: "idle bytes of the arena", bytes: sizes{ofIdle: want.total() - sum.total()}})
}

// throughout is what units have throughout.
func (of *simulation) throughout(number int) (all []holding) {
	for i := range of.Buffers {
		buffer := &of.Buffers[i]
		if int(buffer.Device) != number || !buffer.Class.Throughout() {
			continue
		}
		name := buffer.Name
		if unit := unitOf.FindStringSubmatch(name); unit != nil {
			name = unit[1]
		}
		one := holding{owner: name}
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
