package simulate

import "github.com/devmap-dev/devmap/executor/program"

// inFlight counts the micro-batches that are under way on a device: from the
// start of their first forward to the end of their last backward, or of their
// last forward where none comes back. One stream computes, so that the order of
// its lines is that of time.
func inFlight(instrs []program.Instr) int {
	last := lastPasses(instrs)
	started := make([]bool, len(last))
	now, most := 0, 0
	for i := range instrs {
		batch := instrs[i].MicroBatch
		if batch < 0 || int(batch) >= len(last) {
			continue
		}
		if instrs[i].Op == program.Forward && !started[batch] {
			started[batch] = true
			now++
			most = max(most, now)
		}
		if last[batch] == int32(i) && started[batch] {
			now--
		}
	}
	return most
}

// lastPasses is the last forward or backward of each micro-batch. Numbers beyond that of instructions are in no valid program
// has.
func lastPasses(instrs []program.Instr) []int32 {
	count := int32(0)
	for i := range instrs {
		if batch := instrs[i].MicroBatch; int(batch) < len(instrs) {
			count = max(count, batch+1)
		}
	}
	last := make([]int32, count)
	for i := range last {
		last[i] = program.None
	}
	for i := range instrs {
		batch := instrs[i].MicroBatch
		if batch < 0 || batch >= count {
			continue
		}
		if instrs[i].Op == program.Forward || instrs[i].Op == program.Backward {
			last[batch] = int32(i)
		}
	}
	return last
}
