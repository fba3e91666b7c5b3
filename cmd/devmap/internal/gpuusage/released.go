package gpuusage

import (
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
)

// lookAgain is the time between readings, as a driver releases memory in pieces.
const lookAgain = 50 * time.Millisecond

// AllReleased is the message if nothing is left.
const AllReleased = "all GPU memory was released"

// others is the allowed difference between a GPU's usage and the sum of its processes: the driver
// counts some memory of a process later.
const others = 16 << 20

// Released says whether GPUs have the usage from before an ended process, one sentence each, or one
// for all. It ignores memory that other processes took or released meanwhile. numbers are the
// numbers of the GPUs in names, and within limits the wait for the driver.
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

// still waits until the driver has released the process's memory, or the time is over. It describes
// the memory still in use; empty: none.
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

// more returns the growth of the used memory, without that of other processes.
func (before state) more(now state) int64 {
	theirs := now.processes - before.processes
	more := now.used - before.used - theirs
	if theirs != 0 && more <= others {
		return 0
	}
	return max(0, more)
}
