package ops

import "github.com/devmap-dev/devmap/costmodel"

// remainder is what the block of a large tensor has beside it
// ([costmodel.Rounding]); what is rounded to 512 B is left out.
func remainder(size int64) int64 {
	if rounding := costmodel.Rounding(size); rounding >= 512 {
		return rounding
	}
	return 0
}
