package estimate_test

import (
	"math"
	"strconv"
	"testing"
)

// TestZeroPaper checks the formulas against every cell of the paper's Table 1, in GB as it prints them.
func TestZeroPaper(t *testing.T) {
	models := []float64{7.5e9, 128e9, 1e12}
	for d, rows := range map[int64][3][3]string{
		1:    {{"120", "120", "120"}, {"2048", "2048", "2048"}, {"16000", "16000", "16000"}},
		4:    {{"52.5", "41.3", "30"}, {"896", "704", "512"}, {"7000", "5500", "4000"}},
		16:   {{"35.6", "21.6", "7.5"}, {"608", "368", "128"}, {"4750", "2875", "1000"}},
		64:   {{"31.4", "16.6", "1.88"}, {"536", "284", "32"}, {"4187", "2218", "250"}},
		256:  {{"30.4", "15.4", "0.47"}, {"518", "263", "8"}, {"4046", "2054", "62.5"}},
		1024: {{"30.1", "15.1", "0.12"}, {"513", "257", "2"}, {"4011", "2013", "15.6"}},
	} {
		for m, params := range models {
			for stage := 1; stage <= 3; stage++ {
				want := rows[m][stage-1]
				got := asInPaper(zeroPaper(stage, params, d) / 1e9)
				t.Logf("ZeRO, table 1: %5g G parameters, %4d GPUs, stage %d: %s GB", params/1e9, d, stage, got)
				if got != want {
					t.Errorf("%g parameters on %d GPUs, stage %d: %s GB, the paper says %s", params, d, stage, got, want)
				}
			}
		}
	}
}

// asInPaper prints three digits, rounded below 100 GB; from there on the
// table cuts to whole GB (4187.5 is 4187).
func asInPaper(gb float64) string {
	switch {
	case gb >= 100:
		gb = math.Floor(gb)
	case gb >= 10:
		gb = math.Floor(gb*10+.5) / 10
	default:
		gb = math.Floor(gb*100+.5) / 100
	}
	return strconv.FormatFloat(gb, 'f', -1, 64)
}

// zeroPaper is the bytes of model states a GPU by Rajbhandari et al., "ZeRO: Memory Optimizations
// Toward Training Trillion Parameter Models" (SC 2020, §3.1 and §5): 2Ψ of 16-bit parameters, 2Ψ of
// 16-bit gradients and KΨ of optimizer states, K = 12 for Adam in mixed precision. Stage 1 shards
// the states over d GPUs, stage 2 also the gradients, stage 3 also the parameters.
func zeroPaper(stage int, params float64, d int64) float64 {
	const k = 12
	whole, cut := 4., float64(k)
	if stage >= 2 {
		whole, cut = 2, k+2
	}
	if stage >= 3 {
		whole, cut = 0, k+4
	}
	return whole*params + cut*params/float64(d)
}
