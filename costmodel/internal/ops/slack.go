package ops

import "github.com/devmap-dev/devmap/costmodel/internal/allocator"

// remainder is what the block of a large tensor has beside it
// ([allocator.Rounding]); what is rounded to 512 B is left out.
func remainder(size int64) int64 {
	if rounding := allocator.Rounding(size); rounding >= 512 {
		return rounding
	}
	return 0
}
