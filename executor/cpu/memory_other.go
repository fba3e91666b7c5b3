//go:build !linux

package cpu

// memory is not reported by this system.
type memory struct{}

func measure() memory { return memory{} }

func (*memory) growth() int64 { return -1 }
