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
func ParseBytes(text string) (Bytes, error) {
	count, err := humanize.ParseBytes(strings.TrimSpace(text))
	if err != nil || count > math.MaxInt64/64 {
		return 0, fmt.Errorf("%q is not a size (write 80GiB, 24GB or bytes)", text)
	}
	return Bytes(count), nil
}

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
