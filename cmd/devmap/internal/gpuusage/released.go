package gpuusage

import (
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
)

// lookAgain is how often is looked at what a driver gives back in pieces.
const lookAgain = 50 * time.Millisecond

// All is what is said where nothing is left.
const AllReleased = "all memory of the GPUs was given back"

// others is by how much what a GPU holds may differ from what its processes are said
// to: the driver counts some of a process's memory a moment later.
const others = 16 << 20

// GivenBack says, of a process that has ended, whether GPUs hold what they held
// before it began, a sentence each, or one for all. What other processes took or
// gave back meanwhile is theirs. numbers are those of the GPUs, by which names go;
// within is how long the driver has.
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

// still waits until the driver has what the process had, or does not take it back,
// and says what is still held; empty: nothing is.
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

// more is what is held beyond what was held before and what other processes have
// taken since, or given back.
func (before state) more(now state) int64 {
	theirs := now.processes - before.processes
	more := now.used - before.used - theirs
	if theirs != 0 && more <= others {
		return 0
	}
	return max(0, more)
}
