package program

import "slices"

// gradientUse follows gradients from the backwards that add to them to the steps
// that use them.
type gradientUse struct {
	// By buffer, whatever the order. A gradient is a buffer of that class, or one that a backward
	// writes and a step reads.
	gradient    []bool
	byBackward  []bool // a backward writes it
	byRoutine   []bool // forward, recompute, backward or decode reads it
	updatedEver []bool // a step writes it

	added   []int32   // by buffer: the backward that wrote it last, if nothing took it since
	taken   []int32   // by buffer: the step or send that took it last
	updated []int32   // by buffer: the step that wrote it
	carries [][]int32 // by buffer: the gradients whose messages or sums it holds
	sent    map[int32][]int32
	steps   []stepUse
}

// stepUse is a step and the gradients that it reads. They are in their own buffers, in messages, or
// in sums that other steps made of them in buffers of that class.
type stepUse struct {
	instr     int32
	gradients []int32
}

func newGradientUse(check *check) gradientUse {
	count := len(check.Buffers)
	use := gradientUse{
		gradient: make([]bool, count), byBackward: make([]bool, count), byRoutine: make([]bool, count), updatedEver: make([]bool, count),
		added: make([]int32, count), taken: make([]int32, count), updated: make([]int32, count), carries: make([][]int32, count),
		sent: make(map[int32][]int32),
	}
	byStep := make([]bool, count)
	for i := range check.Instrs {
		instr := &check.Instrs[i]
		for _, access := range check.Accesses[instr.FirstAccess:instr.EndAccess] {
			writes, reads := access.Mode != Read, access.Mode != Write
			switch {
			case instr.Op == Step:
				byStep[access.Buffer] = byStep[access.Buffer] || reads
				use.updatedEver[access.Buffer] = use.updatedEver[access.Buffer] || writes
			case instr.Op.Runs():
				use.byRoutine[access.Buffer] = use.byRoutine[access.Buffer] || reads
				use.byBackward[access.Buffer] = use.byBackward[access.Buffer] || writes && instr.Op.Back()
			}
		}
	}
	for i := range count {
		use.gradient[i] = check.Buffers[i].Class == Gradient || use.byBackward[i] && byStep[i]
		use.added[i], use.taken[i], use.updated[i] = None, None, None
	}
	return use
}

// note follows one instruction, in an order that the program allows: V12.
func (use *gradientUse) note(check *check, index int32) {
	instr := &check.Instrs[index]
	switch instr.Op { //nolint:exhaustive // the others neither make nor use gradients
	case Forward, Recompute, Decode:
		use.pass(check, index)
	case Backward, BackwardInput, BackwardWeight:
		use.pass(check, index)
		for _, access := range check.accesses(index) {
			if access.Mode != Read && use.gradient[access.Buffer] {
				use.add(check, index, access)
			}
		}
	case Zero, Load:
		for _, access := range check.accesses(index) {
			if use.gradient[access.Buffer] {
				use.overwrite(check, index, access.Buffer)
			}
			use.taken[access.Buffer], use.updated[access.Buffer] = None, None
		}
	case Send:
		if sums := use.take(check, index); len(sums) > 0 {
			use.sent[index] = sums
		}
	case Recv:
		if slot := check.slotOf(index); slot != None {
			use.carries[slot] = nil
			if send := check.follows[index]; send != None {
				use.carries[slot] = use.sent[send]
			}
		}
	case Step:
		use.step(check, index)
	}
}

// pass: no pass reads weights that a step has changed.
func (use *gradientUse) pass(check *check, index int32) {
	for _, access := range check.accesses(index) {
		if step := use.updated[access.Buffer]; step != None && access.Mode != Write {
			check.faultAt("V12", index, "reads %q after %s has updated it; want the step behind all passes", check.Buffers[access.Buffer].Name, check.brief(step))
		}
	}
}

// add: backwards add to a gradient before any step or send takes it. Only the first may overwrite
// it.
func (use *gradientUse) add(check *check, index int32, access Access) {
	name := check.Buffers[access.Buffer].Name
	if access.Mode == Write {
		use.overwrite(check, index, access.Buffer)
	}
	if taken := use.taken[access.Buffer]; taken != None {
		check.faultAt("V12", index, "adds to gradient %q after %s has taken it; want that behind the last backward", name, check.brief(taken))
	}
	use.added[access.Buffer] = index
}

// overwrite: nothing overwrites a gradient that nothing has taken.
func (use *gradientUse) overwrite(check *check, index, buffer int32) {
	if added := use.added[buffer]; added != None {
		name := check.Buffers[buffer].Name
		check.faultAt("V12", index, "writes over gradient %q, to which %s added and which nothing has taken; want +%s, or it first", name, check.brief(added), name)
	}
	use.added[buffer] = None
}

// take returns the gradients that an instruction reads, and marks them as taken.
func (use *gradientUse) take(check *check, index int32) []int32 {
	var sums []int32
	for _, access := range check.accesses(index) {
		if access.Mode == Write {
			continue
		}
		if use.gradient[access.Buffer] {
			use.added[access.Buffer], use.taken[access.Buffer] = None, index
			if use.byBackward[access.Buffer] {
				sums = append(sums, access.Buffer)
			}
		}
		sums = append(sums, use.carries[access.Buffer]...)
	}
	slices.Sort(sums)
	return slices.Compact(sums)
}

func (use *gradientUse) step(check *check, index int32) {
	sums := use.take(check, index)
	use.steps = append(use.steps, stepUse{instr: index, gradients: sums})
	for _, access := range check.accesses(index) {
		if access.Mode == Read {
			continue
		}
		use.updated[access.Buffer] = index
		if check.Buffers[access.Buffer].Class == Gradient {
			use.carries[access.Buffer] = sums
		}
	}
}
