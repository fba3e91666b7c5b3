package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/nvml"
	"github.com/devmap-dev/devmap/executor/report"
)

// holdings is what GPUs held before a worker was there, as NVML tells it: no
// context is needed for that.
type holdings struct {
	library *nvml.Library
	gpus    []nvml.GPU
	before  []int64 // bytes, by GPU
	err     error   // why it is not known
}

// lookAtGPUs looks at what every GPU holds.
func lookAtGPUs() *holdings {
	held := new(holdings)
	if held.library, held.err = nvml.Open(); held.err != nil {
		return held
	}
	held.gpus, held.err = held.library.GPUs()
	for i := range held.gpus {
		memory, err := held.gpus[i].Memory()
		if err != nil {
			held.err = err
		}
		held.before = append(held.before, memory.Used)
	}
	return held
}

// freeOf is what a GPU has free, where NVML tells.
func freeOf(uuid string) (bytes int64, known bool) {
	held := lookAtGPUs()
	defer held.close()
	at := slices.IndexFunc(held.gpus, func(gpu nvml.GPU) bool { return gpu.UUID == uuid })
	if at < 0 || held.err != nil {
		return 0, false
	}
	memory, err := held.gpus[at].Memory()
	return memory.Free, err == nil
}

// holders says who holds memory of a plan's GPUs, a line each; none where it runs
// on no GPU, or the driver tells nothing.
func (one *planRun) holders() []string {
	if len(one.gpus) == 0 {
		return nil
	}
	held := lookAtGPUs()
	defer held.close()
	var lines []string
	for i, name := range one.names {
		at := slices.IndexFunc(held.gpus, func(gpu nvml.GPU) bool { return gpu.UUID == name.UUID })
		if at < 0 || !slices.Contains(one.gpus, i) || held.err != nil {
			continue
		}
		memory, err := held.gpus[at].Memory()
		if err == nil {
			lines = append(lines, fmt.Sprintf("GPU %d (%s) has %v: %v are the driver's, %v are held%s", i, name.Name,
				costmodel.Bytes(memory.Total), costmodel.Bytes(memory.Reserved), costmodel.Bytes(memory.Used), byWhom(&held.gpus[at])))
		}
	}
	return lines
}

// byWhom names the processes on a GPU but this one.
func byWhom(gpu *nvml.GPU) string {
	const most = 8
	processes, err := gpu.Processes()
	if err != nil {
		return ""
	}
	slices.SortFunc(processes, func(one, other nvml.Process) int { return cmp.Compare(other.Used, one.Used) })
	var named []string
	for _, process := range processes {
		switch {
		case process.ID == os.Getpid():
		case process.Used < 0:
			named = append(named, fmt.Sprintf("process %d (how much is not told)", process.ID))
		default:
			named = append(named, fmt.Sprintf("process %d %v", process.ID, costmodel.Bytes(process.Used)))
		}
	}
	if more := len(named) - most; more > 0 {
		named = append(named[:most], fmt.Sprintf("%d more", more))
	}
	if len(named) == 0 {
		return " by no process that is shown here"
	}
	return " by " + strings.Join(named, ", ")
}

func (held *holdings) close() {
	if held.library != nil {
		held.library.Close() //nolint:errcheck // nothing was written
	}
}

// Memory is given back in pieces, by a driver that takes its time: how long for, and
// how often that is looked at.
const (
	givingBack = 10 * time.Second
	lookAgain  = 50 * time.Millisecond
)

// givenBack says of the GPUs in use whether they hold what they held before, a
// sentence each, or one for all.
func (held *holdings) givenBack(used []report.GPU) []string {
	if held.err != nil {
		return []string{"what the GPUs hold now is not known: " + held.err.Error()}
	}
	var all []string
	for i := range used {
		if still := held.still(&used[i]); still != "" {
			all = append(all, fmt.Sprintf("GPU %d (%s): %s", used[i].GPU, used[i].Name, still))
		}
	}
	if len(all) == 0 {
		return []string{"all memory of the GPUs was given back"}
	}
	return all
}

// still waits until the driver has what the process had, or does not take it back,
// and says what is still held; empty: nothing is.
func (held *holdings) still(used *report.GPU) string {
	at := slices.IndexFunc(held.gpus, func(gpu nvml.GPU) bool { return gpu.UUID == used.UUID })
	if at < 0 {
		return "what it holds now is not known: NVML does not show it"
	}
	for deadline := time.Now().Add(givingBack); ; time.Sleep(lookAgain) {
		memory, err := held.gpus[at].Memory()
		more := memory.Used - held.before[at]
		switch {
		case err != nil:
			return fmt.Sprintf("what it holds now is not known: %v", err)
		case more <= 0:
			return ""
		case time.Now().After(deadline):
			return fmt.Sprintf("%v more are held than before the run", costmodel.Bytes(more))
		}
	}
}
