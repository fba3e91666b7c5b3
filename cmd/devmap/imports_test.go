package main_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/devmap-dev/devmap/fixtures"
)

const module = "github.com/devmap-dev/devmap/"

// allowed is the package table, which ARCHITECTURE.md summarizes. It lists each package with the
// devmap packages that its non-test files may import, directly or through internal ones. It omits
// cmd/devmap, …/internal/… and …test packages, which may import anything.
var allowed = map[string][]string{
	"modelgraph":             {},
	"modelgraph/safetensors": {"modelgraph"},
	"modelgraph/hf":          {"modelgraph", "modelgraph/safetensors"},
	"modelgraph/gguf":        {"modelgraph"},
	"costmodel/serving":      {"modelgraph", "modelgraph/gguf"},
	"planner/serve":          {"modelgraph", "modelgraph/gguf", "costmodel", "costmodel/catalogue", "costmodel/serving", "planner/devicemap"},
	"modelgraph/onnx":        {"modelgraph"},
	"modelgraph/benchfile":   {"modelgraph"},
	"modelgraph/diffusers":   {"modelgraph", "modelgraph/hf", "modelgraph/safetensors"},
	"modelgraph/load": {
		"modelgraph", "modelgraph/diffusers", "modelgraph/hf", "modelgraph/safetensors", "modelgraph/gguf", "modelgraph/onnx", "modelgraph/benchfile",
	},

	"costmodel":           {"modelgraph"},
	"costmodel/order":     {"costmodel"},
	"costmodel/recipe":    {"modelgraph", "costmodel"},
	"costmodel/timeline":  {"modelgraph", "costmodel", "costmodel/order"},
	"costmodel/steptime":  {"modelgraph", "costmodel", "costmodel/order"},
	"costmodel/catalogue": {"costmodel"},
	"costmodel/phases":    {"modelgraph", "modelgraph/diffusers", "modelgraph/hf", "modelgraph/safetensors", "costmodel"},
	"costmodel/estimate": {
		"modelgraph", "costmodel", "costmodel/catalogue", "costmodel/recipe", "costmodel/order", "costmodel/timeline",
	},

	"planner/devicemap": {"modelgraph", "costmodel", "costmodel/timeline", "costmodel/steptime"},
	"planner/benchmark": {"modelgraph", "modelgraph/benchfile"},
	"planner":           {"modelgraph", "modelgraph/diffusers", "costmodel", "costmodel/phases", "costmodel/order", "costmodel/timeline", "costmodel/steptime", "costmodel/catalogue", "costmodel/estimate", "planner/devicemap"},
	"planner/strategy": {
		"modelgraph", "costmodel", "costmodel/catalogue",
		"costmodel/estimate", "costmodel/phases", "costmodel/steptime", "costmodel/timeline", "planner", "planner/devicemap",
	},
	"planner/emit": {"modelgraph", "modelgraph/diffusers", "modelgraph/gguf", "costmodel", "costmodel/serving", "costmodel/order", "costmodel/phases", "planner/devicemap", "executor/program"},

	"executor/program": {"modelgraph", "costmodel"},
	"executor/compile": {
		"modelgraph", "costmodel", "costmodel/recipe", "costmodel/order",
		"costmodel/steptime", "costmodel/timeline", "planner/devicemap", "executor/program",
	},
	"executor/simulate": {"costmodel", "executor/program"},
	"executor/weights":  {"modelgraph", "modelgraph/safetensors"},
	"executor":          {"modelgraph", "costmodel", "costmodel/recipe", "executor/program", "executor/weights"},
	"executor/cpu":      {"modelgraph", "costmodel", "costmodel/recipe", "executor", "executor/program"},
	"executor/cuda":     {"modelgraph", "costmodel", "costmodel/recipe", "executor", "executor/program", "executor/nvml", "executor/weights"},
	"executor/nvml":     {"costmodel"},
	"executor/report":   {"costmodel", "planner/devicemap", "executor", "executor/program"},
	"executor/watch":    {"costmodel", "planner/devicemap", "executor/nvml", "executor/report"},

	"fixtures": {},
}

// The numeric solvers, and the package that opens backends.
const (
	solvers  = "planner/internal/solve"
	backends = "cmd/devmap/internal/backends"
)

// machinePath matches an absolute path of a developer's machine.
var machinePath = regexp.MustCompile(`(^|[^\w.])/(work|root)/`)

// goFile is the part of a Go source file that the rules need.
type goFile struct {
	name    string
	pkg     string // folder, slash-separated
	test    bool
	imports []imported
}

type imported struct {
	path string
	line int
}

// TestImports checks this repository by its package table.
func TestImports(t *testing.T) {
	faults := fixtures.Must(checkTree(os.DirFS("../..")))(t)
	for _, fault := range faults {
		t.Error(fault)
	}
}

// checkTree returns every broken rule of the tree, each with its position first, in order.
func checkTree(tree fs.FS) ([]string, error) {
	var files []goFile
	var faults []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipFolder(name)
		case !entry.Type().IsRegular() || !isSource(name):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		faults = append(faults, pathFaults(name, string(text))...)
		if path.Ext(name) != ".go" || inTestdata(name) || inNestedModule(tree, name) {
			return nil
		}
		file, err := parseGo(name, text)
		files = append(files, file)
		return err
	})
	if err != nil {
		return nil, err
	}
	faults = append(faults, importFaults(files)...)
	slices.Sort(faults)
	return slices.Compact(faults), nil
}

// skipFolder omits folders outside of the project: .git and build output.
func skipFolder(name string) error {
	hidden := strings.HasPrefix(path.Base(name), ".") && name != "." && name != ".ci"
	if hidden || name == "bin" {
		return fs.SkipDir
	}
	return nil
}

// isSource reports whether people wrote the file: code, documents, build files, scripts.
func isSource(name string) bool {
	extensions := []string{".go", ".c", ".h", ".cu", ".md", ".mod", ".yml", ".sh", ".py", ".txtar"}
	return slices.Contains(extensions, path.Ext(name)) || path.Base(name) == "Makefile" || path.Ext(name) == ".mk" || name == ".ci/run"
}

func inTestdata(name string) bool {
	return slices.Contains(strings.Split(name, "/"), "testdata")
}

// inNestedModule reports whether a go.mod below the root owns the file.
func inNestedModule(tree fs.FS, name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, err := fs.Stat(tree, dir+"/go.mod"); err == nil {
			return true
		}
	}
	return false
}

func parseGo(name string, text []byte) (goFile, error) {
	file := goFile{name: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go")}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, text, parser.ImportsOnly)
	if err != nil {
		return file, err
	}
	for _, spec := range parsed.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return file, fmt.Errorf("%s: unquoting import: %w", set.Position(spec.Pos()), err)
		}
		file.imports = append(file.imports, imported{target, set.Position(spec.Pos()).Line})
	}
	return file, nil
}

func pathFaults(name, text string) []string {
	var faults []string
	for i, line := range strings.Split(text, "\n") {
		if found := machinePath.FindString(line); found != "" {
			faults = append(faults, fmt.Sprintf("%s:%d: names a path of one machine: %q", name, i+1, found))
		}
	}
	return faults
}

// importFaults applies the table, and the rules about cgo, which also apply to tests.
func importFaults(files []goFile) []string {
	var faults []string
	reach := internalReach(files)
	for _, file := range files {
		if _, known := allowed[file.pkg]; !known && !isFree(file.pkg) {
			faults = append(faults, fmt.Sprintf("%s:1: package %s is not in the package table", file.name, file.pkg))
			continue
		}
		for _, imp := range file.imports {
			if why := refuse(file, imp.path, reach); why != "" {
				faults = append(faults, fmt.Sprintf("%s:%d: %s", file.name, imp.line, why))
			}
		}
	}
	return faults
}

// refuse returns why the file may not import target, or "".
func refuse(file goFile, target string, reach map[string][]string) string {
	inCuda, inNVML := under(file.pkg, "executor/cuda"), under(file.pkg, "executor/nvml")
	local, isLocal := strings.CutPrefix(target, module)
	switch {
	case isCgo(target):
		if !inCuda && !inNVML {
			return fmt.Sprintf("%s imports %q: cgo is for executor/cuda and executor/nvml", file.pkg, target)
		}
		return ""
	case !isLocal:
		return ""
	case under(local, "executor/cuda") && !inCuda && file.pkg != backends:
		return file.pkg + " imports " + local + ": only " + backends + " may"
	case under(file.pkg, solvers) && !under(local, solvers) && !file.test:
		return file.pkg + " imports " + local + ": the solvers know numbers only"
	case file.test || isFree(file.pkg):
		return ""
	case isTestSupport(local):
		return file.pkg + " imports " + local + " outside its tests"
	}
	for _, reached := range append([]string{local}, reach[local]...) {
		if isFree(reached) || reached == file.pkg || slices.Contains(allowed[file.pkg], reached) {
			continue
		}
		if reached != local {
			return fmt.Sprintf("%s imports %s through %s: not in its row of the package table", file.pkg, reached, local)
		}
		return file.pkg + " imports " + local + ": not in its row of the package table"
	}
	return ""
}

// internalReach maps each internal package to all packages that its non-test files import, directly
// or through other internal packages. So internal packages cannot bypass the table.
func internalReach(files []goFile) map[string][]string {
	direct := map[string][]string{}
	for _, file := range files {
		for _, imp := range file.imports {
			if local, ok := strings.CutPrefix(imp.path, module); ok && !file.test && isInternal(file.pkg) {
				direct[file.pkg] = append(direct[file.pkg], local)
			}
		}
	}
	reach := map[string][]string{}
	for pkg := range direct {
		queue := slices.Clone(direct[pkg])
		for len(queue) > 0 {
			next := queue[0]
			queue = queue[1:]
			if !slices.Contains(reach[pkg], next) {
				reach[pkg] = append(reach[pkg], next)
				queue = append(queue, direct[next]...)
			}
		}
	}
	return reach
}

// isCgo reports whether an import brings cgo with it.
func isCgo(target string) bool {
	return target == "C" || under(target, "gorgonia.org/cu") || under(target, "github.com/NVIDIA/go-nvml")
}

// isFree reports whether a package may import anything except the CUDA backend.
func isFree(pkg string) bool {
	return under(pkg, "cmd/devmap") || isInternal(pkg) || isTestSupport(pkg)
}

func isInternal(pkg string) bool {
	return slices.Contains(strings.Split(pkg, "/"), "internal")
}

// isTestSupport recognizes contract packages such as planner/plannertest.
func isTestSupport(pkg string) bool {
	return strings.HasSuffix(pkg, "test") && !isInternal(pkg)
}

func under(pkg, folder string) bool {
	return pkg == folder || strings.HasPrefix(pkg, folder+"/")
}

// TestImportRulesCatchBreaks gives the checker one small tree per rule.
func TestImportRulesCatchBreaks(t *testing.T) {
	root := "/" + "root/"
	const local = `import _ "` + module
	tests := map[string]struct {
		files map[string]string // by file name, the text after its package clause
		want  []string
	}{
		"allowed": {map[string]string{"planner/a.go": local + `costmodel"`, "modelgraph/hf/a.go": local + `modelgraph/safetensors"`}, nil},
		"not in the row": {
			map[string]string{"modelgraph/a.go": local + `planner"`},
			[]string{"modelgraph/a.go:2: modelgraph imports planner: not in its row of the package table"},
		},
		"tests are exempt":    {map[string]string{"modelgraph/a_test.go": local + `planner/plannertest"`}, nil},
		"testdata is no code": {map[string]string{"modelgraph/testdata/a.go": local + `planner"`}, nil},
		"a nested module":     {map[string]string{"fixtures/x/go.mod": "", "fixtures/x/a.go": `import "C"`}, nil},
		"new package": {
			map[string]string{"planner/shiny/a.go": ""},
			[]string{"planner/shiny/a.go:1: package planner/shiny is not in the package table"},
		},
		"through an internal package": {
			map[string]string{
				"costmodel/a.go":              local + `costmodel/internal/fit"`,
				"costmodel/internal/fit/a.go": local + `planner"`,
			},
			[]string{"costmodel/a.go:2: costmodel imports planner through costmodel/internal/fit: not in its row of the package table"},
		},
		"through two internal packages": {
			map[string]string{
				"modelgraph/a.go":                   local + `modelgraph/internal/one"`,
				"modelgraph/internal/one/a.go":      local + `modelgraph/internal/two"`,
				"modelgraph/internal/two/a.go":      local + `costmodel"`,
				"modelgraph/internal/two/a_test.go": local + `planner"`,
			},
			[]string{"modelgraph/a.go:2: modelgraph imports costmodel through modelgraph/internal/one: not in its row of the package table"},
		},
		"an internal package's tests are exempt": {
			map[string]string{
				"modelgraph/a.go":                   local + `modelgraph/internal/one"`,
				"modelgraph/internal/one/a_test.go": local + `planner"`,
			}, nil,
		},
		"test support outside tests": {
			map[string]string{"planner/a.go": local + `planner/plannertest"`},
			[]string{"planner/a.go:2: planner imports planner/plannertest outside its tests"},
		},
		"cuda in two places": {
			map[string]string{"executor/cpu/a_test.go": local + `executor/cuda"`, "cmd/devmap/run.go": local + `executor/cuda"`, backends + "/a.go": local + `executor/cuda"`},
			[]string{
				"cmd/devmap/run.go:2: cmd/devmap imports executor/cuda: only " + backends + " may",
				"executor/cpu/a_test.go:2: executor/cpu imports executor/cuda: only " + backends + " may",
			},
		},
		"a solver that knows more than numbers": {
			map[string]string{
				solvers + "/chain/a.go": local + `costmodel"`, solvers + "/chain/a_test.go": local + `costmodel"`,
				solvers + "/assign/a.go": local + solvers + `/certificate"`,
			},
			[]string{solvers + "/chain/a.go:2: " + solvers + "/chain imports costmodel: the solvers know numbers only"},
		},
		"cgo": {
			map[string]string{"executor/cuda/a.go": `import "C"`, "executor/nvml/a.go": `import "C"`, "planner/a_test.go": `import "C"`},
			[]string{`planner/a_test.go:2: planner imports "C": cgo is for executor/cuda and executor/nvml`},
		},
		"cgo of others": {
			map[string]string{"executor/a.go": `import _ "gorgonia.org/cu"`},
			[]string{`executor/a.go:2: executor imports "gorgonia.org/cu": cgo is for executor/cuda and executor/nvml`},
		},
		"a machine's path": {
			map[string]string{"planner/a.go": "// " + root + "x", "README.md": "framework/work/on", ".ci/run": "cd " + root, ".git/a.md": root},
			[]string{
				`.ci/run:2: names a path of one machine: " ` + root + `"`,
				`planner/a.go:2: names a path of one machine: " ` + root + `"`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for file, body := range test.files {
				tree[file] = &fstest.MapFile{Data: []byte("package p\n" + body + "\n")}
			}
			got := fixtures.Must(checkTree(tree))(t)
			if !slices.Equal(got, test.want) {
				t.Errorf("faults\n got %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestImportRulesNeedWholeFiles: a file with a syntax error is an error, and is not skipped.
func TestImportRulesNeedWholeFiles(t *testing.T) {
	tree := fstest.MapFS{"planner/a.go": {Data: []byte("package planner\nimport (")}}
	if faults, err := checkTree(tree); err == nil {
		t.Errorf("no error, faults %q", faults)
	}
}
