//go:build cuda && linux && cgo && amd64

package kernel

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestTooLarge: more than kernels count in 32 bits is refused before anything is launched.
func TestTooLarge(t *testing.T) {
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	for name, roles := range map[string][]string{"copy": {"x", "y"}, "square": {"x", "y"}} {
		call := &Call{Kernel: &recipe.Kernel{Name: name}, Kernels: New(false, 0)}
		for _, role := range roles {
			call.Kernel.Operands = append(call.Kernel.Operands, recipe.Operand{Role: role})
			call.Operands = append(call.Operands, Matrix{DType: modelgraph.BF16, Rows: 1 << 20, Columns: 1 << 14, Stride: 1 << 14})
		}
		if _, err := Prepare(table, call); err == nil || !strings.Contains(err.Error(), "1048576 × 16384 values: there are kernels for less than 2^34") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
