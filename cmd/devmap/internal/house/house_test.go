package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small is a module with one example of each measured figure.
var small = map[string]string{
	"go.mod": "module example.org/small\n\ngo 1.26\n",
	"modelgraph/a.go": `package modelgraph

type Tree struct{ n, count int }

func (t *Tree) Grow() { t.n += step(t.count) }

func (t *Tree) shrink() {}
`,
	"modelgraph/b.go": `package modelgraph

const Least, most = 1, 2

func step(count int) int { var t Tree; t.shrink(); return count }
`,
	"modelgraph/c.go": `package modelgraph

// Both was told.
func Both() *Tree { out := &Tree{}; return out }
`,
	"modelgraph/example_test.go": `package modelgraph

import "fmt"

func ExampleTree() {
	fmt.Println(1)
	// Output: 1
}

func ExampleBoth() { fmt.Println(2) }
`,
	"modelgraph/internal/deep/deep.go": "package deep\n\nfunc Exported() {}\n",
	"planner/planner.go":               "package planner\n\nimport _ \"example.org/small/modelgraph\"\n\nfunc Plan() {}\n",
	"cmd/small/main.go":                "package main\n\nfunc Exported() {}\n\nfunc main() {}\n",
	"testdata/broken.go":               "package\n",
	"executor/one.go": `//go:build cuda && cgo

package executor

// typedef struct { int count; } wide;
import "C"

func one(all []C.wide) int { return two(int(all[0].count)) }
`,
	"executor/two.go":   "//go:build cuda\n\npackage executor\n\nfunc two(count int) int { return three() + count }\n",
	"executor/three.go": "//go:build cuda\n\npackage executor\n\nfunc three() int { return one(nil) }\n",
	"executor/doc.go":   "package executor\n",
}

// measureSmall returns the figures of the small module.
func measureSmall(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range small {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "") // without -mod of the caller
	var out bytes.Buffer
	beyond, err := measured(root, &out)
	if err != nil {
		t.Fatal(err)
	}
	if !beyond {
		t.Error("one example of eight is not beyond the limit")
	}
	return out.String()
}

// TestMeasured measures the build without cgo, as no C compiler is found.
func TestMeasured(t *testing.T) {
	t.Setenv("CC", filepath.Join(t.TempDir(), "cc"))
	out := measureSmall(t)
	// The counted names are n, count; t, t; count; out; all, count. Constants and package-level
	// names do not count, and var declares none.
	for _, line := range []string{
		"skipped: the builds with cgo (no C compiler: ",
		"largest cycle of files in one package               2 (at most 15)\n    modelgraph: a.go b.go\n",
		"methods of one type                                 2 (at most 25)\n    modelgraph.Tree 2\n",
		"packages                                            5 (at most 114)\n",
		"lines without tests                                48 (at most 169700)\n",
		"lines of the planner without tests                  5 (at most 34750)\n",
		"files in one package                                4 (at most 32)\n    executor\n",
		"exported names outside internal                     5 (at most 477)\n    modelgraph 4, planner 1\n",
		"examples with their output                          1 (at least 8)  BEYOND\n",
		"public packages without an example                  1 (at most 0)  BEYOND\n    planner\n",
		"length of a file, 95th percentile                   8 lines (at most 265 lines)\n",
		"locals, parameters and fields of one letter        38 % (at most 28 %)  BEYOND\n",
		"private words in identifiers and comments           1 (at most 0)  BEYOND\n    modelgraph 1\n",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("it does not say\n%s\nbut\n%s", line, out)
		}
	}
}

// TestMeasuredCuda measures files with the tag cuda, which use C types.
func TestMeasuredCuda(t *testing.T) {
	_, note, err := builds(".")
	if err != nil {
		t.Fatal(err)
	}
	if note != "" {
		t.Skip(note)
	}
	want := "largest cycle of files in one package               3 (at most 15)\n    executor: one.go three.go two.go\n"
	if out := measureSmall(t); !strings.HasPrefix(out, want) {
		t.Errorf("it does not begin with\n%s\nbut is\n%s", want, out)
	}
}

func TestComponents(t *testing.T) {
	// 0 → 1 → 2 → 0, 3 → 2, 4 alone, 5 ⇄ 6.
	found := components([][]int{{1}, {2}, {0}, {2}, {}, {6}, {5}})
	for _, members := range found {
		slices.Sort(members)
	}
	slices.SortFunc(found, slices.Compare)
	want := [][]int{{0, 1, 2}, {3}, {4}, {5, 6}}
	if !slices.EqualFunc(found, want, slices.Equal) {
		t.Errorf("components %v, want %v", found, want)
	}
}
