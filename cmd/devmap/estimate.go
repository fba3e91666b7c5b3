package main

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

type estimateCommand struct {
	shared
	out string
}

func newEstimate() *cobra.Command {
	c := &estimateCommand{}
	cmd := &cobra.Command{
		Use:   "estimate MODEL --gpus N",
		Short: "Show every strategy side by side: what fits, and how fast",
		Long: `Show what every GPU would hold and how long a step would take under every
strategy: those that fit first, the fastest on top, then the others by what is
missing, then those that the workload rules out, and why.

--batch is the whole batch for device-map and pipeline, and each GPU's own for
the others, so steps differ in tokens: the order is by time a token, and the
table names the tokens of a step. A pipeline without --micro-batches gets as
many as twice the GPUs, or the next number below that divides the batch.

--strategy, --runtime and --schedule restrict the rows. Communication is what
the busiest GPU sends in a step. The table goes to stderr; --json prints rows
to stdout, -o writes them to a file. Exit status 3: nothing fits.`,
		Example: `  devmap estimate qwen2.5-3b --gpus 4 --gpu h200-141gb --mode train --batch 4
  devmap estimate ./Llama-3.1-8B --gpus 8 --json`,
		Args: exactly(1, "one MODEL, as in: devmap estimate MODEL --gpus 4"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	c.workload(f)
	c.devices(f)
	c.placement(f)
	c.later(f)
	f.BoolVar(&c.json, "json", false, "the machine form, no table")
	f.StringVarP(&c.out, "output", "o", "", "write the rows to a file")
	return cmd
}

// estimateOutput is devmap.estimate/v1.
type estimateOutput struct {
	FormatVersion string            `json:"format_version"`
	Rows          []estimateRow     `json:"rows"`
	Refused       []estimateRefused `json:"refused,omitzero"`
}

type estimateRow struct {
	Strategy           costmodel.Strategy `json:"strategy"`
	Runtime            costmodel.Runtime  `json:"runtime"`
	Fits               bool               `json:"fits"`
	PeakAllocatedBytes []int64            `json:"peak_allocated_bytes"`
	HeadroomBytes      int64              `json:"headroom_bytes"`
	CommunicationBytes int64              `json:"communication_bytes"`
	StepSeconds        *float64           `json:"step_seconds"`
	Flags              []string           `json:"flags"`
}

// estimateRefused is a strategy that the workload or the model rules out.
type estimateRefused struct {
	Strategy costmodel.Strategy `json:"strategy"`
	Runtime  costmodel.Runtime  `json:"runtime"`
	Reason   string             `json:"reason"`
}

func (c *estimateCommand) run(cmd *cobra.Command, arg string) error {
	if err := errors.Join(c.refuse(cmd), c.refuseOffload(cmd)); err != nil {
		return err
	}
	if err := spare(c.out, arg, arg, c.topology); err != nil {
		return err
	}
	if c.objective == front {
		return usagef("--objective front is a table of its own: devmap plan prints it")
	}
	p, err := c.asked(cmd.Context(), arg)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("strategy") {
		p.Workload.Strategy = costmodel.Auto
	}
	rows := strategy.Rows(cmd.Context(), p)
	if c.json || c.out != "" {
		out := estimateOf(rows, c.deviceFlags(cmd.Flags()), p.Anywhere)
		if err := writeOut(cmd, c.out, func(w io.Writer) error { return devicemap.WriteJSON(w, out) }); err != nil {
			return err
		}
	}
	if !c.json {
		t := newTable(cmd.ErrOrStderr(), p.Graph, p.Workload)
		t.strategies(rows)
		t.warnings(common(rows))
	}
	if strategy.Best(rows) == nil {
		return nothingFits(cmd.Context(), p, rows)
	}
	return nil
}

// asked is the problem that the flags of plan or estimate pose, open in what
// the user left open.
func (s *shared) asked(ctx context.Context, arg string) (*strategy.Problem, error) {
	w, err := s.parse()
	if err != nil {
		return nil, err
	}
	topo, err := s.buildTopology(ctx, w.Mode, 0)
	if err != nil {
		if s.gpus == "" && s.topology == "" { // a file that cannot be read may be one that names its own devices
			if _, unread := readModel(arg); unread != nil {
				return nil, unread
			}
		}
		return nil, err
	}
	g, err := readModel(arg)
	if err != nil {
		return nil, err
	}
	var fixed planner.Problem
	if err := s.constraints(&fixed); err != nil {
		return nil, err
	}
	return &strategy.Problem{Graph: g, Workload: w, Topology: topo, Pins: fixed.Pins, Together: fixed.Together, Anywhere: !s.contiguous, Ordered: s.objective == front || s.offload != noOffload, Objective: s.minimised()}, nil
}

func estimateOf(rows []strategy.Row, devices []string, anywhere bool) estimateOutput {
	out := estimateOutput{FormatVersion: "devmap.estimate/v1", Rows: []estimateRow{}}
	for i := range rows {
		r := &rows[i]
		if r.Refused != nil {
			out.Refused = append(out.Refused, estimateRefused{r.Workload.Strategy, r.Workload.Runtime, r.Refused.Error()})
			continue
		}
		out.Rows = append(out.Rows, estimateRow{
			r.Resolved.Strategy, r.Resolved.Runtime, r.Fits(), r.Peaks(), r.Headroom(), r.Communication, r.StepSeconds,
			slices.Concat(devices, strategy.Flags(&r.Workload), anywhereFlag(r, anywhere)),
		})
	}
	return out
}

// deviceFlags are the flags that say what the GPUs are, as the user gave them.
func (s *shared) deviceFlags(f *pflag.FlagSet) []string {
	var out []string
	for _, name := range []string{"gpus", "gpu", "topology", "reserve", "pin", "together", "objective"} {
		flag := f.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			out = append(out, "--"+name, v)
		}
	}
	return out
}

// common are the warnings that all rows with an answer share; those of one
// strategy stand in its plan.
func common(rows []strategy.Row) []string {
	var out []string
	first := true
	for i := range rows {
		switch {
		case rows[i].Refused != nil:
		case first:
			out, first = slices.Clone(rows[i].Warnings), false
		default:
			out = slices.DeleteFunc(out, func(w string) bool { return !slices.Contains(rows[i].Warnings, w) })
		}
	}
	return out
}
