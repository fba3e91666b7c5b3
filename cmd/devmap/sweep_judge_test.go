package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// sweptPlan has the fields of a plan that the sweep checks; raw has all fields.
type sweptPlan struct {
	DeviceMap   json.RawMessage   `json:"device_map"`
	Devices     []contractDevice  `json:"devices"`
	Objective   contractObjective `json:"objective"`
	Imbalance   float64           `json:"imbalance"`
	StepSeconds *float64          `json:"step_seconds"`
	Offload     json.RawMessage   `json:"offload"`
	Warnings    []string          `json:"warnings"`
	raw         map[string]json.RawMessage
}

// planFields lists the fields of the contract, except for a device map and stages, which are
// optional.
var planFields = []string{"format_version", "model", "workload", "topology", "devices", "objective", "imbalance", "step_seconds", "warnings"}

func readPlan(data []byte) (*sweptPlan, error) {
	p := &sweptPlan{}
	if err := errors.Join(json.Unmarshal(data, p), json.Unmarshal(data, &p.raw)); err != nil {
		return nil, fmt.Errorf("the plan is no JSON: %w", err)
	}
	for _, name := range planFields {
		if _, ok := p.raw[name]; !ok {
			return nil, fmt.Errorf("the plan has no %q", name)
		}
	}
	if (p.raw["device_map"] == nil) != (p.raw["stages"] == nil) {
		return nil, errors.New("a device map goes with stages")
	}
	return p, nil
}

// share returns the part of its budget that a device uses.
func (d *contractDevice) share() float64 {
	return float64(d.Predicted.PeakAllocatedBytes+d.Predicted.OverheadBytes) / float64(d.CapacityBytes-d.ReservedBytes)
}

// figures returns the texts that a hint may have for the fullest GPU; several if GPUs are equally
// full.
func (p *sweptPlan) figures() []string {
	var out []string
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.share() >= p.largest()*(1-1e-12) {
			out = append(out, fmt.Sprintf("%v of %v", costmodel.Bytes(d.Predicted.PeakAllocatedBytes+d.Predicted.OverheadBytes), costmodel.Bytes(d.CapacityBytes-d.ReservedBytes)))
		}
	}
	return out
}

func (p *sweptPlan) largest() float64 {
	largest := 0.0
	for i := range p.Devices {
		largest = max(largest, p.Devices[i].share())
	}
	return largest
}

// judge checks a plan by the arithmetic of the contract.
func (p *sweptPlan) judge() error {
	var faults []error
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	var most, sum float64
	for i := range p.Devices {
		d, m := &p.Devices[i], &p.Devices[i].Predicted
		parts := []int64{m.ParamsBytes, m.GradsBytes, m.OptimizerStateBytes, m.ActivationsBytes, m.KVCacheBytes, m.WorkspaceBytes, m.CommBuffersBytes}
		var total int64
		for _, b := range parts {
			total += b
		}
		if slices.Min(parts) < 0 || total != m.PeakAllocatedBytes {
			wrong("GPU %d: the parts %v add up to %d, the peak is %d", i, parts, total, m.PeakAllocatedBytes)
		}
		if d.HeadroomBytes != d.CapacityBytes-d.ReservedBytes-m.PeakAllocatedBytes-m.OverheadBytes {
			wrong("GPU %d: headroom %d of %+v", i, d.HeadroomBytes, *d)
		}
		if len(m.SlackBytes) != 2 || m.DeviceUsedBytes != m.PeakAllocatedBytes+m.OverheadBytes+(m.SlackBytes[0]+m.SlackBytes[1])/2 {
			wrong("GPU %d: %d used, with slack of %v over %d and %d", i, m.DeviceUsedBytes, m.SlackBytes, m.PeakAllocatedBytes, m.OverheadBytes)
		}
		most, sum = max(most, float64(m.PeakAllocatedBytes)), sum+float64(m.PeakAllocatedBytes)
	}
	if want := most * float64(len(p.Devices)) / sum; sum > 0 && !near(p.Imbalance, want) {
		wrong("imbalance %v, max / mean is %v", p.Imbalance, want)
	}
	o := &p.Objective
	switch o.Name {
	case "memory":
		if !near(o.Value, p.largest()) {
			wrong("value %v, the largest share is %v", o.Value, p.largest())
		}
	case "time":
		if p.StepSeconds == nil || !near(o.Value, *p.StepSeconds) {
			wrong("value %v, a step takes %v", o.Value, p.StepSeconds)
		}
	default:
		wrong("objective %q", o.Name)
	}
	if p.largest() > 1 {
		wrong("a largest share of %v is planned", p.largest())
	}
	if p.StepSeconds != nil && (*p.StepSeconds < 0 || math.IsInf(*p.StepSeconds, 0)) {
		wrong("a step of %v s", *p.StepSeconds)
	}
	return errors.Join(append(faults, o.judge(p.Offload != nil))...)
}

// judge checks a proof: the bound is not above the value, and the status agrees with the gap. If
// units are offloaded, the status is about the copied bytes.
func (o *contractObjective) judge(offloaded bool) error {
	gap := 0.0
	if o.Value > 0 {
		gap = (o.Value - o.LowerBound) / o.Value
	}
	switch {
	case o.LowerBound > o.Value:
		return fmt.Errorf("a bound of %v above the value %v", o.LowerBound, o.Value)
	case !near(o.Gap, gap):
		return fmt.Errorf("a gap of %v from %v to %v", o.Gap, o.LowerBound, o.Value)
	case o.Bound == "" && !offloaded:
		return errors.New("no bound is named")
	case offloaded:
		return nil
	case o.Status == "optimal" && o.Gap != 0, o.Status == "feasible" && o.Gap == 0:
		return fmt.Errorf("%s with a gap of %v", o.Status, o.Gap)
	case !slices.Contains([]string{"optimal", "feasible", "limit reached"}, o.Status):
		return fmt.Errorf("status %q", o.Status)
	}
	return nil
}

// internal returns an error if the text shows one of devmap's own faults, which no user should
// read.
func internal(text string) error {
	for _, word := range []string{"report this", "panic", "NaN", "Inf ", "%!", "goroutine ", "the walk ", "INVALID"} {
		if i := strings.Index(text, word); i >= 0 {
			return fmt.Errorf("an internal error: …%s", text[max(0, i-300):min(len(text), i+200)])
		}
	}
	return nil
}
