package main

import (
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// asked is the problem that the flags of plan or estimate pose, open in what
// the user left open.
func (s *shared) asked(cmd *cobra.Command, arg string) (*strategy.Problem, error) {
	p, err := s.posing(cmd, nil)
	if err != nil {
		if s.gpus == "" && s.topology == "" { // a file that cannot be read may be one that names its own devices
			if _, unread := readModel(arg); unread != nil {
				return nil, unread
			}
		}
		return nil, err
	}
	if p.Graph, err = readModel(arg); err != nil {
		return nil, err
	}
	if err := s.lengths(cmd, p.Graph); err != nil {
		return nil, err
	}
	given := p.Workload
	p.Asked = &given
	p.On = func(count int, kind string) (strategy.GPUs, bool) {
		return s.otherGPUs(cmd.Context(), p.Topology, given.Mode, count, kind)
	}
	p.Takes = func(c *strategy.Change) bool { return takes(cmd, p.Topology, c) }
	return p, nil
}

// lengths refuses lengths that the model does not read.
func (s *shared) lengths(cmd *cobra.Command, g *modelgraph.Graph) error {
	if s.mode == string(costmodel.Load) {
		return nil
	}
	return estimate.CheckLengths(g, cmd.Flags().Changed("seq"), cmd.Flags().Changed("target-seq"))
}

// posing is what the flags say, of any model. A topology file that was read
// before is not read again: it may be a pipe.
func (s *shared) posing(cmd *cobra.Command, file *costmodel.Topology) (*strategy.Problem, error) {
	w, err := s.parse()
	if err != nil {
		return nil, err
	}
	if cmd.Name() == "estimate" && !cmd.Flags().Changed("strategy") {
		w.Strategy = costmodel.Auto
	}
	if !cmd.Flags().Changed("micro-batches") {
		w.MicroBatches = 0 // as many as the strategy takes
	}
	if err := estimate.CheckPlaced(&w); err != nil {
		return nil, err
	}
	topo := file
	if s.topology == "" || file == nil {
		if topo, err = s.buildTopology(cmd.Context(), w.Mode, 0); err != nil {
			return nil, err
		}
	}
	var fixed planner.Problem
	if err := s.constraints(&fixed); err != nil {
		return nil, err
	}
	return &strategy.Problem{
		Workload: w, Topology: topo, Pins: fixed.Pins, Together: fixed.Together, Anywhere: !s.contiguous,
		Ordered: s.objective == front || s.offload != noOffload, Objective: s.minimised(),
		Offload: s.tier(), MayOffload: cmd.Name() == "plan" && s.objective == string(planner.Memory),
	}, nil
}

// takes reports that the command with a change's flags is accepted, and asks
// for what the change was tried as: the flags are parsed as the user's were.
func takes(cmd *cobra.Command, file *costmodel.Topology, c *strategy.Change) bool {
	s, again, refused := blank(cmd.Name())
	again.SetContext(cmd.Context())
	if err := copyFlags(cmd.Flags(), again.Flags(), c); err != nil {
		return false
	}
	if refused(again) != nil {
		return false
	}
	p, err := s.posing(again, file)
	if err != nil {
		return false
	}
	w := p.Workload
	w.World = world(w.Strategy, p.Topology)
	w.Dequantized = estimate.Dequantizes(c.To.Graph, p.Topology)
	w, err = estimate.Resolve(c.To.Graph, w)
	return err == nil && reflect.DeepEqual(w, c.Row.Resolved) && reflect.DeepEqual(p.Topology, c.To.Topology) &&
		slices.Equal(p.Pins, c.To.Pins) && reflect.DeepEqual(p.Together, c.To.Together) &&
		p.Anywhere == (c.To.Anywhere && w.Strategy.Traits().Sequential) && p.Offload == c.To.Offload
}

// blank is a command as nobody has called it yet.
func blank(name string) (s *shared, cmd *cobra.Command, refused func(*cobra.Command) error) {
	if name == "estimate" {
		c := &estimateCommand{}
		return &c.shared, c.command(), c.refused
	}
	c := &planCommand{}
	return &c.shared, c.command(), c.refused
}

// copyFlags gives a command the flags of another with a change made to them.
func copyFlags(from, to *pflag.FlagSet, c *strategy.Change) error {
	changed := map[string]bool{}
	for _, word := range c.Set {
		if name, ok := strings.CutPrefix(word, "--"); ok {
			name, _, _ = strings.Cut(name, "=")
			changed[name] = true
		}
	}
	var fault error
	from.Visit(func(f *pflag.Flag) {
		if changed[f.Name] || slices.Contains(c.Without, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if err := to.Set(f.Name, v); err != nil {
				fault = err
			}
		}
	})
	if fault != nil {
		return fault
	}
	return to.Parse(c.Set)
}
