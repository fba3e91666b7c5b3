// Package attention has attention's kernels for a GPU, forward and backward, and how each is
// launched. They are PTX made ahead of time, 59 modules of 4.8 MB: by Triton from attention.py, and
// for Hopper by NVRTC from the sources in CUDA C++ that hopper.h is for. Their block sizes are in
// tiles.py. make kernels compiles them again, and needs no GPU. The package knows no driver:
// callers load the PTX and launch.
package attention

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed kernels.tsv *.ptx
var files embed.FS

// Kernel is one of them, for a type, a target and a width of heads.
type Kernel struct {
	Name          string // as a recipe names it, and its entry in the PTX
	DType, Target string // bf16 or fp32; sm_80 or sm_90a
	// Heads have up to Width values: just as many if Form is "exact" or "plain", a multiple of 8 if
	// it is "aligned". These take only addresses and strides that are multiples of 16 bytes; "any"
	// takes all. A plain kernel has no soft cap, and a launch has at most a block on each
	// multiprocessor: blocks go through the work by turns. "short" is a plain one for queries that
	// see few keys.
	Width int64
	Form  string
	// Rows is how many rows one block works on: keys for attention_dkv and attention_backward, else queries.
	// Threads are a block's, in x. Shared is its dynamic shared memory in bytes, which the function
	// must be allowed first.
	Rows            int64
	Threads, Shared uint32
	File            string // of its PTX
}

// Table lists all kernels, and their arguments by name, with ".plain" added for plain ones.
type Table struct {
	Kernels   []Kernel
	arguments map[string][]Argument
}

// Arguments are those of the kernel's launch, in order.
func (table *Table) Arguments(kernel *Kernel) []Argument {
	if kernel.Plain() {
		return table.arguments[kernel.Name+".plain"]
	}
	return table.arguments[kernel.Name]
}

// Argument is an argument of a launch. Its kind is '*' for a pointer of 8 bytes, 'i' for an int32,
// 'f' for a float32, 'm' for the description of a matrix as tiles of Box rows. Arguments named
// scratch and profile are Triton's, and null.
type Argument struct {
	Name string
	Kind byte
}

// Load reads the table. An error means that make kernels did not write it.
func Load() (*Table, error) {
	text, err := files.ReadFile("kernels.tsv")
	if err != nil {
		return nil, err
	}
	return parse(string(text))
}

func parse(text string) (*Table, error) {
	table := &Table{arguments: make(map[string][]Argument)}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fields := strings.Split(line, "\t")
		var err error
		switch {
		case strings.HasPrefix(line, "#"):
		case fields[0] == "arguments" && len(fields) > 2:
			table.arguments[fields[1]], err = arguments(fields[2:])
		case fields[0] == "kernel" && len(fields) == 11:
			err = table.add(fields[1:])
		default:
			err = fmt.Errorf("%q is neither arguments nor a kernel", line)
		}
		if err != nil {
			return nil, fmt.Errorf("kernels.tsv:%d: %w", i+1, err)
		}
	}
	return table, nil
}

func arguments(fields []string) ([]Argument, error) {
	kinds := map[string]byte{"*": '*', "*value": '*', "*fp32": '*', "i32": 'i', "fp32": 'f', "map": 'm'}
	made := make([]Argument, 0, len(fields))
	for _, field := range fields {
		name, kind, _ := strings.Cut(field, ":")
		if kinds[kind] == 0 {
			return nil, fmt.Errorf("an argument of kind %q", field)
		}
		made = append(made, Argument{name, kinds[kind]})
	}
	return made, nil
}

func (table *Table) add(fields []string) error {
	kernel := Kernel{Name: fields[0], DType: fields[1], Target: fields[2], Form: fields[4], File: fields[9]}
	numbers := make([]int64, 0, 5)
	for _, field := range []string{fields[3], fields[5], fields[6], fields[7], fields[8]} {
		number, err := strconv.ParseInt(field, 10, 32)
		if err != nil || number < 0 {
			return fmt.Errorf("%q is no size", field)
		}
		numbers = append(numbers, number)
	}
	kernel.Width, kernel.Rows, kernel.Threads, kernel.Shared = numbers[0], numbers[1], uint32(numbers[2]), uint32(numbers[3])
	if kernel.Rows == 0 {
		return fmt.Errorf("%s works on no rows", kernel.File)
	}
	table.Kernels = append(table.Kernels, kernel)
	return nil
}

// Plain says whether the kernel is one in CUDA C++ for Hopper.
func (kernel *Kernel) Plain() bool { return kernel.Form == "plain" || kernel.Form == "short" }

// Box returns how many rows the tiles of a plain kernel's matrix have: those that a block owns are
// its rows, and others are blocks of keys, or of queries (attention_90.cu, attention_backward_90.cu).
func (kernel *Kernel) Box(role string) int64 {
	switch backward := kernel.Name == "attention_backward"; {
	case (role == "k" || role == "v") == backward:
		return kernel.Rows
	case !backward && kernel.Width == 256:
		return 80
	case !backward || kernel.Width == 64:
		return 128
	}
	return 64
}

// PTX is the text of the kernel's module.
func (kernel *Kernel) PTX() ([]byte, error) { return files.ReadFile(kernel.File) }
