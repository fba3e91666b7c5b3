package simulate

import "github.com/devmap-dev/devmap/executor/program"

// inFlight returns the most micro-batches that are in flight on a device at once. A micro-batch is
// in flight from the start of its first forward to the end of its last backward. Without backwards
// it is to the end of its last forward. One stream computes, so that the order of its lines is the
// order of time.
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

// lastPasses returns the last forward or backward of each micro-batch. It ignores numbers that are
// not below the number of instructions: no valid program has them.
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
		if instrs[i].Op == program.Forward || instrs[i].Op.Back() {
			last[batch] = int32(i)
		}
	}
	return last
}
