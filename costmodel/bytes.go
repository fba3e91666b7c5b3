package costmodel

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"
)

// Bytes is a size. It prints in binary units and reads "80GiB", "24GB" (10^9)
// and plain numbers.
type Bytes int64

// ParseBytes reads a size.
func ParseBytes(s string) (Bytes, error) {
	n, err := humanize.ParseBytes(strings.TrimSpace(s))
	if err != nil || n > math.MaxInt64/64 {
		return 0, fmt.Errorf("%q is not a size (write 80GiB, 24GB or bytes)", s)
	}
	return Bytes(n), nil
}

// GiB is the size in units of 2^30.
func (b Bytes) GiB() float64 { return float64(b) / (1 << 30) }

// String prints the size with a fitting binary unit.
func (b Bytes) String() string {
	switch n := math.Abs(float64(b)); {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", b.GiB())
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(b)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(b)/(1<<10))
	}
	return fmt.Sprintf("%d B", int64(b))
}
