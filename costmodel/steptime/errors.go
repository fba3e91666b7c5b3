package steptime

import "github.com/devmap-dev/devmap/costmodel"

// Error says that a step's time is not known.
type Error struct{ Msg costmodel.Message }

// Error implements error.
func (e *Error) Error() string { return e.Msg.String() }

// Words is the text with its settings as name says them.
func (e *Error) Words(name func(costmodel.Setting) string) string { return e.Msg.Words(name) }

func errorf(format string, args ...any) error {
	return &Error{costmodel.Messagef("the time of a step: "+format, args...)}
}

// Check reports why [Step] has no answer wherever units are, nil where it has
// one.
func Check(table *costmodel.Table, topo *costmodel.Topology) error {
	w := &table.Workload
	if w.Mode == costmodel.Load {
		return errorf("nothing runs in %v (infer and train work)", costmodel.Setting{Field: "mode", Value: string(w.Mode)})
	}
	if t := w.Strategy.Traits(); !t.Sequential && !t.Staged && !t.Replicated {
		return errorf("%q is no strategy that runs (one of %v is)", w.Strategy, costmodel.Strategies())
	}
	if kind := w.Schedule; w.Strategy.Traits().Staged && kind != "" && !plays(kind) {
		return errorf("no order of actions is known for schedule %q", kind)
	}
	for d := range topo.Devices {
		if topo.Devices[d].FLOPS <= 0 {
			return errorf("device %d (%q) has no \"flops\" in the topology", d, topo.Devices[d].Name)
		}
	}
	return nil
}
