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
