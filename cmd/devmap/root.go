package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
)

func newRoot(self worker.Self) *cobra.Command {
	var asked bool // version requested
	root := &cobra.Command{
		Use:   "devmap",
		Short: "Plan how a neural network is split across GPUs, with a proof",
		Long: `devmap splits a neural network across GPUs. It predicts the peak memory of each
GPU, finds the split with the lowest peak, and proves how close it is to the
optimum. A model is a Hugging Face folder, config.json or model.json, or a name.

Exit status: 0 done, 1 error, 2 wrong call, 3 nothing fits, 4 a check failed.`,
		Example: `  devmap estimate llama-3.1-8b --gpus 4 --gpu rtx-4090 --mode train
  devmap plan llama-3.1-8b --gpus 4 --gpu rtx-4090 -o plan.json
  devmap emit plan.json --for accelerate -o device_map.json`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked {
				return printVersion(cmd)
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return begin(cmd, args, self.Link != nil) },
	}
	// Do not use cobra's flag: its template would link text/template, and with it every method of
	// every type (6 MB).
	root.Flags().BoolVar(&asked, "version", false, "Print the version")
	ask.AddGlobals(root.PersistentFlags())
	root.SetFlagErrorFunc(ask.FlagError)
	root.SetHelpFunc(ask.Help)
	root.SetUsageFunc(ask.Usage)
	for _, cmd := range []*cobra.Command{newPlan(), newEstimate(), newCheck(), newInspect(), newEmit(), newSimulate(), newRun(self, backends.CPU()), newProbe(self), newWatch(self), newReport(), newList("models", "List the built-in models", listModels), newList("gpus", "List the GPUs that --gpu takes", listGPUs), newVersion(), newReplay()} {
		ask.Complete(cmd)
		root.AddCommand(cmd)
	}
	root.AddCommand(ask.Topics()...)
	strict(root)
	group(root)
	for _, cmd := range root.Commands() {
		ask.Single(cmd)
	}
	return root
}

// commandGroups lists the commands as in help; all others are help topics.
var commandGroups = []struct {
	id, title string
	commands  []string
}{
	{"plan", "Plan", []string{"estimate", "plan", "check", "emit"}},
	{"look", "Look up", []string{"inspect", "models", "gpus", "probe"}},
	{"run", "Run", []string{"watch", "run", "simulate", "report"}},
	{"other", "Other", []string{"completion", "help", "version"}},
}

// group puts the commands into groups, in the order of the table.
func group(root *cobra.Command) {
	all := root.Commands()
	root.RemoveCommand(all...)
	for _, of := range commandGroups {
		root.AddGroup(&cobra.Group{ID: of.id, Title: of.title})
		for _, name := range of.commands {
			if i := slices.IndexFunc(all, func(cmd *cobra.Command) bool { return cmd.Name() == name }); i >= 0 {
				all[i].GroupID = of.id
				root.AddCommand(all[i])
				all = slices.Delete(all, i, i+1)
			}
		}
	}
	root.AddGroup(&cobra.Group{ID: "topics", Title: "Help topics"})
	for _, cmd := range all {
		cmd.GroupID = "topics"
		root.AddCommand(cmd)
	}
}

// checkOutputNames refuses a flag as the name of an output, and a file of defaults.
func checkOutputNames(cmd *cobra.Command) error {
	for _, name := range []string{"output", "report"} {
		output := cmd.Flag(name)
		if output == nil {
			continue
		}
		switch path := output.Value.String(); {
		case path == "-" && name == "report":
			return out.Usagef("--report - is no file: name one, as report.html")
		case path == "-":
			return out.Usagef("--output - is no file: leave it out for standard output, or name the file ./-")
		case strings.HasPrefix(path, "-"): // a flag was read as the missing name
			return out.Usagef("--%s %q begins as a flag: name a file, ./%s if that is its name", name, path, path)
		case filepath.Base(path) == ask.ConfigName || path != "" && slices.Contains(ask.ConfigFiles(), path):
			return out.Usagef("--%s %q: devmap reads the defaults of its flags there: name another file", name, path)
		}
	}
	return nil
}

// begin sets colours and defaults before a command runs. A worker prints no notes, as the process
// that started it has printed them.
func begin(cmd *cobra.Command, args []string, isWorker bool) error {
	problems := cmd.ErrOrStderr()
	if err := checkOutputNames(cmd); err != nil {
		return err
	}
	notes, err := ask.ApplyDefaults(cmd)
	if err != nil {
		return err
	}
	for _, writer := range []any{cmd.OutOrStdout(), problems} {
		if stream, ok := writer.(*out.Stream); ok {
			if err := stream.SetColour(cmd.Flag("color").Value.String()); err != nil {
				return err
			}
		}
	}
	quiet, verbose := cmd.Flag("quiet"), cmd.Flag("verbose")
	switch {
	case isOn(quiet) && isOn(verbose):
		return out.Usagef("--quiet and --verbose contradict each other: give one")
	case isOn(quiet):
		setQuiet(problems)
	case isOn(verbose) && !isWorker:
		notes = slices.Concat(background(cmd, args), notes)
	}
	if !isWorker {
		show.Warnings(problems, notes)
	}
	return nil
}

// strict makes cobra's own commands refuse unknown arguments. Without it they would print their
// help and succeed.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Short = "Write the completion script of a shell"
			cmd.Long = "Write the completion script of a shell. devmap help completion SHELL says where\nit goes."
			cmd.Args = noCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		case "help":
			cmd.Short, cmd.Use = "Show the help of a command or a topic", "help [COMMAND|TOPIC]"
			cmd.Long = "Show the help of a command or a topic. devmap help lists both."
			cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, prefix string) (offers []cobra.Completion, _ cobra.ShellCompDirective) {
				for _, one := range root.Commands() {
					if len(args) == 0 && strings.HasPrefix(one.Name(), prefix) && (one.IsAvailableCommand() || one.IsAdditionalHelpTopicCommand()) {
						offers = append(offers, cobra.CompletionWithDesc(one.Name(), one.Short))
					}
				}
				return offers, cobra.ShellCompDirectiveNoFileComp
			}
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if found, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return noCommand(found, rest)
				}
				return nil
			}
		}
	}
}

// noCommand refuses an argument if a command is expected.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names, topics []string
	for _, command := range cmd.Commands() {
		switch {
		case command.IsAvailableCommand():
			names = append(names, command.Name())
		case command.IsAdditionalHelpTopicCommand():
			topics = append(topics, command.Name())
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return out.Usagef("help takes one COMMAND or TOPIC, and %q follows %s (devmap help lists both)", args[0], cmd.Name())
	}
	near := ""
	if did := ask.Nearest(strings.ToLower(args[0]), slices.Concat(names, topics)); did != "" {
		near = ": did you mean " + did + "?"
	}
	return out.Usagef("unknown command %q of %s (known: %s)%s", args[0], cmd.CommandPath(), strings.Join(names, ", "), near)
}

// isOn reports a switch that is on.
func isOn(flag *pflag.Flag) bool { return flag != nil && flag.Value.String() == "true" }

func setQuiet(problems io.Writer) {
	if stream, ok := problems.(*out.Stream); ok {
		stream.SetQuiet()
	}
}

// background returns the notes of --verbose before a command runs: the version, the config files,
// and the places searched for the model.
func background(cmd *cobra.Command, args []string) []string {
	said := []string{fmt.Sprintf("devmap %s %s/%s %s", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())}
	for _, file := range ask.ConfigFiles() {
		state := "read"
		if _, err := os.Stat(file); err != nil {
			state = "not there"
		}
		said = append(said, fmt.Sprintf("config file %s: %s", file, state))
	}
	if len(args) == 0 || !slices.Contains([]string{"plan", "estimate", "check", "inspect"}, cmd.Name()) {
		return said
	}
	if _, err := os.Stat(args[0]); err == nil {
		return append(said, fmt.Sprintf("model %s: a path", args[0]))
	}
	return append(said, fmt.Sprintf("model %s: a name; looked up in the Hugging Face and ModelScope caches, then among the built-in configs", args[0]))
}
