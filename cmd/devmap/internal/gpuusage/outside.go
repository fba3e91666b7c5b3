package gpuusage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/certify"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/watch"
)

// outsideOften and endOften are the times between readings, during a run and at its end. Constant
// settleLimit limits the wait for a stable usage before a run. Constant endLimit limits the wait
// for drivers to release the memory of an ended process: NVML is late by about a second, and
// nvidia-smi reports processes every two.
const (
	outsideOften = 100 * time.Millisecond
	settleLimit  = 3 * time.Second
	endOften     = 20 * time.Millisecond
	endLimit     = 5 * time.Second
)

// Outside monitors GPUs from outside of the process that uses them, without a context on any. It
// records their usage before the process, other processes, and the memory left after its end.
type Outside struct {
	// The function Whose reports whether a process on a GPU (by UUID) is the judged one or its
	// child: ours. Result here is false if its number is of another namespace.
	Whose func(uuid string, process int) (ours, here bool)

	reader watch.Reader
	gpus   []watch.GPU
	err    error // why nothing is known

	lock    sync.Mutex
	before  []int64 // by GPU
	tenants []map[int]*tenant
	looks   int
	stop    chan struct{}
	ended   sync.WaitGroup

	often, limit time.Duration // between readings; at the end
}

// tenant is a process on a GPU: its first, last, least and most bytes; -1 if the driver does not
// report them.
type tenant struct {
	first, last, least, most int64
	// looks is the number of readings with the process; began and ended are the first and last of
	// them.
	looks, began, ended int
	ours, here          bool
}

// NewOutside takes a reader, or the error of opening it. It waits until the usage is stable, as a
// process that has just ended may still have memory.
func NewOutside(reader watch.Reader, err error, whose func(uuid string, process int) (ours, here bool)) *Outside {
	outside := &Outside{Whose: whose, reader: reader, err: err, stop: make(chan struct{}), often: outsideOften, limit: endLimit}
	if outside.err == nil {
		outside.err = outside.settle()
	}
	if outside.err == nil {
		outside.ended.Go(outside.follow)
	}
	return outside
}

// settle reads until the usage of GPUs is stable.
func (outside *Outside) settle() error {
	outside.gpus = outside.reader.GPUs()
	for begin, last := time.Now(), []int64(nil); ; {
		outside.before = make([]int64, len(outside.gpus))
		outside.tenants = make([]map[int]*tenant, len(outside.gpus))
		for i := range outside.tenants {
			outside.tenants[i] = make(map[int]*tenant)
		}
		outside.looks = 0
		if err := outside.reader.Used(outside.before); err != nil {
			return err
		}
		outside.look()
		if slices.Equal(last, outside.before) || time.Since(begin) > settleLimit {
			return nil
		}
		last = outside.before
		time.Sleep(outside.often)
	}
}

// follow reads the GPUs' processes until the end.
func (outside *Outside) follow() {
	for tick := time.NewTicker(outside.often); ; {
		select {
		case <-tick.C:
			outside.look()
		case <-outside.stop:
			tick.Stop()
			return
		}
	}
}

// look records the processes on each GPU now. A process of the first reading is another one.
func (outside *Outside) look() {
	outside.lock.Lock()
	defer outside.lock.Unlock()
	outside.looks++
	for i := range outside.gpus {
		processes, err := outside.reader.Processes(i)
		if err != nil {
			continue // unknown if the driver shows no processes
		}
		for _, process := range processes {
			known := outside.tenants[i][process.ID]
			if known == nil {
				known = &tenant{first: process.Used, least: process.Used, most: process.Used, began: outside.looks}
				outside.tenants[i][process.ID] = known
			}
			known.last, known.looks, known.ended = process.Used, known.looks+1, outside.looks
			known.least, known.most = min(known.least, process.Used), max(known.most, process.Used)
		}
		for process, known := range outside.tenants[i] { // a new process may not be known yet
			if known.began > 1 && !known.ours {
				known.ours, known.here = outside.Whose(outside.gpus[i].UUID, process)
			}
		}
	}
}

// End reads GPUs, by UUID, after their process has ended. It waits some seconds until the usage is
// the same as before and no process is left.
func (outside *Outside) End(uuids []string, ended string) *certify.After {
	if outside.err == nil {
		close(outside.stop)
		outside.ended.Wait()
	}
	after := &certify.After{Ended: ended}
	if outside.err != nil {
		after.Unmeasured = outside.err.Error()
		return after
	}
	source := outside.reader.Source()
	after.Source, after.PrecisionBytes = source.Name, source.GranuleBytes
	for begin := time.Now(); ; time.Sleep(endOften) {
		back := outside.ends(after, uuids)
		after.Seconds = time.Since(begin).Seconds()
		if back || after.Unmeasured != "" || time.Since(begin) > outside.limit {
			return after
		}
	}
}

// Again reads the processes once more, after the end.
func (outside *Outside) Again() {
	if outside.err == nil {
		outside.look()
	}
}

// ends makes one reading at the end, and reports that all memory is back.
func (outside *Outside) ends(after *certify.After, uuids []string) (back bool) {
	after.GPUs, after.Alive, back = nil, nil, true
	used := make([]int64, len(outside.gpus))
	if err := outside.reader.Used(used); err != nil {
		after.Unmeasured = err.Error()
		return false
	}
	outside.look()
	for number, uuid := range uuids {
		at := outside.find(uuid)
		if at < 0 {
			after.Unmeasured = fmt.Sprintf("%s shows no %s", outside.reader.Source().Name, uuid)
			return false
		}
		more := used[at] - outside.before[at]
		after.GPUs = append(after.GPUs, certify.AfterGPU{GPU: number, UUID: uuid, UsedBytes: used[at], DifferenceBytes: more})
		back = back && max(more, -more) <= certify.Granule
		for process, one := range outside.tenants[at] {
			after.Shown = after.Shown || one.ours
			if one.ours && one.ended == outside.looks {
				remaining := certify.Remaining{GPU: number, Process: process}
				if bytes := one.last; bytes >= 0 {
					remaining.UsedBytes = &bytes
				}
				after.Alive, back = append(after.Alive, remaining), false
			}
		}
	}
	return back
}

// Tell sets a GPU's usage before, and describes what other processes did on it.
func (outside *Outside) Tell(gpu *certify.GPU) {
	at := outside.find(gpu.UUID)
	if outside.err != nil || at < 0 {
		return
	}
	outside.lock.Lock()
	defer outside.lock.Unlock()
	gpu.Before = &certify.Before{UsedBytes: outside.before[at]}
	var moved []string
	for _, process := range slices.Sorted(maps.Keys(outside.tenants[at])) {
		one := outside.tenants[at][process]
		if one.began == 1 {
			gpu.Before.OthersBytes += max(0, one.first)
		}
		if did := one.did(outside.looks); did != "" {
			moved = append(moved, fmt.Sprintf("process %d %s", process, did))
		}
	}
	const most = 3
	if more := len(moved) - most; more > 0 {
		moved = append(moved[:most], fmt.Sprintf("%d more moved", more))
	}
	gpu.Others = strings.Join(moved, ", ")
}

// did describes what another process did; empty: nothing. A process of another namespace that came
// and left counts as the judged one: in a container, drivers number processes by the host's
// namespace.
func (tenant *tenant) did(looks int) string {
	switch {
	case tenant.ours, tenant.began > 1 && !tenant.here && tenant.ended < looks:
		return ""
	case tenant.began > 1 && !tenant.here:
		return fmt.Sprintf("came, with %s, of another namespace: whose it is is not known", bytesOf(tenant.most))
	case tenant.began > 1:
		return fmt.Sprintf("came, with %s", bytesOf(tenant.most))
	case tenant.ended < looks:
		return fmt.Sprintf("left, which had %s", bytesOf(tenant.first))
	case tenant.least != tenant.most:
		return fmt.Sprintf("held between %s and %s", bytesOf(tenant.least), bytesOf(tenant.most))
	}
	return ""
}

func bytesOf(bytes int64) string {
	if bytes < 0 {
		return "an unknown amount of memory"
	}
	return costmodel.Bytes(bytes).String()
}

func (outside *Outside) find(uuid string) int {
	return slices.IndexFunc(outside.gpus, func(gpu watch.GPU) bool { return gpu.UUID == uuid })
}
