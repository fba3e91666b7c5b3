package program

import "slices"

// passes are the instructions of one routine for each micro-batch.
type passes struct{ forward, recompute, backward, second, weight, decodes []int32 }

func newPasses(micros int32) *passes {
	return &passes{
		forward: make([]int32, micros), recompute: make([]int32, micros),
		backward: make([]int32, micros), second: make([]int32, micros), weight: make([]int32, micros), decodes: make([]int32, micros),
	}
}

// routineRules checks which routines run, and on which device: V1 and V2.
type routineRules struct{ *check }

// routines checks routines against V1 and V2. It reads the instructions of one routine at a time,
// with arrays of one entry a micro-batch that serve all routines. So it reads each instruction
// once, whatever numbers a file names.
func (rules *routineRules) routines() {
	rules.units()
	instrs, starts := rules.byRoutine()
	if len(instrs) == 0 {
		return // a program that loads, or only sends
	}
	micros, training, forwards := rules.microBatches(instrs, starts)
	found, decodes := newPasses(micros), []int32(nil)
	for routine := range rules.Routines {
		of := instrs[starts[routine]:starts[routine+1]]
		if len(of) == 0 {
			rules.faultOn("V1", None, "routine %q is never run; want a forward of every micro-batch", rules.Routines[routine].Name)
			continue
		}
		rules.oneDevice(of)
		rules.oncePerMicroBatch(of, found, micros)
		kind := rules.kindOf(of)
		if kind.forward || forwards && (!kind.backward || micros < 2) {
			rules.complete(of[0], found.forward, Forward)
		}
		if kind.backward || training && kind.forward {
			rules.complete(of[0], found.backward, Backward)
		}
		if kind.weight {
			rules.halves(of[0], found)
		}
		rules.inOrder(found)
		decodes = rules.sameDecodes(of, found.decodes, decodes)
	}
}

// units: V2, every unit is in one routine.
func (rules *routineRules) units() {
	owner := make(map[string]int)
	for i := range rules.Routines {
		for _, unit := range rules.Routines[i].Units {
			if first, twice := owner[unit]; twice {
				rules.faultOn("V2", None, "unit %q is in routine %q and again in %q; a unit runs in one", unit,
					rules.Routines[first].Name, rules.Routines[i].Name)
				continue
			}
			owner[unit] = i
		}
	}
}

// byRoutine sorts the instructions that run routines by routine. Instructions without a routine or
// a micro-batch are faults.
func (rules *routineRules) byRoutine() (instrs, starts []int32) {
	starts = make([]int32, len(rules.Routines)+2)
	for i := range rules.Instrs {
		instr := &rules.Instrs[i]
		if !instr.Op.Runs() {
			continue
		}
		switch {
		case instr.Routine == None:
			rules.faultAt("V1", int32(i), "names no routine; want that of what it runs")
		case instr.Routine >= 0 && instr.MicroBatch < 0:
			rules.faultAt("V1", int32(i), "names no micro-batch; want mb0, mb1, …")
		case instr.Routine >= 0:
			starts[instr.Routine+2]++
		}
	}
	for i := 2; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	instrs = make([]int32, starts[len(starts)-1])
	for i := range rules.Instrs {
		if instr := &rules.Instrs[i]; instr.Op.Runs() && instr.Routine >= 0 && instr.MicroBatch >= 0 {
			instrs[starts[instr.Routine+1]] = int32(i)
			starts[instr.Routine+1]++
		}
	}
	return instrs, starts[:len(rules.Routines)+1]
}

// microBatches returns how many micro-batches there are: as many as most routines run forward, and
// of two such numbers the larger. Without forwards the backwards count, or else all passes. It also
// reports whether anything runs backward, and forward.
func (rules *routineRules) microBatches(instrs, starts []int32) (micros int32, training, forwards bool) {
	var counts [Decode + 1][]int32
	for routine := range rules.Routines {
		var of [Decode + 1]int32
		for _, index := range instrs[starts[routine]:starts[routine+1]] {
			of[rules.Instrs[index].Op]++
		}
		for op, count := range of {
			if count > 0 {
				counts[op] = append(counts[op], count)
			}
		}
	}
	training, forwards = len(counts[Backward])+len(counts[BackwardInput]) > 0, len(counts[Forward]) > 0
	for _, op := range []Op{Forward, Backward, BackwardInput, BackwardWeight, Recompute, Decode} {
		if len(counts[op]) > 0 {
			return mostOften(counts[op]), training, forwards
		}
	}
	return 0, training, forwards
}

// mostOften returns the most frequent number, of several the largest.
func mostOften(numbers []int32) int32 {
	slices.Sort(numbers)
	best, most := int32(0), 0
	for i := 0; i < len(numbers); {
		j := i
		for j < len(numbers) && numbers[j] == numbers[i] {
			j++
		}
		if j-i >= most {
			best, most = numbers[i], j-i
		}
		i = j
	}
	return best
}

// kind says whether a routine runs forward and backward.
type kind struct{ forward, backward, weight bool }

func (rules *routineRules) kindOf(of []int32) kind {
	found := kind{}
	for _, index := range of {
		found.forward = found.forward || rules.Instrs[index].Op == Forward
		found.backward = found.backward || rules.Instrs[index].Op.Back()
		found.weight = found.weight || rules.Instrs[index].Op == BackwardWeight
	}
	return found
}

// oneDevice: V2, a routine's instructions are all on one device.
func (rules *routineRules) oneDevice(of []int32) {
	device := rules.Instrs[of[0]].Device
	for _, index := range of[1:] {
		if rules.Instrs[index].Device != device {
			rules.faultAt("V2", index, "routine %q also runs on device %d, at %s; want one device", rules.Routines[rules.Instrs[index].Routine].Name,
				rules.Devices[device].ID, rules.Place(of[0]))
			return
		}
	}
}

// oncePerMicroBatch: V1, no micro-batch beyond the last, and none twice.
func (rules *routineRules) oncePerMicroBatch(of []int32, found *passes, micros int32) {
	found.reset()
	for _, index := range of {
		instr := &rules.Instrs[index]
		if instr.MicroBatch >= micros {
			rules.faultAt("V1", index, "micro-batch %d; there are %d, from mb0", instr.MicroBatch, micros)
			continue
		}
		if instr.Op == Decode {
			found.decodes[instr.MicroBatch]++
			if rules.tokens == nil {
				rules.tokens = make([]int32, len(rules.Instrs))
			}
			rules.tokens[index] = found.decodes[instr.MicroBatch]
			continue
		}
		list := found.list(instr)
		if first := list[instr.MicroBatch]; first != None {
			rules.twice(index, first)
			continue
		}
		list[instr.MicroBatch] = index
	}
	// Two backwards of every micro-batch are one in two halves.
	if micros > 1 && !slices.Contains(found.second, None) {
		return
	}
	for micro, second := range found.second {
		if second != None {
			rules.twice(second, found.backward[micro])
		}
	}
}

func (found *passes) reset() {
	for _, list := range [][]int32{found.forward, found.recompute, found.backward, found.second, found.weight} {
		for i := range list {
			list[i] = None
		}
	}
	clear(found.decodes)
}

// list returns the list to which an instruction belongs.
func (found *passes) list(instr *Instr) []int32 {
	switch {
	case instr.Op == Forward:
		return found.forward
	case instr.Op == Recompute:
		return found.recompute
	case instr.Op == BackwardWeight:
		return found.weight
	case instr.Op == Backward && found.backward[instr.MicroBatch] != None && found.second[instr.MicroBatch] == None:
		return found.second
	}
	return found.backward
}

func (rules *routineRules) twice(index, first int32) {
	rules.faultAt("V1", index, "the same as %s; want one of each micro-batch", rules.Place(first))
}

// complete: V1, no micro-batch is left out. one is an instruction of the routine.
func (rules *routineRules) complete(one int32, list []int32, op Op) {
	for micro, index := range list {
		if index == None {
			rules.faultOn("V1", rules.Instrs[one].Device, "routine %q has no %s of mb%d; want one of each of the %d micro-batches",
				rules.Routines[rules.Instrs[one].Routine].Name, op, micro, len(list))
		}
	}
}

// inOrder: V1, forward happens before recompute before backward. The walk checks it.
func (rules *routineRules) inOrder(found *passes) {
	for micro, backward := range found.backward {
		forward, recompute := found.forward[micro], found.recompute[micro]
		if recompute != None {
			rules.before[recompute] = forward
			if backward == None {
				rules.faultAt("V1", recompute, "no backward uses what it makes; want one behind it")
			}
			forward = recompute
		}
		if backward != None {
			rules.before[backward] = forward
		}
	}
}

// halves: V1, the gradients of weights of every micro-batch come once, after the gradient of its
// input, unless its backward is whole. one is an instruction of the routine.
func (rules *routineRules) halves(one int32, found *passes) {
	for micro, weight := range found.weight {
		backward := found.backward[micro]
		switch {
		case backward == None: // it is missing
		case rules.Instrs[backward].Op == Backward && weight != None:
			rules.faultAt("V1", weight, "the backward of mb%d is whole, at %s; want that, or backward-input and backward-weight", micro, rules.Place(backward))
		case rules.Instrs[backward].Op == BackwardInput && weight == None:
			rules.faultOn("V1", rules.Instrs[one].Device, "routine %q has no backward-weight of mb%d; want one of each of the %d micro-batches",
				rules.Routines[rules.Instrs[one].Routine].Name, micro, len(found.weight))
		case weight != None:
			rules.before[weight] = backward
		}
	}
}

// sameDecodes: V1, every routine has as many decodes of each micro-batch as the first.
func (rules *routineRules) sameDecodes(of, decodes, first []int32) []int32 {
	if first == nil {
		return slices.Clone(decodes)
	}
	for micro, count := range decodes {
		if count != first[micro] {
			rules.faultOn("V1", rules.Instrs[of[0]].Device, "routine %q decodes mb%d %d times, the first routine %d times; want the same of all",
				rules.Routines[rules.Instrs[of[0]].Routine].Name, micro, count, first[micro])
		}
	}
	return first
}
