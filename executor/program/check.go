package program

import (
	"errors"
	"strings"
)

// Report is what [Program.Check] found.
type Report struct {
	// Faults are what is wrong, in the order of the rules, then of the lines: at
	// most ten of a rule, then one that counts the others.
	Faults []Fault
	// Live are the bytes of buffers that are live at every instruction, by the
	// order of a device's lines.
	Live []int64
	// Devices are the largest of them on each.
	Devices []Usage
}

// Err is nil of a valid program, else all faults, a line each.
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

// Check holds a program to the rules and reports all faults at once.
//
// One instruction happens before another one if it comes before it in a stream,
// if the other waits for it, if it sends the message that the other receives, if
// it frees the slot that the other sends into (free k before send k+slots), and
// if anything happens between them that says so. Nothing else orders them: not
// the numbers of lines, not how long things take. On a channel with slots 0, send
// k and recv k are one event and frees order nothing.
//
//   - V1: the micro-batches are 0 to m−1. A routine runs each of them forward
//     once and, where anything runs backward, backward once, after it; with m > 1
//     backward may be in two halves, as two backwards of every micro-batch or a
//     routine of backwards alone. A recompute happens between the two. All
//     routines decode a micro-batch equally often. None is declared and not run.
//   - V2: a unit is in one routine, a routine on one device.
//   - V3: every message 0 to n−1 of a channel has one send, on the device that it
//     comes from, and one recv, on the one that it goes to; sends happen in order,
//     and so do recvs.
//   - V4: it also has one free, after its recv and after all that reads the
//     slot. Message k lies in slot k mod slots: recv writes one and the same buffer
//     for each slot, another one for another slot. From the send to the recv, and
//     from the free on, nothing reads it.
//   - V5: what a send reads is no larger than the channel's bytes, what a recv
//     writes is exactly as large (either may name no buffer); both are of one
//     micro-batch. Instructions touch buffers of their own device.
//   - V6: nothing happens before itself: no deadlock. A wait names the stream that
//     its instruction runs on.
//   - V7: a read, or what is added to, was written by something that happens
//     before. Of two that use a buffer, one of them writing, one happens before the
//     other. A send writes the slot, from when it is free. What a micro-batch reads
//     in a buffer of class saved, slot, stream or scratch is of that micro-batch;
//     and of the same routine as for the others, with backwards the way back that
//     forwards came, and decodes in their order, as many tokens later each time.
//   - V8: buffers that share bytes are not live at once: what is written through
//     one is not written over through the other before its last read, and never in
//     no order. Classes that are there throughout ([Class.Throughout]) share no
//     bytes with any buffer that is used.
//   - V9: no buffer ends beyond its arena, no arena is larger than its budget.
//   - V12: a gradient (a buffer of that class, or that a backward writes and a step
//     reads) begins with a backward that writes it (>), or a zero; others add to it;
//     nothing writes over what was added, or adds once a step or a send has taken
//     it. Where there are steps, each gradient reaches one that updates weights, and
//     a step that updates what a routine reads has that routine's gradient. No pass
//     reads what a step has updated.
//   - V13: a step that updates what several routines read has the gradients of all
//     of them. One that takes a gradient of another device, by messages, updates a
//     copy of a tied weight: that device has a step that takes the same gradient and
//     those that this one takes of its own device.
//   - V16: what load writes, and zero where it is of a class that is there
//     throughout, is unloaded, once, behind all uses; nothing is that nothing wrote.
//
// A wait that others imply may be left out, and instructions that nothing orders
// may be in any order. Of rules of order (V1, V3, V4, V7, V8, V12, V13, V16) a
// program that deadlocks is checked up to where it halts.
//
// Its cost is about that of looking at each access once: a million instructions
// of eight devices take a quarter of a second. Indexes must be in range, as those
// of a program that was read are.
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

// lines holds single lines to what their words mean.
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
