package certify

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// refill checks that a GPU's free memory, except for a margin, can be allocated in one piece, and
// that it keeps written bytes.
func (document *Document) refill() Check {
	found := finding{}
	var largest int64
	for i := range document.Refill {
		one := &document.Refill[i]
		when := fmt.Sprintf("at the end of cycle %d GPU %d", one.Cycle, one.GPU)
		if one.Cycle == 0 {
			when = fmt.Sprintf("GPU %d", one.GPU)
		}
		gpu := document.gpu(one.GPU)
		switch {
		case one.Wrong:
			found.fail("%s did not hold what was written into %v of it", when, costmodel.Bytes(one.Bytes))
		case one.Refused:
			found.blame(gpu.unknown(), "%s gave no %v in one piece, of %v that are free: %s", when, costmodel.Bytes(one.Bytes), costmodel.Bytes(one.FreeBytes), one.Error)
		case one.Error != "":
			found.leave("%s: %s", when, one.Error)
		case !one.Allocated:
			found.leave("%s has %v free, which is the margin", when, costmodel.Bytes(one.FreeBytes))
		}
		largest = max(largest, one.Bytes)
	}
	if len(document.Refill) == 0 {
		found.leave("it was not tried")
	}
	found.right = fmt.Sprintf("up to %v in one piece, written and read back %d times", costmodel.Bytes(largest), len(document.Refill))
	return found.check(refill)
}

// others checks that other processes' memory did not change. If the driver shows no processes,
// moved is the evidence: memory changed.
func (document *Document) others(moved bool) Check {
	found := finding{right: "no other process came, left or changed"}
	shown, measured := document.After != nil && document.After.Shown, false
	for i := range document.GPUs {
		gpu := &document.GPUs[i]
		measured = measured || gpu.Unmeasured == ""
		switch {
		case gpu.Unmeasured != "":
			found.leave("GPU %d: %s", gpu.GPU, gpu.Unmeasured)
		case gpu.Others != "":
			found.leave("GPU %d: %s", gpu.GPU, gpu.Others)
		}
	}
	if document.After == nil || document.After.Unmeasured != "" || !measured {
		found.leave("they were not looked at")
	}
	if !shown && moved {
		found.leave("memory was allocated or released, and the driver does not show here by which process")
	}
	if !shown {
		found.right = "none of its processes was seen on a GPU; no other memory was allocated or released"
	}
	return found.check(others)
}

// processGone checks that the process has ended, and that the driver shows it on no GPU.
func (document *Document) processGone() Check {
	after := document.After
	found := finding{}
	if after == nil {
		found.leave("it was not looked at")
		return found.check(processGone)
	}
	for _, one := range after.Alive {
		used := "an unknown amount of memory"
		if one.UsedBytes != nil {
			used = costmodel.Bytes(*one.UsedBytes).String()
		}
		found.fail("process %d is on GPU %d still, with %s", one.Process, one.GPU, used)
	}
	if after.Unmeasured != "" {
		found.leave("%s", after.Unmeasured)
	}
	found.right = after.Ended
	if !after.Shown {
		found.right += "; none of its processes was seen on a GPU, then or before"
	}
	return found.check(processGone)
}

// baseline checks that every GPU's usage is the same as before, after the process has ended.
func (document *Document) baseline() Check {
	after := document.After
	found := finding{}
	if after == nil || after.Unmeasured != "" || len(after.GPUs) == 0 {
		why := "it was not looked at"
		if after != nil && after.Unmeasured != "" {
			why = after.Unmeasured
		}
		found.leave("%s", why)
		return found.check(baseline)
	}
	var farthest int64
	for i := range after.GPUs {
		now := &after.GPUs[i]
		gpu := document.gpu(now.GPU)
		switch more := now.DifferenceBytes; {
		case more > Granule:
			excuse := gpu.Others
			if excuse == "" && !after.Shown {
				excuse = "the driver shows no process here that could have it"
			}
			found.blame(excuse, "GPU %d holds %v more than before", now.GPU, costmodel.Bytes(more))
		case more < -Granule: // another process released memory
			excuse := gpu.Others
			if excuse == "" {
				excuse = "whose that was is not known"
			}
			found.leave("GPU %d holds %v less than before (%s)", now.GPU, costmodel.Bytes(-more), excuse)
		default:
			farthest = max(farthest, more, -more)
		}
	}
	found.right = fmt.Sprintf("what was held before, to %d bytes", farthest)
	if after.PrecisionBytes > 1 {
		found.right += fmt.Sprintf(", as %s tells it in whole %v", after.Source, costmodel.Bytes(after.PrecisionBytes))
	}
	return found.check(baseline)
}
