package ask

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// wordsOf is a setting as words of a command line. A switch has none of its own
// for its value.
func wordsOf(s costmodel.Setting) []string {
	name, toggle := strings.ReplaceAll(s.Field, "_", "-"), false
	if f := flagNamed(s.Field); f != nil {
		_, toggle = f.at(&Request{}).(*bool)
	}
	switch {
	case s.Value == "", toggle && s.Value == "true":
		return []string{"--" + name}
	case toggle:
		return []string{"--" + name + "=" + s.Value}
	}
	return []string{"--" + name, s.Value}
}

// Say is a setting as it is typed.
func Say(s costmodel.Setting) string { return strings.Join(wordsOf(s), " ") }

// Texts are messages, each with the flags that set what it names.
func Texts(messages []costmodel.Message) []string {
	var texts []string
	for _, message := range messages {
		texts = append(texts, message.Words(Say))
	}
	return texts
}

// Flags are those of `devmap plan` that ask for a workload: with the model and
// the GPUs they reproduce a row's plan. Values that are the flags' defaults
// are left out, but for the strategy and its runtime.
func Flags(w *costmodel.Workload) []string {
	var typed []string
	for _, f := range costmodel.Fields() {
		if value := f.Text(w); value != "" {
			typed = append(typed, wordsOf(costmodel.Setting{Field: f.Name, Value: value})...)
		}
	}
	return typed
}

// typed are the flags that set what a change sets.
func typed(c *strategy.Change) []string {
	var words []string
	for _, s := range c.Set {
		words = append(words, wordsOf(s)...)
	}
	return words
}

// Told is a change as it is told: what to set, a word on it, and what to leave
// out, as in `--batch 4 --strategy ddp (gradient accumulation) (without
// --schedule)`.
func Told(c *strategy.Change) string {
	parts := typed(c)
	for i, w := range parts {
		if w == "" || strings.ContainsAny(w, " '\"$&|;()<>*?[]#~`\\\n") {
			parts[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	if len(c.Notes) > 0 {
		parts = append(parts, "("+strings.Join(c.Notes, ", ")+")")
	}
	if len(c.Without) > 0 {
		names := make([]string, len(c.Without))
		for i, field := range c.Without {
			names[i] = Say(costmodel.Setting{Field: field})
		}
		parts = append(parts, fmt.Sprintf("(without %s)", strings.Join(names, " ")))
	}
	return strings.Join(parts, " ")
}

// settingError is an error that says itself with its settings as they are
// named: one that holds a [costmodel.Message] has Words too.
type settingError interface {
	error
	Words(name func(costmodel.Setting) string) string
}

// ErrorText is the text of an error, each part of it that names settings with the
// flags that set them. What wraps such a part repeats its text, and there it
// is replaced.
func ErrorText(err error) string {
	text := err.Error()
	if e, ok := err.(settingError); ok { //nolint:errorlint // one step of the chain at a time
		return e.Words(Say)
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

// changed reports a flag of the command that a change sets anew or leaves out.
func changed(c *strategy.Change, name string) bool {
	return slices.ContainsFunc(c.Set, func(s costmodel.Setting) bool { return strings.ReplaceAll(s.Field, "_", "-") == name }) ||
		slices.ContainsFunc(c.Without, func(field string) bool { return strings.ReplaceAll(field, "_", "-") == name })
}
