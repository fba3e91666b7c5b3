package held

import (
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
)

// lookAgain is how often is looked at what a driver gives back in pieces.
const lookAgain = 50 * time.Millisecond

// All is what is said where nothing is left.
const All = "all memory of the GPUs was given back"

// others is by how much what a GPU holds may differ from what its processes are said
// to: the driver counts some of a process's memory a moment later.
const others = 16 << 20

// GivenBack says, of a process that has ended, whether GPUs hold what they held
// before it began, a sentence each, or one for all. What other processes took or
// gave back meanwhile is theirs. numbers are those of the GPUs, by which names go;
// within is how long the driver has.
func (held *Held) GivenBack(process int, numbers []int, names []executor.GPU, within time.Duration) []string {
	if held.err != nil {
		return []string{"what the GPUs hold now is not known: " + held.err.Error()}
	}
	var all []string
	for i, gpu := range names {
		if still := held.still(process, gpu.UUID, within); still != "" {
			all = append(all, fmt.Sprintf("GPU %d (%s): %s", numbers[i], gpu.Name, still))
		}
	}
	if len(all) == 0 {
		return []string{All}
	}
	return all
}

// still waits until the driver has what the process had, or does not take it back,
// and says what is still held; empty: nothing is.
func (held *Held) still(process int, uuid string, within time.Duration) string {
	at := held.find(uuid)
	if at < 0 {
		return "what it holds now is not known: NVML does not show it"
	}
	for deadline := time.Now().Add(within); ; time.Sleep(lookAgain) {
		now, err := stateOf(&held.gpus[at], process)
		if err != nil {
			return fmt.Sprintf("what it holds now is not known: %v", err)
		}
		more := held.before[at].more(now)
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
