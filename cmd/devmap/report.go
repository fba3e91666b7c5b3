package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/page"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

type reportCommand struct {
	*ask.Request

	ran string // --run: a report
}

func newReport() *cobra.Command {
	command := &reportCommand{}
	cmd := &cobra.Command{
		Use:   "report PLAN…",
		Short: "Write a page with pictures of a plan and a run",
		Long: `Write one HTML page of a plan: whether it fits, what is proved, and what holds
the memory of each GPU. It also has memory and time over the step, and changes
that would help. --run adds what devmap run or devmap watch measured.

The page needs no network and no other file. A browser opens it from disk.

devmap reads the model again, for the memory over the step. If the model is not
there, the page has the plan's own figures.`,
		Example: `  devmap report plan.json -o report.html
  devmap report plan.json --run measured.json -o report.html
  devmap plan llama-3.1-8b --gpus 4 -o plan.json --report report.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return out.Usagef("%s takes one PLAN or more; none given (devmap help %s)", cmd.CommandPath(), cmd.Name())
		},
		RunE: command.run,
	}
	command.Request = ask.New(cmd)
	cmd.Flags().StringVar(&command.ran, "run", "", "Compare with a report of devmap run or watch")
	return cmd
}

func (command *reportCommand) run(cmd *cobra.Command, files []string) error {
	if command.ran == "" && cmd.Flags().Changed("run") {
		return out.Usagef("--run names no file: give a report of devmap run or watch")
	}
	if command.Output == "" && cmd.Flags().Changed("output") {
		return out.Usagef("-o names no file: give one, as in -o report.html")
	}
	if command.Output == "" && out.Terminal(cmd.OutOrStdout()) && !command.JSON {
		return out.Usagef("a page is HTML for a browser: -o report.html writes it to a file")
	}
	var all *page.Page
	for _, file := range files {
		one, err := command.page(cmd, file)
		if err != nil {
			return err
		}
		all = all.With(one)
	}
	if err := cmd.Context().Err(); err != nil {
		return fmt.Errorf("%w: no page was written", context.Cause(cmd.Context()))
	}
	return out.Write(cmd, command.Output, func(to io.Writer) error {
		if command.JSON {
			return all.WriteJSON(to)
		}
		return all.Write(to)
	})
}

// page is the page of a plan.
func (command *reportCommand) page(cmd *cobra.Command, file string) (*page.Page, error) {
	data, err := out.Interruptible(cmd.Context(), 0, file, func() ([]byte, error) {
		return modelgraph.ReadSmall(file, "a plan", program.MaxBytes)
	})
	if err != nil {
		return nil, err
	}
	text, front, err := planOfFront(file, data)
	if err != nil {
		return nil, err
	}
	plan, err := devicemap.ReadPlan(file, text)
	if err != nil {
		return nil, err
	}
	if len(plan.Devices) == 0 && len(plan.Phases) == 0 {
		return nil, &modelgraph.SyntaxError{File: file, Place: "devices", Msg: "missing: a page shows the predicted memory of each GPU; plan again"}
	}
	if err := out.Spare(cmd, command.written(), plan.Model.Source); err != nil {
		return nil, err
	}
	source := pageOf(plan, data, command.Model)
	source.Front = front
	if command.ran != "" {
		if err := runOf(cmd, command.ran, source, file); err != nil {
			return nil, err
		}
	}
	return command.made(cmd, source, file)
}

// made completes a plan's page with its model, its command and changes of it.
func (command *reportCommand) made(cmd *cobra.Command, source *page.Source, file string) (*page.Page, error) {
	plan := source.Plan
	if err := modelled(cmd, source, file, command.Model); err != nil {
		return nil, err
	}
	if err := sameRun(source, file, command.ran); err != nil {
		return nil, err
	}
	source.Facts = slices.Insert(source.Facts, 0, show.Facts(source.Plan, source.Graph)...)
	if source.Run != nil {
		source.RunOn, source.Speed = show.Ran(source.Run)
	}
	var asked *ask.Question
	if source.Graph != nil {
		asked = ask.OfPlan(cmd.Context(), plan, source.Graph)
	}
	if asked == nil {
		source.NoChanges = "Which changes would help is not known: " + unasked(source) + "."
		return page.Of(source), nil
	}
	model := cmp.Or(command.Model, plan.Model.Source)
	source.Facts = slices.Insert(source.Facts, 0, [2]string{"Command", asked.Line(model, nil)})
	helped(cmd.Context(), source, asked, model)
	return page.Of(source), nil
}

// unasked says why a plan's command is not known.
func unasked(source *page.Source) string {
	switch plan := source.Plan; {
	case len(plan.Pipeline) > 0, plan.Workload.Mode == costmodel.Serve:
		return "changes of diffusion pipelines and of engines that serve need devmap plan --report"
	case source.Graph == nil:
		return "the model was not read"
	}
	return "flags alone do not make this plan again"
}

func (command *reportCommand) written() out.Written {
	return out.Written{Flag: "output", Path: command.Output, Kinds: []string{"page"}}
}

// maxReportBytes limits a report of a run.
const maxReportBytes = 256 << 20

// runOf reads the report of devmap run or watch for a plan into its source. A report of another plan is an
// error.
func runOf(cmd *cobra.Command, name string, source *page.Source, file string) error {
	data, err := out.Interruptible(cmd.Context(), 0, name, func() ([]byte, error) {
		return modelgraph.ReadSmall(name, "a report", maxReportBytes)
	})
	if err != nil {
		return err
	}
	var other string // what a report is of instead
	for documents := jsontext.NewDecoder(bytes.NewReader(data)); ; {
		text, err := documents.ReadValue()
		if errors.Is(err, io.EOF) {
			break
		}
		var head struct {
			FormatVersion string `json:"format_version"`
			Plan          string `json:"plan"`
			Backend       string `json:"backend"`
			Model         struct {
				Name   string `json:"name"`
				Digest string `json:"digest"`
			} `json:"model"`
		}
		if err != nil || json.Unmarshal(text, &head) != nil || head.FormatVersion != "devmap.report/v1" {
			return out.Usagef("--run %s is no report of devmap run or watch: their -o FILE writes one", name)
		}
		if head.Model.Digest != source.Plan.Model.Digest { // of several plans
			other = fmt.Sprintf("model %q (%s)", head.Model.Name, head.Model.Digest)
			continue
		}
		if had := source.Run != nil || source.Watched != nil; had && head.Plan != file {
			continue // of another plan for the same model
		}
		source.Run, source.Watched = nil, nil
		var into any = &source.Run
		if head.Backend == "watch" {
			into = &source.Watched
		}
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("--run %s: %w", name, err)
		}
	}
	return fitsPlan(source, file, name, other)
}

// fitsPlan refuses a file without a report for the plan, and a report with another number of devices.
// other names the model of the file if it is another one.
func fitsPlan(source *page.Source, file, name, other string) error {
	switch plan := source.Plan; {
	case source.Run == nil && source.Watched == nil && other != "":
		return out.Usagef("--run %s is of %s, and %s is a plan for %q (%s): give the report of this plan", name, other, file, plan.Model.Name, plan.Model.Digest)
	case source.Run == nil && source.Watched == nil:
		return out.Usagef("--run %s is empty: it is no report of devmap run or watch", name)
	case source.Run != nil && len(source.Run.Devices) != len(plan.Devices) || source.Watched != nil && len(source.Watched.Devices) != len(plan.Devices):
		return out.Usagef("--run %s has another number of devices than %s, which plans %d: give the report of this plan", name, file, len(plan.Devices))
	}
	return nil
}

// sameRun refuses a report that predicts other peaks than the plan.
func sameRun(source *page.Source, file, name string) error {
	var peaks []int64
	if source.Run != nil {
		for i := range source.Run.Devices {
			peaks = append(peaks, source.Run.Devices[i].Predicted.PeakAllocatedBytes)
		}
	}
	if source.Watched != nil {
		for i := range source.Watched.Devices {
			peaks = append(peaks, source.Watched.Devices[i].Predicted.PeakAllocatedBytes)
		}
	}
	for i, was := range peaks {
		if is := source.Plan.Devices[i].Predicted.PeakAllocatedBytes; was != is {
			return out.Usagef("--run %s predicts %v for device %d, and %s predicts %v (%d bytes more): give the report of this plan", name, costmodel.Bytes(was), i, file, costmodel.Bytes(is), is-was)
		}
	}
	return nil
}

// spareReport refuses a file of --report that is read, or that another output is.
func spareReport(cmd *cobra.Command, path, model string, others ...string) error {
	if path != "" && slices.Contains(others, path) {
		return out.Usagef("--report %q: another output has that name: name another file", path)
	}
	return out.Spare(cmd, out.Written{Flag: "report", Path: path, Kinds: []string{"page"}}, model)
}
