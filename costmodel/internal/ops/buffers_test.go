package ops

import "testing"

// TestReduceBuffer compares the buffers for sums of biases' gradients with blocks in the
// allocator's history (fixtures/measured/vl_history.json: InternVL's tower, 4 images of 1025
// tokens).
func TestReduceBuffer(t *testing.T) {
	for _, c := range []struct{ rows, columns, want int64 }{
		{4100, 1024, 34078720},
		{4100, 4096, 136314880},
		{512, 4096, 0}, // 128 values per thread: one block is enough
	} {
		if got := ReduceBuffer(c.rows, c.columns); got != c.want {
			t.Errorf("%d rows of %d: %d B, want %d", c.rows, c.columns, got, c.want)
		}
	}
}

// TestInKernel compares rules with devmap.measure's (hidden.py, RULES), on both sides of the bounds
// from which a kernel takes memory.
func TestInKernel(t *testing.T) {
	for _, c := range []struct {
		rule  string
		sizes []int64
		want  int64
	}{
		{"sum", []int64{65536, 2}, 256},
		{"sum", []int64{8192, 6}, 0},
		{"flash", []int64{32, 700, 1}, 98304},
		{"flash", []int64{32, 700, 80}, 9437184},
		{"flash", []int64{32, 700, 160}, 18874368},
		{"efficient", []int64{24, 512, 96}, 6294528},
		{"wide", []int64{4096, 64, 128}, 0},
		{"wide", []int64{4096, 192, 192}, 3145728},
		{"sorted", []int64{3072}, 0},
		{"sorted", []int64{4096}, 32768},
		{"segments", []int64{3072, 100, 64}, 0},
		{"segments", []int64{4096, 1000, 64}, 360960},
		{"norm", []int64{65536, 512, 2}, 0},
		{"norm", []int64{70000, 512, 2}, 2240512},
		{"norm sum", []int64{1000000, 512}, 128188416},
		{"unknown", []int64{1, 1}, -1},
	} {
		if got := InKernel(c.rule, c.sizes); got != c.want {
			t.Errorf("%s of %v: %d B, want %d", c.rule, c.sizes, got, c.want)
		}
	}
}
