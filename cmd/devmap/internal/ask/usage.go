package ask

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// groups lists the groups of flags in help, and the flags of each in order, each with the name of
// its value. A command prints the flags that it has.
var groups = []struct {
	title string
	flags []string
}{
	{"Input", []string{"for ENGINE", "model MODEL", "transformers RELEASE", "dim NAME=N", "weights SOURCE", "tokens FILE", "resume FOLDER", "seed N", "schedule-file FILE"}},
	{"What to plan", []string{"mode MODE", "preset NAME|FILE", "batch N", "seq N", "target-seq N", "precision TYPE", "attention KERNEL", "kernels SOURCE"}},
	{"Samples", []string{
		"lengths MEAN,MAX|FILE", "packing KIND", "label-tokens N|FRACTION", "images N|MEAN,MAX", "image-size PIXELS", "max-pixels PIXELS",
	}},
	{"GPUs", []string{"gpus N|SIZES|auto", "gpu NAME", "topology FILE", "nodes N", "reserve SIZE", "devices LIST", "backend NAME", "transport WAY"}},
	{"Training", []string{
		"optimizer NAME", "optimizer-in-backward", "micro-batches N", "recompute MODE", "offload-activations SET", "float8 RECIPE", "loss KIND", "loss-only", "liger", "compile", "ema",
		"gradient-as-bucket-view", "eval-batch N", "eval-samples N", "lr RATE", "betas B1,B2", "eps NUMBER", "weight-decay NUMBER", "clip NORM",
	}},
	{"Adapters", []string{"lora-rank N", "lora-targets NAMES", "lora-precision TYPE", "lora-dropout", "quantize TYPE"}},
	{"Inference", []string{"new-tokens N", "offload TARGET", "stop ID"}},
	{"Serving", []string{"context N", "sequences N", "kv-type TYPE", "ubatch N", "mmproj FILE", "draft FILE", "tensor-split A,B", "gpu-layers N", "host-experts N", "max-num-batched-tokens N", "mem-fraction FRACTION", "enforce-eager", "engine-version VERSION", "calibration FILE"}},
	{"Strategy", []string{
		"strategy NAME", "runtime NAME", "contiguous", "pin LAYER=GPU", "together A,B", "schedule NAME", "virtual-stages N", "dp N|auto", "tp N|auto", "cp N|auto", "ep N|auto",
		"pp N|auto", "sequence-parallel", "expert-capacity TIMES", "uniform", "shard-degree N", "built-on WHERE",
	}},
	{"DeepSpeed", []string{"ds-config FILE"}},
	{"Diffusion", []string{
		"component NAME", "height PIXELS", "width PIXELS", "frames N", "steps N", "vae-slicing", "vae-tiling", "vae-precision TYPE", "cache-latents", "cfg-degree N",
		"ulysses N", "ring N", "pipefusion N", "fully-shard-degree N",
	}},
	{"Search", []string{"objective GOAL", "time-limit DURATION", "explain", "run REPORT"}},
	{"Run", []string{"steps N", "cycles N", "keep WHERE", "certify", "fault KIND:N"}},
	{"Watch", []string{"pid N", "strict", "baseline", "no-hook", "snapshot FILE", "rank-from-env", "merge FOLDER", "log FILE"}},
	{"Output", []string{
		"output FILE", "report FILE", "emit SCHEDULER", "force", "json", "trace FILE", "dump KIND=FILE", "save FOLDER", "save-state FOLDER", "quiet", "verbose", "color WHEN", "version", "help",
		"no-descriptions",
	}},
}

// helpLine is a flag's line in help: its name with that of its value, and its explanation.
type helpLine struct{ name, help string }

// helpGroup is a group of a command's flags.
type helpGroup struct {
	title string
	lines []helpLine
}

// groupsOf returns the groups of a command's visible flags. Flags in no group come last.
func groupsOf(cmd *cobra.Command) []helpGroup {
	left := map[string]*pflag.Flag{}
	var names []string
	add := func(flag *pflag.Flag) {
		if !flag.Hidden && left[flag.Name] == nil {
			left[flag.Name] = flag
			names = append(names, flag.Name)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	var found []helpGroup
	for _, group := range groups {
		of := helpGroup{title: group.title}
		for _, entry := range group.flags {
			name, value, _ := strings.Cut(entry, " ")
			flag := left[name]
			if flag == nil || name == "steps" && (group.title == "Run") != (cmd.Name() == "run") {
				continue
			}
			of.lines = append(of.lines, lineOf(flag, value))
			delete(left, name)
		}
		if len(of.lines) > 0 {
			found = append(found, of)
		}
	}
	others := helpGroup{title: "Other"}
	for _, name := range names {
		if flag := left[name]; flag != nil {
			others.lines = append(others.lines, lineOf(flag, flag.Value.Type()))
		}
	}
	if len(others.lines) > 0 {
		found = append(found, others)
	}
	return found
}

func lineOf(flag *pflag.Flag, value string) helpLine {
	name, help := "    --"+flag.Name, flag.Usage
	if flag.Shorthand != "" {
		name = "-" + flag.Shorthand + ", --" + flag.Name
	}
	if value != "" && flag.Value.Type() != "bool" {
		name += " " + value
	}
	if flag.Name == "help" { // cobra's own flag names the command
		help = "Show this help"
	}
	return helpLine{name, help}
}

// bracketed returns a flag's explanation with its default, unless that is empty or already there.
func (f *flag) bracketed(help string) string {
	if strings.Contains(help, "[") || slices.Contains([]string{"", "false", "0"}, f.defaultValue) {
		return help
	}
	return help + " [" + f.defaultValue + "]"
}

// Help prints the description and the usage of a command or a topic.
func Help(cmd *cobra.Command, _ []string) {
	to := cmd.OutOrStdout()
	width := out.Width(to)
	text := reflowed(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)), width) + "\n"
	io.WriteString(to, out.Readable(text)) //nolint:errcheck // the stream keeps the error
	if cmd.Runnable() || cmd.HasSubCommands() {
		io.WriteString(to, out.Readable("\n"+usage(cmd, width))) //nolint:errcheck // likewise
	}
}

// Usage prints a command's usage.
func Usage(cmd *cobra.Command) error {
	to := cmd.OutOrStderr()
	_, err := io.WriteString(to, out.Readable(usage(cmd, out.Width(to))))
	return err
}

// usage returns a command's usage: its form, examples, commands and groups of flags.
func usage(cmd *cobra.Command, width int) string {
	var text strings.Builder
	text.WriteString("Usage:\n")
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "  %s COMMAND\n", cmd.CommandPath())
	} else {
		fmt.Fprintf(&text, "  %s\n", cmd.UseLine())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, group := range commandGroups(cmd) {
		writeGroup(&text, group, width)
	}
	for _, group := range groupsOf(cmd) {
		writeGroup(&text, group, width)
	}
	switch {
	case !cmd.HasParent():
		text.WriteString("\n" + out.Wrap("Run devmap help COMMAND or devmap help TOPIC for more.", min(width, textWidth)) + "\n")
	case topics[cmd.Name()] != "":
		text.WriteString("\n" + out.Wrap("Help topics: devmap help "+topics[cmd.Name()], min(width, textWidth)) + "\n")
	}
	return text.String()
}

// topics lists the topics at the end of each command's help.
var topics = map[string]string{
	"plan":     "precision, presets, gpus, models, strategies, optimizers, offload, topology, exit-codes, environment",
	"estimate": "precision, presets, gpus, models, strategies, optimizers, topology, exit-codes, environment",
	"check":    "precision, presets, gpus, models, strategies, optimizers, topology, exit-codes, environment",
	"inspect":  "precision, models, strategies, optimizers, environment",
	"emit":     "strategies, exit-codes",
	"simulate": "exit-codes", "run": "exit-codes", "watch": "exit-codes", "report": "exit-codes", "probe": "topology",
}

// commandGroups returns a command's subcommands in their groups, help topics last.
func commandGroups(cmd *cobra.Command) []helpGroup {
	var found []helpGroup
	for _, group := range append(cmd.Groups(), &cobra.Group{Title: "Commands"}) {
		of := helpGroup{title: strings.TrimSuffix(group.Title, ":")}
		for _, sub := range cmd.Commands() {
			listed := sub.IsAvailableCommand() || sub.Name() == "help" || sub.IsAdditionalHelpTopicCommand()
			if listed && sub.GroupID == group.ID {
				of.lines = append(of.lines, helpLine{sub.Name(), sub.Short})
			}
		}
		if len(of.lines) > 0 {
			found = append(found, of)
		}
	}
	return found
}

// writeGroup writes a group as two columns, the second wrapped. On a narrow terminal, explanations
// go below the names.
func writeGroup(text *strings.Builder, group helpGroup, width int) {
	const indent, gap, least = 2, 2, 24 // least columns of the explanation
	widest := 0
	for _, line := range group.lines {
		widest = max(widest, len(line.name))
	}
	column := indent + max(widest, 11) + gap
	if strings.Contains(group.lines[0].name, "--") {
		column = flagColumn
	}
	below := width-column < least
	if below {
		column = 10
	}
	fmt.Fprintf(text, "\n%s:\n", group.title)
	for _, line := range group.lines {
		wrapped := strings.ReplaceAll(out.Wrap(line.help, max(width-column, least)), "\n", "\n"+strings.Repeat(" ", column))
		if name := strings.Repeat(" ", indent) + line.name; below || len(name)+gap > column {
			fmt.Fprintf(text, "%s\n%*s%s\n", name, column, "", wrapped)
		} else {
			fmt.Fprintf(text, "%-*s%s\n", column, name, wrapped)
		}
	}
}

// flagColumn is the column of flags' explanations, after the longest name.
const flagColumn = 33

// reflowed wraps a text's paragraphs to the terminal if it is narrower than the text. Lines that
// begin with a blank are not wrapped.
func reflowed(text string, width int) string {
	if width >= textWidth {
		return text
	}
	paragraphs := strings.Split(text, "\n\n")
	for i, paragraph := range paragraphs {
		if !strings.Contains("\n"+paragraph, "\n ") {
			paragraphs[i] = out.Wrap(strings.ReplaceAll(paragraph, "\n", " "), width)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// textWidth is the width of help texts.
const textWidth = 80
