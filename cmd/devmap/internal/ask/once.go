package ask

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/modelgraph"
)

// once is a flag that takes one value: pflag would silently keep the last of two. A switch may be
// repeated with the same value.
type once struct {
	pflag.Value
	given bool
}

// Set implements pflag's Value.
func (o *once) Set(value string) error {
	before := o.String()
	if o.given && (o.Type() != "bool" || value != before) {
		return &repeatedError{before, value}
	}
	if err := o.Value.Set(value); err != nil {
		return err
	}
	o.given = true
	return nil
}

// repeatedError is a second value for a flag that takes one.
type repeatedError struct{ first, second string }

// Error implements error.
func (err *repeatedError) Error() string {
	return fmt.Sprintf("it takes one value and has two, %q and %q", err.first, err.second)
}

// Single makes every flag of a command, except lists, take one value.
func Single(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, list := f.Value.(pflag.SliceValue); !list {
			f.Value = &once{Value: f.Value}
		}
	})
}

// FlagError rewrites pflag's errors.
func FlagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var repeated *repeatedError
	switch {
	case errors.As(err, &repeated) && errors.As(err, &invalid):
		err = fmt.Errorf("--%s: %w", invalid.GetFlag().Name, repeated)
	case errors.As(err, &invalid):
		why := unreadable(invalid)
		if cause := invalid.Unwrap(); why == "" && cause != nil {
			why = cause.Error()
		}
		if why != "" {
			err = fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), why)
		}
	case errors.As(err, &unknown) && !cmd.HasParent() && cmd.HasAvailableSubCommands():
		return out.Usagef("%w: flags follow the command, as in devmap plan MODEL --gpus 4 (devmap help)", err)
	case errors.As(err, &unknown):
		if near := nearFlag(cmd, unknown.GetSpecifiedName()); strings.HasPrefix(cmd.Use, cmd.Name()+" MODEL") && strings.HasPrefix(unknown.GetSpecifiedName(), "model") {
			err = fmt.Errorf("%w: the model follows the command, as in devmap %s MODEL", err, cmd.Name())
		} else if near != "" {
			err = fmt.Errorf("%w: did you mean --%s?", err, near)
		}
	}
	return out.Usagef("%w (devmap help %s)", err, cmd.Name())
}

// unreadable says why a value does not have its flag's type; empty if pflag's own error says it.
func unreadable(err *pflag.InvalidValueError) string {
	switch kind := err.GetFlag().Value.Type(); {
	case kind == "bool":
		return "neither true nor false"
	case kind == "float64":
		return "not a number"
	case kind == "duration":
		return "not a time: write 30s, 5m or 1h"
	case errors.Is(err, strconv.ErrRange):
		return "value out of range"
	case errors.Is(err, strconv.ErrSyntax):
		return "not a whole number" + spelled(err.GetValue())
	}
	return ""
}

// spelled returns a number with a suffix as digits, in both readings: 8k may be 8192 or 8000.
func spelled(value string) string {
	if value == "" {
		return ""
	}
	amount, err := strconv.ParseFloat(value[:len(value)-1], 64)
	if err != nil || !(amount > 0 && amount < 1e6) {
		return ""
	}
	switch strings.ToLower(value[len(value)-1:]) {
	case "k":
		return fmt.Sprintf(": write %.0f or %.0f", amount*1024, amount*1000)
	case "m":
		return fmt.Sprintf(": write %.0f or %.0f", amount*(1<<20), amount*1e6)
	}
	return ""
}

// nearFlag returns a command's flag for an unknown name: the flag with that name in another
// program, or one with a similar name; empty if there is none.
func nearFlag(cmd *cobra.Command, name string) string {
	if ours := elsewhere(name); ours != "" && cmd.Flags().Lookup(ours) != nil {
		return ours
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	return Nearest(strings.ReplaceAll(name, "_", "-"), names)
}

// Nearest returns the name closest to a misspelled word, or the only name that begins with it;
// empty if there is none.
func Nearest(word string, names []string) string {
	slips := 1
	if len(word) > 3 {
		slips = 2
	}
	if near := modelgraph.Nearest(word, names, 1, slips); near != nil && len(word) > 1 {
		return near[0]
	}
	longer := func(name string) bool { return strings.HasPrefix(name, word) }
	if i := slices.IndexFunc(names, longer); i >= 0 && len(word) > 1 && !slices.ContainsFunc(names[i+1:], longer) {
		return names[i]
	}
	return ""
}

// elsewhere returns our flag for its name in another program.
func elsewhere(name string) string {
	i := slices.IndexFunc(flags, func(f flag) bool { return slices.Contains(f.also, name) })
	if i < 0 {
		return ""
	}
	return flags[i].name
}
