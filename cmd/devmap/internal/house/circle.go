package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// circle is files of one package that all need each other: none can be read,
// moved or tested without the rest.
type circle struct {
	pkg   string
	files []string
}

// maxNamed is how many files of a circle are named.
const maxNamed = 15

func (found *circle) describe() string {
	if len(found.files) == 0 {
		return ""
	}
	named, more := found.files, ""
	if len(named) > maxNamed {
		named, more = named[:maxNamed], fmt.Sprintf(" and %d more", len(named)-maxNamed)
	}
	return found.pkg + ": " + strings.Join(named, " ") + more
}

// listed is what go list tells of a package.
type listed struct {
	Dir        string
	ImportPath string
	Export     string // the file of its export data
	DepOnly    bool   // not of the patterns, but of what they import
	GoFiles    []string
	CgoFiles   []string
}

// largestCircle is the largest of all packages of a module.
func largestCircle(root string) (circle, error) {
	packages, err := list(root)
	if err != nil {
		return circle{}, err
	}
	export := map[string]string{}
	for i := range packages {
		export[packages[i].ImportPath] = packages[i].Export
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		if export[path] == "" {
			return nil, fmt.Errorf("no export data of %q", path)
		}
		return os.Open(export[path])
	})
	var largest circle
	for i := range packages {
		if packages[i].DepOnly {
			continue
		}
		names, needs, err := needsOf(&packages[i], files, imports)
		if err != nil {
			return circle{}, err
		}
		for _, found := range components(needs) {
			if len(found) > max(1, len(largest.files)) {
				largest = circle{pkg: packages[i].ImportPath}
				for _, file := range found {
					largest.files = append(largest.files, names[file])
				}
				slices.Sort(largest.files)
			}
		}
	}
	return largest, nil
}

// list has go list compile the packages, so that each is checked against the
// others' export data and not their sources.
func list(root string) ([]listed, error) {
	command := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,DepOnly,GoFiles,CgoFiles", "./...")
	command.Dir, command.Stderr = root, os.Stderr
	text, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var out []listed
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var next listed
		if err := decoder.Decode(&next); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		out = append(out, next)
	}
}

// needsOf is which files of a package use what which others declare: package
// level names, methods and fields.
func needsOf(of *listed, files *token.FileSet, imports types.Importer) (names []string, needs [][]int, err error) {
	var parsed []*ast.File
	for _, name := range slices.Concat(of.GoFiles, of.CgoFiles) {
		file, err := parser.ParseFile(files, filepath.Join(of.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, fmt.Errorf("parsing: %w", err)
		}
		parsed, names = append(parsed, file), append(names, name)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports, FakeImportC: true}
	checked, err := config.Check(of.ImportPath, files, parsed, info)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", of.ImportPath, err)
	}
	index := map[*token.File]int{}
	for i, file := range parsed {
		index[files.File(file.Package)] = i
	}
	needs = make([][]int, len(parsed))
	for name, object := range info.Uses {
		if object.Pkg() != checked || local(object, checked.Scope()) {
			continue
		}
		from, at := index[files.File(name.Pos())], index[files.File(object.Pos())]
		if from != at && !slices.Contains(needs[from], at) {
			needs[from] = append(needs[from], at)
		}
	}
	return names, needs, nil
}

// local reports an object of a function's inside: methods and fields are in no
// scope, and count.
func local(object types.Object, scope *types.Scope) bool {
	switch object.(type) {
	case *types.Var, *types.Func, *types.TypeName, *types.Const:
		return object.Parent() != nil && object.Parent() != scope
	}
	return true
}

// components are the strongly connected ones of a graph (Tarjan, SIAM Journal
// on Computing 1(2), 1972), in linear time.
func components(next [][]int) [][]int {
	search := &tarjan{next: next, order: make([]int, len(next)), low: make([]int, len(next)), open: make([]bool, len(next))}
	for node := range next {
		if search.order[node] == 0 {
			search.visit(node)
		}
	}
	return search.found
}

type tarjan struct {
	next       [][]int
	order, low []int // when a node was met, from 1; the earliest met that it reaches
	open       []bool
	stack      []int
	met        int
	found      [][]int
}

func (search *tarjan) visit(node int) {
	search.met++
	search.order[node], search.low[node] = search.met, search.met
	search.stack, search.open[node] = append(search.stack, node), true
	for _, to := range search.next[node] {
		if search.order[to] == 0 {
			search.visit(to)
			search.low[node] = min(search.low[node], search.low[to])
		} else if search.open[to] {
			search.low[node] = min(search.low[node], search.order[to])
		}
	}
	if search.low[node] < search.order[node] {
		return
	}
	at := slices.Index(search.stack, node)
	for _, member := range search.stack[at:] {
		search.open[member] = false
	}
	search.found = append(search.found, slices.Clone(search.stack[at:]))
	search.stack = search.stack[:at]
}
