package report

import "github.com/devmap-dev/devmap/executor"

// Foretell is the report of a run if it breaks off before it says anything: what
// was foretold, and the GPUs that it is on, of which nothing is known. Steps may be
// added ([StepOf]); [Report.BreakOff] says why it did.
func Foretell(foretold *Foretold, job *executor.Job, backend string, gpus []executor.GPUResult) *Report {
	for i := range gpus {
		gpus[i].Unmeasured = "the run broke off"
	}
	nothing := &executor.Result{Backend: backend, GPUs: gpus}
	nothing.Turn.Woken = foretold.Woken
	report := begun(foretold, job, nothing)
	if report.Turn != nil {
		report.Turn.End = "broken off"
	}
	for i := range report.Devices {
		report.Devices[i].Ratio = nil
	}
	report.Verdict = Fail
	return report
}

// BreakOff gives the reasons, a sentence each, for which the run broke off.
func (report *Report) BreakOff(reasons []string) {
	report.Verdict, report.Reasons = Fail, reasons
}
