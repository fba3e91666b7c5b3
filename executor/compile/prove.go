package compile

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/executor/program"
)

// ErrOrder is an order of actions that was given and has no sound program: its
// stages wait for each other, or it is not of these stages.
var ErrOrder = errors.New("the order of actions has no sound program")

// proved holds a program to the rules before it is handed over. One that breaks
// any is an error of the compiler, but for an order that was given: stages
// that wait for each other are its own.
func proved(out *program.Program, ordered bool) error {
	err := out.Check().Err()
	switch {
	case err == nil:
		return nil
	case ordered:
		return fmt.Errorf("%w:\n%w", ErrOrder, err)
	}
	return fmt.Errorf("the compiled program is not sound, which is an error of devmap:\n%w", err)
}
