package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// certify validates every answer before it becomes a solution. It checks the map
// and predicts its devices by the walk; [solutionOf] compares the claim with them.
func certify(in *instance.Instance, answer *instance.Answer, method instance.Method) (*Solution, error) {
	timed := in.Timed()
	if answer.Costs != nil { // the forms of the stages were chosen
		chosen := *in
		chosen.Costs, chosen.Pooled, timed = answer.Costs, answer.Costs, answer.Costs
		in = &chosen
	}
	devices, err := predict(in, answer.Map)
	if err != nil {
		return nil, err
	}
	return solutionOf(in, timed, answer, method, devices)
}

// solutionOf compares an answer's claim with the value by the plain form: the
// walk, or a step simulated out. That shares nothing with the methods but the
// table. A difference is a fault of ours, never the user's, and no plan is made
// of it. devices are the predictions of a map that passed predict's check.
func solutionOf(in *instance.Instance, timed *costmodel.Table, answer *instance.Answer, method instance.Method, devices []devicemap.Prediction) (*Solution, error) {
	out := &Solution{
		Devices: devices,
		Map:     answer.Map, Costs: in.Pooled, Topology: in.Topology, EvenProved: answer.EvenProved, Probes: answer.Tried, Bounds: answer.Bounds,
		Method:   cmp.Or(answer.Found, method.Why(in)),
		Warnings: slices.Clone(in.Costs.Warnings),
	}
	for _, note := range answer.Notes {
		out.Warnings = append(out.Warnings, costmodel.Messagef("%s", note))
	}
	if in.Piped() {
		for _, group := range in.Graph.Staged {
			out.Warnings = append(out.Warnings, costmodel.Messagef("%s", group.Why))
		}
	}
	if in.Objective == instance.Time {
		out.Objective = Time
		if in.Request {
			out.Objective = Latency
		}
	}
	var err error
	out.Bottleneck, out.LargestShare = instance.Fullest(out.Devices)
	out.Verdict = instance.Worst(out.Devices)
	value := out.LargestShare
	if in.Objective == instance.Time {
		value = *devicemap.StepSeconds(timed, in.Topology, out.Map)
	}
	if out.Certificate, err = answer.Certify(value); err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	if answer.Left != nil {
		if err := out.certifyLeft(in, answer); err != nil {
			return nil, err
		}
	}
	out.EvenProved = out.EvenProved && out.Status == Optimal
	if answer.Uneven != "" && out.Status == Optimal && !out.EvenProved {
		out.Warnings = append(out.Warnings, costmodel.Messagef("%s", answer.Uneven))
	}
	out.Alone = alone(in, out)
	return out, nil
}

// predict is what each device holds at its peak, by the walk, for a map that
// passes the check that is made of anybody's. Pools are followed where all
// devices fit: what does not is not run.
func predict(in *instance.Instance, placed devicemap.Map) ([]devicemap.Prediction, error) {
	var devices []devicemap.Prediction
	if placed != nil {
		report := devicemap.Check(in.Graph, in.Costs, in.Topology, placed.Flatten(in.Graph), nil)
		devices = report.Devices
		for _, fault := range report.Faults {
			if fault.Kind != "does-not-fit" || in.Objective == instance.Time {
				return nil, fmt.Errorf("planner: %w", &certificate.FaultError{Msg: fmt.Sprintf("the solver's map fails the check: %s", fault)})
			}
		}
	}
	if devices == nil {
		devices = devicemap.Predict(in.Costs, in.Topology, placed)
	}
	lacks := func(device devicemap.Prediction) bool { return device.HeadroomBytes < 0 }
	if in.Pooled.Marks == nil || slices.ContainsFunc(devices, lacks) {
		return devices, nil
	}
	return devicemap.Predict(in.Pooled, in.Topology, placed), nil
}

// certifyLeft certifies what leaves. Its bytes come first: where they are not
// proved least, the bound of the share is that of whatever else may leave.
func (solution *Solution) certifyLeft(in *instance.Instance, answer *instance.Answer) error {
	left := &offloaded{Rest: solution.Certificate}
	for unit, device := range solution.Map {
		if device >= 0 {
			continue
		}
		left.Units++
		left.Bytes += in.Costs.Units[unit].OffloadBytes
		if device == devicemap.Disk {
			left.FromDisk += in.Costs.Units[unit].OffloadBytes
		}
	}
	bytes, err := answer.Left.Bytes.Certify(float64(left.Bytes))
	if err != nil {
		return fmt.Errorf("planner: what leaves: %w", err)
	}
	left.LowerBound, left.Status = int64(answer.Left.Bytes.LowerBound), bytes.Status
	solution.Offloaded = left
	if bytes.Status == Optimal {
		return nil
	}
	solution.EvenProved = solution.EvenProved && solution.Status == Optimal
	claim := answer.Claim
	claim.LowerBound, claim.Bound = answer.Left.Average, "what must stay"
	if solution.Certificate, err = claim.Certify(solution.Value); err != nil {
		return fmt.Errorf("planner: %w", err)
	}
	return nil
}
