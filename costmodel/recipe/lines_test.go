package recipe_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestLines: the text of a code says all that running it needs: read back, it
// has the same tensors, kernels and operands.
func TestLines(t *testing.T) {
	for family := range backendtest.Families {
		graph := small(t, family)
		for name, workload := range smallWorkloads() {
			if backendtest.Forwards(family) && name != "infer" {
				continue
			}
			model := of(t, graph, workload)
			for i := range model.Units {
				code := model.Units[i].Code
				got, err := parsed(code.Lines())
				if err != nil {
					t.Fatalf("%s, %s, %s: %v", family, name, model.Units[i].Name, err)
				}
				if !reflect.DeepEqual(got.Tensors, said(code.Tensors)) {
					t.Errorf("%s, %s, %s: tensors are not read back", family, name, model.Units[i].Name)
				}
				for pass, pair := range map[string][2]recipe.Routine{
					"forward": {got.Forward, code.Forward}, "recompute": {got.Recompute, code.Recompute}, "backward": {got.Backward, code.Backward}, "backward-weight": {got.Learn, code.Learn},
					"decode": {got.Decode, code.Decode}, "norms": {got.Norms, code.Norms}, "step": {got.Step, code.Step},
				} {
					if !slices.EqualFunc(pair[0].Kernels, pair[1].Kernels, sameCall) {
						t.Errorf("%s, %s, %s: kernels of %s are not read back", family, name, model.Units[i].Name, pass)
					}
				}
			}
		}
	}
}

// said are tensors as their lines have them.
func said(tensors []recipe.Tensor) []recipe.Tensor {
	out := slices.Clone(tensors)
	for i := range out {
		if out[i].Class != "temporary" {
			out[i].Pass = ""
		}
	}
	return out
}

func sameCall(a, b recipe.Kernel) bool {
	return a.Name == b.Name && slices.Equal(a.Dims, b.Dims) && slices.Equal(a.Operands, b.Operands)
}

// parsed reads lines back.
func parsed(lines []string) (*recipe.Code, error) {
	code := &recipe.Code{}
	names := make(map[string]int)
	for _, line := range lines {
		words := strings.Fields(line)
		if words[0] == "tensor" {
			tensor, err := parsedTensor(words[1:])
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			names[tensor.Name] = len(code.Tensors)
			code.Tensors = append(code.Tensors, tensor)
			continue
		}
		kernel, err := parsedKernel(words[1:], names)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		pass, again := strings.CutSuffix(words[0], "+")
		routine := map[string]*recipe.Routine{"forward": &code.Forward, "backward": &code.Backward, "backward-input": &code.Backward, "backward-weight": &code.Learn, "decode": &code.Decode, "norms": &code.Norms, "step": &code.Step}[pass]
		routine.Kernels = append(routine.Kernels, kernel)
		if again {
			code.Recompute.Kernels = append(code.Recompute.Kernels, kernel)
		}
	}
	return code, nil
}

func parsedTensor(words []string) (recipe.Tensor, error) {
	tensor := recipe.Tensor{Name: words[0], Class: recipe.Class(words[1]), Tie: -1}
	switch class := words[1]; {
	case class == "forward" || strings.HasPrefix(class, "backward") || class == "decode":
		tensor.Class, tensor.Pass = "temporary", class
	case strings.HasPrefix(class, "tied"):
		tensor.Class = "weight"
		tensor.Tie, _ = strconv.Atoi(class[len("tied"):])
	}
	var err error
	if tensor.DType, err = modelgraph.ParseDType(words[3]); err != nil {
		return tensor, err
	}
	shape, parts := strings.CutSuffix(words[4], "/parts")
	tensor.Parts = parts
	_, err = fmt.Sscanf(words[2]+" "+shape, "%d %dx%d", &tensor.Offset, &tensor.Rows, &tensor.Columns)
	return tensor, err
}

func parsedKernel(words []string, names map[string]int) (recipe.Kernel, error) {
	kernel := recipe.Kernel{Name: words[0]}
	colon := slices.Index(words, ":")
	for _, word := range words[1:colon] {
		name, value, _ := strings.Cut(word, "=")
		kernel.Dims = append(kernel.Dims, recipe.Dim{Name: name, Value: value})
	}
	for _, word := range words[colon+1:] {
		operand := recipe.Operand{Mode: ' '}
		if strings.ContainsAny(word[:1], ">+*") {
			operand.Mode, word = word[0], word[1:]
		}
		role, name, _ := strings.Cut(word, "=")
		name, part, some := strings.Cut(name, "[")
		if some {
			var row, column int64
			if _, err := fmt.Sscanf(part, "%d:%d,%d:%d]", &operand.Row, &row, &operand.Column, &column); err != nil {
				return kernel, err
			}
			operand.Rows, operand.Columns = row-operand.Row, column-operand.Column
		}
		index, known := names[name]
		if !known {
			return kernel, fmt.Errorf("there is no tensor %q", name)
		}
		operand.Role, operand.Tensor = role, index
		kernel.Operands = append(kernel.Operands, operand)
	}
	return kernel, nil
}
