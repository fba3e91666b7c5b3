package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/interrupt"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/watching"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

type watchCommand struct {
	*ask.Request

	self worker.Self
}

func newWatch(self worker.Self) *cobra.Command {
	command := &watchCommand{self: self}
	cmd := &cobra.Command{
		Use:   "watch [PLAN] [-- COMMAND…]",
		Short: "Run a command and compare its GPU memory with a plan",
		Long: `Run COMMAND, of any engine, and compare its GPU memory with a plan.

A terminal shows each GPU while COMMAND runs: memory in use, the prediction,
growth between steps, and memory of other processes. Child processes count, even
when reparented. CUDA_VISIBLE_DEVICES selects the GPUs. Without PLAN, devmap
reports the memory in use and compares it with nothing.

--pid watches a running process until it ends or you press Ctrl-C. Without
COMMAND and --pid, devmap shows everything on the GPUs until Ctrl-C.

devmap exits with the status of COMMAND (127: not found, 126: not executable,
128 + n: ended by signal n). With --strict it exits with 4 if the verdict is
fail. COMMAND receives Ctrl-C; devmap writes the report when it has ended. A
build with NVML (make cuda) samples 20 times a second, other builds read
nvidia-smi 10 times a second.

--baseline checks that COMMAND releases all GPU memory: its GPUs hold what they
held before, and none of its processes is left. It needs no PLAN. A build with
CUDA also allocates the free memory of each GPU (all but 16 MiB) for a moment,
and reads back what it wrote.

Each Python process of COMMAND that imports torch reports the exact peak of
PyTorch's allocator. devmap adds a sitecustomize.py for this, which also runs
yours; --no-hook turns it off.

On many hosts, each rank runs its COMMAND under devmap watch --rank-from-env -o
FOLDER, in a shared FOLDER. devmap watch --merge FOLDER compares all ranks with
the plan. It names ranks that failed, were not measured, or hold more than the
plan or their peers.

--log compares the start-up log of vLLM or SGLang with their plan. -o writes a
calibration, which devmap plan --calibration reads.`,
		Example: `  devmap watch plan.json -- python train.py
  devmap watch -- python train.py
  devmap watch plan.json --strict -o report.json -- torchrun --nproc-per-node 4 train.py
  devmap watch plan.json --pid 4711
  devmap watch --baseline --strict -- python generate.py
  devmap watch --merge /shared/reports
  devmap watch plan.json --log vllm.log -o calibration.json`,
		Args: command.onePlan,
		RunE: func(cmd *cobra.Command, args []string) error {
			plans := cmd.ArgsLenAtDash()
			if plans < 0 {
				plans = len(args)
			}
			return command.run(cmd, strings.Join(args[:plans], ""), args[plans:])
		},
	}
	command.Request = ask.New(cmd)
	return cmd
}

// onePlan accepts at most one PLAN, and requires -- before a COMMAND, which has its own flags.
func (command *watchCommand) onePlan(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0 && len(args) > 1:
		return out.Usagef("%s takes at most one PLAN; %d given: put -- before a COMMAND, as in devmap watch %s -- %s (devmap help watch)", cmd.CommandPath(), len(args), emit.Shell(args[0]), emit.Shell(args[1]))
	case dash > 1:
		return out.Usagef("%s takes at most one PLAN; %d given (devmap help watch)", cmd.CommandPath(), dash)
	case dash >= 0 && len(args) == dash:
		return out.Usagef("nothing follows --: put a COMMAND there (devmap help watch)")
	}
	return nil
}

func (command *watchCommand) run(cmd *cobra.Command, file string, argv []string) error {
	if command.self.Link != nil {
		return watching.Refill(command.self.Link, argv)
	}
	if err := command.refuse(file, argv); err != nil {
		return err
	}
	if command.Watch.Merge != "" {
		return command.merge(cmd)
	}
	if command.Watch.Log != "" {
		return command.log(cmd, file)
	}
	plan, err := command.plan(cmd, file)
	if err != nil {
		return err
	}
	ranked, err := command.rank(plan)
	if err != nil {
		return err
	}
	of, ofFile := plan, file
	if ranked != nil {
		plan, file = nil, "" // its devices include other hosts'
	}
	if err := spareReport(cmd, command.Report, "", command.Output); err != nil {
		return err
	}
	if err := cmp.Or(hasFolder("output", command.Output), hasFolder("report", command.Report), out.Spare(cmd, out.Written{Flag: "output", Path: command.Output, Kinds: []string{"report", "certificate", "rank"}}, "")); err != nil {
		return err
	}
	defer watching.Unbroken()()
	session, err := interrupt.Answered(cmd.Context(), cmd.ErrOrStderr(), func() (*watchSession, error) {
		return newWatchSession(plan, file, argv, &command.Watch)
	})
	if start := (*watching.StartError)(nil); errors.As(err, &start) {
		return command.unstarted(cmd, start, ranked, of, ofFile)
	}
	if err != nil {
		return err
	}
	defer session.close()
	ran, err := session.run(cmd, command.stdout(cmd))
	if start := (*watching.StartError)(nil); errors.As(err, &start) {
		return command.unstarted(cmd, start, ranked, of, ofFile)
	}
	if err != nil {
		return err
	}
	if ranked != nil {
		return errors.Join(command.writeRank(cmd, ranked, of, ofFile, ran.report), command.ended(ran))
	}
	return errors.Join(command.write(cmd, ran), command.report(cmd, of, ofFile, ran), command.ended(ran))
}

// hasFolder refuses an output whose folder does not exist.
func hasFolder(flag, path string) error {
	if path == "" {
		return nil
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("--%s %q: there is no folder %q", flag, path, folder)
	}
	return nil
}

// writeRank writes a rank's measurements, with its part of a plan.
func (command *watchCommand) writeRank(cmd *cobra.Command, ranked *watching.Ranked, plan *devicemap.Plan, file string, measured *watch.Report) error {
	if err := ranked.Take(plan, measured); err != nil {
		return err
	}
	if measured != nil { // else COMMAND did not start
		measured.Plan = file
	}
	return out.Document(cmd, command.Output, true, func(to io.Writer) error { return devicemap.WriteJSON(to, ranked) })
}

// rank returns this process's rank for --rank-from-env, whose file is in the folder of --output;
// nil without the flag.
func (command *watchCommand) rank(plan *devicemap.Plan) (*watching.Ranked, error) {
	if !command.Watch.RankFromEnv {
		return nil, nil //nolint:nilnil // none is asked for
	}
	ranked, err := watching.RankOf(os.Getenv)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(command.Output, 0o755); err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	command.Output = ranked.File(command.Output)
	another, err := ranked.Of(plan, command.Output)
	if another && !command.Force {
		err = fmt.Errorf("%q is a report of another job, with other ranks or another plan: --force replaces it, or name another folder", command.Output)
	}
	return ranked, err
}

// merge compares the reports of all ranks.
func (command *watchCommand) merge(cmd *cobra.Command) error {
	merged, files, err := watching.Merge(command.Watch.Merge)
	if err == nil {
		err = out.Spare(cmd, out.Written{Flag: "output", Path: command.Output}, "", files...)
	}
	if err != nil {
		return err
	}
	if command.JSON || command.Output != "" {
		if err := out.Write(cmd, command.Output, func(to io.Writer) error { return devicemap.WriteJSON(to, merged) }); err != nil {
			return err
		}
	}
	if !command.JSON {
		if err := merged.Show(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	if command.Watch.Strict && merged.Verdict != report.Pass {
		return &out.ReportedError{Status: out.ExitCheck}
	}
	return nil
}

// plan reads PLAN; nil if there is none.
func (command *watchCommand) plan(cmd *cobra.Command, file string) (*devicemap.Plan, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // none is given
	}
	plan, err := out.Interruptible(cmd.Context(), 0, file, func() (*devicemap.Plan, error) { return devicemap.ReadPlan(file) })
	if err != nil {
		return nil, err
	}
	if len(plan.Devices) == 0 {
		return nil, fmt.Errorf("%s: the plan has no devices to compare with; write it again with devmap plan", file)
	}
	return plan, out.Spare(cmd, out.Written{Flag: "output", Path: command.Output}, plan.Model.Source)
}

// refuse reports flags that contradict each other.
func (command *watchCommand) refuse(file string, argv []string) error {
	if err := command.refuseRanks(file, argv); err != nil || command.Watch.Merge != "" {
		return err
	}
	switch {
	case command.Given("pid") && command.Watch.PID < 1:
		return out.Usagef("--pid %d: it must be 1 or more", command.Watch.PID)
	case command.Given("pid") && len(argv) > 0:
		return out.Usagef("--pid %d and a COMMAND (%s) exclude each other: give one", command.Watch.PID, argv[0])
	case len(argv) == 0 && (command.Watch.NoHook || command.Watch.Snapshot != ""):
		return out.Usagef("--no-hook and --snapshot need a COMMAND: devmap watch -- COMMAND")
	case command.Watch.NoHook && command.Watch.Snapshot != "":
		return out.Usagef("--snapshot %s needs the hook that --no-hook turns off: give one", command.Watch.Snapshot)
	case command.Watch.Baseline && len(argv) == 0:
		return command.nothingLeft()
	case command.Watch.Strict:
		return command.refuseStrict(file, argv)
	}
	return nil
}

// refuseRanks reports flags that --merge and --rank-from-env exclude.
func (command *watchCommand) refuseRanks(file string, argv []string) error {
	switch {
	case command.Watch.Log != "" && (file == "" || len(argv) > 0 || command.Given("pid", "baseline", "rank-from-env", "merge", "strict")):
		return out.Usagef("--log %s is compared with a PLAN alone: devmap watch PLAN --log FILE", emit.Shell(command.Watch.Log))
	case command.Watch.Merge != "" && (file != "" || len(argv) > 0 || command.Given("pid", "baseline", "rank-from-env")):
		return out.Usagef("--merge %s reads what ranks reported: leave out PLAN, COMMAND, --pid, --baseline and --rank-from-env", emit.Shell(command.Watch.Merge))
	case command.Report != "" && command.Given("log", "merge", "rank-from-env", "baseline"):
		return out.Usagef("--report shows one command's memory over time: leave out --log, --merge, --rank-from-env and --baseline")
	case command.Watch.RankFromEnv && !command.sharesRanks(argv):
		return out.Usagef("--rank-from-env needs a shared folder and a COMMAND, without --strict: devmap watch PLAN --rank-from-env -o FOLDER -- COMMAND")
	}
	return nil
}

// sharesRanks reports that a COMMAND's ranks have a folder to write to, and no verdict of one process.
func (command *watchCommand) sharesRanks(argv []string) bool {
	return command.Output != "" && len(argv) > 0 && !command.Watch.Baseline && !command.Watch.Strict
}

// refuseStrict reports --strict if there would be no verdict.
func (command *watchCommand) refuseStrict(file string, argv []string) error {
	switch {
	case !command.Given("pid") && len(argv) == 0:
		return out.Usagef("--strict needs a COMMAND or --pid")
	case file == "" && !command.Watch.Baseline:
		return out.Usagef("--strict needs a PLAN or --baseline: without them there is no verdict")
	}
	return nil
}

// nothingLeft refuses --baseline without a COMMAND.
func (command *watchCommand) nothingLeft() error {
	if command.Given("pid") {
		return out.Usagef("--baseline does not work with --pid %d: the memory before it started is unknown; use devmap watch --baseline -- COMMAND", command.Watch.PID)
	}
	return out.Usagef("--baseline needs a command: devmap watch --baseline -- COMMAND")
}

// unstarted ends like a shell whose command did not start. A rank reports its status.
func (command *watchCommand) unstarted(cmd *cobra.Command, start *watching.StartError, ranked *watching.Ranked, plan *devicemap.Plan, file string) error {
	err := out.Say(cmd.ErrOrStderr(), "devmap: %s\n", start.Error())
	if ranked != nil {
		ranked.ExitStatus = &start.Status
		err = errors.Join(err, command.writeRank(cmd, ranked, plan, file, nil))
	}
	if err != nil {
		return err
	}
	return &out.ReportedError{Status: start.Status, Err: start}
}

// stdout returns the writer for the command's stdout. With --json devmap's own stdout is for the
// report.
func (command *watchCommand) stdout(cmd *cobra.Command) io.Writer {
	if command.JSON && command.Output == "" {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
}

// write writes the results. The command may have run for days, so a result that cannot be written
// to its file is printed.
func (command *watchCommand) write(cmd *cobra.Command, ran *watched) (err error) {
	if command.JSON || command.Output != "" {
		var documents bytes.Buffer
		if ran.report != nil {
			err = devicemap.WriteJSON(&documents, ran.report)
		}
		if ran.left != nil && err == nil {
			err = devicemap.WriteJSON(&documents, ran.left)
		}
		if err == nil {
			err = out.Write(cmd, command.Output, func(to io.Writer) error { _, err := to.Write(documents.Bytes()); return err })
		}
	}
	if !command.JSON || err != nil {
		ran.show(cmd.ErrOrStderr())
	}
	return err
}

// ended returns the command's exit status: that of COMMAND, unless --strict sets it by the verdict.
func (command *watchCommand) ended(ran *watched) error {
	failed := ran.report != nil && ran.report.Verdict == report.Fail || ran.left != nil && ran.left.Verdict != report.Pass
	switch {
	case command.Watch.Strict && failed:
		return &out.ReportedError{Status: out.ExitCheck}
	case ran.command == nil || ran.command.ExitStatus == nil || *ran.command.ExitStatus == 0:
		return nil
	}
	return &out.ReportedError{Status: *ran.command.ExitStatus}
}
