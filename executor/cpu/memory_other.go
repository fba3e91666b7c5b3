//go:build !linux

package cpu

// memory is empty: this system does not report it.
type memory struct{}

func measure() memory { return memory{} }

func (*memory) growth() int64 { return -1 }
