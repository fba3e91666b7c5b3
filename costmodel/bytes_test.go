package costmodel_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

func TestBytesString(t *testing.T) {
	for in, want := range map[costmodel.Bytes]string{
		0: "0 B", 1023: "1023 B", 1 << 10: "1.0 KiB", 3 << 19: "1.5 MiB", 5 << 29: "2.50 GiB", -(1 << 30): "-1.00 GiB", 1 << 40: "1024.00 GiB",
	} {
		if got := in.String(); got != want {
			t.Errorf("%d prints %q, want %q", int64(in), got, want)
		}
	}
}
