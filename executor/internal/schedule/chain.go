package schedule

import (
	"slices"

	"github.com/devmap-dev/devmap/executor/program"
)

// Chain is computations that follow each other on a stream, given in one call: what a device
// computes for a token. Only its end has an event.
type Chain struct {
	Give  Call
	Works []*Work // by instruction
}

// Chains calls give for every run of decodes of one micro-batch and one token that follow each other
// on a stream. Only the first decode may wait for another stream. Other streams may wait for the
// last one only.
func (of *Scheduler) Chains(give func(indexes []int32) error) error {
	waited := of.waited()
	for i := range of.Streams {
		lines := of.Streams[i].Lines
		for first := 0; first < len(lines); {
			end := first + 1
			for end < len(lines) && of.continues(lines[first], lines[end]) && !waited[lines[end-1]] {
				end++
			}
			if of.Program.Instrs[lines[first]].Op == program.Decode {
				if err := give(lines[first:end]); err != nil {
					return err
				}
			}
			first = end
		}
	}
	return nil
}

// continues reports whether a later line may be in the chain of an earlier one.
func (of *Scheduler) continues(first, next int32) bool {
	one, two := &of.Program.Instrs[first], &of.Program.Instrs[next]
	return one.Op == program.Decode && two.Op == program.Decode && one.MicroBatch == two.MicroBatch &&
		of.Past(first) == of.Past(next) && of.follows(next, first)
}

// waited marks the instructions that another stream waits for.
func (of *Scheduler) waited() []bool {
	waited := make([]bool, len(of.Program.Instrs))
	for i := range of.Program.Instrs {
		for _, wait := range of.waits(int32(i)) {
			waited[wait.Instr] = waited[wait.Instr] || of.Of[wait.Instr] != of.Of[i]
		}
	}
	return waited
}

// chain returns the chain that begins with the next line, or nil. An instruction with a tap or a
// fault is in none: these come between kernels.
func (lane *lane) chain(index int32) *Chain {
	if lane.Chain == nil {
		return nil
	}
	chain := lane.Chain(index)
	if chain == nil {
		return nil
	}
	lines := lane.lines[lane.next : lane.next+len(chain.Works)]
	if lane.Fault != nil && lane.Fault.Step == lane.step.Number && slices.Contains(lines, lane.Fault.Instr) {
		return nil
	}
	for tap := range lane.step.Taps {
		if slices.Contains(lines, tap.Instr) {
			return nil
		}
	}
	return chain
}

// issueChain gives a chain to the queue. The next line is its first.
func (lane *lane) issueChain(chain *Chain) error {
	first, count := lane.next, len(chain.Works)
	lines := lane.lines[first : first+count]
	lane.args.Past = lane.Past(lines[0])
	if began := lane.events[lines[0]].began; began != nil {
		if err := lane.queue.Record(began); err != nil {
			return err
		}
	}
	if err := chain.Give(&lane.args); err != nil {
		return lane.at(lines[0], err)
	}
	behind := moment{event: lane.events[lines[count-1]].ended, line: first + count - 1, work: chain.Works[count-1]}
	if err := lane.queue.Record(behind.event); err != nil {
		return err
	}
	if lane.inner == nil {
		lane.inner = make(map[int32]bool)
	}
	for _, index := range lines[:count-1] {
		lane.inner[index] = true
	}
	lane.board.post(func() {
		behind.given = lane.board.given
		lane.board.given += count
		lane.next += count
		for _, index := range lines {
			lane.board.issued[index] = true
		}
	})
	lane.pending = append(lane.pending, behind)
	return nil
}
