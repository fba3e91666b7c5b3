package value_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestValues: whatever is named here can be asked for.
func TestValues(t *testing.T) {
	var known []string
	for _, field := range costmodel.Fields() {
		known = append(known, field.Values...)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "value.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok {
			named++
			text, err := strconv.Unquote(literal.Value)
			if err != nil || !slices.Contains(known, text) {
				t.Errorf("%s: no field has this value", literal.Value)
			}
		}
		return true
	})
	if named < 18 {
		t.Errorf("%d values", named)
	}
}
