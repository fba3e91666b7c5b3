package estimate_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
)

// TestJAXPool holds the pool to what NVML showed on H200s (143771 MiB, of
// which the driver keeps 615): GPU 0 of the rows of measured/seeds.json, less
// the 1175 MiB that it shows there without preallocation (driver, context and
// kernels). NVML rows are cut to MiB.
func TestJAXPool(t *testing.T) {
	rows := seeds(t)
	var idle int64
	scan(t, rows["jax_noprealloc"], "devices 4 used MiB [%d,", &idle)
	for name, fraction := range map[string]float64{"jax_default": engine.JAXFraction, "jax_fraction_0.3": .3, "jax_one_visible": .6} {
		var used int64
		layout := "devices 4 used MiB [%d,"
		if name == "jax_one_visible" {
			layout = "devices 1 used MiB [%d,"
		}
		scan(t, rows[name], layout, &used)
		got := jaxPool(143771<<20, 615<<20, fraction)>>20 + idle
		if off := got - used; off < -2 || off > 2 {
			t.Errorf("%s: %d MiB predicted, %d measured", name, got, used)
		}
	}
}

// jaxPool is the pool that JAX preallocates on a GPU when it first uses it.
func jaxPool(capacity, driver int64, fraction float64) int64 {
	return int64(fraction * float64(capacity-driver))
}
