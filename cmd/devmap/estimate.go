package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve"
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
		Long: `Compare all strategies: peak memory of each GPU and step time.

Strategies that fit come first, fastest on top. Others have the reason.
"accelerate auto" is the map that device_map="auto" gives. A GGUF file has one
row, for llama.cpp (--tensor-split, --gpu-layers, --host-experts).

--batch is that of all GPUs together, so that rows do the same work.
Replicas (ddp, zero, fsdp, hsdp) take equal parts, rounded up. A pipeline
without --micro-batches uses twice as many as GPUs, or the next lower divisor of
the batch. --strategy, --runtime and --schedule restrict the rows.
Printed flags are for devmap plan, whose --batch is that of one replica.

The table goes to standard output with the best row's command. --json has
each GPU's peak and traffic. If nothing fits, the exit status is 3.`,
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
	FormatVersion string        `json:"format_version"`
	Rows          []estimateRow `json:"rows"`
	// Auto is the result for the map of device_map="auto".
	Auto *estimateAuto `json:"accelerate_auto,omitzero"`
	// Given is a placement for llama.cpp: its own, or that of the flags. Rows has devmap's plan.
	Given    *estimateAuto     `json:"given,omitzero"`
	Refused  []estimateRefused `json:"refused,omitzero"`
	Warnings []string          `json:"warnings"`
	Error    string            `json:"error,omitzero"` // if nothing fits
	Remedies []out.Remedy      `json:"remedies,omitzero"`
}

// noneFits sets the error and the remedies of a table in which nothing fits.
func (output *estimateOutput) noneFits(err error) {
	if none := (*out.Infeasible)(nil); errors.As(err, &none) {
		output.Error, output.Remedies = out.Text(none.Err, ask.ErrorText), none.Remedies
	}
}

type estimateRow struct {
	Strategy           costmodel.Strategy `json:"strategy"`
	Runtime            string             `json:"runtime"`
	Fits               bool               `json:"fits"`
	Verdict            devicemap.Verdict  `json:"verdict"`
	PeakAllocatedBytes []int64            `json:"peak_allocated_bytes"`
	HeadroomBytes      int64              `json:"headroom_bytes"`
	CommunicationBytes int64              `json:"communication_bytes"`
	StepSeconds        *float64           `json:"step_seconds"`
	// Batch is one replica's batch, as in the row's plan.
	Batch           int64    `json:"batch"`
	TokensPerStep   int64    `json:"tokens_per_step"`
	TokensPerSecond *float64 `json:"tokens_per_second"`
	Flags           []string `json:"flags"`
	// Context and KVTokens are of vLLM and SGLang: the longest sequence, and the tokens in the cache.
	Context  int64 `json:"context,omitzero"`
	KVTokens int64 `json:"kv_tokens,omitzero"`
}

// estimateAuto is a row with the map itself.
type estimateAuto struct {
	estimateRow
	DeviceMap devicemap.Flat `json:"device_map"`
}

// estimateRefused is a strategy that the workload or the model excludes.
type estimateRefused struct {
	Strategy costmodel.Strategy `json:"strategy"`
	Runtime  string             `json:"runtime"`
	Reason   string             `json:"reason"`
}

func (command *estimateCommand) run(cmd *cobra.Command, arg string) error {
	end := time.Now().Add(command.TimeLimit)
	serves := ask.Serves(command.Request, load.IsGGUF(arg))
	if !serves {
		if err := cmp.Or(ask.IdleServing(command.Request), command.Refuse(), ask.RefuseGGUF(command.Request, arg)); err != nil {
			return err
		}
	}
	if err := out.Spare(cmd, out.Written{Flag: "output", Path: command.Output, Kinds: []string{"estimate"}}, arg); err != nil {
		return err
	}
	if serves {
		return command.serve(cmd, arg)
	}
	problem, err := command.Problem(arg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(cmd.Context(), end)
	defer cancel()
	problem.Options.Current = true
	problem.Options.TimeLimit = min(command.TimeLimit, time.Second)
	rows, fault := strategy.Rows(ctx, problem.Problem, problem.Options)
	planned := slices.DeleteFunc(slices.Clone(rows), func(row strategy.Row) bool { return row.Current })
	fits := len(planned) > 0 && planned[0].Fits
	var none error // the document has it too
	if documented := command.JSON || command.Output != ""; documented && fault == nil && !fits {
		none = nothingFits(ctx, problem, planned)
	}
	if err := command.show(cmd, arg, problem, rows, none); err != nil {
		return err
	}
	if fault != nil || none != nil || fits {
		return cmp.Or(fault, none)
	}
	return nothingFits(ctx, problem, planned)
}

// show prints the table. It goes to stdout, or to stderr if the rows go there with --json or -o.
func (command *estimateCommand) show(cmd *cobra.Command, arg string, problem *ask.Question, rows []strategy.Row, none error) error {
	answered := slices.DeleteFunc(slices.Clone(rows), func(row strategy.Row) bool { return row.Refused != nil })
	notes := command.DeviceNotes(problem.Topology)
	if len(answered) > 0 {
		notes = append(notes, command.IdleNotes(&answered[0].Resolved)...)
	}
	notes = slices.Concat(notes, uneven(rows, max(1, problem.Workload.Batch), len(problem.Topology.Devices)), ask.HardwareNotes(problem.Topology, &problem.Workload), unmeasured(rows), common(problem.Graph, rows))
	result, err := command.write(cmd, func() *estimateOutput {
		document := estimateOf(problem, rows, command.Again())
		document.Warnings = notes
		document.noneFits(none)
		return &document
	})
	if err != nil || command.JSON {
		return err
	}
	title := &show.Title{Batch: max(1, problem.Workload.Batch), Topology: problem.Topology, Next: bestCommand(arg, problem, rows, command.Again())}
	if len(answered) > 0 {
		shared := answered[0].Resolved
		if shared.DeepSpeed != nil { // its file has the batch
			title.Batch = shared.Batch
		}
		for i := range answered { // each has its strategy's
			shared.Preset = cmp.Or(shared.Preset, answered[i].Resolved.Preset)
		}
		shared.Strategy, shared.Batch, shared.Precision = "", title.Batch, show.Usual(answered)
		title.Defaults = ask.Defaults(command.Request, problem.Graph, &shared)
	}
	printer := show.New(result, problem.Graph, problem.Workload)
	printer.Implied = command.Implied
	if err := printer.Strategies(rows, title); err != nil {
		return err
	}
	show.Warnings(cmd.ErrOrStderr(), notes)
	return nil
}

// bestCommand returns the command that plans the best row: the fastest that fits, else the fastest
// that is tight. It is empty if there is none.
func bestCommand(arg string, problem *ask.Question, rows []strategy.Row, devices []string) string {
	best := fastest(rows)
	if best == nil {
		return ""
	}
	return planLine(arg, rowFlags(best, devices, problem.Unconstrained))
}

// planLine is the command that plans a model with some flags.
func planLine(arg string, flags []string) string {
	return ask.Typed(slices.Concat([]string{"devmap", "plan", arg}, flags, []string{"-o", "plan.json"}))
}

// write writes the rows with --json or -o, and returns where the table goes then.
func (command *estimateCommand) write(cmd *cobra.Command, document func() *estimateOutput) (table io.Writer, err error) {
	if !command.JSON && command.Output == "" {
		return cmd.OutOrStdout(), nil
	}
	return cmd.ErrOrStderr(), out.Write(cmd, command.Output, func(writer io.Writer) error { return devicemap.WriteJSON(writer, document()) })
}

// predicted sets the peaks and the least headroom of a row.
func (row *estimateRow) predicted(devices []devicemap.Prediction) {
	row.HeadroomBytes = devices[0].HeadroomBytes
	for i := range devices {
		row.PeakAllocatedBytes = append(row.PeakAllocatedBytes, devices[i].Predicted.PeakAllocatedBytes)
		row.HeadroomBytes = min(row.HeadroomBytes, devices[i].HeadroomBytes)
	}
}

func estimateOf(problem *ask.Question, rows []strategy.Row, devices []string) estimateOutput {
	out := estimateOutput{FormatVersion: "devmap.estimate/v1", Rows: []estimateRow{}}
	for i := range rows {
		row := &rows[i]
		switch {
		case row.Refused != nil && row.Current: // it would not be a plan of devmap
		case row.Refused != nil:
			out.Refused = append(out.Refused, estimateRefused{row.Workload.Strategy, row.Workload.Runtime, ask.ErrorText(row.Refused)})
		case row.Current:
			out.Auto = &estimateAuto{estimateRowOf(row, rowFlags(row, devices, false)), row.Solution.Map.Flatten(problem.Graph)}
		default:
			out.Rows = append(out.Rows, estimateRowOf(row, rowFlags(row, devices, problem.Unconstrained)))
		}
	}
	return out
}

func estimateRowOf(row *strategy.Row, flags []string) estimateRow {
	out := estimateRow{
		Strategy: row.Resolved.Strategy, Runtime: row.Resolved.Runtime, Fits: row.Fits, Verdict: row.Solution.Verdict,
		PeakAllocatedBytes: show.Peaks(row), HeadroomBytes: row.Headroom, CommunicationBytes: row.Communication,
		StepSeconds: row.StepSeconds, Batch: row.Resolved.Batch, TokensPerStep: row.Tokens, Flags: flags,
	}
	if row.StepSeconds != nil && row.SecondsPerToken > 0 {
		rate := 1 / row.SecondsPerToken
		out.TokensPerSecond = &rate
	}
	return out
}

// rowFlags returns the flags of devmap plan that reproduce a row.
func rowFlags(row *strategy.Row, devices []string, unconstrained bool) []string {
	workload := row.Workload
	if row.Resolved.PP != 0 && workload.DP == 0 && workload.PP == 0 { // --strategy alone asks for one replica
		workload.DP, workload.PP = row.Resolved.DP, row.Resolved.PP
	}
	return slices.Concat(devices, ask.Flags(&workload), unconstrainedFlag(row, unconstrained))
}

// unconstrainedFlag returns the flag that reproduces a row with any assignment allowed.
func unconstrainedFlag(row *strategy.Row, unconstrained bool) []string {
	if !unconstrained || !row.Workload.Strategy.Traits().Sequential {
		return nil
	}
	return []string{ask.Say(costmodel.Set("contiguous", false))}
}

// ranked lists the degrees of an engine with ranks, the best first.
func (command *estimateCommand) ranked(cmd *cobra.Command, arg string, workload costmodel.Workload, topology *costmodel.Topology) error {
	of, err := readRanks(command.Request, arg, workload, topology)
	if err != nil {
		return err
	}
	best, fault := of.solve(command.Request)
	document := &estimateOutput{FormatVersion: "devmap.estimate/v1", Rows: []estimateRow{}, Warnings: slices.Concat([]string{}, of.graph.Warnings)}
	document.noneFits(fault)
	var answers []*serve.RankAnswer
	if best != nil {
		answers = append([]*serve.RankAnswer{best}, best.Others...)
		document.Warnings = append(document.Warnings, best.Notes(of.question, of.topology)...)
	}
	for _, answer := range answers {
		document.Rows = append(document.Rows, of.row(answer, command.Again()))
	}
	result, err := command.write(cmd, func() *estimateOutput { return document })
	if err != nil {
		return err
	}
	if command.JSON || fault != nil {
		return fault
	}
	printer := show.New(result, of.graph, best.Workload(of.workload))
	printer.Header(topology, nil)
	show.RankedRows(printer, answers)
	show.Next(printer, planLine(arg, document.Rows[0].Flags))
	show.Warnings(cmd.ErrOrStderr(), document.Warnings)
	return nil
}

// row is an answer as a row of an estimate.
func (of *ranks) row(answer *serve.RankAnswer, flags []string) estimateRow {
	plan := of.plan(answer)
	var more []string
	if share := of.workload.MemFraction; share > 0 {
		more = append(more, "--mem-fraction", strconv.FormatFloat(share, 'f', -1, 64))
	}
	if answer.Set.Experts > 0 {
		more = append(more, "--ep", plan.Workload.EP.String())
	}
	row := estimateRow{
		Strategy: costmodel.DeviceMap, Runtime: of.workload.Runtime, Fits: true, Verdict: plan.Verdict, Batch: 1, TokensPerStep: 1,
		Flags:   slices.Concat([]string{"--runtime", of.workload.Runtime}, flags, []string{"--tp", plan.Workload.TP.String(), "--pp", plan.Workload.PP.String(), "--dp", plan.Workload.DP.String()}, more),
		Context: answer.Set.Context, KVTokens: answer.Tokens,
	}
	row.predicted(plan.Devices)
	return row
}
