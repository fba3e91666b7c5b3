package steptime

import "github.com/devmap-dev/devmap/costmodel"

// StageTimes are a stage's times in seconds: of one micro-batch, of one token generated, and of the
// optimizer's step. A [Step] follows from those of all stages, the schedule and the host's pace;
// docs/formats/plan-stages.md says how.
type StageTimes struct {
	// ForwardSeconds and BackwardSeconds are the device's work.
	ForwardSeconds  float64 `json:"forward_seconds"`
	BackwardSeconds float64 `json:"backward_seconds"`
	// SendSeconds is its output's time to the next stage's device, SendBackSeconds its input's
	// gradient's to the stage before; 0 on one device.
	SendSeconds     float64 `json:"send_seconds"`
	SendBackSeconds float64 `json:"send_back_seconds"`
	// Issue… is the host's time to issue the kernels, ahead of the device. Alone… is the pass from
	// the host's first call to the device's end on an idle device, which waits for the host.
	IssueForwardSeconds  float64 `json:"issue_forward_seconds"`
	IssueBackwardSeconds float64 `json:"issue_backward_seconds"`
	AloneForwardSeconds  float64 `json:"alone_forward_seconds"`
	AloneBackwardSeconds float64 `json:"alone_backward_seconds"`
	// The same of one token after the first.
	TokenSeconds      float64 `json:"token_seconds,omitzero"`
	IssueTokenSeconds float64 `json:"issue_token_seconds,omitzero"`
	AloneTokenSeconds float64 `json:"alone_token_seconds,omitzero"`
	// UpdateSeconds is the optimizer's step over the stage's parameters.
	UpdateSeconds float64 `json:"update_seconds"`
}

// Stages are the times of consecutive stretches of units, each on one device or tier; zeros in load
// mode. Errors are those of [Step].
func Stages(table *costmodel.Table, topo *costmodel.Topology, place []int, stages []costmodel.Interval) ([]StageTimes, error) {
	out := make([]StageTimes, len(stages))
	if table.Workload.Mode == costmodel.Load {
		return out, nil
	}
	step, err := newTiming(table, topo, place)
	if err != nil {
		return nil, err
	}
	for i, at := range stages {
		out[i] = step.stageTimes(at)
	}
	for i := 1; i < len(stages); i++ {
		before := stages[i].First - 1
		from, to := step.place[before], step.place[before+1]
		out[i-1].SendSeconds = step.send(before, from, to)
		if step.trains() {
			out[i].SendBackSeconds = step.send(before, to, from)
		}
	}
	return out, nil
}

func (step *timing) stageTimes(at costmodel.Interval) StageTimes {
	var forward, backward, token round
	var update float64
	for unit := at.First; unit < at.End; unit++ {
		seconds := step.unit(unit, step.place[unit])
		forward.pass(seconds.Issue+seconds.Copied, seconds.Forward+seconds.Copied)
		token.pass(seconds.IssueToken+seconds.Copied, seconds.Token+seconds.Copied)
		update += seconds.Update
	}
	for unit := at.End - 1; unit >= at.First && step.trains(); unit-- {
		seconds := step.unit(unit, step.place[unit])
		backward.pass(seconds.IssueBack, seconds.Backward)
	}
	out := StageTimes{
		ForwardSeconds: forward.worked, IssueForwardSeconds: forward.Host, AloneForwardSeconds: forward.Device,
		BackwardSeconds: backward.worked, IssueBackwardSeconds: backward.Host, AloneBackwardSeconds: backward.Device,
		UpdateSeconds: update,
	}
	if step.tokens() > 0 {
		out.TokenSeconds, out.IssueTokenSeconds, out.AloneTokenSeconds = token.worked, token.Host, token.Device
	}
	return out
}
