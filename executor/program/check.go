package program

import (
	"errors"
	"strings"
)

// Report is what [Program.Check] found.
type Report struct {
	// Faults are in the order of the rules, then of the lines: at most ten of a rule, then one that
	// counts the others.
	Faults []Fault
	// Live are the bytes of the live buffers at every instruction.
	Live []int64
	// Devices has the peak of each device.
	Devices []Usage
}

// Err returns nil for a valid program, else all faults, a line each.
func (report *Report) Err() error {
	if len(report.Faults) == 0 {
		return nil
	}
	lines := make([]string, len(report.Faults))
	for i, fault := range report.Faults {
		lines[i] = fault.String()
	}
	return errors.New(strings.Join(lines, "\n"))
}

// Check checks a program against the rules, and reports all faults at once.
//
// Instruction a happens before b if a comes before b in a stream, or b waits for a. So it does if b
// receives what a sends, or sends into the slot that a frees. (Free k comes before send k+slots.)
// The relation is transitive. Nothing else orders instructions: neither the numbers of lines nor
// durations. On a channel with slots 0, send k and recv k are one event, and frees order nothing.
//
//   - V1: the micro-batches are 0 to m−1. A routine runs each of them forward once and, if anything
//     runs backward, backward once, after it. Backward may be in two halves: backward-input, and
//     after it backward-weight. A routine without gradients has backward-input alone. With m > 1
//     the halves may also be two backwards of every micro-batch, or a routine of backwards alone.
//     A recompute happens between forward and backward. All routines decode a micro-batch equally
//     often. Every declared routine runs.
//   - V2: a unit is in one routine, a routine on one device.
//   - V3: every message 0 to n−1 of a channel has one send, on the device that it comes from, and
//     one recv, on the device that it goes to. Sends happen in order, and so do recvs.
//   - V4: every message also has one free, after its recv and after all reads of the slot. Message
//     k lies in slot k mod slots: all recvs of a slot write the same buffer, and each slot has
//     another buffer. Nothing reads it from the send to the recv, or after the free.
//   - V5: a send reads no more than the channel's bytes, and a recv writes exactly as many; either
//     may name no buffer. Both are of one micro-batch. Instructions touch buffers of their own
//     device.
//   - V6: nothing happens before itself: no deadlock. A wait names the stream that its instruction
//     runs on.
//   - V7: a write happens before each read of a buffer, and before each accumulation. Of two
//     instructions that use a buffer, one of them writing, one happens before the other. A send
//     writes the slot once it is free. A micro-batch reads in buffers of class saved, slot, stream
//     or scratch only what was written for that micro-batch, and by the same routine as for the
//     others. Backwards go the way of forwards back. Decodes go the same way as forwards, always
//     with the same distance in tokens.
//   - V8: buffers that share bytes are not live at once. Bytes that are written through one are not
//     overwritten through the other before their last read, and never without an order. Buffers of
//     a class that is there throughout ([Class.Throughout]) share no bytes with any buffer that is
//     used.
//   - V9: no buffer ends beyond its arena, no arena is larger than its budget.
//   - V10: a store reads buffers of the arena and writes one of class host with as many bytes. A
//     fetch reads that buffer and writes as many bytes. Both have a micro-batch. Nothing else touches
//     host memory. From the start of the store to the end of the fetch, nothing reads what was
//     stored.
//   - V12: a gradient is a buffer of that class, or one that a backward writes and a step reads. It
//     begins with a backward that writes it (>), or with a zero; other backwards add to it. Nothing
//     overwrites a sum, or adds to it once a step or a send has read it. If there are steps, each
//     gradient reaches one that updates weights. A step that updates what a routine reads has that
//     routine's gradient. No pass reads what a step has updated.
//   - V13: a step that updates what several routines read has the gradients of all of them. A step
//     that takes a gradient of another device, by messages, updates a copy of a tied weight. That
//     device has a step that takes the same gradient, and the gradients that this step takes of its
//     own device.
//   - V16: what a load writes is unloaded once, after all uses. The same holds for a zero of a
//     class that is there throughout. Nothing else is unloaded.
//
// A wait that others imply may be left out, and instructions that nothing orders may be in any
// order. If a program deadlocks, the rules of order (V1, V3, V4, V7, V8, V12, V13, V16) are checked
// up to where it halts.
//
// The cost is about that of reading each access once: a million instructions of eight devices take
// a quarter of a second. Indexes must be in range, as in every program that was read.
func (program *Program) Check() *Report {
	report, counted := new(Report), make(chan struct{})
	go func() { // it shares nothing with the rules
		report.Live, report.Devices = program.liveBytes()
		close(counted)
	}()
	check := &check{Program: program, faults: faultList{counts: make(map[string]int)}}
	for _, fault := range program.dangling {
		check.faults.add(fault)
	}
	check.number()
	check.lines()
	check.copies()
	(&routineRules{check}).routines()
	(&channelRules{check}).messages()
	(&arenaRules{check}).arenas()
	if !check.walk() {
		newCycleSearch(check).cycle()
	}
	report.Faults = check.faults.all()
	<-counted
	return report
}

// lines checks single lines: the devices of buffers, and the streams of waits.
func (check *check) lines() {
	for i := range check.Instrs {
		instr, index := &check.Instrs[i], int32(i)
		for _, access := range check.accesses(index) {
			buffer := &check.Buffers[access.Buffer]
			if buffer.Device != instr.Device {
				check.faultAt("V5", index, "buffer %q lies on device %d; an instruction touches buffers of its own device, others send theirs",
					buffer.Name, check.Devices[buffer.Device].ID)
			}
		}
		for _, wait := range check.Waits[instr.FirstWait:instr.EndWait] {
			if target := &check.Instrs[wait.Instr]; target.Stream != wait.Stream {
				check.faultAt("V6", index, "waits for %s on stream %q, which runs on %q: want %q", check.Place(wait.Instr),
					check.Devices[target.Device].Streams[wait.Stream], check.Devices[target.Device].Streams[target.Stream], check.wait(wait.Instr))
			}
		}
	}
}
