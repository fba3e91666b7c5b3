package ask

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
)

// flag describes a flag. Parsing, help, completion, what overrides a plan file,
// what reproduces a row and what a hint prints are read off it.
type flag struct {
	name  string
	short string
	// help is its line; {values} stands for the values that are taken. helpOn
	// is another where a command means something else by it.
	help   string
	helpOn map[command]string
	// field is the workload's where the flag sets one; else at is where the
	// request keeps it: *string, *int64, *float64, *bool, *[]string,
	// *time.Duration.
	field *costmodel.Field
	at    func(request *Request) any
	// defaultValue is the value that leaving it out means.
	defaultValue string
	// each: a list whose every value is a flag of its own.
	each bool

	on, hidden command

	// values are the named values that are taken, later those that the contract
	// has and this version has not.
	values []string
	later  []string
	// offers are what completion offers, if that is not the values: names whose
	// parts are taken too.
	offers []string
	// meant are values as other programs or people call ours. Where a name has
	// been given to two things, both stand.
	meant map[string]string
	// also are the flag's names in other programs.
	also []string

	// counts: 0 or less is refused. leftOut says what leaving a number out
	// means, which 0 would stand for without a word.
	counts  bool
	leftOut string
	// leftOutOn is the same of a command that has a default of its own.
	leftOutOn map[command]string
	// idle are the cases in which it changes nothing.
	idle []*idleness
	// reopens are the flags that follow this one: what a plan says of them no
	// longer holds once this one is given over it.
	reopens []string
	// again: it is printed as it was given where a row is reproduced.
	again bool
	// benchmark: it means something to a benchmark file.
	benchmark bool
}

// command is a set of commands.
type command int

const (
	onPlan command = 1 << iota
	onEstimate
	onCheck
	onInspect
	onEmit
	onSimulate
	onRun
	onProbe
	onWatch

	searching = onPlan | onEstimate
	placing   = searching | onCheck
	working   = placing | onInspect
	executing = onSimulate | onRun // what a plan says is done
)

var commands = map[string]command{"plan": onPlan, "estimate": onEstimate, "check": onCheck, "inspect": onInspect, "emit": onEmit, "simulate": onSimulate, "run": onRun, "probe": onProbe, "watch": onWatch}

// flagNamed is the flag of a name, or of the field that a library calls it by;
// nil where there is none.
func flagNamed(name string) *flag {
	name = strings.ReplaceAll(name, "_", "-")
	i := slices.IndexFunc(flags, func(f flag) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &flags[i]
}

// add gives a command the flag, which then sets its part of the request.
func (f *flag) add(cmd *cobra.Command, which command, request *Request) {
	set := cmd.Flags()
	help, at := f.usage(which), f.at(request)
	if f.field != nil && f.field.Values != nil {
		at = f.field
	}
	switch at := at.(type) {
	case *string:
		set.StringVarP(at, f.name, f.short, f.defaultValue, help)
	case *int64:
		f.addNumber(set, at, request, help)
	case *float64:
		number, _ := strconv.ParseFloat(f.defaultValue, 64) // likewise
		set.Float64Var(at, f.name, number, help)
	case *bool:
		set.BoolVar(at, f.name, f.defaultValue == "true", help)
	case *time.Duration:
		duration, _ := time.ParseDuration(f.defaultValue) // a time of the table
		set.DurationVar(at, f.name, duration, help)
	case *[]string:
		if f.each {
			set.StringArrayVar(at, f.name, nil, help)
		} else {
			set.StringSliceVar(at, f.name, nil, help)
		}
	case *costmodel.Degree:
		set.VarP(degree{at}, f.name, f.short, help)
	case *costmodel.Field: // of named values
		value := &named{field: at, work: &request.work}
		value.Set(f.defaultValue) //nolint:errcheck // it never fails
		set.VarP(value, f.name, f.short, help)
	}
	if f.hidden&which != 0 {
		if err := set.MarkHidden(f.name); err != nil {
			panic(err) // the flag was made above
		}
	}
}

// addNumber gives a command a flag that takes a number; of images, their mean too.
func (f *flag) addNumber(set *pflag.FlagSet, at *int64, request *Request, help string) {
	count, _ := strconv.ParseInt(f.defaultValue, 10, 64) // a number of the table, or none: 0
	if f.name == "images" {
		set.Var(&meanMost{most: at, mean: &request.work.ImagesMean}, f.name, help)
		return
	}
	set.Int64Var(at, f.name, count, help)
}

// usage returns the flag's help line for a command.
func (f *flag) usage(which command) string {
	help := f.help
	if other, ok := f.helpOn[which]; ok {
		help = other
	}
	return f.bracketed(strings.ReplaceAll(help, "{values}", strings.Join(f.values, ", ")))
}

// named is the value of a flag that sets a field of named values. Which are
// known is looked at once all flags are read.
type named struct {
	field *costmodel.Field
	work  *costmodel.Workload
	text  string
}

// String implements pflag's Value.
func (v *named) String() string { return v.text }

// Set implements pflag's Value.
func (v *named) Set(text string) error {
	v.text = text
	v.field.Set(v.work, text)
	return nil
}

// Type implements pflag's Value.
func (*named) Type() string { return "string" }

// meanMost is the value of a flag that sets a number, or "mean,max" of one.
type meanMost struct {
	most *int64
	mean *float64
}

// String implements pflag's Value.
func (v *meanMost) String() string {
	switch {
	case v.most == nil:
		return ""
	case *v.mean > 0:
		return strconv.FormatFloat(*v.mean, 'g', -1, 64) + "," + strconv.FormatInt(*v.most, 10)
	}
	return strconv.FormatInt(*v.most, 10)
}

// Set implements pflag's Value.
func (v *meanMost) Set(text string) error {
	mean, most, both := strings.Cut(text, ",")
	if !both {
		mean, most = "0", text
	}
	average, err := strconv.ParseFloat(strings.TrimSpace(mean), 64)
	if err != nil || !(average >= 0) || both && average == 0 {
		return errors.New("give a number, or MEAN,MAX with a mean above 0")
	}
	count, err := strconv.ParseInt(strings.TrimSpace(most), 10, 64)
	if err != nil {
		return errors.Unwrap(err) // without the function's name
	}
	if average > float64(count) {
		return fmt.Errorf("the mean %v is above the maximum %d", average, count)
	}
	*v.most, *v.mean = count, average
	return nil
}

// Type implements pflag's Value.
func (*meanMost) Type() string { return "int64" }

// degree is the value of a flag that sets a degree.
type degree struct{ *costmodel.Degree }

// Type implements pflag's Value.
func (degree) Type() string { return "degree" }

// given reports that the user gave a flag of these names.
func given(set *pflag.FlagSet, names ...string) bool { return slices.ContainsFunc(names, set.Changed) }
