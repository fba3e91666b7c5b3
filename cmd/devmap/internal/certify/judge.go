package certify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
)

// The checks.
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

// Granule is what memory of every GPU that is known is mapped in, and by how much what
// is free may be less than the reference.
const Granule = 2 << 20

// finding is what a check has found: what is wrong, what is not known, and what it says
// where there is neither. Wrong is only what cannot be another process's doing.
type finding struct {
	wrong, open []string
	right       string
	excused     bool // memory is not where it was, and may be another's
}

func (found *finding) fail(format string, args ...any) {
	found.wrong = append(found.wrong, fmt.Sprintf(format, args...))
}

func (found *finding) leave(format string, args ...any) {
	found.open = append(found.open, fmt.Sprintf(format, args...))
}

// blame enters a fault that may be another process's: it counts as that if there is
// an excuse.
func (found *finding) blame(excuse, format string, args ...any) {
	if excuse != "" {
		found.excused = true
		found.leave("%s (%s)", fmt.Sprintf(format, args...), excuse)
		return
	}
	found.fail(format, args...)
}

// most bounds how many faults a check tells of.
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

// JudgeRun fills in checks, verdict and reasons of a run that unloaded models. broke is
// why it did not come to its end; empty: it did.
func (document *Document) JudgeRun(broke string) {
	memory := []Check{document.driverFree(), document.nvmlFree(), document.growth(), document.refill()}
	after := document.baseline()
	document.judge(broke, slices.Concat(
		[]Check{document.ledger()}, memory, []Check{document.poison(), document.others(moved(append(memory, after)...)), document.processGone(), after})...)
}

// JudgeLeft fills them in of a command of any engine that has ended.
func (document *Document) JudgeLeft() {
	checks := []Check{document.baseline()}
	if len(document.Refill) > 0 { // it is tried by builds with CUDA
		checks = append(checks, document.refill())
	}
	document.judge("", append(checks, document.others(moved(checks...)), document.processGone())...)
}

// moved reports that memory is not where it was, and that it is not known who moved it.
func moved(checks ...Check) bool {
	return slices.ContainsFunc(checks, func(check Check) bool { return check.excused })
}

// judge makes the verdict: fail where a check fails, as none does that another process
// may have had a hand in, else inconclusive where something is not known.
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

// open enters a reason by which the verdict is no pass.
func (document *Document) open(reason string) {
	if document.Verdict == report.Pass {
		document.Verdict = report.Inconclusive
	}
	document.Reasons = append(document.Reasons, reason)
}

// passed is what a certificate certifies.
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

// gpu finds one by its number.
func (document *Document) gpu(number int) *GPU {
	for i := range document.GPUs {
		if document.GPUs[i].GPU == number {
			return &document.GPUs[i]
		}
	}
	return &GPU{}
}

// excuse is why memory that a GPU lacks may be another process's; empty: it is this
// one's. If others moved it may be theirs. If no process that the driver shows has it,
// it is not known whose it is. own is what this process has more than at the reference;
// nil: that is not known.
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

// unknown is why it is not known who holds a GPU's memory; empty: the driver reports it,
// and no process moved.
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
