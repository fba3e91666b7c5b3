package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
)

// pythonFlags is the file of flags in the Python package.
var pythonFlags = filepath.Join("..", "..", "modelgraph", "python", "devmap", "_core", "flags.py")

// TestPythonFlags compares the keywords of the Python package with the flags of the commands.
func TestPythonFlags(t *testing.T) {
	want := pythonFlagsText(t)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(pythonFlags, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(pythonFlags)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s does not have the flags that the commands have: UPDATE_GOLDEN=1 go test ./cmd/devmap -run TestPythonFlags", pythonFlags)
	}
}

// pythonTypes lists the types of keywords that take more than their kind.
var pythonTypes = map[string]string{
	"gpus":         "Union[int, str, Sequence[Union[int, str]], Mapping[int, Union[int, str]]]",
	"pin":          "Union[Mapping[str, int], Sequence[str], str]",
	"together":     "Union[Sequence[Union[Sequence[str], str]], str]",
	"reserve":      "Union[int, str, Sequence[Union[int, str]]]",
	"topology":     "Union[str, PathLike[str]]",
	"ds_config":    "Union[str, PathLike[str], Mapping[str, Any]]",
	"lora_targets": "Union[Sequence[str], str]",
	"images":       "Union[int, str]", // or "mean,max"
	"lengths":      "Union[str, PathLike[str]]",
	"report":       "Union[str, PathLike[str]]",
	"gpu":          "Union[GPU, str]", // also the name that torch has for a GPU
}

// pythonKinds maps a flag's kind to the type of its keyword.
var pythonKinds = map[string]string{
	"bool": "bool", "int64": "int", "float64": "float", "string": "str", "duration": "Union[float, str]", "degree": "Union[int, str]",
	"stringSlice": "Union[Sequence[str], str]", "stringArray": "Union[Sequence[str], str]",
}

// pythonWriter collects the parts of flags.py.
type pythonWriter struct {
	literals map[string]string // the type of each keyword with named values
	values   strings.Builder   // their definitions
	classes  strings.Builder
	commands strings.Builder
	kinds    map[string]string // by keyword
	shared   map[string]bool   // keywords of all commands
	others   map[string]string // names in other programs
	faults   []string
}

func pythonFlagsText(t *testing.T) string {
	t.Helper()
	text := pythonCollected()
	for _, fault := range text.faults {
		t.Error(fault)
	}
	var others strings.Builder
	for _, name := range slices.Sorted(maps.Keys(text.others)) {
		fmt.Fprintf(&others, "    %q: %q,\n", name, text.others[name])
	}
	var values, kinds strings.Builder
	for _, keyword := range slices.Sorted(maps.Keys(text.kinds)) {
		fmt.Fprintf(&kinds, "    %q: %q,\n", keyword, text.kinds[keyword])
	}
	for _, keyword := range slices.Sorted(maps.Keys(text.literals)) {
		fmt.Fprintf(&values, "    %q: get_args(%s),\n", keyword, text.literals[keyword])
	}
	return `"""Keywords of devmap's functions: the flags that ` + "`devmap help COMMAND`" + ` lists, with their types and values.

Written by TestPythonFlags of cmd/devmap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Optional, Union, get_args

from .settings import Settings

` + text.values.String() + text.classes.String() + `

VALUES: dict[str, tuple[str, ...]] = {
` + values.String() + `}

KINDS: dict[str, str] = {
` + kinds.String() + `}

_NAMES = {
` + text.commands.String() + `}
COMMANDS = {command: {name: KINDS[name] for name in names.split()} for command, names in _NAMES.items()}

# Names in other programs.
OTHERS: dict[str, str] = {
` + others.String() + "}\n"
}

// pythonCollected collects the keywords of all functions.
func pythonCollected() *pythonWriter {
	text := &pythonWriter{literals: map[string]string{}, others: map[string]string{}, kinds: map[string]string{}, shared: map[string]bool{}}
	var commands []*cobra.Command
	counts := map[string]int{}
	for _, command := range newRoot(worker.Self{}).Commands() {
		if slices.Contains([]string{"check", "estimate", "inspect", "plan"}, command.Name()) {
			commands = append(commands, command)
			for _, flag := range pythonFlagsOf(command) {
				counts[flag.Name]++
			}
		}
	}
	text.classes.WriteString("\n\nclass Shared(Settings, total=False):\n    \"\"\"Keywords that all functions take.\"\"\"\n\n")
	for _, flag := range pythonFlagsOf(commands[0]) {
		if counts[flag.Name] == len(commands) {
			text.field(commands[0], flag)
			text.shared[flag.Name] = true
		}
	}
	for _, command := range commands {
		text.command(command)
	}
	return text
}

// pythonFlagsOf returns the flags of a command that are keywords.
func pythonFlagsOf(command *cobra.Command) (all []*pflag.Flag) {
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains([]string{"help", "json", "output", "run"}, flag.Name) && !flag.Hidden {
			all = append(all, flag)
		}
	})
	return all
}

// command adds the keywords of one command.
func (text *pythonWriter) command(command *cobra.Command) {
	name := command.Name()
	title := strings.ToUpper(name[:1]) + name[1:]
	class, all := title+"Keywords", title+"Flags"
	if command.Flags().Lookup("gpus") == nil {
		class = all
	}
	fmt.Fprintf(&text.classes, "\n\nclass %s(Shared, total=False):\n    \"\"\"Keywords of devmap.%s%s.\"\"\"\n\n", class, name, map[bool]string{true: "", false: " but for gpus"}[class == all])
	line := ""
	var lines []string
	for _, flag := range pythonFlagsOf(command) {
		keyword := strings.ReplaceAll(flag.Name, "-", "_")
		text.kinds[keyword] = flag.Value.Type()
		if len(line)+len(keyword) > 100 {
			lines, line = append(lines, line), ""
		}
		line += keyword + " "
		if keyword != "gpus" && !text.shared[flag.Name] { // gpus is a parameter of its own
			text.field(command, flag)
		}
	}
	if strings.HasSuffix(text.classes.String(), "\"\"\"\n\n") { // only the shared keywords
		classes := strings.TrimSuffix(text.classes.String(), "\n")
		text.classes.Reset()
		text.classes.WriteString(classes)
	}
	fmt.Fprintf(&text.commands, "    %q: (\n", name)
	for _, line := range append(lines, strings.TrimSpace(line)) {
		fmt.Fprintf(&text.commands, "        %q\n", line)
	}
	text.commands.WriteString("    ),\n")
	if class != all {
		fmt.Fprintf(&text.classes, "\n\nclass %s(%s, total=False):\n    \"\"\"Keywords of devmap.%s, to be kept in a dict: %s(model, **flags).\"\"\"\n\n    gpus: Optional[%s]\n", all, class, name, name, pythonTypes["gpus"])
	}
	for other, own := range ask.OtherNames(command.Flags()) {
		name, keyword := strings.ReplaceAll(other, "-", "_"), strings.ReplaceAll(own, "-", "_")
		if name != keyword && keyword != "output" { // functions have no such keyword
			text.others[name] = keyword
		}
	}
}

// field declares a keyword with its type.
func (text *pythonWriter) field(command *cobra.Command, flag *pflag.Flag) {
	keyword, kind := strings.ReplaceAll(flag.Name, "-", "_"), flag.Value.Type()
	text.literal(command, flag.Name, keyword)
	asked := pythonTypes[keyword]
	if asked == "" {
		asked = text.literals[keyword]
	}
	if asked == "" {
		asked = pythonKinds[kind]
	}
	if asked == "" {
		text.faults = append(text.faults, fmt.Sprintf("--%s is a %s, a kind without a type in Python", flag.Name, kind))
	}
	fmt.Fprintf(&text.classes, "    %s: Optional[%s]\n", keyword, asked)
}

// literal defines the type of a keyword with named values, once.
func (text *pythonWriter) literal(command *cobra.Command, name, keyword string) {
	complete, found := command.GetFlagCompletionFunc(name)
	if !found || text.literals[keyword] != "" {
		return
	}
	values, _ := complete(command, nil, "")
	literal := "GPU"
	if keyword != "gpu" {
		literal = ""
		for _, part := range strings.Split(keyword, "_") {
			literal += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	quoted := make([]string, 0, len(values))
	for _, value := range values {
		if value != "front" { // front gives several plans, which no Plan holds
			quoted = append(quoted, fmt.Sprintf("%q", value))
		}
	}
	text.literals[keyword] = literal
	line := fmt.Sprintf("%s = Literal[%s]", literal, strings.Join(quoted, ", "))
	if len(line) > 120 {
		line = fmt.Sprintf("%s = Literal[\n    %s,\n]", literal, strings.Join(quoted, ",\n    "))
	}
	text.values.WriteString(line + "\n")
}
