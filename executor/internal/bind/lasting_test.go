package bind

import (
	"reflect"
	"testing"

	"github.com/devmap-dev/devmap/executor/program"
)

// TestLasting: what is loaded or cleared lasts, equal neighbours as one stretch.
func TestLasting(t *testing.T) {
	t.Parallel()
	prog, err := program.Parse("by hand", []byte(`
device 0 arena 65536 budget 65536
device 1 arena 256 budget 256
routine a a
buffer 0 first 0 +256 weight
buffer 0 second 512 +256 weight
buffer 0 far 8192 +256 weight
buffer 0 moment 8448 +256 state
buffer 0 master 8704 +256 master
buffer 0 keys 8960 +256 cache
buffer 0 ids 9216 +256 feed
buffer 0 out 9472 +256 result
0.0 compute load >second
0.1 compute load >first
0.2 compute load >far
0.3 compute zero >moment
0.4 compute load >master
0.5 compute zero >keys
0.6 compute load >ids
0.7 compute forward a mb0 first second far +moment +master +keys ids >out
`))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]Lasting{{
		{Stretch{0, 768}, Fixed}, {Stretch{8192, 256}, Fixed}, {Stretch{8448, 512}, Changed}, {Stretch{8960, 512}, Empty},
	}, nil}
	if got := (&Bound{Program: prog}).Lasting(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
