package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
)

// pythonFlags is where the Python package has its flags.
var pythonFlags = filepath.Join("..", "..", "modelgraph", "python", "devmap", "_flags.py")

// TestPythonFlags holds the keywords of the Python package to the flags that the
// commands have.
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

// pythonTypes are the types of the keywords that take more than their kind does.
var pythonTypes = map[string]string{
	"gpus":     "int | str | Sequence[int | str]",
	"pin":      "Mapping[str, int] | Sequence[str] | str",
	"together": "Sequence[Sequence[str] | str] | str",
	"reserve":  "int | str | Sequence[int | str]",
	"topology": "str | PathLike[str]",
}

// pythonKinds are the types of the others, by the kind of the flag.
var pythonKinds = map[string]string{
	"bool": "bool", "int64": "int", "float64": "float", "string": "str", "duration": "float | str", "degree": "int | str",
	"stringSlice": "Sequence[str] | str", "stringArray": "Sequence[str] | str",
}

func pythonFlagsText(t *testing.T) string {
	t.Helper()
	var types, kinds strings.Builder
	for _, command := range newRoot(worker.Self{}).Commands() {
		name := command.Name()
		if !slices.Contains([]string{"check", "estimate", "inspect", "plan"}, name) {
			continue
		}
		fmt.Fprintf(&types, "\n    class %sFlags(TypedDict, total=False):\n", strings.ToUpper(name[:1])+name[1:])
		fmt.Fprintf(&kinds, "    %q: {\n", name)
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if slices.Contains([]string{"help", "json", "output"}, flag.Name) || flag.Hidden {
				return
			}
			keyword, kind := strings.ReplaceAll(flag.Name, "-", "_"), flag.Value.Type()
			fmt.Fprintf(&kinds, "        %q: %q,\n", keyword, kind)
			asked := pythonTypes[keyword]
			if asked == "" {
				asked = pythonKinds[kind]
			}
			if asked == "" {
				t.Errorf("--%s is a %s, of which Python's package does not know the type", flag.Name, kind)
			}
			if keyword != "gpus" || name == "check" { // the others have it as their second argument
				fmt.Fprintf(&types, "        %s: %s | None\n", keyword, asked)
			}
		})
		kinds.WriteString("    },\n")
	}
	return `"""Flags of devmap's commands, and the kind of each: what ` + "`devmap help COMMAND`" + ` lists.

Written by TestPythonFlags of cmd/devmap.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from typing import TypedDict
` + types.String() + `

COMMANDS: dict[str, dict[str, str]] = {
` + kinds.String() + "}\n"
}
