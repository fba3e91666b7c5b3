package gpuusage

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/nvml"
)

// Holders describes a GPU's current usage and its processes; empty if NVML does not report it.
func (snapshot *Snapshot) Holders(number int, of executor.GPU) string {
	at := snapshot.find(of.UUID)
	if at < 0 || snapshot.err != nil {
		return ""
	}
	memory, err := snapshot.gpus[at].Memory()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("GPU %d (%s) has %v: %v are the driver's, %v are held%s", number, of.Name,
		costmodel.Bytes(memory.Total), costmodel.Bytes(memory.Reserved), costmodel.Bytes(memory.Used), byWhom(&snapshot.gpus[at]))
}

// byWhom names the other processes on a GPU, largest first.
func byWhom(gpu *nvml.GPU) string {
	const most = 8
	processes, err := gpu.Processes()
	if err != nil {
		return ""
	}
	slices.SortFunc(processes, func(one, other nvml.Process) int { return cmp.Compare(other.Used, one.Used) })
	var named []string
	nobody := " by no process that is shown here"
	for _, process := range processes {
		switch {
		case process.ID == os.Getpid():
			nobody = " by devmap itself"
		case process.Used < 0:
			named = append(named, fmt.Sprintf("process %d (amount unknown)", process.ID))
		default:
			named = append(named, fmt.Sprintf("process %d %v", process.ID, costmodel.Bytes(process.Used)))
		}
	}
	if more := len(named) - most; more > 0 {
		named = append(named[:most], fmt.Sprintf("%d more", more))
	}
	if len(named) == 0 {
		return nobody
	}
	return " by " + strings.Join(named, ", ")
}

// Names lists GPUs by number and name.
func Names(gpus []executor.GPU) string {
	var names []string
	for i := range gpus {
		names = append(names, fmt.Sprintf("GPU %d (%s)", i, gpus[i].Name))
	}
	return strings.Join(names, ", ")
}
