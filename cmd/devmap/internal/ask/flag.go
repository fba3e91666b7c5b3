package ask

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
)

// flag describes a flag. Parsing, help, completion, overrides of a plan file, commands that
// reproduce a row, and hints all use it.
type flag struct {
	name  string
	short string
	// help is its line; {values} becomes the list of values. helpOn replaces it for commands that
	// use the flag in another way.
	help   string
	helpOn map[command]string
	// field is the field of the workload that the flag sets. For other flags, at returns the place
	// in the request: *string, *int64, *float64, *bool, *[]string or *time.Duration.
	field *costmodel.Field
	at    func(request *Request) any
	// defaultValue is the value if the flag is left out.
	defaultValue string
	// each: every value of the list is printed as a flag of its own.
	each bool

	on, hidden command

	// values lists the allowed named values. later lists values of the contract that this version
	// does not support.
	values []string
	later  []string
	// offers lists the words for completion, if these are not the values: parts of names are
	// allowed too.
	offers []string
	// meant maps values in other programs to ours. If a value has two meanings, it lists both.
	meant map[string]string
	// also lists the flag's names in other programs.
	also []string

	// counts: values below 1 are errors. leftOut describes the result of leaving a number out,
	// which 0 would otherwise mean silently.
	counts  bool
	leftOut string
	// leftOutOn is leftOut for commands with their own default.
	leftOutOn map[command]string
	// idle lists the cases in which the flag changes nothing.
	idle []*idleness
	// reopens lists the flags that depend on this one: if the user gives it, the plan's values of
	// these no longer hold.
	reopens []string
	// again: a command that reproduces a row repeats the flag as given.
	again bool
	// benchmark: the flag applies to a benchmark file.
	benchmark bool
	// serves: the flag applies to an engine that serves, or to these alone.
	serves  bool
	engines []string
	// accepts lists names of engines that set the flag too.
	accepts []string
}

// ownName is the flag that a name of an engine sets, or the name itself. Each flag of each command
// passes through it as the program starts.
func ownName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if own, known := accepted()[name]; known {
		return own
	}
	return pflag.NormalizedName(name)
}

// accepted is the flags by engines' names.
var accepted = sync.OnceValue(func() map[string]pflag.NormalizedName {
	own := map[string]pflag.NormalizedName{}
	for i := range flags {
		for _, name := range flags[i].accepts {
			own[name] = pflag.NormalizedName(flags[i].name)
		}
	}
	return own
})

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
	onReport

	searching = onPlan | onEstimate
	placing   = searching | onCheck
	working   = placing | onInspect
	executing = onSimulate | onRun // runs a plan's workload
)

var commands = map[string]command{"plan": onPlan, "estimate": onEstimate, "check": onCheck, "inspect": onInspect, "emit": onEmit, "simulate": onSimulate, "run": onRun, "probe": onProbe, "watch": onWatch, "report": onReport}

// flagNamed returns the flag with a name, or the one of the library's field with that name; nil if
// there is none.
func flagNamed(name string) *flag {
	name = strings.ReplaceAll(name, "_", "-")
	i := slices.IndexFunc(flags, func(f flag) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &flags[i]
}

// add adds the flag to a command; it then sets its part of the request.
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
		number, _ := strconv.ParseFloat(f.defaultValue, 64) // the same
		set.Float64Var(at, f.name, number, help)
	case *bool:
		set.BoolVar(at, f.name, f.defaultValue == "true", help)
	case *time.Duration:
		duration, _ := time.ParseDuration(f.defaultValue) // a time in the table
		set.DurationVar(at, f.name, duration, help)
	case *[]string:
		if f.each {
			set.StringArrayVar(at, f.name, nil, help)
		} else {
			set.StringSliceVar(at, f.name, nil, help)
		}
	case *costmodel.Degree:
		set.VarP(degree{at}, f.name, f.short, help)
	case *costmodel.Field: // with named values
		value := &named{field: at, work: &request.work}
		value.Set(f.defaultValue) //nolint:errcheck // it never fails
		set.VarP(value, f.name, f.short, help)
	}
	if f.hidden&which != 0 {
		if err := set.MarkHidden(f.name); err != nil {
			panic(err) // the code above added the flag
		}
	}
}

// addNumber adds a flag with a number to a command. For images it also reads their mean.
func (f *flag) addNumber(set *pflag.FlagSet, at *int64, request *Request, help string) {
	count, _ := strconv.ParseInt(f.defaultValue, 10, 64) // a number in the table, or empty: 0
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

// named is the value of a flag that sets a field with named values. [Request.Refuse] checks the
// value after all flags are read.
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

// meanMost is the value of a flag with a number, or "mean,max".
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

// degree is the value of a flag with a degree.
type degree struct{ *costmodel.Degree }

// Type implements pflag's Value.
func (degree) Type() string { return "degree" }

// given reports that the user gave a flag with one of these names.
func given(set *pflag.FlagSet, names ...string) bool { return slices.ContainsFunc(names, set.Changed) }
