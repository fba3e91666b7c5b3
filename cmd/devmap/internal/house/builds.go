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

// build is one way to compile the module: other tags select other files.
type build struct {
	name string
	tags string
	env  []string
}

// builds returns the builds that this machine can list, and a note on those it
// skips. The environment is the Makefile's, so that both share a build cache.
func builds(root string) (found []build, note string, err error) {
	found = []build{{name: "no cgo", env: []string{"CGO_ENABLED=0"}}}
	text, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		return nil, "", fmt.Errorf("go env: %w", err)
	}
	compiler, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if _, missing := exec.LookPath(compiler); missing != nil {
		return found, fmt.Sprintf("skipped: the builds with cgo (no C compiler: %s)", compiler), nil //nolint:nilerr // a build without cgo is enough
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, "", err
	}
	with := build{name: "cgo", env: []string{"CGO_ENABLED=1"}}
	tagged := build{name: "cgo, cuda", tags: "cuda", env: with.env}
	headers := filepath.Join(root, "executor", "cuda", "internal", "driver", "include")
	if _, err := os.Stat(headers); err == nil {
		tagged.env = append(slices.Clip(with.env), "CGO_CFLAGS=-O2 -g -I"+headers)
	}
	return append(found, with, tagged), "", nil
}

// listed is a package in the output of go list.
type listed struct {
	Dir             string
	ImportPath      string
	Export          string // the file of its export data
	DepOnly         bool   // imported by the patterns, but not matched by them
	CompiledGoFiles []string
	Module          *struct{ Path string }
}

// list compiles the packages with go list, so that each is checked against the others' export data
// and not their sources.
func (of *build) list(root string) ([]listed, error) {
	command := exec.Command("go", "list", "-tags", of.tags, //nolint:gosec // the tags are those above
		"-export", "-compiled", "-deps",
		"-json=Dir,ImportPath,Export,DepOnly,CompiledGoFiles,Module", "./...")
	command.Dir, command.Stderr, command.Env = root, os.Stderr, append(os.Environ(), of.env...)
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

// structure is the combined result of all builds of a module.
type structure struct {
	largest  cycle
	methods  map[string]int // of each type, by its package's path and its name
	packages map[string]bool
	checked  map[string]bool // packages with their files: most are the same in all builds
}

// inspect checks the packages of all builds.
func inspect(root string, all []build) (*structure, error) {
	out := &structure{methods: map[string]int{}, packages: map[string]bool{}, checked: map[string]bool{}}
	for i := range all {
		if err := out.add(root, &all[i]); err != nil {
			return nil, fmt.Errorf("the build %q: %w", all[i].name, err)
		}
	}
	return out, nil
}

// add checks the packages of a build, except those with the same files in an earlier build.
func (out *structure) add(root string, of *build) error {
	packages, err := of.list(root)
	if err != nil {
		return err
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
	for i := range packages {
		one := &packages[i]
		key := one.ImportPath + "\n" + strings.Join(one.CompiledGoFiles, "\n")
		if one.DepOnly || out.checked[key] {
			continue
		}
		out.checked[key], out.packages[one.ImportPath] = true, true
		if err := out.check(one, files, imports); err != nil {
			return err
		}
	}
	return nil
}

// check type-checks a package, and records its types and its cycles.
func (out *structure) check(of *listed, files *token.FileSet, imports types.Importer) error {
	var parsed []*ast.File
	for _, name := range of.CompiledGoFiles {
		if !filepath.IsAbs(name) { // cgo's files are in the build cache
			name = filepath.Join(of.Dir, name)
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parsing: %w", err)
		}
		parsed = append(parsed, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports}
	checked, err := config.Check(of.ImportPath, files, parsed, info)
	if err != nil {
		return fmt.Errorf("%s: %w", of.ImportPath, err)
	}
	path := of.ImportPath
	if of.Module != nil {
		path = strings.TrimPrefix(strings.TrimPrefix(path, of.Module.Path), "/")
	}
	for _, name := range checked.Scope().Names() {
		if named, ok := checked.Scope().Lookup(name).(*types.TypeName); ok && !named.IsAlias() {
			key := strings.TrimPrefix(path+"."+name, ".")
			out.methods[key] = max(out.methods[key], methodCount(named.Type()))
		}
	}
	names := make([]string, len(parsed))
	for i, file := range parsed { // a line directive names the source of a cgo file
		names[i] = filepath.Base(files.Position(file.Package).Filename)
	}
	for _, found := range components(needsOf(files, parsed, checked, info)) {
		if len(found) > max(1, len(out.largest.files)) {
			out.largest = cycle{pkg: path}
			for _, file := range found {
				out.largest.files = append(out.largest.files, names[file])
			}
			slices.Sort(out.largest.files)
		}
	}
	return nil
}

// methodCount returns the number of methods that a type declares, or an interface requires.
func methodCount(of types.Type) int {
	if demands, ok := of.Underlying().(*types.Interface); ok {
		return demands.NumMethods()
	}
	if named, ok := of.(*types.Named); ok {
		return named.NumMethods()
	}
	return 0
}
