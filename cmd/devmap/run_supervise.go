package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/gpuusage"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// supervised is a run in a worker, as its supervisor sees it.
type supervised struct {
	*runCommand

	cmd     *cobra.Command
	process *worker.Process
	gpus    *gpuusage.Snapshot
	reports bytes.Buffer // for -o
	plan    *worker.Plan // the current plan; nil: none
	used    []report.GPU // by the last plan so far
	place   string       // the worker's place in the plan
	broke   string       // why it failed, if the worker reported it
	status  *int         // the worker's announced exit status
	missing error

	certificate *certifier // nil: not requested
}

// supervise runs plans in a worker. It reads the GPUs' memory before the worker starts and after it
// has ended. It reports the worker's messages, however the worker ends. missing: the worker found
// no GPU, and did nothing.
func (command *runCommand) supervise(cmd *cobra.Command) (missing, err error) {
	run := &supervised{runCommand: command, cmd: cmd, gpus: gpuusage.Look()}
	if command.Run.Certify {
		run.certificate = newCertificate()
	}
	defer run.gpus.Close()
	if run.process, err = worker.Start(cmd.Context(), command.self.Args, cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
		return nil, fmt.Errorf("starting the process that runs on GPUs: %w", err)
	}
	run.certificate.started(run.process.ID())
	readErr := run.hear()
	if readErr != nil {
		run.process.Kill() //nolint:errcheck // it has ended then
	}
	how, err := run.process.Wait()
	if run.process.Slow() {
		how = "it did not end in time, and was killed"
	}
	if run.missing != nil || err != nil {
		return run.missing, err
	}
	return nil, run.end(how, readErr)
}

// hear reads the worker's messages until there are no more.
func (run *supervised) hear() error {
	for {
		message, err := run.process.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = run.take(message)
		}
		if err != nil {
			return err
		}
	}
}

func (run *supervised) take(message *worker.Message) error {
	switch {
	case message.Missing != "":
		run.missing = errors.New(message.Missing)
	case message.Plan != nil && message.Plan.Predicted != nil:
		run.plan, run.place, run.used = message.Plan, "", message.Plan.Predicted.GPUs
	case message.At != "":
		run.place = message.At
	case message.Step != nil && run.plan != nil:
		run.plan.Predicted.Steps = append(run.plan.Predicted.Steps, *message.Step)
	case message.Ran != nil:
		run.plan = nil
		var measured report.Report
		if json.Unmarshal([]byte(message.Ran.Document), &measured) == nil {
			run.keep(&measured)
		}
		return run.print(message.Ran.Document, message.Ran.Text)
	case message.Witnessed != nil && run.certificate != nil:
		run.certificate.take(message.Witnessed)
	case message.Broke != "":
		run.broke = message.Broke
	case message.Done != nil:
		run.status = message.Done
	}
	return nil
}

// print prints the result of a plan.
func (run *supervised) print(document, text string) error {
	if run.JSON || run.Output != "" {
		if _, err := io.WriteString(run.documents(run.cmd, &run.reports), document); err != nil {
			return err
		}
	}
	if run.JSON {
		return nil
	}
	return out.Say(run.people(run.cmd), "%s", out.Block(text))
}

// end reports a worker that has ended, and returns its status. A report left at that time belongs
// to a failed run.
func (run *supervised) end(how string, readErr error) error {
	if run.status == nil {
		out.Wipe(run.cmd.ErrOrStderr())
		if run.cmd.Context().Err() != nil {
			return fmt.Errorf("%sinterrupted: no file was written (the process on the GPUs: %s)", run.running(), how)
		}
	}
	died := run.died(how, readErr)
	broke := run.plan != nil && (died != nil || run.broke != "")
	if broke {
		if err := run.breakOff(died); err != nil {
			return err
		}
	}
	if err := run.certify(how, run.unended(died)); err != nil {
		return err
	}
	if run.reports.Len() > 0 && (died != nil || broke || settled(*run.status)) {
		if err := run.write(run.cmd, run.reports.Bytes()); err != nil {
			return errors.Join(died, err)
		}
	}
	if died != nil {
		return died
	}
	run.warn(how)
	return run.ended()
}

// warn reports oddities of a worker that ended well.
func (run *supervised) warn(how string) {
	const soon = time.Second
	var odd []string
	if how != fmt.Sprintf("exit status %d", *run.status) {
		odd = append(odd, "the process on the GPUs had said everything, and then ended: "+how)
	}
	if settled(*run.status) && len(run.used) > 0 && run.certificate == nil { // a certificate reports it
		if left := run.released(soon); left[0] != gpuusage.AllReleased {
			odd = append(odd, left...)
		}
	}
	if *run.status == out.ExitInfeasible && run.plan != nil && run.Run.Cycles > 1 { // sleeping plans are closed with it
		odd = append(odd, run.released(soon)...)
	}
	show.Warnings(run.cmd.ErrOrStderr(), odd)
}

// released says whether the worker's memory was released within a time.
func (run *supervised) released(within time.Duration) []string {
	var numbers []int
	var used []executor.GPU
	for i := range run.used {
		numbers, used = append(numbers, run.used[i].GPU), append(used, executor.GPU{Name: run.used[i].Name, UUID: run.used[i].UUID})
	}
	return run.gpus.Released(run.process.ID(), numbers, used, within)
}

// settled reports the status of a worker that ran every plan.
func settled(status int) bool { return status == out.ExitDone || status == out.ExitCheck }

// ended returns the command's error if its worker ended normally.
func (run *supervised) ended() error {
	switch status := *run.status; {
	case run.Run.Fault != "" && settled(status):
		return fmt.Errorf("--fault %s: it did not come to that", run.Run.Fault)
	case status == out.ExitDone && run.broke != "": // the result of a plan could not be sent
		return &out.ReportedError{Status: out.ExitError}
	case status == out.ExitDone:
		return run.uncertified()
	default:
		return &out.ReportedError{Status: status}
	}
}

// unended says why not every plan had all its turns; empty: each had.
func (run *supervised) unended(died error) string {
	switch {
	case died != nil:
		return died.Error()
	case run.broke != "":
		return run.running() + run.broke
	case !settled(*run.status):
		return fmt.Sprintf("the run ended with exit status %d", *run.status)
	}
	return ""
}

// running returns the start of an error.
func (run *supervised) running() string {
	if run.plan == nil {
		return ""
	}
	return fmt.Sprintf("running %s: ", run.plan.File)
}

// died returns how the worker ended, if it did not end normally.
func (run *supervised) died(how string, readErr error) error {
	switch {
	case readErr != nil:
		return fmt.Errorf("%sthe worker was killed: %w", run.running(), readErr)
	case run.status == nil && run.place == "":
		return fmt.Errorf("%sthe worker ended: %s", run.running(), how)
	case run.status == nil:
		return fmt.Errorf("%sthe worker ended %s: %s", run.running(), run.place, how)
	}
	return nil
}

// breakOff reports a failed run: the cause, and the GPUs' memory now.
func (run *supervised) breakOff(died error) error {
	reason := run.broke
	if died != nil {
		reason = strings.TrimPrefix(died.Error(), run.running())
	} else if run.place != "" && !strings.HasPrefix(reason, "step ") { // the reason already has the place
		reason = fmt.Sprintf("%s: %s", run.place, reason)
	}
	reasons := strings.Split(reason, "\n")
	if run.Run.Fault != "" {
		reasons[0] = fmt.Sprintf("%s (--fault %s)", strings.TrimSuffix(reasons[0], ":"), run.Run.Fault)
	}
	const long = 10 * time.Second // drivers release memory of killed processes late
	ran := run.plan.Predicted
	ran.BreakOff(append(reasons, run.released(long)...))
	var document, text bytes.Buffer
	if err := devicemap.WriteJSON(&document, ran); err != nil {
		return err
	}
	show.BrokenOff(&text, run.plan.Title, ran)
	return run.print(document.String(), text.String())
}
