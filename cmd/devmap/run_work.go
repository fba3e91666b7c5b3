package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// work runs plans on GPUs, as a worker: it reports to its supervisor, which prints.
func (command *runCommand) work(cmd *cobra.Command, files []string) (err error) {
	if command.gpus, err = backends.GPUs(); err != nil {
		command.self.Link.Say(&worker.Message{Missing: err.Error()})
		return nil //nolint:nilerr // the supervisor tells it, or runs the reference
	}
	runs, err := command.prepare(cmd, files)
	if err != nil {
		return err
	}
	if command.Run.Certify {
		if err := command.observer.begin(command.self.Link, runs); err != nil {
			return errors.Join(err, closeAll(runs))
		}
	}
	err = command.takeTurns(cmd.Context(), runs, func(turn *turn) (*report.Report, error) {
		command.begin(turn)
		measured, err := turn.carryOut(cmd)
		if err != nil {
			return nil, err
		}
		return measured, command.ran(cmd, turn, measured)
	})
	if err == nil || errors.Is(err, out.ErrCheck) { // otherwise a GPU may be lost, or in an endless operation
		err = errors.Join(err, command.observer.close())
	}
	return err
}

// begin reports that a plan's turn has come.
func (command *runCommand) begin(turn *turn) {
	one := turn.planRun
	plan := &worker.Plan{File: one.file}
	var text strings.Builder
	show.New(&text, one.job.Graph, *one.job.Workload).Title(command.gpus.where(one))
	plan.Title = text.String()
	var used []executor.GPUResult
	at := make(map[int]int) // index of a GPU in used
	for i, gpu := range one.gpus {
		if _, known := at[gpu]; !known {
			at[gpu] = len(used)
			used = append(used, executor.GPUResult{GPU: gpu, UUID: command.gpus[gpu].UUID, Name: command.gpus[gpu].Name})
		}
		used[at[gpu]].Devices = append(used[at[gpu]].Devices, one.job.Program.Devices[i].ID)
	}
	plan.Predicted = report.Foretell(turn.prediction(), &one.job.Job, one.session.Backend.Name(), used)
	command.self.Link.Say(&worker.Message{Plan: plan})
	command.self.Link.Say(&worker.Message{At: map[bool]string{false: "before it loaded", true: "before it woke"}[turn.woken()]})
}

// tell reports the turn's progress to the supervisor and to people. Faults count a plan's steps and
// pieces over all its turns.
func (turn *turn) tell(link *worker.Link) {
	one := turn.planRun
	const often = 100 * time.Millisecond
	var last time.Time
	var done int64
	soon := time.Millisecond // after the start of a step
	at := func(place string) {
		last = time.Now()
		link.Say(&worker.Message{At: place})
	}
	next := func() {
		if done == one.settings.Steps {
			at("behind its last step")
			return
		}
		at(fmt.Sprintf("in step %d of %d", done+1, one.settings.Steps))
		if one.kill == (ask.Fault{Kind: ask.KillStep, At: one.steps + 1}) {
			time.AfterFunc(soon, killed)
		}
	}
	watch := &one.settings.Watch
	loaded, step := watch.Loaded, watch.Step
	watch.Loaded = func(bytes, of int64) {
		loaded(bytes, of)
		one.pieces++
		if one.kill == (ask.Fault{Kind: ask.KillLoad, At: one.pieces}) {
			killed()
		}
		switch {
		case bytes == of:
			next()
		case time.Since(last) > often:
			at(fmt.Sprintf("while loading, %v of %v", costmodel.Bytes(bytes), costmodel.Bytes(of)))
		}
	}
	watch.Step = func(result *executor.StepResult) {
		step(result)
		if one.kill == (ask.Fault{Kind: ask.KillStep, At: one.steps + 1}) {
			killed() // the step ended before that
		}
		soon = result.Times.Step / 2
		measured := report.StepOf(result, &one.job.Job)
		link.Say(&worker.Message{Step: &measured})
		done++
		one.steps++
		next()
	}
	turn.reportSleeps(at, next)
}

// killed kills this process at once, as another process would.
func killed() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// broke reports a failed run to the supervisor, unless the cause is its flags, lack of memory, or
// an interrupt.
func (one *planRun) broke(link *worker.Link, err, failure error) {
	var usage out.UsageError
	var infeasible *out.Infeasible
	if !errors.As(failure, &usage) && !errors.As(failure, &infeasible) && !errors.Is(err, context.Canceled) {
		link.Say(&worker.Message{Broke: err.Error()})
	}
}

// ran reports the result of a plan.
func (command *runCommand) ran(cmd *cobra.Command, turn *turn, measured *report.Report) error {
	var document, text bytes.Buffer
	if err := devicemap.WriteJSON(&document, measured); err != nil {
		return err
	}
	command.printed(show.New(command.people(cmd), turn.job.Graph, *turn.job.Workload).Into(&text), turn, measured)
	command.self.Link.Say(&worker.Message{Ran: &worker.Ran{Document: document.String(), Text: text.String()}})
	return nil
}
