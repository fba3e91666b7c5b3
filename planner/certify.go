package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// certify validates an answer and makes it a solution. It checks the map and predicts the memory of
// each device. [solutionOf] then compares the claim with the prediction.
func certify(in *instance.Instance, answer *instance.Answer, method instance.Method) (*Solution, error) {
	timed := in.Timed()
	if answer.Costs != nil { // the method chose the forms of the stages
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

// solutionOf recomputes the value of an answer and compares its claim with it. The value is the
// largest share of devices, or the step of [devicemap.StepSeconds]. Both share only the table with
// the methods. A wrong claim is a bug of devmap: the error is a [certificate.FaultError]. devices
// are predict's result.
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
	if err := inRing(in, timed, out.Map); err != nil {
		return nil, err
	}
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

// inRing refuses an own order of passes whose step has no end.
func inRing(in *instance.Instance, timed *costmodel.Table, placed devicemap.Map) error {
	if kind := timed.Workload.Schedule; in.Piped() && kind.OwnOrder() && steptime.Check(timed, in.Topology) == nil && devicemap.StepSeconds(timed, in.Topology, placed) == nil {
		return costmodel.Refuse(costmodel.Set("schedule", kind), "in this order the GPUs wait for each other in a ring; a channel between two stages holds %d messages (%v finds an order)",
			costmodel.StageRulesOf(timed.Workload.Runtime).Slots, costmodel.Set("schedule", costmodel.AutoSchedule))
	}
	return nil
}

// predict checks a map as [devicemap.Check] checks any map, and returns the peak of each device. It
// simulates the allocator only if every device fits.
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

// certifyLeft certifies the offloaded units. Their bytes are the first objective. Without a proof
// that the bytes are minimal, another set could leave, so the bound of the share covers any set.
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
