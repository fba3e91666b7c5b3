package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/certify"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/hook"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/page"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/watching"
	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// watchSession is a plan, its GPUs, and the processes to watch on them.
type watchSession struct {
	plan        *devicemap.Plan // nil: measure memory without a comparison
	file        string
	argv        []string
	child       *watching.Child // nil: no command
	pid         int             // of a running process; 0: none
	tree        *watch.Tree     // nil: all processes on the GPUs
	environment []string        // of the child
	hook        *hook.Hook      // nil: no hook
	reader      watch.Reader
	places      []watch.Place
	notes       []string
	baseline    *watching.Baseline // nil: memory left is not judged
}

// watched is the result of a session.
type watched struct {
	command  *watch.Command    // nil: there was none
	readings []watch.Readings  // by GPU of the report
	report   *watch.Report     // nil: memory was not sampled
	left     *certify.Document // nil: not requested
}

// show prints the results for people.
func (ran *watched) show(to io.Writer) {
	if ran.report != nil {
		show.Watched(to, ran.report)
	}
	if ran.left != nil {
		show.Certified(to, ran.left)
	}
}

// newWatchSession finds the processes to watch, and their GPUs, without starting anything.
func newWatchSession(plan *devicemap.Plan, file string, argv []string, asked *ask.Watch) (*watchSession, error) {
	session := &watchSession{plan: plan, file: file, argv: argv, pid: int(asked.PID)}
	list, set, err := session.subject()
	if err != nil {
		return nil, err
	}
	if asked.Baseline {
		if session.baseline, err = watching.NewBaseline(session.tree, list, set); err != nil {
			return nil, err
		}
		if plan == nil {
			return session, nil
		}
	}
	if session.reader, err = watch.Open(); err != nil {
		session.close()
		return nil, err
	}
	if err = session.place(list, set); err == nil && session.child != nil && !asked.NoHook {
		session.hook, err = hook.New(asked.Snapshot)
	}
	if err != nil {
		session.close()
		return nil, err
	}
	if session.hook != nil {
		session.environment = session.hook.Environ(session.environment)
	}
	return session, nil
}

// close closes the session after the reports.
func (session *watchSession) close() {
	session.baseline.Close()
	if session.reader != nil {
		session.reader.Close() //nolint:errcheck // nothing was written
	}
	if session.hook != nil {
		session.hook.Close() //nolint:errcheck // a temporary folder may be left
	}
}

// subject finds the command or the running process, and the GPUs it sees.
func (session *watchSession) subject() (list string, set bool, err error) {
	const visible = "CUDA_VISIBLE_DEVICES"
	if session.pid != 0 {
		session.tree = watch.NewTree(session.pid)
		if _, here := session.tree.Has(session.pid); !here {
			return "", false, fmt.Errorf("--pid %d: there is no such process", session.pid)
		}
		if list, set, err = session.variable(visible); err != nil {
			return "", false, fmt.Errorf("--pid %d is somebody else's, and which GPUs it sees cannot be read: %w", session.pid, err)
		}
		return list, set, nil
	}
	if len(session.argv) > 0 {
		if session.child, err = watching.Find(session.argv); err != nil {
			return "", false, err
		}
		session.tree, session.environment = watch.Marked(os.Environ())
	}
	return session.variable(visible)
}

// variable returns an environment variable of the watched process.
func (session *watchSession) variable(name string) (value string, set bool, err error) {
	if session.pid != 0 {
		return watch.Environ(session.pid, name)
	}
	value, set = os.LookupEnv(name)
	return value, set, nil
}

// place finds the plan's GPUs.
func (session *watchSession) place(list string, set bool) error {
	gpus := session.reader.GPUs()
	seen, err := watch.Visible(list, set, gpus)
	if err != nil {
		return err
	}
	session.places, session.notes, err = watch.Places(session.plan, gpus, seen)
	if err != nil {
		return err
	}
	differ := slices.ContainsFunc(gpus, func(gpu watch.GPU) bool { return gpu.Name != gpus[0].Name })
	order, _, _ := session.variable("CUDA_DEVICE_ORDER")
	if differ && order != "PCI_BUS_ID" {
		session.notes = append(session.notes, "this machine's GPUs differ, and CUDA numbers the fastest first: with CUDA_DEVICE_ORDER=PCI_BUS_ID its numbers are those used here")
	}
	if note := session.reader.Source().Note; note != "" {
		session.notes = append(session.notes, note)
	}
	return nil
}

// run watches until the command or process has ended, reports, and judges the memory left.
func (session *watchSession) run(cmd *cobra.Command, stdout io.Writer) (ran *watched, err error) {
	if session.reader != nil {
		ran, err = session.sample(cmd, stdout)
	} else {
		ran, err = session.await(cmd, stdout)
	}
	if err == nil && session.baseline != nil {
		ran.left = session.baseline.Judge(context.WithoutCancel(cmd.Context()), ran.command.Ended)
	}
	return ran, err
}

// await waits for a command if only the memory left is judged.
func (session *watchSession) await(cmd *cobra.Command, stdout io.Writer) (*watched, error) {
	defer watching.Signals(session.child)()
	if err := session.start(cmd, stdout); err != nil {
		return nil, err
	}
	began := time.Now()
	command, err := session.wait(cmd.Context(), nil)
	if command != nil {
		command.Seconds = time.Since(began).Seconds()
	}
	return &watched{command: command}, err
}

// start starts the command.
func (session *watchSession) start(cmd *cobra.Command, stdout io.Writer) error {
	if err := session.child.Start(session.environment, stdout, cmd.ErrOrStderr()); err != nil {
		return err
	}
	session.tree.Begin(session.child.ID())
	return nil
}

// sample compares the GPUs' memory with the plan's, until the command has ended.
func (session *watchSession) sample(cmd *cobra.Command, stdout io.Writer) (*watched, error) {
	sampler, err := watch.New(watch.Settings{Reader: session.reader, Places: session.places, Whose: session.tree, Attached: session.child == nil})
	if err != nil {
		return nil, err
	}
	live := session.live(cmd, sampler)
	defer live.Close()
	if session.child != nil {
		done := watching.Signals(session.child)
		defer done()
		if err := session.start(cmd, stdout); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	ctx, stop := context.WithCancel(context.WithoutCancel(cmd.Context()))
	read := make(chan error, 1)
	go func() { read <- sampler.Run(ctx) }()
	live.Begin()
	command, err := session.wait(cmd.Context(), read)
	stop()
	if err != nil {
		return nil, err
	}
	<-read //nolint:errcheck // the report has the result
	if command != nil {
		command.Seconds = time.Since(began).Seconds()
	}
	live.Close()
	processes := session.hookReports()
	return &watched{command: command, readings: sampler.Readings(), report: watch.Of(&watch.Ran{
		File: session.file, Plan: session.plan, Sampler: sampler, Command: command, Processes: processes, Variants: session.variants, Notes: session.notes,
	})}, nil
}

// searchTime is how long other settings are tried as explanations of the measurements.
const searchTime = 10 * time.Second

// variants returns the plan's predictions for other settings. The error says that its model is
// missing.
func (session *watchSession) variants() (iter.Seq[watch.Variant], error) {
	if session.plan == nil {
		return func(func(watch.Variant) bool) {}, nil
	}
	graph, err := plannedModel(session.plan, session.file, "")
	if err != nil {
		return nil, err
	}
	started := time.Now()
	return watching.Variants(graph, session.plan, func() bool { return time.Since(started) > searchTime }), nil
}

// hookReports returns the reports of the command's processes on torch's memory.
func (session *watchSession) hookReports() []watch.Process {
	if session.hook == nil {
		return nil
	}
	processes, err := session.hook.Read()
	if err != nil {
		session.notes = append(session.notes, err.Error())
	}
	if note := watch.Untold(processes); note != "" {
		session.notes = append(session.notes, note)
	}
	return processes
}

// live shows GPUs on a terminal, or as lines.
func (session *watchSession) live(cmd *cobra.Command, sampler *watch.Sampler) *watching.Live {
	source := session.reader.Source()
	title := fmt.Sprintf("%s, every %v", source.Name, source.Interval())
	if session.plan != nil {
		title = fmt.Sprintf("compared with %s · %s", out.Cell(session.file), title)
	}
	var predicted [][2]int64
	for _, place := range session.places {
		var used [2]int64 // zero without a plan
		if session.plan != nil {
			used, _ = watch.Predicted(session.plan, place.Devices)
		}
		predicted = append(predicted, used)
	}
	return watching.NewLive(cmd.ErrOrStderr(), title, predicted, sampler.State)
}

// wait waits until the command or process ends; without either, until the user ends it.
func (session *watchSession) wait(ctx context.Context, lost <-chan error) (*watch.Command, error) {
	if session.child != nil {
		status, how, err := session.child.Wait()
		return &watch.Command{Argv: session.argv, PID: session.child.ID(), ExitStatus: &status, Ended: how}, err
	}
	if session.pid == 0 {
		select {
		case <-ctx.Done():
			return nil, nil //nolint:nilnil // no command was named
		case err := <-lost:
			return nil, err
		}
	}
	command := &watch.Command{Argv: watch.Argv(session.pid), PID: session.pid}
	const often = 100 * time.Millisecond
	for tick := time.NewTicker(often); ; {
		select {
		case <-tick.C:
			if !session.tree.Alive() {
				tick.Stop()
				command.Ended = "it ended"
				return command, nil
			}
		case <-ctx.Done():
			tick.Stop()
			return command, nil
		}
	}
}

// report writes the page of --report: of the plan, if there is one, with the memory of the command.
func (command *watchCommand) report(cmd *cobra.Command, plan *devicemap.Plan, file string, ran *watched) error {
	if command.Report == "" || ran.report == nil {
		return nil
	}
	made := page.OfWatch(ran.report, ran.readings)
	if plan != nil {
		source, err := writtenPage(plan, command.Model)
		if err != nil {
			return err
		}
		source.Watched, source.Readings = ran.report, ran.readings
		if made, err = (&reportCommand{Request: command.Request}).made(cmd, source, file); err != nil {
			return err
		}
	}
	return out.Write(cmd, command.Report, made.Write)
}
