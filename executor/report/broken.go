package report

import "github.com/devmap-dev/devmap/executor"

// Foretell is the report of a run if it aborts before it says anything: what
// was predicted, and the GPUs that it is on, without measurements. Steps may be
// added ([StepOf]); [Report.BreakOff] says why it did.
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

// BreakOff gives the reasons, a sentence each, for which the run was aborted.
func (report *Report) BreakOff(reasons []string) {
	report.Verdict, report.Reasons = Fail, reasons
}
