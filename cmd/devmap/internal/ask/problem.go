package ask

import (
	"reflect"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// Problem is the one that the flags of plan or estimate pose for a MODEL, open
// in what the user left open.
func (r *Request) Problem(model string) (*strategy.Problem, error) {
	p, err := r.posing(nil)
	if err != nil {
		if !r.NamesDevices() { // a file that cannot be read may be one that names its own devices
			if _, unread := ReadModel(model); unread != nil {
				return nil, unread
			}
		}
		return nil, err
	}
	if p.Graph, err = ReadModel(model); err != nil {
		return nil, err
	}
	if err := r.Lengths(p.Graph); err != nil {
		return nil, err
	}
	given := p.Workload
	p.Asked = &given
	p.On = func(count int, kind string) (*costmodel.Topology, []costmodel.Setting, []string) {
		return r.otherGPUs(p.Topology, given.Mode, count, kind)
	}
	p.Takes = func(c *strategy.Change) bool { return r.takes(p.Topology, c) }
	return p, nil
}

// posing is what the flags say, of any model. A topology file that was read
// before is not read again: it may be a pipe.
func (r *Request) posing(file *costmodel.Topology) (*strategy.Problem, error) {
	w, err := r.Workload()
	if err != nil {
		return nil, err
	}
	if r.cmd.Name() == "estimate" && !r.Given("strategy") {
		w.Strategy = costmodel.Auto
	}
	if !r.Given("micro-batches") {
		w.MicroBatches = 0 // as many as the strategy takes
	}
	if err := estimate.CheckPlaced(&w); err != nil {
		return nil, err
	}
	topo := file
	if r.topology == "" || file == nil {
		if topo, err = r.devices(w.Mode, 0); err != nil {
			return nil, err
		}
	}
	pins, together, err := r.constraints()
	if err != nil {
		return nil, err
	}
	return &strategy.Problem{
		Workload: w, Topology: topo, Pins: pins, Together: together, Anywhere: !r.Contiguous,
		Ordered: r.IsFront() || r.tier() != "", Objective: r.minimised(),
		Offload: r.tier(), MayOffload: r.cmd.Name() == "plan" && r.objective == string(planner.Memory),
	}, nil
}

// takes reports that the command with a change's flags is accepted, and asks
// for what the change was tried as: the flags are parsed as the user's were.
func (r *Request) takes(file *costmodel.Topology, c *strategy.Change) bool {
	again := &cobra.Command{Use: r.cmd.Use}
	q := New(again)
	again.SetContext(r.cmd.Context())
	if copyFlags(r.cmd.Flags(), again.Flags(), c) != nil || q.Refuse() != nil {
		return false
	}
	p, err := q.posing(file)
	if err != nil {
		return false
	}
	w := p.Workload
	w.World = World(w.Strategy, p.Topology)
	w.Dequantized = estimate.Dequantizes(c.To.Graph, p.Topology)
	w, err = estimate.Resolve(c.To.Graph, w)
	return err == nil && reflect.DeepEqual(w, c.Row.Resolved) && reflect.DeepEqual(p.Topology, c.To.Topology) &&
		slices.Equal(p.Pins, c.To.Pins) && reflect.DeepEqual(p.Together, c.To.Together) &&
		p.Anywhere == (c.To.Anywhere && w.Strategy.Traits().Sequential) && p.Offload == c.To.Offload
}

// copyFlags gives a command the flags of another with a change made to them.
func copyFlags(from, to *pflag.FlagSet, c *strategy.Change) error {
	var fault error
	from.Visit(func(f *pflag.Flag) {
		if changed(c, f.Name) {
			return
		}
		for _, value := range valuesOf(f) {
			if err := to.Set(f.Name, value); err != nil {
				fault = err
			}
		}
	})
	if fault != nil {
		return fault
	}
	return to.Parse(typed(c))
}

// valuesOf are the values of a flag, several of a list.
func valuesOf(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

// Again are the flags that a row is asked for with beside its workload's own,
// as the user gave them: what the GPUs are, and what may sit where.
func (r *Request) Again() []string {
	var words []string
	for i := range flags {
		f := r.cmd.Flags().Lookup(flags[i].name)
		if !flags[i].again || f == nil || !f.Changed {
			continue
		}
		for _, value := range valuesOf(f) {
			words = append(words, "--"+f.Name, value)
		}
	}
	return words
}

// NotPosed are the flags that were given and mean nothing to a file that poses
// a problem of its own.
func (r *Request) NotPosed() []string {
	var words []string
	r.cmd.Flags().Visit(func(f *pflag.Flag) {
		if ours := flagNamed(f.Name); ours == nil || !ours.posed {
			words = append(words, "--"+f.Name)
		}
	})
	if r.IsFront() {
		words = append(words, "--objective "+Front)
	}
	return words
}
