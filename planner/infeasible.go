package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// InfeasibleError says that no map fits, or that the search found no map that fits.
type InfeasibleError struct {
	Best *Solution // the map that is closest to fitting; see [Settings].FitsOnly
	// Form says which maps were searched. It follows a number of devices in the message: " in
	// device order, a run of layers each".
	Form costmodel.Message
	// Proved: no map of this form fits.
	Proved bool
	// Worst is the device with the largest share. Needed and Budget are its bytes.
	Worst          int
	Needed, Budget int64
	// TooLarge is a unit that fits on no device even alone; empty if there is none.
	TooLarge string
	// TooLargeNeeds is the least memory of that unit. MostBudget is the largest budget.
	TooLargeNeeds, MostBudget int64
	// Offload says what is missing although units may be offloaded.
	Offload string
	// Devices is the least number of devices like the first that would fit; 0: no number does, or
	// none was computed.
	Devices int

	hostNeeds, hostLacks int64 // bytes of host memory
}

// Error implements error.
func (err *InfeasibleError) Error() string { return err.Words(costmodel.Setting.String) }

// Words returns the message: the numbers, and the ways out that the planner knows. name formats
// settings.
func (err *InfeasibleError) Words(name func(costmodel.Setting) string) string {
	form := err.Form.Words(name)
	if err.Best == nil {
		return "does not fit" + form
	}
	if err.hostLacks > 0 {
		out := fmt.Sprintf("no placement found on %s; infeasibility is not proven: %s. Another cut may need less, as do fewer blocks", devices(len(err.Best.Devices)), err.host())
		if err.Best.Costs.Workload.Recompute != costmodel.RecomputeFull {
			out += ", or recomputation: " + name(costmodel.Set("recompute", costmodel.RecomputeFull))
		}
		return out
	}
	var builder strings.Builder
	count := len(err.Best.Devices)
	if err.Proved {
		fmt.Fprintf(&builder, "does not fit on %s%s: ", devices(count), form)
	} else {
		fmt.Fprintf(&builder, "no placement found on %s%s; infeasibility is not proven: ", devices(count), form)
	}
	prediction := &err.Best.Devices[err.Worst]
	context := ""
	if bytes := prediction.Predicted.OverheadBytes; bytes > 0 {
		context = fmt.Sprintf(" with %v of CUDA context", costmodel.Bytes(bytes))
	}
	fmt.Fprintf(&builder, "GPU %d needs %v at its peak (%s)%s, has %v (%v short)",
		err.Worst, costmodel.Bytes(err.Needed), prediction.Predicted.PeakAt, context, costmodel.Bytes(err.Budget), costmodel.Bytes(err.Needed-err.Budget))
	builder.WriteString(err.band())
	if err.Offload != "" {
		builder.WriteString("; " + err.Offload)
	}
	switch {
	case err.TooLarge != "":
		fmt.Fprintf(&builder, "; %q alone needs more than any GPU has", err.TooLarge)
		if err.TooLargeNeeds > 0 {
			fmt.Fprintf(&builder, ": %v, and the largest budget is %v", costmodel.Bytes(err.TooLargeNeeds), costmodel.Bytes(err.MostBudget))
		}
	case err.Devices > 0:
		such := "such GPUs"
		if first := &err.Best.Devices[0]; slices.ContainsFunc(err.Best.Devices, func(device devicemap.Prediction) bool { return device.Budget != first.Budget }) {
			such = "GPUs like the first"
		}
		fmt.Fprintf(&builder, "; %d %s are enough", err.Devices, such)
	}
	return builder.String()
}

// host says how much host memory is missing.
func (err *InfeasibleError) host() string {
	return fmt.Sprintf("activations take %d bytes of the host's memory, and the topology gives %d: %v too little", err.hostNeeds, err.hostNeeds-err.hostLacks, costmodel.Bytes(err.hostLacks))
}

// band says whether the map fits at the low end of the band of an unreviewed family. Empty if peaks
// are exact.
func (err *InfeasibleError) band() string {
	if err.Best.Costs == nil || err.Best.Costs.Band == 0 {
		return ""
	}
	var missing int64
	for i := range err.Best.Devices {
		device := &err.Best.Devices[i]
		least := device.Predicted.PeakAllocatedBytes
		if ends := device.Predicted.PeakRangeBytes; len(ends) > 0 {
			least = ends[0]
		}
		missing = max(missing, least+device.Predicted.OverheadBytes-device.Budget)
	}
	percent := 100 * err.Best.Costs.Band
	if missing == 0 {
		return fmt.Sprintf("; the prediction's band of ±%.3g%% includes a fit", percent)
	}
	return fmt.Sprintf("; even at the low end of its band of ±%.3g%% %v are missing", percent, costmodel.Bytes(missing))
}

// form describes the maps that were searched. The refusal holds for these maps only.
func (solver *solveCall) form(in *instance.Instance) costmodel.Message {
	var text string
	workload, each := &in.Costs.Workload, "GPU"
	if size := workload.DP.Count() * workload.TP.Count() * workload.CP.Count(); size > 1 {
		each = fmt.Sprintf("%d GPUs", size)
	}
	switch {
	case in.Replicated():
		text = ", each with the whole model"
	case in.Looped():
		text = fmt.Sprintf(" as a pipeline with %d stages per %s", in.Schedule().Chunks, each)
	case in.Piped():
		text = " as a pipeline with one stage per " + each
	case in.AnyAssignment:
		text = " with any assignment of layers"
	case len(solver.Topology.Devices) > 1:
		text = " with one block of layers each"
	}
	if len(solver.Pins)+len(solver.Together) > 0 {
		return costmodel.Messagef("%s and with what %v and %v ask for", text, costmodel.Setting{Field: "pin"}, costmodel.Setting{Field: "together"})
	}
	return costmodel.Messagef("%s", text)
}

func devices(count int) string {
	if count == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", count)
}

// tooLarge returns the error of a solution that does not fit.
func (solution *Solution) tooLarge() *InfeasibleError {
	worst := &solution.Devices[solution.Bottleneck]
	return &InfeasibleError{
		Best: solution, Proved: solution.LowerBound > 1, Worst: solution.Bottleneck, Budget: worst.Budget,
		Needed: worst.Predicted.PeakAllocatedBytes + worst.Predicted.OverheadBytes, MostBudget: worst.Budget,
	}
}

// infeasible adds to the error what would fit: the unit that is too large, or a number of devices.
func (solver *solveCall) infeasible(ctx context.Context, in *instance.Instance, method instance.Method, best *Solution) error {
	out := best.tooLarge()
	out.Form = solver.form(in)
	if in.Replicated() || solver.fitsOnly {
		return out // no number of devices is enough
	}
	if sizer, ok := method.(instance.Sizer); ok {
		out.TooLarge, out.TooLargeNeeds = sizer.TooLarge(ctx, in)
	}
	for device := range in.Topology.Devices {
		out.MostBudget = max(out.MostBudget, in.Topology.Devices[device].Budget())
	}
	// The costs of a table depend on its number of stages or ranks.
	if out.TooLarge == "" && len(in.Pins) == 0 && in.Costs.Workload.World == 0 {
		out.Devices = enough(ctx, in.InOrder())
	}
	return out
}

// enough returns the least number of devices like the first that would fit, with units in the
// model's order; 0: none found. It doubles the number, then bisects, as another device never hurts.
func enough(ctx context.Context, in *instance.Instance) int {
	fits := func(devices int) bool {
		on := in.On(slices.Repeat(in.Topology.Devices[:1], devices))
		method, err := methodFor(on)
		if err != nil {
			return false
		}
		answer, err := method.Solve(ctx, on, instance.Limits{ValueOnly: true}, nil)
		return err == nil && answer.Value <= 1
	}
	low := len(in.Topology.Devices)
	high := 2 * low
	for ; !fits(high); high *= 2 {
		if high > 1024 || ctx.Err() != nil {
			return 0
		}
		low = high
	}
	for low+1 < high {
		if middle := (low + high) / 2; fits(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
