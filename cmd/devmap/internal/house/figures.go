package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// figure is one measurement, with its limit and the place with the largest value.
type figure struct {
	name  string
	value int
	limit int
	least bool // the limit is a minimum
	unit  string
	where string
}

func (result *figure) beyond() bool {
	if result.least {
		return result.value < result.limit
	}
	return result.value > result.limit
}

// measured prints the figures of a module, and reports whether one exceeds its limit.
func measured(root string, out io.Writer) (bool, error) {
	module, err := parseTree(root)
	if err != nil {
		return false, err
	}
	all, note, err := builds(root)
	if err != nil {
		return false, err
	}
	inside, err := inspect(root, all)
	if err != nil {
		return false, err
	}
	figures := []figure{
		{name: "largest cycle of files in one package", value: len(inside.largest.files), limit: 15, where: inside.largest.describe()},
		inside.mostMethods(),
		{name: "packages", value: len(inside.packages), limit: 114},
		{name: "lines without tests", value: module.lines(""), limit: 169_700},
		{name: "lines of the planner without tests", value: module.lines("planner"), limit: 34_750},
		module.mostFiles(),
		module.exportedNames(),
		module.exampleCount(),
		module.withoutExample(),
		module.fileLength(),
		module.oneLetter(),
		module.privateWords(),
	}
	beyond, text := false, new(bytes.Buffer)
	if note != "" {
		fmt.Fprintln(text, note)
	}
	for i := range figures {
		result := &figures[i]
		mark, side := "", "at most"
		if result.least {
			side = "at least"
		}
		if result.beyond() {
			mark, beyond = "  BEYOND", true
		}
		fmt.Fprintf(text, "%-46s %6d%s (%s %d%s)%s\n", result.name, result.value, result.unit, side, result.limit, result.unit, mark)
		if result.where != "" {
			fmt.Fprintf(text, "    %s\n", result.where)
		}
	}
	_, err = text.WriteTo(out)
	return beyond, err
}

// mostMethods names the types with more methods than the limit, or the one with the most.
func (out *structure) mostMethods() figure {
	result := figure{name: "methods of one type", limit: 25}
	names := slices.SortedFunc(maps.Keys(out.methods), func(one, other string) int {
		return cmp.Or(out.methods[other]-out.methods[one], strings.Compare(one, other))
	})
	var worst []string
	for i, name := range names {
		count := out.methods[name]
		if i > 0 && (count <= result.limit || i == maxNamed) {
			break
		}
		worst = append(worst, fmt.Sprintf("%s %d", name, count))
		result.value = max(result.value, count)
	}
	result.where = strings.Join(worst, ", ")
	return result
}

// lines counts the lines in a folder and its subfolders, without tests.
func (module *tree) lines(below string) int {
	count := 0
	for dir, pkg := range module.folders {
		if below == "" || dir == below || strings.HasPrefix(dir, below+"/") {
			for i := range pkg.sources {
				count += pkg.sources[i].lines
			}
		}
	}
	return count
}

// many lists the packages with one file per kind of model, whose number has no limit.
var many = []string{"modelgraph/hf"}

// mostFiles returns the largest number of files in one package.
func (module *tree) mostFiles() figure {
	result := figure{name: "files in one package", limit: 32}
	for _, dir := range slices.Sorted(maps.Keys(module.folders)) {
		if count := len(module.folders[dir].sources); count > result.value && !slices.Contains(many, dir) {
			result.value, result.where = count, dir
		}
	}
	return result
}

// library lists the folders whose packages others may import.
var library = []string{"modelgraph", "costmodel", "planner", "fixtures"}

// public reports a package of the API: in the library, not internal, not a program.
func (pkg *folder) public() bool {
	top, _, _ := strings.Cut(pkg.dir, "/")
	return slices.Contains(library, top) && !strings.Contains("/"+pkg.dir+"/", "/internal/") && !pkg.program
}

// exportedNames counts the functions, methods, types, variables and constants of the library.
func (module *tree) exportedNames() figure {
	result := figure{name: "exported names outside internal", limit: 477}
	var parts []string
	for _, dir := range slices.Sorted(maps.Keys(module.folders)) {
		pkg := module.folders[dir]
		if !pkg.public() {
			continue
		}
		count := 0
		for _, one := range pkg.sources {
			count += exported(one)
		}
		result.value += count
		parts = append(parts, fmt.Sprintf("%s %d", dir, count))
	}
	result.where = strings.Join(parts, ", ")
	return result
}

// exampleCount counts the examples with an output that a test compares.
func (module *tree) exampleCount() figure {
	result := figure{name: "examples with their output", limit: 8, least: true}
	for _, pkg := range module.folders {
		result.value += pkg.examples
	}
	return result
}

// withoutExample counts the public packages without an example.
func (module *tree) withoutExample() figure {
	result := figure{name: "public packages without an example"}
	var missing []string
	for _, dir := range slices.Sorted(maps.Keys(module.folders)) {
		if pkg := module.folders[dir]; pkg.public() && len(pkg.sources) > 0 && pkg.examples == 0 {
			missing = append(missing, dir)
		}
	}
	result.value, result.where = len(missing), strings.Join(missing, ", ")
	return result
}

// fileLength returns the length that 95 of 100 files do not exceed.
func (module *tree) fileLength() figure {
	var lengths []int
	for _, pkg := range module.folders {
		for _, one := range pkg.sources {
			lengths = append(lengths, one.lines)
		}
	}
	slices.Sort(lengths)
	result := figure{name: "length of a file, 95th percentile", limit: 265, unit: " lines"}
	if len(lengths) > 0 {
		result.value = lengths[int(0.95*float64(len(lengths)-1)+0.5)]
	}
	return result
}

// oneLetter returns the share of one-letter names among locals, parameters, receivers and fields.
func (module *tree) oneLetter() figure {
	short, all := 0, 0
	for _, pkg := range module.folders {
		for _, one := range pkg.sources {
			one, names := localNames(one.file)
			short, all = short+one, all+names
		}
	}
	result := figure{name: "locals, parameters and fields of one letter", limit: 28, unit: " %"}
	if all > 0 {
		result.value = (100*short + all/2) / all
	}
	return result
}
