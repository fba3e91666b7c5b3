//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// argument adds itself to the arguments of a launch.
type argument func(call *Call, launch *packed) error

// argumentOf reads a word of launches.txt. The head of that file lists the words.
func argumentOf(word string) (argument, error) {
	if value, err := strconv.ParseInt(word, 10, 64); err == nil {
		return integer(func(*Call) (int64, error) { return value, nil }), nil
	}
	switch word[0] {
	case '!':
		if special[word] == nil {
			return nil, fmt.Errorf("no argument is called %s", word)
		}
		return special[word], nil
	case '&':
		return addressOf(word[1:]), nil
	case '*':
		return usesOf(word[1:]), nil
	case '~':
		return numberOf(word[1:])
	}
	if dim, words, found := strings.Cut(word, ":"); found {
		return wordOf(dim, strings.Split(words, ",")), nil
	}
	if word[0] == '#' || strings.Contains(word, "@") {
		size, err := sizeOf(word)
		return integer(size), err
	}
	return matrixOf(word), nil
}

// special are the arguments other than operands and dims.
var special = map[string]argument{
	"!adds": integer(func(call *Call) (int64, error) {
		if call.adds() {
			return 1, nil
		}
		return 0, nil
	}),
	"!past": past,
	"!grid": func(_ *Call, launch *packed) error {
		launch.arguments.Int64(int64(launch.before))
		return nil
	},
	"!parts":    parts,
	"!turn":     turn,
	"!settings": settings,
}

func integer(size size) argument {
	return func(call *Call, launch *packed) error {
		value, err := size(call)
		launch.arguments.Int64(value)
		return err
	}
}

// operand returns the operand of a role. It is nil if it is missing and the role ends in "?".
func operand(call *Call, role string) (*Matrix, error) {
	if name, may := strings.CutSuffix(role, "?"); may {
		return call.matrix(name), nil
	}
	return call.need(role)
}

func matrixOf(role string) argument {
	return func(call *Call, launch *packed) error {
		matrix, err := operand(call, role)
		if matrix == nil {
			matrix = &Matrix{}
		}
		launch.arguments.Address(matrix.Address).Int64(matrix.Stride)
		return err
	}
}

func addressOf(role string) argument {
	return func(call *Call, launch *packed) error {
		matrix, err := operand(call, role)
		if matrix == nil {
			matrix = &Matrix{}
		}
		launch.arguments.Address(matrix.Address)
		return err
	}
}

// mostUses is how many addresses Uses of update.cu has room for.
const mostUses = 15

func usesOf(role string) argument {
	return func(call *Call, launch *packed) error {
		uses, err := call.uses(role)
		if err != nil {
			return err
		}
		if len(uses) > mostUses {
			return fmt.Errorf("%d units use the weight of %s: there are kernels for %d", len(uses), role, mostUses)
		}
		launch.arguments.Int64(int64(len(uses)))
		for i := range mostUses {
			var at driver.Address
			if i < len(uses) {
				at = uses[i].Address
			}
			launch.arguments.Address(at)
		}
		launch.arguments.Int64(uses[0].Stride)
		return nil
	}
}

// numberOf returns a dim as float64: "dim" or "dim=default".
func numberOf(word string) (argument, error) {
	name, text, given := strings.Cut(word, "=")
	defaultValue := 0.
	if given {
		var err error
		if defaultValue, err = strconv.ParseFloat(text, 64); err != nil {
			return nil, err
		}
	}
	return func(call *Call, launch *packed) error {
		launch.arguments.Float64(call.number(name, defaultValue))
		return nil
	}, nil
}

// wordOf returns the place of a dim's value among words.
func wordOf(dim string, words []string) argument {
	return integer(func(call *Call) (int64, error) {
		at := slices.Index(words, call.text(dim))
		if at < 0 {
			return 0, fmt.Errorf("its %s is %q (known: %s)", dim, call.text(dim), strings.Join(words, ", "))
		}
		return int64(at), nil
	})
}

// partsBytes is the size of the data that a launch leaves for the next one.
const partsBytes = 4 << 10

// parts adds the address of that data: in the workspace, or in the host's memory on a device
// without matrix products, which has few parameters.
func parts(call *Call, launch *packed) error {
	if call.Workspace.Bytes >= partsBytes {
		launch.arguments.Address(call.Workspace.Address)
		return nil
	}
	at, err := call.Kernels.scratch()
	launch.arguments.Address(at)
	return err
}
