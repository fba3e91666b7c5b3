package steptime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// UnitSeconds are the times of one unit on one device, in seconds.
type UnitSeconds struct {
	// Forward and Backward are of one micro-batch; Backward is 0 but in training. Learn is the part
	// of Backward that makes gradients of weights, if the schedule splits it.
	Forward, Backward, Learn float64
	// Issue and IssueBack are the host's times to issue them, ahead of the device.
	Issue, IssueBack float64
	// Token and IssueToken are of one generated token.
	Token, IssueToken float64
	// Update is of the optimizer's step.
	Update float64
	// Copied is the time to copy the unit's parameters from a tier before each forward.
	Copied float64
}

// Unit is a unit's times on a device in a [Step]; whole picoseconds under devmap's engine
// ([Ticks]).
func Unit(table *costmodel.Table, topo *costmodel.Topology, device, unit int) UnitSeconds {
	on, work, precision := &topo.Devices[device], &table.Units[unit].Work, table.Workload.Precision
	update := precision
	if table.Workload.Runtime == value.JAX { // fp32 arrays are cast as they are used (openpi models/pi0_config.py, dtype)
		precision = costmodel.BF16True
	}
	if table.Workload.Runtime == costmodel.Devmap {
		return planned(steady(onOwn(on), table), work, &table.Workload)
	}
	out := UnitSeconds{
		Forward: passSeconds(on, work.Forward, precision), Issue: work.Forward.Kernels * on.IssueSeconds,
		Token: passSeconds(on, work.Token, precision), IssueToken: work.Token.Kernels * on.IssueSeconds,
		Update: updateSeconds(on, work.Update, update),
	}
	if table.Workload.Mode == costmodel.Train {
		// Autograd issues a backward without Python.
		out.Backward, out.IssueBack = passSeconds(on, work.Backward, precision), work.Backward.Kernels*on.BackwardIssueSeconds
	}
	out.stage(table, on, work)
	return out
}

// planned are the seconds of a unit that no host issues.
func planned(on *costmodel.Device, work *costmodel.Work, workload *costmodel.Workload) UnitSeconds {
	took := engineOf(on, work, workload)
	learn := picoseconds(took.learn)
	return UnitSeconds{
		Forward: picoseconds(took.forward), Token: picoseconds(took.token), Learn: learn,
		Backward: picoseconds(took.recompute) + picoseconds(took.backward) + learn, Update: picoseconds(took.update),
	}
}

// picoseconds is a time rounded to a whole number of them.
func picoseconds(seconds float64) float64 { return math.Round(seconds*perSecond) / perSecond }
