// Package source has the CUDA kernels of package recipe except attention and matrix products, and
// how each is launched: 18 modules of 2.0 MB of PTX. The PTX is made by compile.py from the
// sources next to it. The launches are in launches.txt.
package source

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed *.ptx
var ptx embed.FS

//go:embed launches.txt
var table string

// Modules returns the PTX of all modules by their source's name, for cuModuleLoadData.
func Modules() (map[string]string, error) {
	files, err := ptx.ReadDir(".")
	if err != nil {
		return nil, err
	}
	modules := make(map[string]string, len(files))
	for _, file := range files {
		text, err := ptx.ReadFile(file.Name())
		if err != nil {
			return nil, err
		}
		modules[strings.TrimSuffix(file.Name(), path.Ext(file.Name()))] = string(text)
	}
	return modules, nil
}

// Launch is a line of launches.txt. The head of that file explains its words.
type Launch struct {
	Function string   // in the source, without the types
	Types    []string // roles whose types follow it, each _bf16 or _f32
	Rule     string   // of grid and block
	Sizes    []string // that the rule takes
	// Clear is the role of a gradient that is set to 0 before the launch that begins it; empty for
	// others.
	Clear     string
	Arguments []string
}

// Launches returns the launches of each of the recipe's kernels, in order.
func Launches() (map[string][]Launch, error) {
	launches := make(map[string][]Launch)
	for number, line := range strings.Split(table, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		head, arguments, found := strings.Cut(line, " : ")
		words := strings.Fields(head)
		if !found || len(words) < 4 || len(words) > 5 {
			return nil, fmt.Errorf("launches.txt: line %d: %q: want KERNEL FUNCTION TYPES RULE [clear(ROLE)] : ARGUMENTS", number+1, line)
		}
		launch := Launch{Function: words[1], Arguments: strings.Fields(arguments)}
		if words[2] != "-" {
			launch.Types = strings.Split(words[2], ",")
		}
		var sizes string
		launch.Rule, sizes, _ = strings.Cut(strings.TrimSuffix(words[3], ")"), "(")
		if sizes != "" {
			launch.Sizes = strings.Split(sizes, ",")
		}
		if len(words) == 5 {
			launch.Clear = strings.TrimSuffix(strings.TrimPrefix(words[4], "clear("), ")")
		}
		launches[words[0]] = append(launches[words[0]], launch)
	}
	return launches, nil
}
