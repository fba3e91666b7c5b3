package ask

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/emit"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// wordsOf returns a setting as words of a command line. A switch has no word for its value.
func wordsOf(setting costmodel.Setting) []string {
	name, toggle := strings.ReplaceAll(setting.Field, "_", "-"), false
	if f := flagNamed(setting.Field); f != nil {
		_, toggle = f.at(&Request{}).(*bool)
	}
	switch {
	case setting.Value == "", toggle && setting.Value == "true":
		return []string{"--" + name}
	case toggle:
		return []string{"--" + name + "=" + setting.Value}
	}
	return []string{"--" + name, setting.Value}
}

// Say returns a setting as the user would type it.
func Say(setting costmodel.Setting) string { return Typed(wordsOf(setting)) }

// Typed returns words as the user would type them in a shell.
func Typed(words []string) string { return strings.Join(quoted(words), " ") }

// quoted returns words quoted for a shell.
func quoted(words []string) []string {
	for i, word := range words {
		words[i] = emit.Shell(word)
	}
	return words
}

// Texts returns the messages' texts, with settings as flags.
func Texts(messages []costmodel.Message) []string {
	var texts []string
	for _, message := range messages {
		texts = append(texts, message.Words(Say))
	}
	return texts
}

// modeSaid adds the mode before settings that would otherwise imply training.
func modeSaid(workload *costmodel.Workload, settings []costmodel.Setting) []costmodel.Setting {
	isMode := func(setting costmodel.Setting) bool { return setting.Field == "mode" }
	trains := func(setting costmodel.Setting) bool {
		return impliesTraining(strings.ReplaceAll(setting.Field, "_", "-"), setting.Value)
	}
	if workload.Mode == costmodel.Train || slices.ContainsFunc(settings, isMode) || workload.DeepSpeed == nil && !slices.ContainsFunc(settings, trains) {
		return settings
	}
	return slices.Concat([]costmodel.Setting{{Field: "mode", Value: string(workload.Mode)}}, settings)
}

// Flags returns the flags of `devmap plan` for a workload. With the model and the GPUs they
// reproduce a row's plan. It leaves out default values, except the strategy, its runtime, and
// fields with another default in the preset.
func Flags(workload *costmodel.Workload) []string {
	var settings []costmodel.Setting
	for _, field := range costmodel.Fields() {
		if value := said(workload, &field); value != "" {
			settings = append(settings, costmodel.Setting{Field: field.Name, Value: value})
		}
	}
	var typed []string
	for _, setting := range modeSaid(workload, settings) {
		typed = append(typed, wordsOf(setting)...)
	}
	return typed
}

// said returns the value that a flag of `devmap plan` needs; empty: none.
func said(workload *costmodel.Workload, field *costmodel.Field) string {
	value, isPreset := field.Text(workload), field.Name == "preset"
	switch {
	case isPreset && (value == string(costmodel.Auto) || value == "" && field.Implied(workload)):
		return ""
	case value == "" && (isPreset || presetSets(workload.Preset, field.Name)):
		return cmp.Or(valueOf(field.Ref(workload)), field.Default)
	}
	return value
}

// typed returns the flags of a change.
func typed(change *strategy.Change) []string {
	var words []string
	for _, setting := range change.Set {
		words = append(words, wordsOf(setting)...)
	}
	return words
}

// ChangeText returns a change as text: flags to set, notes, and flags to leave out, as in `--batch
// 4 --strategy ddp (gradient accumulation) (without --schedule)`.
func ChangeText(change *strategy.Change) string {
	parts := quoted(typed(change))
	if len(change.Notes) > 0 {
		parts = append(parts, "("+strings.Join(change.Notes, ", ")+")")
	}
	if len(change.Without) > 0 {
		names := make([]string, len(change.Without))
		for i, field := range change.Without {
			names[i] = Say(costmodel.Setting{Field: field})
		}
		parts = append(parts, fmt.Sprintf("(without %s)", strings.Join(names, " ")))
	}
	return strings.Join(parts, " ")
}

// Remedies returns changes for programs, without their text.
func Remedies(changes []strategy.Change) []out.Remedy {
	remedies := make([]out.Remedy, len(changes))
	for i := range changes {
		change := &changes[i]
		without := make([]string, len(change.Without))
		for j, field := range change.Without {
			without[j] = wordsOf(costmodel.Setting{Field: field})[0]
		}
		remedies[i] = out.Remedy{
			Flags: append([]string{}, typed(change)...), Without: without, Notes: append([]string{}, change.Notes...),
			Fits: change.Row.Solution != nil && change.Row.Solution.LargestShare <= 1,
		}
	}
	return remedies
}

// settingError is an error that formats its settings with a function; one with a
// [costmodel.Message] has Words too.
type settingError interface {
	error
	Words(name func(costmodel.Setting) string) string
}

// ErrorText returns the text of an error, with settings as flags. An error that wraps others
// repeats their text, and ErrorText replaces it there.
func ErrorText(err error) string {
	text := err.Error()
	switch fault := err.(type) { //nolint:errorlint // one step of the chain at a time
	case settingError:
		return fault.Words(Say)
	case *fs.PathError: // without the system call (stat, open)
		return fault.Path + ": " + fault.Err.Error()
	case *os.LinkError:
		return fault.New + ": " + fault.Err.Error()
	}
	var inner []error
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		if under := e.Unwrap(); under != nil {
			inner = []error{under}
		}
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	}
	for _, part := range inner {
		was, said := part.Error(), ErrorText(part)
		if was != said {
			text = strings.Replace(text, was, said, 1)
		}
	}
	return text
}

// changed reports a flag of the command that a change sets or leaves out.
func changed(change *strategy.Change, name string) bool {
	return slices.ContainsFunc(change.Set, func(setting costmodel.Setting) bool { return strings.ReplaceAll(setting.Field, "_", "-") == name }) ||
		slices.ContainsFunc(change.Without, func(field string) bool { return strings.ReplaceAll(field, "_", "-") == name })
}
