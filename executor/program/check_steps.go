package program

import "slices"

// stepRules checks the steps of a whole program: V12 and V13.
type stepRules struct {
	*check
	use *gradientUse
}

// gradientsUsed checks the steps of a whole program against V12 and V13. No gradient is lost, and
// all copies of a tied weight are updated with the same gradients.
//
// A step that writes what a routine reads updates weights. Others, such as norms for clipping, only
// read gradients. If no step updates weights, all steps are checked. A program without steps is
// not.
func (rules *stepRules) gradientsUsed() {
	steps := rules.updates()
	if len(steps) == 0 {
		return
	}
	rules.reachSteps(steps)
	rules.ownGradients(steps)
	rules.tiedGradients(steps)
}

// updates returns the steps that update weights, or all if none does.
func (rules *stepRules) updates() []stepUse {
	var found []stepUse
	for _, step := range rules.use.steps {
		for _, access := range rules.accesses(step.instr) {
			if access.Mode != Read && rules.use.byRoutine[access.Buffer] {
				found = append(found, step)
				break
			}
		}
	}
	if found == nil {
		return rules.use.steps
	}
	return found
}

// reachSteps: V12, every gradient that a backward makes reaches a step.
func (rules *stepRules) reachSteps(steps []stepUse) {
	reached := make([]bool, len(rules.Buffers))
	for _, step := range steps {
		for _, gradient := range step.gradients {
			reached[gradient] = true
		}
	}
	for buffer, gradient := range rules.use.gradient {
		if gradient && rules.use.byBackward[buffer] && !reached[buffer] {
			rules.faultOn("V12", rules.Buffers[buffer].Device, "gradient %q reaches no step that updates weights; want one that reads it behind its last backward",
				rules.Buffers[buffer].Name)
		}
	}
}

// ownGradients: a routine with one gradient has in it the gradients of all weights that it reads.
// So each step that updates one of them reads it: V13 if several routines read the weight, else
// V12.
func (rules *stepRules) ownGradients(steps []stepUse) {
	gradients := rules.gradientOf()
	readers := rules.readersOfWeights()
	for _, step := range steps {
		for _, access := range rules.accesses(step.instr) {
			if access.Mode == Read {
				continue
			}
			for _, routine := range readers[access.Buffer] {
				gradient := gradients[routine]
				if gradient < 0 {
					continue
				}
				if _, reads := slices.BinarySearch(step.gradients, gradient); reads {
					continue
				}
				rule := "V12"
				if len(readers[access.Buffer]) > 1 {
					rule = "V13"
				}
				rules.faultAt(rule, step.instr, "updates %q, which routine %q reads, without that routine's gradient %q; want it to read the gradient of every use",
					rules.Buffers[access.Buffer].Name, rules.Routines[routine].Name, rules.Buffers[gradient].Name)
			}
		}
	}
}

// gradientOf returns the gradient of every routine. It is None for a routine without one, and
// unknown for one with several: the program does not say whose they are.
func (rules *stepRules) gradientOf() []int32 {
	found := make([]int32, len(rules.Routines))
	for i := range found {
		found[i] = None
	}
	for i := range rules.Instrs {
		instr := &rules.Instrs[i]
		if !instr.Op.Back() || instr.Routine < 0 {
			continue
		}
		for _, access := range rules.Accesses[instr.FirstAccess:instr.EndAccess] {
			if access.Mode == Read || !rules.use.gradient[access.Buffer] {
				continue
			}
			if found[instr.Routine] == None {
				found[instr.Routine] = access.Buffer
			} else if found[instr.Routine] != access.Buffer {
				found[instr.Routine] = unknown
			}
		}
	}
	return found
}

// readersOfWeights returns the routines that read each buffer that a step writes.
func (rules *stepRules) readersOfWeights() [][]int32 {
	readers := make([][]int32, len(rules.Buffers))
	for i := range rules.Instrs {
		instr := &rules.Instrs[i]
		if !instr.Op.Runs() || instr.Routine < 0 {
			continue
		}
		for _, access := range rules.Accesses[instr.FirstAccess:instr.EndAccess] {
			if access.Mode == Read && rules.use.updatedEver[access.Buffer] && !slices.Contains(readers[access.Buffer], instr.Routine) {
				readers[access.Buffer] = append(readers[access.Buffer], instr.Routine)
			}
		}
	}
	return readers
}

// tiedGradients: V13. A step that reads the gradient of another device updates a copy of a tied
// weight. That device then has a step that reads it too, with the gradients that this one has of
// its own device. Programs do not name ties: their messages show them.
func (rules *stepRules) tiedGradients(steps []stepUse) {
	readers := make(map[int32][]int32) // gradient → steps that read it
	for i, step := range steps {
		for _, gradient := range step.gradients {
			readers[gradient] = append(readers[gradient], int32(i))
		}
	}
	for _, step := range steps {
		device := rules.Instrs[step.instr].Device
		for _, foreign := range step.gradients {
			there := rules.Buffers[foreign].Device
			if there == device {
				continue
			}
			if !slices.ContainsFunc(readers[foreign], func(other int32) bool {
				return rules.Instrs[steps[other].instr].Device == there && rules.hasAll(steps[other], step, device)
			}) {
				rules.faultAt("V13", step.instr, "reads gradient %q of device %d, where no step reads that and the gradients that this one has of its own; want all copies of a tied weight updated with the gradients of all its uses",
					rules.Buffers[foreign].Name, rules.Devices[there].ID)
			}
		}
	}
}

// hasAll reports whether a step reads all of another's gradients of a device.
func (rules *stepRules) hasAll(step, other stepUse, device int32) bool {
	for _, gradient := range other.gradients {
		if rules.Buffers[gradient].Device != device {
			continue
		}
		if _, reads := slices.BinarySearch(step.gradients, gradient); !reads {
			return false
		}
	}
	return true
}
