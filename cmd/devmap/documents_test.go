package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/devmap-dev/devmap/fixtures"
)

// documents lists the texts that tell where things are. The changelog is not one of them, as it
// also names files that are gone.
var documents = []string{
	"ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "fixtures/README.md", "fixtures/oracle/README.md",
	"modelgraph/python/README.md",
}

var (
	quoted     = regexp.MustCompile("`([^`\n]+)`")
	fenced     = regexp.MustCompile("(?ms)^```.*?\n```$")
	folderLine = regexp.MustCompile(`^( *)([\w/{},]+)/ +\S`)
	pathLike   = regexp.MustCompile(`^[\w.*/-]+$`)
	qualified  = regexp.MustCompile(`^\*?([a-z]+)\.(\w+(?:\.\w+)?)$`)
	testLike   = regexp.MustCompile(`^(?:Test|Benchmark|Fuzz)[A-Z]\w*$`)
	makeTarget = regexp.MustCompile("(?m)(?:`|^)make ([a-z]+)")
	linked     = regexp.MustCompile(`\]\(([^)#]+)\)`)
)

// TestDocumentsNameWhatThereIs looks up every path, Go name and make target in the documents.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	tree := os.DirFS("../..")
	declared := declaredNames(t, tree)
	makefile := readText(t, tree, "Makefile") + readText(t, tree, "tools.mk")
	pages := fixtures.Must(fs.Glob(tree, "docs/*.md"))(t)
	below, err := fs.Glob(tree, "docs/*/*.md")
	if err != nil || len(pages) < 10 || len(below) < 20 {
		t.Fatalf("docs has %d and %d pages (%v)", len(pages), len(below), err)
	}
	for _, name := range slices.Concat(documents, pages, below) {
		text := readText(t, tree, name)
		for _, found := range makeTarget.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+found[1]+": ") {
				t.Errorf("%s: the Makefile has no target %q", name, found[1])
			}
		}
		prose := fenced.ReplaceAllStringFunc(text, func(block string) string {
			return strings.Repeat("\n", strings.Count(block, "\n"))
		})
		for i, line := range strings.Split(prose, "\n") {
			for _, fault := range lineFaults(tree, declared, path.Dir(name), line) {
				t.Errorf("%s:%d: %s", name, i+1, fault)
			}
		}
	}
}

// lineFaults returns the names in a line of a document that refer to nothing.
func lineFaults(tree fs.FS, declared map[string]map[string]bool, dir, line string) (faults []string) {
	for _, found := range linked.FindAllStringSubmatch(line, -1) {
		if !strings.Contains(found[1], "://") && !matches(tree, path.Join(dir, found[1])) {
			faults = append(faults, fmt.Sprintf("links to %q, which does not exist", found[1]))
		}
	}
	folder := ""
	for _, found := range quoted.FindAllStringSubmatch(line, -1) {
		name, why := found[1], ""
		if id := qualified.FindStringSubmatch(name); len(id) == 3 && declared[id[1]] != nil && !isFile(name) {
			if !declared[id[1]][id[2]] {
				why = fmt.Sprintf("names %q, which package %s does not declare", name, id[1])
			}
		} else if testLike.MatchString(name) {
			if !isDeclared(declared, name) {
				why = fmt.Sprintf("names %q, which no package declares", name)
			}
		} else if pathLike.MatchString(name) {
			folder, why = pathFault(tree, folder, name)
		}
		if why != "" {
			faults = append(faults, why)
		}
	}
	return faults
}

func isFile(name string) bool {
	return slices.Contains([]string{".go", ".gz", ".json", ".py", ".txt"}, path.Ext(name))
}

func isDeclared(declared map[string]map[string]bool, name string) bool {
	for _, names := range declared {
		if names[name] {
			return true
		}
	}
	return false
}

// pathFault returns why a path refers to nothing, or "", and the folder that it names. A file
// without a folder is in the one before it in the line, or if there is none, in any folder.
func pathFault(tree fs.FS, folder, name string) (named, why string) {
	top, _, isPath := strings.Cut(name, "/")
	ours := slices.Contains([]string{"cmd", "costmodel", "executor", "fixtures", "modelgraph", "planner"}, top)
	switch {
	case isPath && (ours || path.Ext(name) == ".go"):
		if !matches(tree, name) {
			why = fmt.Sprintf("names %q, which does not exist", name)
		}
		if path.Ext(name) != "" {
			return path.Dir(name), why
		}
		return name, why
	case ours:
		return name, ""
	case !isPath && path.Ext(name) == ".go":
		if !matches(tree, path.Join(folder, name)) && (folder != "" || !inTree(tree, name)) {
			why = fmt.Sprintf("names %q, which is not in %q", name, folder)
		}
	}
	return folder, why
}

func matches(tree fs.FS, pattern string) bool {
	found, err := fs.Glob(tree, strings.TrimSuffix(pattern, "/"))
	return err == nil && len(found) > 0
}

func inTree(tree fs.FS, base string) (found bool) {
	_ = fs.WalkDir(tree, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ok, _ := path.Match(base, path.Base(name)); ok {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// TestArchitectureListsEveryPackage compares the tree of ARCHITECTURE.md with the folders that hold
// Go code. Folders below a package for its tests or tools may be omitted.
func TestArchitectureListsEveryPackage(t *testing.T) {
	tree := os.DirFS("../..")
	listed := listedFolders(readText(t, tree, "ARCHITECTURE.md"))
	for _, name := range listed {
		if info, err := fs.Stat(tree, name); err != nil || !info.IsDir() {
			t.Errorf("ARCHITECTURE.md lists %q, which is no folder", name)
		}
	}
	for _, dir := range goFolders(t, tree) {
		own := strings.Count(dir, "/internal/") > 1 || isTestSupport(dir) || strings.HasSuffix(dir, "test")
		if !own && !slices.Contains(listed, dir) {
			t.Errorf("ARCHITECTURE.md does not list %q", dir)
		}
	}
}

// listedFolders reads the tree of folders in the blocks of a document. Each line is a folder, in
// the last one with a smaller indent.
func listedFolders(text string) (listed []string) {
	type level struct {
		indent int
		dir    string
	}
	for _, block := range fenced.FindAllString(text, -1) {
		var above []level
		for _, line := range strings.Split(block, "\n") {
			found := folderLine.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			for len(above) > 0 && above[len(above)-1].indent >= len(found[1]) {
				above = above[:len(above)-1]
			}
			dir := found[2]
			if len(above) > 0 {
				dir = above[len(above)-1].dir + "/" + dir
			}
			above = append(above, level{len(found[1]), dir})
			listed = append(listed, alternatives(dir)...)
		}
	}
	return listed
}

// alternatives expands a/{b,c} to a/b and a/c.
func alternatives(dir string) (out []string) {
	before, rest, ok := strings.Cut(dir, "{")
	if !ok {
		return []string{dir}
	}
	middle, after, _ := strings.Cut(rest, "}")
	for _, one := range strings.Split(middle, ",") {
		out = append(out, before+one+after)
	}
	return out
}

// goFiles returns the Go files of the module, whose folders are packages.
func goFiles(t *testing.T, tree fs.FS) (names []string) {
	t.Helper()
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipFolder(name)
		case path.Ext(name) == ".go" && !inTestdata(name) && !inNestedModule(tree, name):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func goFolders(t *testing.T, tree fs.FS) []string {
	t.Helper()
	dirs := map[string]bool{}
	for _, name := range goFiles(t, tree) {
		dirs[path.Dir(name)] = true
	}
	return slices.Sorted(maps.Keys(dirs))
}

// declaredNames returns the declared names by package: types, functions, variables and constants,
// and methods and fields as Type.Name.
func declaredNames(t *testing.T, tree fs.FS) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, name := range goFiles(t, tree) {
		file := fixtures.Must(parser.ParseFile(token.NewFileSet(), name, readText(t, tree, name), parser.SkipObjectResolution))(t)
		names := all[file.Name.Name]
		if names == nil {
			names = map[string]bool{}
			all[file.Name.Name] = names
		}
		for _, decl := range file.Decls {
			addNames(names, decl)
		}
	}
	return all
}

func addNames(names map[string]bool, decl ast.Decl) {
	if function, ok := decl.(*ast.FuncDecl); ok {
		names[receiver(function)+function.Name.Name] = true
		return
	}
	general, ok := decl.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range general.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				names[name.Name] = true
			}
		case *ast.TypeSpec:
			names[spec.Name.Name] = true
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						names[spec.Name.Name+"."+name.Name] = true
					}
				}
			}
		}
	}
}

// receiver returns "Type." for a method, and "" for a function.
func receiver(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	kind := function.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name + "."
	}
	return "?."
}

func readText(t *testing.T, tree fs.FS, name string) string {
	t.Helper()
	text := fixtures.Must(fs.ReadFile(tree, name))(t)
	return string(text)
}

// TestDocumentFaults checks the look-up with names that exist and names that do not.
func TestDocumentFaults(t *testing.T) {
	tree := fstest.MapFS{"planner/solve.go": {}, "planner/emit/emit.go": {}, "README.md": {}}
	declared := map[string]map[string]bool{"planner": {"Solve": true, "Problem": true, "Problem.Graph": true}, "planner_test": {"TestSolve": true}}
	tests := map[string][]string{
		"`planner/solve.go`, `planner/emit`, `planner/*.go`, [it](README.md), [else](https://go.dev)": nil,
		"`planner.Solve`, `*planner.Problem`, `planner.Problem.Graph`, `torch.cuda`, `--gpus`":        nil,
		"`TestSolve`, `Tests`":       nil,
		"`BenchmarkSolve`":           {`names "BenchmarkSolve", which no package declares`},
		"`planner/emit`: `emit.go`":  nil,
		"`solve.go`":                 nil,
		"`planner/solver.go`":        {`names "planner/solver.go", which does not exist`},
		"`strategy/rows.go`":         {`names "strategy/rows.go", which does not exist`},
		"`planner/emit`: `solve.go`": {`names "solve.go", which is not in "planner/emit"`},
		"`gone.go`":                  {`names "gone.go", which is not in ""`},
		"`planner.Solver`":           {`names "planner.Solver", which package planner does not declare`},
		"[it](GONE.md)":              {`links to "GONE.md", which does not exist`},
	}
	for line, want := range tests {
		if got := lineFaults(tree, declared, ".", line); !slices.Equal(got, want) {
			t.Errorf("%s\n got %q\nwant %q", line, got, want)
		}
	}
	block := "```text\na/  x\n  b/{c,d}/  y\n  e/  z\nf/ w\n```"
	if got := listedFolders(block); strings.Join(got, " ") != "a a/b/c a/b/d a/e f" {
		t.Errorf("listed %q", got)
	}
}
