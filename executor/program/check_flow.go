package program

import "slices"

// flow is which routine passes data to which. In a buffer of one micro-batch, one routine leaves
// data that the next one of the same pass takes or adds to. Two that add to one buffer are ordered,
// and no race, either way. The wrong order shows in two ways. Other micro-batches go the other way,
// or backward does not take from a routine what its forward gave to it.
type flow struct {
	*check
	from [][]int32 // by pass: for each of its accesses, the routine that it takes from
	lags [][]int32 // by routine: for each access of its decodes, how many tokens older the data is, plus 1
	gave [][]int32 // by routine: those that its own forward takes from

	private []bool // by buffer: it holds one micro-batch at a time
}

func newFlow(check *check) flow {
	found := flow{
		check: check, from: make([][]int32, int(passOps)*len(check.Routines)), lags: make([][]int32, len(check.Routines)), gave: make([][]int32, len(check.Routines)),
		private: make([]bool, len(check.Buffers)),
	}
	for i := range check.Buffers {
		switch check.Buffers[i].Class { //nolint:exhaustive // the others hold all, or are none of ours
		case Saved, Slot, Stream, Scratch, Host:
			found.private[i] = true
		}
	}
	return found
}

// passOps is the number of ops that run routines, counted from Forward.
const passOps = int32(Decode-Forward) + 1

// passOf numbers a routine's pass, None for other instructions.
func passOf(instr *Instr) int32 {
	if !instr.Op.Runs() || instr.Routine < 0 {
		return None
	}
	return instr.Routine*passOps + int32(instr.Op-Forward)
}

// follow: V7, a pass finds in a buffer the data of the same routine for all micro-batches, and
// backward goes the way of forward back.
func (flow *flow) follow(index int32, ordinal int, access Access) {
	span := flow.spans[access.Buffer]
	if span.first == span.end || !flow.private[access.Buffer] {
		return
	}
	cell, instr := &flow.cells[span.first], &flow.Instrs[index]
	pass := passOf(instr)
	if instr.Op == Decode && pass != None && cell.pass != None {
		flow.ofToken(index, ordinal, access, cell)
	}
	if pass == None || cell.pass == None || cell.pass%passOps != pass%passOps || cell.pass == pass {
		return
	}
	giver := cell.pass / passOps
	from := flow.from[pass]
	for len(from) <= ordinal {
		from = append(from, None)
	}
	flow.from[pass] = from
	switch {
	case from[ordinal] == None:
		from[ordinal] = giver
		flow.goesBack(index, access, giver)
	case from[ordinal] != giver:
		flow.faultAt("V7", index, "finds in %q what routine %q left there; for another micro-batch it was what %q left: want all in one order",
			flow.Buffers[access.Buffer].Name, flow.Routines[giver].Name, flow.Routines[from[ordinal]].Name)
	}
}

// goesBack records what a forward takes, and checks backwards and decodes against it.
func (flow *flow) goesBack(index int32, access Access, giver int32) {
	instr := &flow.Instrs[index]
	gave := flow.gave
	switch {
	case instr.Op == Forward:
		gave[instr.Routine] = append(gave[instr.Routine], giver)
	case (instr.Op == Backward || instr.Op == BackwardInput) && len(gave[giver]) > 0 && !slices.Contains(gave[giver], instr.Routine):
		flow.faultAt("V7", index, "finds in %q what routine %q left there, whose forward takes from %q: want backwards in the opposite order of forwards",
			flow.Buffers[access.Buffer].Name, flow.Routines[giver].Name, flow.Routines[gave[giver][0]].Name)
	case instr.Op == Decode && len(gave[instr.Routine]) > 0 && !slices.Contains(gave[instr.Routine], giver):
		flow.faultAt("V7", index, "finds in %q what routine %q left there; its forward takes from %q: want decodes in the order of forwards",
			flow.Buffers[access.Buffer].Name, flow.Routines[giver].Name, flow.Routines[gave[instr.Routine][0]].Name)
	}
}

// ofToken checks V7: the data that a decode finds is always equally old. Its age is 0 tokens if the
// routine before left it, 1 if the last routine left the token.
func (flow *flow) ofToken(index int32, ordinal int, access Access, cell *cell) {
	instr := &flow.Instrs[index]
	lag := flow.tokens[index] - flow.tokens[flow.at(cell.writer, cell.writerPlace)] + 1
	lags := flow.lags[instr.Routine]
	for len(lags) <= ordinal {
		lags = append(lags, 0)
	}
	flow.lags[instr.Routine] = lags
	switch lags[ordinal] {
	case 0:
		lags[ordinal] = lag
	case lag:
	default:
		flow.faultAt("V7", index, "finds in %q what is %d tokens old; for another token it was %d: want as many for all",
			flow.Buffers[access.Buffer].Name, lag-1, lags[ordinal]-1)
	}
}
