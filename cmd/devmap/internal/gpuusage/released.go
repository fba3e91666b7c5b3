package gpuusage

import (
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
)

// lookAgain is the time between looks, as a driver releases memory in pieces.
const lookAgain = 50 * time.Millisecond

// AllReleased is the message if nothing is left.
const AllReleased = "all GPU memory was released"

// others is how much a GPU's usage may differ from the sum of its processes: the driver
// counts some of a process's memory a moment later.
const others = 16 << 20

// Released says whether GPUs hold what they held before a process began that has ended,
// a sentence each, or one for all. It leaves out memory that other processes took or
// released meanwhile. numbers are those of the GPUs, in the order of names; within is
// how long the driver has.
func (snapshot *Snapshot) Released(process int, numbers []int, names []executor.GPU, within time.Duration) []string {
	if snapshot.err != nil {
		return []string{"what the GPUs hold now is not known: " + snapshot.err.Error()}
	}
	var all []string
	for i, gpu := range names {
		if still := snapshot.still(process, gpu.UUID, within); still != "" {
			all = append(all, fmt.Sprintf("GPU %d (%s): %s", numbers[i], gpu.Name, still))
		}
	}
	if len(all) == 0 {
		return []string{AllReleased}
	}
	return all
}

// still waits until the driver has the process's memory back, or until the time is over,
// and says what is still in use; empty: nothing.
func (snapshot *Snapshot) still(process int, uuid string, within time.Duration) string {
	at := snapshot.find(uuid)
	if at < 0 {
		return "what it holds now is not known: NVML does not show it"
	}
	for deadline := time.Now().Add(within); ; time.Sleep(lookAgain) {
		now, err := stateOf(&snapshot.gpus[at], process)
		if err != nil {
			return fmt.Sprintf("what it holds now is not known: %v", err)
		}
		more := snapshot.before[at].more(now)
		if more == 0 {
			return ""
		}
		if time.Now().After(deadline) {
			return fmt.Sprintf("%v more are held than before the run", costmodel.Bytes(more))
		}
	}
}

// more is the memory used beyond that before, less what other processes have taken
// since, or released.
func (before state) more(now state) int64 {
	theirs := now.processes - before.processes
	more := now.used - before.used - theirs
	if theirs != 0 && more <= others {
		return 0
	}
	return max(0, more)
}
