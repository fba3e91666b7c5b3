package main

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

type estimateCommand struct {
	shared
	out string
}

func newEstimate() *cobra.Command { return (&estimateCommand{}).command() }

func (c *estimateCommand) command() *cobra.Command {
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
the busiest GPU sends in a step. Rows of the same figures share a line. The
table goes to stdout; --json prints every row in the machine form in its place,
-o writes that to a file, and the table to stderr. Exit status 3: nothing fits.`,
		Example: `  devmap estimate qwen2.5-3b --gpus 4 --gpu h200-141gb --mode train --batch 4
  devmap estimate ./Llama-3.1-8B --gpus 8 --json`,
		ValidArgsFunction: completeModel,
		Args:              exactly(1, "one MODEL, as in: devmap estimate MODEL --gpus 4"),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
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
	if err := c.refused(cmd); err != nil {
		return err
	}
	if err := out.Spare(c.out, arg, arg, c.topology); err != nil {
		return err
	}
	p, err := c.asked(cmd, arg)
	if err != nil {
		return err
	}
	rows := strategy.Rows(cmd.Context(), p)
	if err := c.show(cmd, p, rows); err != nil {
		return err
	}
	if err := strategy.Fault(rows); err != nil {
		return err
	}
	if strategy.Best(rows) == nil {
		return nothingFits(cmd.Context(), p, rows)
	}
	return nil
}

// show prints the table, which is the result unless the rows are one: those
// of --json, and of -o.
func (c *estimateCommand) show(cmd *cobra.Command, p *strategy.Problem, rows []strategy.Row) error {
	result := cmd.OutOrStdout()
	if c.json || c.out != "" {
		document := estimateOf(rows, c.deviceFlags(cmd.Flags()), p.Anywhere)
		if err := out.Write(cmd, c.out, func(w io.Writer) error { return devicemap.WriteJSON(w, document) }); err != nil {
			return err
		}
		result = cmd.ErrOrStderr()
	}
	if c.json {
		return nil
	}
	var text strings.Builder
	t := newTable(result, p.Graph, p.Workload)
	t.w = &text
	t.strategies(rows)
	if _, err := io.WriteString(result, text.String()); err != nil {
		return err
	}
	notes := slices.Concat(c.deviceNotes(cmd.Flags().Changed("gpu"), p.Topology), idleNotes(cmd, &p.Workload), unmeasured(rows), common(rows))
	newTable(cmd.ErrOrStderr(), p.Graph, p.Workload).warnings(notes)
	return nil
}

// refused is the fault of flags that contradict each other.
func (c *estimateCommand) refused(cmd *cobra.Command) error {
	if err := cmp.Or(c.refuse(cmd), c.refuseOffload(cmd)); err != nil {
		return err
	}
	if c.objective == front {
		return out.Usagef("--objective front is a table of its own: devmap plan prints it")
	}
	return nil
}

func estimateOf(rows []strategy.Row, devices []string, anywhere bool) estimateOutput {
	out := estimateOutput{FormatVersion: "devmap.estimate/v1", Rows: []estimateRow{}}
	for i := range rows {
		r := &rows[i]
		if r.Refused != nil {
			out.Refused = append(out.Refused, estimateRefused{r.Workload.Strategy, r.Workload.Runtime, spoken(r.Refused)})
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
