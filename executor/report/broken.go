package report

import "github.com/devmap-dev/devmap/executor"

// Foretell returns the report of a run that aborts before it reports anything: the prediction, and
// its GPUs without measurements. Steps may be added ([StepOf]). [Report.BreakOff] sets the reasons.
func Foretell(prediction *Prediction, job *executor.Job, backend string, gpus []executor.GPUResult) *Report {
	for i := range gpus {
		gpus[i].Unmeasured = "the run failed"
	}
	nothing := &executor.Result{Backend: backend, GPUs: gpus}
	nothing.Turn.Woken = prediction.Woken
	report := newReport(prediction, job, nothing)
	if report.Turn != nil {
		report.Turn.End = "broken off"
	}
	for i := range report.Devices {
		report.Devices[i].Ratio = nil
	}
	report.Verdict = Fail
	return report
}

// BreakOff sets the reasons for which the run was aborted, a sentence each.
func (report *Report) BreakOff(reasons []string) {
	report.Verdict, report.Reasons = Fail, reasons
}
