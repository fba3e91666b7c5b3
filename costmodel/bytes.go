package costmodel

import (
	"fmt"
	"math"
)

// Bytes is a size, which prints in binary units.
type Bytes int64

// String prints the size with a fitting binary unit.
func (bytes Bytes) String() string {
	switch amount := math.Abs(float64(bytes)); {
	case amount >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30))
	case amount >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case amount >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d B", int64(bytes))
}
