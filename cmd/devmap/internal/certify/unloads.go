package certify

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
)

// reference returns the index of the unload that ended the first cycle: from then on all sleeping
// models sleep. It is -1 if the run did not get there.
func (document *Document) reference() int {
	last := -1
	for i := range document.Cycles {
		if document.Cycles[i].Cycle == 1 && document.Cycles[i].Plan != "" {
			last = i
		}
	}
	for i := range document.GPUs {
		if document.GPUs[i].Reference == nil {
			return -1
		}
	}
	return last
}

// later returns the unloads after the reference.
func (document *Document) later() []Unload {
	if at := document.reference(); at >= 0 {
		return document.Cycles[at+1:]
	}
	return nil
}

// ledger checks the process's driver resources. After an unload that closed everything it must have
// none. If models sleep, it must have exactly those of the end of the first cycle.
func (document *Document) ledger() Check {
	found := finding{right: fmt.Sprintf("nothing is held that should not be, behind %d unloads", len(document.Cycles))}
	at := document.reference()
	for i := range document.Cycles {
		unload := &document.Cycles[i]
		var want []executor.Holding
		switch {
		case unload.End == Closed:
		case i < at || at < 0:
			continue // some models that will sleep were not loaded yet
		default:
			want = document.Cycles[at].Ledger
		}
		for _, odd := range beyond(unload.Ledger, want) {
			found.fail("%s: %s", unload.where(), odd)
		}
	}
	if len(document.Cycles) == 0 {
		found.leave("nothing was unloaded")
	}
	return found.check(ledger)
}

// beyond lists the differences between a ledger and the expected one.
func beyond(got, want []executor.Holding) (all []string) {
	left := make(map[string]executor.Holding)
	for _, holding := range want {
		left[holding.Kind] = holding
	}
	for _, holding := range got {
		expected := left[holding.Kind]
		delete(left, holding.Kind)
		if holding.Count != expected.Count || holding.Bytes != expected.Bytes {
			all = append(all, fmt.Sprintf("%s in place of %s", counted(holding), counted(executor.Holding{Kind: holding.Kind, Count: expected.Count, Bytes: expected.Bytes})))
		}
	}
	for _, holding := range want {
		if _, missing := left[holding.Kind]; missing {
			all = append(all, fmt.Sprintf("no %s in place of %s", holding.Kind, counted(holding)))
		}
	}
	return all
}

// counted formats a holding.
func counted(holding executor.Holding) string {
	if holding.Count == 0 && holding.Bytes == 0 {
		return "none"
	}
	text := fmt.Sprintf("%d %s", holding.Count, holding.Kind)
	if holding.Bytes != 0 {
		text += fmt.Sprintf(" of %d bytes", holding.Bytes)
	}
	return text
}

// driverFree checks that, within a second after an unload, cuMemGetInfo reports the reference's
// free memory except for a granule.
func (document *Document) driverFree() Check {
	found, slowest := finding{}, 0.0
	for _, unload := range document.later() {
		for i := range unload.GPUs {
			left := &unload.GPUs[i]
			gpu := document.gpu(left.GPU)
			least := gpu.Reference.DriverFreeBytes - Granule
			if at, back := left.when(func(reading *Reading) bool { return reading.DriverFreeBytes >= least }); back {
				slowest = max(slowest, at)
				continue
			}
			lost := gpu.Reference.DriverFreeBytes - left.DriverFreeBytes
			found.blame(gpu.excuse(lost, difference(left.OwnBytes, gpu.Reference.OwnBytes)),
				"%s GPU %d has %v less free than when the first cycle was over", unload.where(), left.GPU, costmodel.Bytes(lost))
		}
	}
	document.judged(&found)
	found.right = fmt.Sprintf("back within %.3f s behind every unload", slowest)
	return found.check(driverFree)
}

// nvmlFree checks the same for the used memory that NVML reports.
func (document *Document) nvmlFree() Check {
	found, slowest := finding{}, 0.0
	for i := range document.GPUs {
		if gpu := &document.GPUs[i]; gpu.Unmeasured != "" {
			found.leave("GPU %d: %s", gpu.GPU, gpu.Unmeasured)
		}
	}
	for _, unload := range document.later() {
		for i := range unload.GPUs {
			left := &unload.GPUs[i]
			gpu := document.gpu(left.GPU)
			if gpu.Unmeasured != "" {
				continue
			}
			if gpu.Reference.NVMLUsedBytes == nil || left.NVMLUsedBytes == nil {
				found.leave("%s NVML did not report the memory of GPU %d", unload.where(), left.GPU)
				continue
			}
			largest := *gpu.Reference.NVMLUsedBytes + Granule
			if at, back := left.when(func(reading *Reading) bool { return reading.NVMLUsedBytes != nil && *reading.NVMLUsedBytes <= largest }); back {
				slowest = max(slowest, at)
				continue
			}
			lost := *left.NVMLUsedBytes - *gpu.Reference.NVMLUsedBytes
			found.blame(gpu.excuse(lost, difference(left.OwnBytes, gpu.Reference.OwnBytes)),
				"%s %v more of GPU %d are used than when the first cycle was over", unload.where(), costmodel.Bytes(lost), left.GPU)
		}
	}
	document.judged(&found)
	found.right = fmt.Sprintf("back within %.3f s behind every unload", slowest)
	return found.check(nvmlFree)
}

// judged leaves a check open if there was nothing to check.
func (document *Document) judged(found *finding) {
	if len(document.later()) == 0 {
		found.leave("no unload behind the first cycle was seen")
	}
}

// Within is the seconds after an unload in which memory must be released.
const Within = 1.0

// when returns the first time at which a reading satisfies a condition.
func (left *Left) when(is func(reading *Reading) bool) (seconds float64, found bool) {
	for i := range left.Curve {
		if reading := &left.Curve[i]; reading.Seconds <= Within && is(reading) {
			return reading.Seconds, true
		}
	}
	return 0, false
}

// growth checks that no cycle from the second to the last loses a granule, nor all together, by the
// driver or by NVML.
func (document *Document) growth() Check {
	ends := document.ends()
	found := finding{right: fmt.Sprintf("0 granules in cycles 2 to %d", len(ends)+1)}
	if len(ends) < 2 {
		found.leave("it takes two cycles behind the first to see it, and %d were seen", len(ends))
		return found.check(growth)
	}
	for i := 1; i < len(ends); i++ {
		document.lost(&found, &ends[i-1], &ends[i], fmt.Sprintf("cycle %d", ends[i].Cycle))
	}
	if first, last := &ends[0], &ends[len(ends)-1]; len(found.wrong)+len(found.open) == 0 {
		document.lost(&found, first, last, fmt.Sprintf("cycles %d to %d together", first.Cycle+1, last.Cycle))
	}
	return found.check(growth)
}

// lost records GPUs with less free memory after one unload than after an earlier one, by the larger
// of the two figures.
func (document *Document) lost(found *finding, before, now *Unload, when string) {
	for i := range min(len(before.GPUs), len(now.GPUs)) {
		from, to := &before.GPUs[i], &now.GPUs[i]
		less, by := from.DriverFreeBytes-to.DriverFreeBytes, ""
		if more := difference(to.NVMLUsedBytes, from.NVMLUsedBytes); more != nil && *more > less {
			less, by = *more, " by NVML"
		}
		if less >= Granule {
			excuse := document.gpu(to.GPU).excuse(less, difference(to.OwnBytes, from.OwnBytes))
			found.blame(excuse, "%s lost %v of GPU %d%s", when, costmodel.Bytes(less), to.GPU, by)
		}
	}
}

// ends returns the last unload of each cycle after the first.
func (document *Document) ends() (ends []Unload) {
	for _, unload := range document.later() {
		switch {
		case unload.Plan == "":
		case len(ends) > 0 && ends[len(ends)-1].Cycle == unload.Cycle:
			ends[len(ends)-1] = unload
		default:
			ends = append(ends, unload)
		}
	}
	return ends
}

// poison checks that every arena was overwritten before its release, as its GPU read it.
func (document *Document) poison() Check {
	found := finding{}
	var arenas, bytes int64
	for i := range document.Cycles {
		unload := &document.Cycles[i]
		if unload.Plan != "" && len(unload.Poison) == 0 {
			found.leave("%s: no arena was read back", unload.where())
		}
		for _, arena := range unload.Poison {
			arenas, bytes = arenas+1, bytes+arena.Bytes
			if arena.Wrong {
				found.fail("%s: the arena of device %d was given back with bytes in it that are not poison", unload.where(), arena.Device)
			}
		}
	}
	if len(document.Cycles) == 0 {
		found.leave("nothing was unloaded")
	}
	found.right = fmt.Sprintf("%d arenas of %v were poison when they were given back", arenas, costmodel.Bytes(bytes))
	return found.check(poison)
}
