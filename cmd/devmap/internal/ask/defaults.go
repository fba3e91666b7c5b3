package ask

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
)

// Defaults of flags come from the environment and from config files. A flag with such a default
// counts as given, and its annotation names the place.

// placeOf is the annotation of a flag with a default from the environment or a config file.
const placeOf = "devmap_place"

// globals are the flags that every command has.
var globals = []string{"color", "quiet", "verbose"}

// AddGlobals gives the root command the flags that every command has.
func AddGlobals(set *pflag.FlagSet) {
	set.BoolP("quiet", "q", false, "Print errors and the result on stdout only, no notes")
	set.BoolP("verbose", "v", false, "Also print versions, searched paths and times")
	set.String("color", out.Auto, "Colour: auto, always, never [auto]")
}

// outsideSets reports that the environment and config files can set a flag: every flag of plan
// except --output.
func outsideSets(name string) bool {
	if slices.Contains(globals, name) {
		return true
	}
	i := slices.IndexFunc(flags, func(f flag) bool { return f.name == name })
	return i >= 0 && flags[i].on&onPlan != 0 && flags[i].hidden&onPlan == 0 && name != "output"
}

// outsideNames lists the flags that the environment and config files can set.
func outsideNames() []string {
	names := slices.Clone(globals)
	for i := range flags {
		if outsideSets(flags[i].name) {
			names = append(names, flags[i].name)
		}
	}
	return names
}

// variable returns the environment variable of a flag.
func variable(name string) string {
	return "DEVMAP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// ApplyDefaults sets the flags that the user left out from the environment and the config files.
// Notes name variables that look like a flag's but match none.
func ApplyDefaults(cmd *cobra.Command) (notes []string, err error) {
	levels := [][]outside{environment()}
	for _, file := range ConfigFiles() {
		defaults, err := configDefaults(file)
		if err != nil {
			return nil, err
		}
		levels = append(levels, defaults)
	}
	for _, level := range levels {
		blocked := excluded(cmd.Flags())
		for _, given := range level {
			if slices.Contains(blocked, given.flag) || !takesDefault(cmd, &given) {
				continue
			}
			if err := apply(cmd, &given); err != nil {
				return nil, err
			}
		}
	}
	return misspelled(), nil
}

// environment returns the defaults of the environment. An empty variable sets none.
func environment() []outside {
	var defaults []outside
	for _, name := range outsideNames() {
		if value := os.Getenv(variable(name)); value != "" {
			defaults = append(defaults, outside{name, variable(name), []string{value}})
		}
	}
	return defaults
}

// misspelled returns notes on variables whose names are close to those of flags.
func misspelled() []string {
	var known []string
	for _, name := range outsideNames() {
		known = append(known, variable(name))
	}
	ours := []string{configVariable, "DEVMAP_BINARY"}
	var notes []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "DEVMAP_") || slices.Contains(known, name) || slices.Contains(ours, name) {
			continue
		}
		slips := 1
		if len(name) > len("DEVMAP_GPU") {
			slips = 2 // two letters swapped
		}
		if near := modelgraph.Nearest(name, known, 1, slips); near != nil {
			notes = append(notes, fmt.Sprintf("variable %s is unknown: did you mean %s?", name, near[0]))
		}
	}
	return notes
}

// excluded lists the flags whose defaults do not apply, because the user gave an alternative to
// them.
func excluded(set *pflag.FlagSet) []string {
	var names []string
	for _, pair := range [][2]string{{"gpus", "topology"}, {"topology", "gpus"}, {"ds-config", "strategy"}, {"verbose", "quiet"}, {"quiet", "verbose"}} {
		if given(set, pair[0]) {
			names = append(names, pair[1])
		}
	}
	return names
}

// takesDefault reports that a default applies to a command: it has the flag, and the user left it
// out. estimate compares strategies by their steps and offloads nothing.
func takesDefault(cmd *cobra.Command, given *outside) bool {
	flag := cmd.Flags().Lookup(given.flag)
	switch {
	case flag == nil || flag.Hidden || flag.Changed:
		return false
	case slices.Contains(globals, given.flag):
		return true
	case commands[cmd.Name()]&working == 0:
		return false
	case cmd.Name() == "estimate" && given.flag == "objective":
		return slices.Contains([]string{string(planner.Memory), string(planner.Time)}, given.values[0])
	case cmd.Name() == "inspect" && slices.Contains([]string{"eval-batch", "eval-samples"}, given.flag):
		return false // it describes one step
	}
	return cmd.Name() != "estimate" || !slices.Contains([]string{"offload", "contiguous"}, given.flag)
}

// apply sets a flag to a default.
func apply(cmd *cobra.Command, given *outside) error {
	flag, values, where := cmd.Flags().Lookup(given.flag), given.values, given.place
	if where != variable(given.flag) {
		where += ": " + given.flag
	}
	if _, list := flag.Value.(pflag.SliceValue); !list {
		values = []string{strings.Join(values, ",")}
	}
	for _, value := range values {
		if err := cmd.Flags().Set(given.flag, value); err != nil {
			if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) && unreadable(invalid) != "" {
				return out.Usagef("%s: %q is %s", where, value, unreadable(invalid))
			}
			return out.Usagef("%s: %w", where, err)
		}
	}
	return cmd.Flags().SetAnnotation(given.flag, placeOf, []string{given.place})
}

// fromOutside returns the place of a flag's default; empty if the user gave the flag.
func fromOutside(flag *pflag.Flag) string {
	if flag == nil || len(flag.Annotations[placeOf]) == 0 {
		return ""
	}
	return flag.Annotations[placeOf][0]
}

// drop removes a default that does not apply.
func drop(set *pflag.FlagSet, name string) {
	flag := set.Lookup(name)
	if fromOutside(flag) == "" {
		return
	}
	if single, ok := flag.Value.(*once); ok {
		single.given = false
	}
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		list.Replace(nil) //nolint:errcheck // no value is wrong
	} else {
		flag.Value.Set(flag.DefValue) //nolint:errcheck // the flag's own default
	}
	if single, ok := flag.Value.(*once); ok {
		single.given = false
	}
	flag.Changed = false
	delete(flag.Annotations, placeOf)
}

// DropDefaults removes all defaults of the environment and config files: a plan file replaces them.
func DropDefaults(cmd *cobra.Command) {
	for i := range flags {
		drop(cmd.Flags(), flags[i].name)
	}
}

// GivenByUser reports that the user gave a flag with one of these names on the command line.
func GivenByUser(cmd *cobra.Command, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		flag := cmd.Flags().Lookup(name)
		return flag != nil && flag.Changed && fromOutside(flag) == ""
	})
}

// DefaultNotes lists the defaults of the environment and config files that a command used.
func DefaultNotes(cmd *cobra.Command) []string {
	var notes []string
	for i := range flags {
		flag := cmd.Flags().Lookup(flags[i].name)
		if place := fromOutside(flag); place != "" {
			setting := costmodel.Setting{Field: flag.Name, Value: strings.Join(valuesOf(flag), ",")}
			notes = append(notes, fmt.Sprintf("%s from %s", Say(setting), place))
		}
	}
	return notes
}

// Sourced adds to an error the places of the defaults that it names.
func Sourced(cmd *cobra.Command, err error) error {
	if none := (*out.Infeasible)(nil); err == nil || cmd == nil || errors.As(err, &none) {
		return err
	}
	text := ErrorText(err)
	var places []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		place := fromOutside(flag)
		if place == "" || strings.HasPrefix(text, place) {
			return
		}
		if regexp.MustCompile(`--`+regexp.QuoteMeta(flag.Name)+`($|[^a-z-])`).MatchString(text) && !slices.Contains(places, place) {
			places = append(places, place)
		}
	})
	if len(places) == 0 {
		return err
	}
	return fmt.Errorf("%s: %w", strings.Join(places, ", "), err)
}
