//go:build !(cuda && linux && cgo && amd64)

package witness

import "errors"

// Witness looks at GPUs beside the machines that run on them.
type Witness struct{}

// GPUs are none.
func (*Witness) GPUs() []GPU { return nil }

// Held is nothing.
func (*Witness) Held() []Holding { return nil }

// Look sees nothing.
func (*Witness) Look() ([]Seen, error) { return nil, nil }

// Refill has nothing to fill.
func (*Witness) Refill(int, int64) (Refilled, error) { return Refilled{}, errors.ErrUnsupported }

// Close has nothing to give back.
func (*Witness) Close() error { return nil }
