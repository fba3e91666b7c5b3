//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/nvml"
)

// memoryGauge collects NVML's figures of a GPU during a run. A reading takes tens of microseconds
// and no part in the GPU's streams, so that every fence is read.
type memoryGauge struct {
	lock   sync.Mutex
	handle nvml.GPU
	result executor.GPUResult
	// before are the processes on the GPU before this one. self is this process's number for the
	// driver, which in a container is not its own. It is 0 if the driver does not show the process.
	before []nvml.Process
	self   int
	last   int64 // what was used at the last reading
	fences sync.WaitGroup
}

// reading is the memory in use on a GPU, and its processes.
type reading struct {
	handle    nvml.GPU
	used      int64
	processes []nvml.Process
}

func read(handle nvml.GPU) (reading, error) {
	memory, err := handle.Memory()
	if err != nil {
		return reading{}, err
	}
	processes, err := handle.Processes()
	return reading{handle, memory.Used, processes}, err
}

func (gauge *memoryGauge) moment(field func(result *executor.GPUResult) *int64) {
	gauge.fences.Wait()
	gauge.lock.Lock()
	defer gauge.lock.Unlock()
	if gauge.result.Unmeasured != "" {
		return
	}
	now, err := read(gauge.handle)
	if err != nil {
		gauge.result.Unmeasured = err.Error()
		return
	}
	into := field(&gauge.result)
	gauge.last = now.used
	*into = now.used
	switch into {
	case &gauge.result.Context:
		gauge.self = nvml.Self(gauge.before, now.processes)
	case &gauge.result.Ready:
		gauge.result.Tables = driver.Tables()
	case &gauge.result.After:
		gauge.result.TablesAfter = driver.Tables()
	}
	gauge.others(now.processes)
}

// begin clears the readings of the last turn.
func (gauge *memoryGauge) begin() {
	gauge.fences.Wait()
	gauge.lock.Lock()
	defer gauge.lock.Unlock()
	result := &gauge.result
	result.Ready, result.After, result.Fences, result.FenceLow, result.FenceHigh = 0, 0, 0, 0, 0
}

// fence reads the GPU's used memory when a stream has passed a fence, while the host continues: a
// generated token ends at a fence, and the next one does not wait for NVML.
func (gauge *memoryGauge) fence() { gauge.fences.Go(gauge.readFence) }

// readFence reads the processes too if the figure has changed.
func (gauge *memoryGauge) readFence() {
	gauge.lock.Lock()
	defer gauge.lock.Unlock()
	result := &gauge.result
	if result.Unmeasured != "" {
		return
	}
	memory, err := gauge.handle.Memory()
	if err != nil {
		result.Unmeasured = err.Error()
		return
	}
	result.Fences++
	if result.Fences == 1 {
		result.FenceLow, result.FenceHigh = memory.Used, memory.Used
	}
	result.FenceLow, result.FenceHigh = min(result.FenceLow, memory.Used), max(result.FenceHigh, memory.Used)
	if memory.Used == gauge.last {
		return
	}
	gauge.last = memory.Used
	if processes, err := gauge.handle.Processes(); err == nil {
		gauge.others(processes)
	}
}

// others notes the first time that another process came, went or changed.
func (gauge *memoryGauge) others(now []nvml.Process) {
	if gauge.result.Moved != "" {
		return
	}
	var changes []string
	for i := range now {
		before := nvml.Numbered(gauge.before, now[i].ID)
		switch {
		case now[i].ID == gauge.self:
		case before == nil:
			changes = append(changes, fmt.Sprintf("process %d came with %s", now[i].ID, sizeText(now[i].Used)))
		case before.Used != now[i].Used:
			changes = append(changes, fmt.Sprintf("process %d went from %s to %s", now[i].ID, sizeText(before.Used), sizeText(now[i].Used)))
		}
	}
	for i := range gauge.before {
		if id := gauge.before[i].ID; id != gauge.self && nvml.Numbered(now, id) == nil {
			changes = append(changes, fmt.Sprintf("process %d left with %s", id, sizeText(gauge.before[i].Used)))
		}
	}
	gauge.result.Moved = strings.Join(changes, ", ")
}

func sizeText(bytes int64) string {
	if bytes < 0 {
		return "an unknown size"
	}
	return costmodel.Bytes(bytes).String()
}

// measured returns the result. If the driver shows no process, memory that is neither
// arena nor context counts as another process's.
func (gauge *memoryGauge) measured() executor.GPUResult {
	gauge.fences.Wait()
	gauge.lock.Lock()
	defer gauge.lock.Unlock()
	result := gauge.result
	if gauge.self != 0 || result.Moved != "" || result.Unmeasured != "" {
		return result
	}
	for _, used := range []int64{result.Ready, result.FenceLow, result.FenceHigh} {
		if beyond := used - result.Context - result.Arenas - result.Tables; used != 0 && max(beyond, -beyond) > libraries {
			result.Moved = fmt.Sprintf("%v was allocated or released outside the arenas; the driver does not show by which process", costmodel.Bytes(max(beyond, -beyond)))
		}
	}
	return result
}

// unused is the state of GPUs before this process used any, by UUID. It is read once: libraries
// keep contexts until the process ends.
var unused = sync.OnceValues(func() (map[string]reading, error) {
	library, err := nvml.Open()
	if err != nil {
		return nil, err
	}
	gpus, err := library.GPUs()
	if err != nil {
		return nil, errors.Join(err, library.Close())
	}
	found := make(map[string]reading)
	for i := range gpus {
		memory, processes, err := gpus[i].Settled()
		if err != nil {
			return nil, errors.Join(err, library.Close())
		}
		found[gpus[i].UUID] = reading{gpus[i], memory.Used, processes}
	}
	return found, nil // the library stays open for the process's other readings
})

// The moments that have one figure.
func withContext(result *executor.GPUResult) *int64 { return &result.Context }

func allReady(result *executor.GPUResult) *int64 { return &result.Ready }

func givenBack(result *executor.GPUResult) *int64 { return &result.After }
