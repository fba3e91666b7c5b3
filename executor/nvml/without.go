//go:build !(cuda && linux && cgo)

package nvml

import (
	"errors"
	"time"
)

// Library is the open library.
type Library struct{}

// GPU is one that the library knows.
type GPU struct{ UUID, Name string }

// Open refuses: this is a build without it.
func Open() (*Library, error) {
	return nil, errors.New("this devmap was built without NVML: make cuda builds one with it, on Linux for x86-64 with a C compiler")
}

// Close has nothing to close.
func (*Library) Close() error { return nil }

// Driver is not known.
func (*Library) Driver() (string, error) { return "", nil }

// Lacks has nothing to say.
func (*Library) Lacks() string { return "" }

// Follower reads what GPUs hold at an even pace.
type Follower struct{}

// Follow is not known.
func (*Library) Follow([]GPU, time.Duration) (*Follower, error) { return new(Follower), nil }

// Take has nothing to pass on.
func (*Follower) Take(func(when time.Duration, used []int64)) error { return nil }

// End has nothing to end.
func (*Follower) End() {}

// GPUs are none.
func (*Library) GPUs() ([]GPU, error) { return nil, nil }

// Memory is not known.
func (*GPU) Memory() (Memory, error) { return Memory{}, nil }

// Cut is not known.
func (*GPU) Cut() (bool, error) { return false, nil }

// Processes are not known.
func (*GPU) Processes() ([]Process, error) { return nil, nil }

// Settled is not known.
func (*GPU) Settled() (Memory, []Process, error) { return Memory{}, nil, nil }
