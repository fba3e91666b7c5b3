package ask

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/emit"
)

// Targets returns the values of --for, sorted.
func Targets() []string {
	var names []string
	for _, target := range emit.Targets() {
		names = append(names, target.Name)
	}
	return names
}

// aliases maps other names of targets to ours.
func aliases() map[string]string {
	names := map[string]string{}
	for _, target := range emit.Targets() {
		for _, alias := range target.Aliases {
			names[alias] = target.Name
		}
	}
	return names
}

// checkValues checks every flag with named values that the user gave.
func checkValues(set *pflag.FlagSet) error {
	for i := range flags {
		if f := set.Lookup(flags[i].name); f != nil && f.Changed && flags[i].values != nil {
			if err := flags[i].check(f.Value.String()); err != nil {
				return err
			}
		}
	}
	return nil
}

// check refuses values that are unknown or not supported.
func (f *flag) check(value string) error {
	known, fault, values := false, "", f.values
	if f.field != nil {
		known, fault = f.field.Knows(value)
		values = slices.Concat(values, f.field.Forms)
	}
	switch {
	case f.name == "precision" && (strings.EqualFold(value, "fp8") || strings.EqualFold(value, "float8")):
		return out.Usagef("--precision %q is no type of weights: --float8 tensorwise, tensorwise-gathered or rowwise are torchao's 8-bit products", value)
	case slices.Contains(f.values, value), f.name == "preset" && isFile(value), known:
		return nil
	case fault != "":
		return out.Usagef("--%s %s", f.name, fault)
	case slices.Contains(f.later, value):
		return notBuilt(f.name, value, strings.Join(f.values, ", "))
	}
	all := strings.Join(values, ", ")
	switch guess := f.guess(value); {
	case guess == "":
		return out.Usagef("--%s %q is unknown (known: %s)", f.name, value, all)
	case f.name == "preset": // its list is long
		return out.Usagef("--%s %q is unknown: did you mean %s? (known: %s)", f.name, value, guess, all)
	default:
		return out.Usagef("--%s %q is unknown (known: %s): did you mean %s?", f.name, value, all, guess)
	}
}

// guess returns the known value closest to an unknown one: a name in another program, a difference
// in case, or a typing error. It is empty if no value is close.
func (f *flag) guess(value string) string {
	low := strings.ToLower(strings.TrimSpace(value))
	if names := f.meant[low]; names != "" && everyIn(names, f.values) {
		return names
	}
	if slices.Contains(f.values, low) {
		return low
	}
	for _, slips := range []int{1, 2} {
		short := func(known string) bool { return len(known) < 2*slips } // short values would become other words
		if near := modelgraph.Nearest(low, slices.DeleteFunc(slices.Clone(f.values), short), 1, slips); near != nil {
			return near[0]
		}
	}
	return ""
}

// Guess returns the known value of a flag closest to an unknown one; empty if none is close.
func Guess(name, value string) string { return flagNamed(name).guess(value) }

// everyIn reports that values has all names of "a, b or c".
func everyIn(names string, values []string) bool {
	for _, name := range strings.FieldsFunc(strings.ReplaceAll(names, " or ", ","), func(char rune) bool { return char == ',' || char == ' ' }) {
		if !slices.Contains(values, name) {
			return false
		}
	}
	return true
}

// Complete adds completion of the named values to a command's flags.
func Complete(cmd *cobra.Command) {
	for i := range flags {
		offers := flags[i].values
		if flags[i].offers != nil {
			offers = flags[i].offers
		}
		if offers == nil || cmd.Flags().Lookup(flags[i].name) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(flags[i].name, cobra.FixedCompletions(offers, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag exists, and has no other completion
		}
	}
}

// Values returns the allowed values of a flag.
func Values(name string) []string { return flagNamed(name).values }

// OtherNames returns the names that other programs have for the flags of a command,
// each with the flag's own name.
func OtherNames(set *pflag.FlagSet) map[string]string {
	names := map[string]string{}
	for i := range flags {
		if set.Lookup(flags[i].name) == nil {
			continue
		}
		for _, other := range flags[i].also {
			names[other] = flags[i].name
		}
	}
	return names
}
