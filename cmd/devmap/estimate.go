package main

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

type estimateCommand struct {
	*ask.Request
}

func newEstimate() *cobra.Command {
	command := &estimateCommand{}
	cmd := &cobra.Command{
		Use:   "estimate MODEL --gpus N",
		Short: "Compare all strategies: what fits, and how fast",
		Long: `Compare all strategies: the peak memory of each GPU, and the time of a step.

Strategies that fit come first, the fastest on top. Then come those that do not
fit, and those that do not work with this workload, each with the reason.

--batch is the whole batch for device-map and pipeline, and the batch of each
GPU for the other strategies. The order is by time per token. A pipeline without
--micro-batches uses twice as many as GPUs, or the next lower divisor of the
batch. --strategy, --runtime and --schedule restrict the rows.

The table goes to standard output. --json prints every row as JSON instead; -o
writes that to a file. If nothing fits, devmap exits with status 3.`,
		Example: `  devmap estimate qwen2.5-3b --gpus 4 --gpu h200-141gb --mode train --batch 4
  devmap estimate ./Llama-3.1-8B --gpus 8 --json`,
		ValidArgsFunction: ask.CompleteModel,
		Args:              out.Exactly(1, "one MODEL, as in: devmap estimate MODEL --gpus 4"),
		RunE:              func(cmd *cobra.Command, args []string) error { return command.run(cmd, args[0]) },
	}
	command.Request = ask.New(cmd)
	command.Probe = probing(cmd)
	return cmd
}

// estimateOutput is devmap.estimate/v1.
type estimateOutput struct {
	FormatVersion string            `json:"format_version"`
	Rows          []estimateRow     `json:"rows"`
	Refused       []estimateRefused `json:"refused,omitzero"`
	Error         string            `json:"error,omitzero"` // nothing fits
	Remedies      []out.Remedy      `json:"remedies,omitzero"`
}

// noneFits are the error and the remedies of a table in which nothing fits.
func (output *estimateOutput) noneFits(err error) {
	if none := (*out.Infeasible)(nil); errors.As(err, &none) {
		output.Error, output.Remedies = out.Text(none.Err, ask.ErrorText), none.Remedies
	}
}

type estimateRow struct {
	Strategy           costmodel.Strategy `json:"strategy"`
	Runtime            string             `json:"runtime"`
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
	Runtime  string             `json:"runtime"`
	Reason   string             `json:"reason"`
}

func (command *estimateCommand) run(cmd *cobra.Command, arg string) error {
	if err := command.Refuse(); err != nil {
		return err
	}
	if err := out.Spare(command.Output, arg, arg, command.TopologyFile()); err != nil {
		return err
	}
	problem, err := command.Problem(arg)
	if err != nil {
		return err
	}
	rows, fault := strategy.Rows(cmd.Context(), problem.Problem, problem.Options)
	fits := len(rows) > 0 && rows[0].Fits
	var none error // the document has it too
	if documented := command.JSON || command.Output != ""; documented && fault == nil && !fits {
		none = nothingFits(cmd.Context(), problem, rows)
	}
	if err := command.show(cmd, problem, rows, none); err != nil {
		return err
	}
	if fault != nil || none != nil || fits {
		return cmp.Or(fault, none)
	}
	return nothingFits(cmd.Context(), problem, rows)
}

// show prints the table, which is the result unless the rows are one: those
// of --json, and of -o.
func (command *estimateCommand) show(cmd *cobra.Command, problem *ask.Question, rows []strategy.Row, none error) error {
	result := cmd.OutOrStdout()
	if command.JSON || command.Output != "" {
		document := estimateOf(rows, command.Again(), problem.Unconstrained)
		document.noneFits(none)
		if err := out.Write(cmd, command.Output, func(writer io.Writer) error { return devicemap.WriteJSON(writer, document) }); err != nil {
			return err
		}
		result = cmd.ErrOrStderr()
	}
	if command.JSON {
		return nil
	}
	if err := show.New(result, problem.Graph, problem.Workload).Strategies(rows); err != nil {
		return err
	}
	notes := slices.Concat(command.DeviceNotes(problem.Topology), command.IdleNotes(&problem.Workload), unmeasured(rows), common(problem.Graph, rows))
	show.Warnings(cmd.ErrOrStderr(), notes)
	return nil
}

func estimateOf(rows []strategy.Row, devices []string, unconstrained bool) estimateOutput {
	out := estimateOutput{FormatVersion: "devmap.estimate/v1", Rows: []estimateRow{}}
	for i := range rows {
		row := &rows[i]
		if row.Refused != nil {
			out.Refused = append(out.Refused, estimateRefused{row.Workload.Strategy, row.Workload.Runtime, ask.ErrorText(row.Refused)})
			continue
		}
		out.Rows = append(out.Rows, estimateRow{
			row.Resolved.Strategy, row.Resolved.Runtime, row.Fits, show.Peaks(row), row.Headroom, row.Communication, row.StepSeconds,
			slices.Concat(devices, ask.Flags(&row.Workload), unconstrainedFlag(row, unconstrained)),
		})
	}
	return out
}

// unconstrainedFlag is the flag that reproduces a row that may use any assignment.
func unconstrainedFlag(row *strategy.Row, unconstrained bool) []string {
	if !unconstrained || !row.Workload.Strategy.Traits().Sequential {
		return nil
	}
	return []string{ask.Say(costmodel.Set("contiguous", false))}
}

// common are the warnings that all rows with an answer share; those of one
// strategy are in its plan.
func common(graph *modelgraph.Graph, rows []strategy.Row) []string {
	var out []string
	first := true
	for i := range rows {
		switch {
		case rows[i].Refused != nil:
		case first:
			out, first = allWarnings(graph, rows[i].Solution.Warnings), false
		default:
			row := allWarnings(graph, rows[i].Solution.Warnings)
			out = slices.DeleteFunc(out, func(text string) bool { return !slices.Contains(row, text) })
		}
	}
	return out
}
