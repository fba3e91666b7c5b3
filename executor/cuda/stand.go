//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/program"
)

// stand is where everything is when nothing moves: of every stream what it is at
// and what that waits for, of every channel how far its messages are. It is called
// under the board's lock.
func (machine *machine) stand(lanes []*lane) string {
	ended := machine.ended(lanes)
	var text strings.Builder
	for _, lane := range lanes {
		lane.stand(&text, ended)
	}
	for i := range machine.program.Channels {
		machine.slots(&text, int32(i), ended)
	}
	return text.String()
}

// ended are the instructions that are known to have ended.
func (machine *machine) ended(lanes []*lane) []bool {
	ended := make([]bool, len(machine.program.Instrs))
	for _, lane := range lanes {
		for _, index := range lane.lines[:lane.ended] {
			ended[index] = true
		}
	}
	return ended
}

// stand is how far a stream was given and has come.
func (lane *lane) stand(into *strings.Builder, ended []bool) {
	fmt.Fprintf(into, "device %d, %s: ", lane.device.plan.ID, lane.name())
	if lane.ended == len(lane.lines) {
		into.WriteString("all of it has ended\n")
		return
	}
	index := lane.lines[lane.ended]
	fmt.Fprintf(into, "%d of %d lines have ended, %d were given; behind the last that is known to have ended: %s", lane.ended, len(lane.lines), lane.next, lane.program.Line(index))
	if lane.trap.at(lane.step, index) && lane.trap.kind == HangStep {
		fmt.Fprintf(into, ", before which is a kernel that does not end, as %s:%d asks", HangStep, lane.step.Number)
	}
	for _, wait := range lane.awaited(index) {
		if !ended[wait] {
			fmt.Fprintf(into, "; it waits for %s", lane.program.Line(wait))
		}
	}
	if lane.next != lane.ended && lane.next < len(lane.lines) {
		fmt.Fprintf(into, "; not given yet: %s", lane.program.Line(lane.lines[lane.next]))
	}
	into.WriteByte('\n')
}

// awaited are the instructions that one waits for: those that it names, the send of
// what it receives, and what frees the slot that it sends into.
func (machine *machine) awaited(index int32) (all []int32) {
	instr := &machine.program.Instrs[index]
	for _, wait := range machine.program.Waits[instr.FirstWait:instr.EndWait] {
		all = append(all, wait.Instr)
	}
	if instr.Channel < 0 {
		return all
	}
	ends, slots := &machine.order.ends[instr.Channel], machine.program.Channels[instr.Channel].Slots
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

// slots is how far a channel's messages are.
func (machine *machine) slots(into *strings.Builder, channel int32, ended []bool) {
	of, ends := &machine.program.Channels[channel], &machine.order.ends[channel]
	count := func(all []int32) (done int) {
		for _, index := range all {
			if index >= 0 && ended[index] {
				done++
			}
		}
		return done
	}
	fmt.Fprintf(into, "channel %s, device %d to device %d, %d slots: of %d messages %d were sent, %d received, %d freed\n",
		of.Name, machine.program.Devices[of.From].ID, machine.program.Devices[of.To].ID, of.Slots,
		len(ends.sends), count(ends.sends), count(ends.receives), count(ends.frees))
}

func (lane *lane) name() string {
	if len(lane.lines) == 0 {
		return "a stream of no lines"
	}
	return lane.device.plan.Streams[lane.program.Instrs[lane.lines[0]].Stream]
}

// losses is the error of a step in which a context came to be no more. Where one fails a
// driver ends all that the process has, a tenth of a second later, so that whichever was
// asked first says nothing of where it happened. By then the others stand still: where a
// stream is at something and waits for nothing, there it happened.
func (machine *machine) losses(first *LostError, lanes []*lane) error {
	all := &LostError{Err: first.Err}
	if told := (*driver.Error)(nil); errors.As(first.Err, &told) {
		all.Err = told // without the instruction whose call was the next one
	}
	ended := machine.ended(lanes)
	var text strings.Builder
	for _, gpu := range machine.unanswered() {
		into := &all.With
		for _, lane := range lanes {
			if lane.device.gpu != gpu {
				continue
			}
			lane.stand(&text, ended)
			if lane.isAt(ended) {
				into = &all.GPUs
			}
		}
		*into = append(*into, gpu.place())
	}
	if len(all.GPUs) == 0 { // nobody knows
		all.GPUs, all.With = all.With, nil
	}
	if len(all.GPUs) == 0 {
		all.GPUs = first.GPUs
	}
	all.Stand = strings.TrimSuffix(text.String(), "\n")
	return all
}

// unanswered are the GPUs whose contexts are no more.
func (machine *machine) unanswered() (lost []*gpu) {
	for _, gpu := range machine.gpus {
		device := machine.on(gpu)[0]
		if told := (*LostError)(nil); device.context != nil && errors.As(device.do(answers), &told) {
			lost = append(lost, gpu)
		}
	}
	return lost
}

// isAt reports a stream that was given a line which waits for nothing, and has not ended
// it.
func (lane *lane) isAt(ended []bool) bool {
	if lane.ended == len(lane.lines) || lane.ended >= lane.next {
		return false
	}
	return !slices.ContainsFunc(lane.awaited(lane.lines[lane.ended]), func(wait int32) bool { return !ended[wait] })
}

// answers asks the bound context for something that it makes without waiting.
func answers() error {
	event, err := driver.NewEvent(false)
	if err != nil {
		return err
	}
	return event.Destroy()
}
