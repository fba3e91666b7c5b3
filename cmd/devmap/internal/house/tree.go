package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tree is the source of a module for all build tags, without generated code and testdata.
type tree struct {
	folders map[string]*folder // by their path from the root, slashed
	known   *vocabulary
}

// folder is the package of one folder.
type folder struct {
	dir      string
	program  bool     // package main
	sources  []source // no tests
	examples int      // in its tests, with their output
	private  []hit
}

type source struct {
	file  *ast.File
	lines int
}

func parseTree(root string) (*tree, error) {
	known, err := readVocabulary(wordList)
	if err != nil {
		return nil, err
	}
	module := &tree{folders: map[string]*folder{}, known: known}
	files := token.NewFileSet()
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipped(root, name)
		case filepath.Ext(name) != ".go":
			return nil
		}
		return module.read(root, name, files)
	})
	return module, err
}

// skipped leaves out folders without source of the module.
func skipped(root, name string) error {
	base := filepath.Base(name)
	if name != root && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "vendor") {
		return fs.SkipDir
	}
	return nil
}

// read adds a file to its folder.
func (module *tree) read(root, name string, files *token.FileSet) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing: %w", err)
	}
	if ast.IsGenerated(file) {
		return nil
	}
	dir, err := filepath.Rel(root, filepath.Dir(name))
	if err != nil {
		return err
	}
	dir = filepath.ToSlash(dir)
	into := module.folders[dir]
	if into == nil {
		into = &folder{dir: dir}
		module.folders[dir] = into
	}
	into.private = append(into.private, module.known.scan(name, file, files)...)
	if strings.HasSuffix(name, "_test.go") {
		for _, example := range doc.Examples(file) {
			if example.Output != "" || example.EmptyOutput {
				into.examples++
			}
		}
		return nil
	}
	into.program = into.program || file.Name.Name == "main"
	into.sources = append(into.sources, source{file, bytes.Count(text, []byte("\n"))})
	return nil
}

// exported counts the names that a file adds to its package's API. Each method of an exported type,
// constant and variable counts as one.
func exported(from source) int {
	count := 0
	for _, decl := range from.file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.IsExported() && ast.IsExported(receiver(decl)) {
				count++
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				count += exportedIn(spec)
			}
		}
	}
	return count
}

func exportedIn(spec ast.Spec) int {
	count := 0
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() {
			count++
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() {
				count++
			}
		}
	}
	return count
}

// receiver returns the name of a method's type, or a function's own name.
func receiver(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return decl.Name.Name
	}
	of := decl.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// localNames counts the names of parameters, receivers, results, fields and locals in a file, and
// those of one letter.
func localNames(file *ast.File) (short, all int) {
	count := func(expr ast.Expr) {
		name, ok := expr.(*ast.Ident)
		if !ok || name.Name == "_" {
			return
		}
		all++
		if len(name.Name) == 1 {
			short++
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Field:
			for _, name := range node.Names {
				count(name)
			}
		case *ast.AssignStmt:
			if node.Tok == token.DEFINE {
				for _, name := range node.Lhs {
					count(name)
				}
			}
		case *ast.RangeStmt:
			if node.Tok == token.DEFINE {
				count(node.Key)
				count(node.Value)
			}
		}
		return true
	})
	return short, all
}
