package schedule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// stallReport describes a step that has stalled: the current line of every lane and what it waits
// for, and how far every channel's messages are. The board's lock must be held.
func (of *Scheduler) stallReport(lanes []*lane) string {
	ended := of.endedOf(lanes)
	var text strings.Builder
	for _, lane := range lanes {
		lane.writeState(&text, ended)
	}
	for i := range of.Program.Channels {
		of.slots(&text, int32(i), ended)
	}
	return text.String()
}

// endedOf marks the instructions that are known to have ended.
func (of *Scheduler) endedOf(lanes []*lane) []bool {
	ended := make([]bool, len(of.Program.Instrs))
	for _, lane := range lanes {
		for _, index := range lane.lines[:lane.ended] {
			ended[index] = true
		}
	}
	return ended
}

// writeState writes how many of a lane's lines were given and have ended.
func (lane *lane) writeState(into *strings.Builder, ended []bool) {
	fmt.Fprintf(into, "device %d, %s: ", lane.device.Plan.ID, lane.name())
	if lane.ended == len(lane.lines) {
		into.WriteString("all of it has ended\n")
		return
	}
	index := lane.lines[lane.ended]
	fmt.Fprintf(into, "%d of %d lines have ended, %d were given; behind the last that is known to have ended: %s", lane.ended, len(lane.lines), lane.next, lane.Program.Line(index))
	if lane.Fault.at(lane.step, index) && lane.Fault.Says != "" {
		fmt.Fprintf(into, ", before which is %s", lane.Fault.Says)
	}
	for _, wait := range lane.awaited(index) {
		if !ended[wait] {
			fmt.Fprintf(into, "; it waits for %s", lane.Program.Line(wait))
		}
	}
	if lane.next != lane.ended && lane.next < len(lane.lines) {
		fmt.Fprintf(into, "; not given yet: %s", lane.Program.Line(lane.lines[lane.next]))
	}
	into.WriteByte('\n')
}

// awaited returns the instructions that one waits for. They are those that it names, the send of
// its message, and the free of the slot that it sends into.
func (of *Scheduler) awaited(index int32) (all []int32) {
	for _, wait := range of.waits(index) {
		all = append(all, wait.Instr)
	}
	instr := &of.Program.Instrs[index]
	if instr.Channel < 0 {
		return all
	}
	ends, slots := &of.ends[instr.Channel], of.Program.Channels[instr.Channel].Slots
	switch {
	case instr.Op == program.Recv:
		all = append(all, ends.sends[instr.Sequence])
	case instr.Op == program.Send && slots == 0:
		all = append(all, ends.receives[instr.Sequence])
	case instr.Op == program.Send && instr.Sequence >= slots:
		all = append(all, ends.frees[instr.Sequence-slots])
	}
	return all
}

// slots writes how far a channel's messages are.
func (of *Scheduler) slots(into *strings.Builder, channel int32, ended []bool) {
	one, ends := &of.Program.Channels[channel], &of.ends[channel]
	count := func(all []int32) (done int) {
		for _, index := range all {
			if index >= 0 && ended[index] {
				done++
			}
		}
		return done
	}
	fmt.Fprintf(into, "channel %s, device %d to device %d, %d slots: of %d messages %d were sent, %d received, %d freed\n",
		one.Name, of.Program.Devices[one.From].ID, of.Program.Devices[one.To].ID, one.Slots,
		len(ends.sends), count(ends.sends), count(ends.receives), count(ends.frees))
}

func (lane *lane) name() string {
	if len(lane.lines) == 0 {
		return "a stream of no lines"
	}
	return lane.device.Plan.Streams[lane.Program.Instrs[lane.lines[0]].Stream]
}

// losses returns the error of a step in which a device was lost. If one context fails, the driver
// ends all contexts of the process a tenth of a second later. So the device that reports first may
// not be the one that failed. By then the others have stalled: the lost device is the one with a
// queue that is at a line and waits for nothing.
func (of *Scheduler) losses(first *executor.LostError, lanes []*lane) error {
	all := &executor.LostError{Err: first.Err}
	ended := of.endedOf(lanes)
	var text strings.Builder
	for _, place := range of.Lost() {
		into := &all.With
		for _, lane := range lanes {
			if !slices.Contains(place.Devices, lane.device) {
				continue
			}
			lane.writeState(&text, ended)
			if lane.isAt(ended) {
				into = &all.GPUs
			}
		}
		*into = append(*into, place.Name)
	}
	if len(all.GPUs) == 0 { // no queue shows it
		all.GPUs, all.With = all.With, nil
	}
	if len(all.GPUs) == 0 {
		all.GPUs = first.GPUs
	}
	all.State = strings.TrimSuffix(text.String(), "\n")
	return all
}

// isAt reports whether a lane has a line that was given, waits for nothing, and has not ended.
func (lane *lane) isAt(ended []bool) bool {
	if lane.ended == len(lane.lines) || lane.ended >= lane.next {
		return false
	}
	return !slices.ContainsFunc(lane.awaited(lane.lines[lane.ended]), func(wait int32) bool { return !ended[wait] })
}
