package page

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/devmap-dev/devmap/executor/report"
)

// run is what a run of a plan measured.
type run struct {
	Verdict              report.Verdict `json:"verdict"`
	On                   string         `json:"on,omitzero"`    // in place of GPUs
	Speed                string         `json:"speed,omitzero"` // a sentence
	Reasons              []string       `json:"reasons"`
	PredictedStepSeconds *float64       `json:"step_seconds_predicted,omitzero"`
	StepSeconds          []float64      `json:"step_seconds,omitzero"`
	GPUs                 []report.GPU   `json:"gpus,omitzero"`
}

// maxSteps are the steps whose times the page has.
const maxSteps = 2000

// measured adds a run.
func (page *Page) measured(source *Source) {
	of := source.Run
	page.Run = &run{Verdict: of.Verdict, On: source.RunOn, Speed: source.Speed, Reasons: sentences(of.Reasons), GPUs: of.GPUs}
	if source.RunOn == "" { // else the times of GPUs are not judged
		page.Run.PredictedStepSeconds = of.StepSeconds.Predicted
	}
	page.Answer.Run = verdict(of.Verdict, source.RunOn, of.Reasons)
	for i := range of.Steps[:min(len(of.Steps), maxSteps)] {
		page.Run.StepSeconds = append(page.Run.StepSeconds, of.Steps[i].Seconds)
	}
	for i := range of.Devices {
		device := &of.Devices[i]
		if device.Device < 0 || device.Device >= len(page.GPUs) {
			continue
		}
		page.GPUs[device.Device].Measured = &measured{PeakAllocatedBytes: &device.Measured.PeakAllocatedBytes, DeviceUsedBytes: device.Measured.DeviceUsedBytes}
	}
}

// verdict is a run's verdict with its reasons. on names what ran in place of GPUs.
func verdict(is report.Verdict, on string, why []string) string {
	if on != "" {
		on = " on " + on
	}
	return strings.Join(append([]string{fmt.Sprintf("Measured%s: %s.", on, is)}, sentences(why)...), " ")
}

// sentences begin with a capital and end with a full stop.
func sentences(texts []string) []string {
	all := []string{}
	for _, text := range texts {
		if text == "" {
			continue
		}
		first, size := utf8.DecodeRuneInString(text)
		all = append(all, strings.TrimSuffix(string(unicode.ToUpper(first))+text[size:], ".")+".")
	}
	return all
}
