//go:build !(cuda && linux && cgo)

package nvml

import (
	"errors"
	"time"
)

// Library is the open library.
type Library struct{}

// GPU is a GPU that the library knows.
type GPU struct{ UUID, Name string }

// Open returns an error: this build has no NVML.
func Open() (*Library, error) {
	return nil, errors.New("this devmap was built without NVML: make cuda builds one with it, on Linux for x86-64 with a C compiler")
}

// Close does nothing.
func (*Library) Close() error { return nil }

// Driver returns nothing.
func (*Library) Driver() (string, error) { return "", nil }

// Lacks returns nothing.
func (*Library) Lacks() string { return "" }

// Follower reads nothing.
type Follower struct{}

// Follow returns a Follower that reads nothing.
func (*Library) Follow([]GPU, time.Duration) (*Follower, error) { return new(Follower), nil }

// Take has no readings.
func (*Follower) Take(func(when time.Duration, used []int64)) error { return nil }

// End does nothing.
func (*Follower) End() {}

// GPUs returns none.
func (*Library) GPUs() ([]GPU, error) { return nil, nil }

// Memory returns nothing.
func (*GPU) Memory() (Memory, error) { return Memory{}, nil }

// Cut returns false.
func (*GPU) Cut() (bool, error) { return false, nil }

// Processes returns none.
func (*GPU) Processes() ([]Process, error) { return nil, nil }

// Settled returns nothing.
func (*GPU) Settled() (Memory, []Process, error) { return Memory{}, nil, nil }
