package certify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
)

// These are the names of the checks.
const (
	ledger      = "ledger"
	driverFree  = "driver_free"
	nvmlFree    = "nvml_free"
	growth      = "growth"
	refill      = "refill"
	poison      = "poison"
	others      = "others"
	processGone = "process_gone"
	baseline    = "baseline"
)

// Granule is the unit of memory mapping on every known GPU, and the allowed loss of free memory
// against the reference.
const Granule = 2 << 20

// finding is the result of a check: faults, unknowns, and a text if there are neither. Only faults
// that no other process can cause are wrong.
type finding struct {
	wrong, open []string
	right       string
	excused     bool // memory changed, possibly by another process
}

func (found *finding) fail(format string, args ...any) {
	found.wrong = append(found.wrong, fmt.Sprintf(format, args...))
}

func (found *finding) leave(format string, args ...any) {
	found.open = append(found.open, fmt.Sprintf(format, args...))
}

// blame records a fault that another process may have caused. It counts as unknown if there is an
// excuse.
func (found *finding) blame(excuse, format string, args ...any) {
	if excuse != "" {
		found.excused = true
		found.leave("%s (%s)", fmt.Sprintf(format, args...), excuse)
		return
	}
	found.fail(format, args...)
}

// most is the most faults that a check lists.
const most = 2

func (found *finding) check(name string) Check {
	said := func(all []string) string {
		if more := len(all) - most; more > 0 {
			all = append(all[:most:most], fmt.Sprintf("%d more", more))
		}
		return strings.Join(all, "; ")
	}
	switch {
	case len(found.wrong) > 0:
		return Check{name, report.Fail, said(found.wrong), found.excused}
	case len(found.open) > 0:
		return Check{name, report.Inconclusive, said(found.open), found.excused}
	}
	return Check{name, report.Pass, found.right, false}
}

// JudgeRun sets checks, verdict and reasons of a run that unloaded models. broke says why the run
// failed; empty: it did not.
func (document *Document) JudgeRun(broke string) {
	memory := []Check{document.driverFree(), document.nvmlFree(), document.growth(), document.refill()}
	after := document.baseline()
	document.judge(broke, slices.Concat(
		[]Check{document.ledger()}, memory, []Check{document.poison(), document.others(moved(append(memory, after)...)), document.processGone(), after})...)
}

// JudgeLeft sets checks, verdict and reasons of an ended command of any engine.
func (document *Document) JudgeLeft() {
	checks := []Check{document.baseline()}
	if len(document.Refill) > 0 { // only builds with CUDA refill
		checks = append(checks, document.refill())
	}
	document.judge("", append(checks, document.others(moved(checks...)), document.processGone())...)
}

// moved reports that memory changed, possibly by another process.
func moved(checks ...Check) bool {
	return slices.ContainsFunc(checks, func(check Check) bool { return check.excused })
}

// judge sets the verdict: fail if a check fails, inconclusive if something is unknown, else pass.
func (document *Document) judge(broke string, checks ...Check) {
	document.FormatVersion, document.Checks, document.Verdict, document.Reasons = Format, checks, report.Pass, nil
	for _, check := range checks {
		if check.Verdict == report.Fail {
			document.Verdict = report.Fail
		}
	}
	if broke != "" {
		document.open("what would have followed is not known: " + broke)
	}
	for _, check := range checks {
		switch check.Verdict {
		case report.Pass:
		case report.Inconclusive:
			document.open(check.Name + ": " + check.Detail)
		default:
			document.Reasons = append(document.Reasons, check.Name+": "+check.Detail)
		}
	}
	if document.Verdict == report.Pass {
		document.Reasons = []string{document.passed()}
	}
}

// open records a reason why the verdict is not pass.
func (document *Document) open(reason string) {
	if document.Verdict == report.Pass {
		document.Verdict = report.Inconclusive
	}
	document.Reasons = append(document.Reasons, reason)
}

// passed returns the statement of a passed certificate.
func (document *Document) passed() string {
	switch {
	case len(document.Cycles) == 0 && len(document.Refill) == 0:
		return "the GPUs hold what they held before"
	case len(document.Cycles) == 0:
		return "the GPUs hold what they held before, and all that is free can be had"
	}
	last := &document.Cycles[len(document.Cycles)-1]
	return fmt.Sprintf("%d unloads in %d cycles lost no granule, and the GPUs hold what they held before", len(document.Cycles), last.Of)
}

// gpu returns a GPU by its number.
func (document *Document) gpu(number int) *GPU {
	for i := range document.GPUs {
		if document.GPUs[i].GPU == number {
			return &document.GPUs[i]
		}
	}
	return &GPU{}
}

// excuse says why another process may have the memory that a GPU lacks; empty: this process has it.
// If other processes changed, it may be theirs. If no visible process has the memory, its owner is
// unknown. own is this process's growth since the reference; nil: unknown.
func (gpu *GPU) excuse(lost int64, own *int64) string {
	switch unknown := gpu.unknown(); {
	case unknown != "":
		return unknown
	case own == nil:
		return "the driver does not tell how much each process holds"
	case *own <= lost-Granule:
		return fmt.Sprintf("of this devmap's process has %v: the rest is no process's that the driver shows", costmodel.Bytes(max(0, *own)))
	}
	return ""
}

// unknown says why the owner of a GPU's memory is unknown. It is empty if the driver reports owners
// and no other process changed.
func (gpu *GPU) unknown() string {
	switch {
	case gpu.Unmeasured != "":
		return "who holds it is not known: " + gpu.Unmeasured
	case gpu.Others != "":
		return gpu.Others
	case gpu.Process == 0:
		return "the driver shows no process here, not even devmap's: who holds it is not known"
	}
	return ""
}

// where names an unload.
func (unload *Unload) where() string {
	if unload.Plan == "" {
		return "when all was closed"
	}
	return fmt.Sprintf("behind %s in cycle %d", unload.Plan, unload.Cycle)
}

func difference(now, before *int64) *int64 {
	if now == nil || before == nil {
		return nil
	}
	more := *now - *before
	return &more
}
