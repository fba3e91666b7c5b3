package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// cycle is files of one package that all need each other: none can be read, moved or tested alone.
type cycle struct {
	pkg   string
	files []string
}

// maxNamed is the number of files or types that a figure names.
const maxNamed = 15

func (found *cycle) describe() string {
	if len(found.files) == 0 {
		return ""
	}
	named, more := found.files, ""
	if len(named) > maxNamed {
		named, more = named[:maxNamed], fmt.Sprintf(" and %d more", len(named)-maxNamed)
	}
	return found.pkg + ": " + strings.Join(named, " ") + more
}

// needsOf lists the files that each file of a package needs: those that declare package-level
// names, methods and fields that it uses.
func needsOf(files *token.FileSet, parsed []*ast.File, checked *types.Package, info *types.Info) [][]int {
	index := map[*token.File]int{}
	for i, file := range parsed {
		index[files.File(file.Package)] = i
	}
	needs := make([][]int, len(parsed))
	for name, object := range info.Uses {
		if object.Pkg() != checked || local(object, checked.Scope()) {
			continue
		}
		from, at := index[files.File(name.Pos())], index[files.File(object.Pos())]
		if from != at && !slices.Contains(needs[from], at) {
			needs[from] = append(needs[from], at)
		}
	}
	return needs
}

// local reports whether an object belongs to a function. Methods and fields are in no scope, and
// are not local.
func local(object types.Object, scope *types.Scope) bool {
	switch object.(type) {
	case *types.Var, *types.Func, *types.TypeName, *types.Const:
		return object.Parent() != nil && object.Parent() != scope
	}
	return true
}

// components returns the strongly connected components of a graph in linear time (Tarjan, SIAM
// Journal on Computing 1(2), 1972).
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
	order, low []int // number of a node's first visit, from 1; the earliest node that it reaches
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
