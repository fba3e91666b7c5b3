package costmodel_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

func TestParseBytes(t *testing.T) {
	for _, c := range []struct {
		in   string
		want costmodel.Bytes // -1: refused
	}{
		{"80GiB", 80 << 30},
		{"80 GiB", 80 << 30},
		{" 80gib ", 80 << 30},
		{"24GB", 24e9},
		{"1.5GiB", 3 << 29},
		{"512MiB", 512 << 20},
		{"85899345920", 85899345920},
		{"0", 0},
		{"127PiB", 127 << 50},
		{"", -1},
		{"GiB", -1},
		{"-1", -1},
		{"-80GiB", -1},
		{"80GiBs", -1},
		{"eighty", -1},
		{"NaN", -1},
		{"Inf", -1},
		{"16EiB", -1},
		{"99999999999999999999", -1},
		{"129PiB", -1},
		{"1e400", -1},
	} {
		got, err := costmodel.ParseBytes(c.in)
		if (err != nil) != (c.want < 0) || err == nil && got != c.want {
			t.Errorf("%q: %d, %v, want %d", c.in, int64(got), err, int64(c.want))
		}
	}
	if _, err := costmodel.ParseBytes("junk"); err == nil || err.Error() != `"junk" is not a size (write 80GiB, 24GB or bytes)` {
		t.Error(err)
	}
}

func TestBytesString(t *testing.T) {
	for in, want := range map[costmodel.Bytes]string{
		0: "0 B", 1023: "1023 B", 1 << 10: "1.0 KiB", 3 << 19: "1.5 MiB", 5 << 29: "2.50 GiB", -(1 << 30): "-1.00 GiB", 1 << 40: "1024.00 GiB",
	} {
		if got := in.String(); got != want {
			t.Errorf("%d prints %q, want %q", int64(in), got, want)
		}
	}
}
