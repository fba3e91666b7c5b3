package ask

import "testing"

func TestParseSize(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64 // -1: refused
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
		got, err := parseSize(c.in)
		if (err != nil) != (c.want < 0) || err == nil && got != c.want {
			t.Errorf("%q: %d, %v, want %d", c.in, got, err, c.want)
		}
	}
	if _, err := parseSize("junk"); err == nil || err.Error() != `"junk" is not a size (write 80GiB, 24GB or bytes)` {
		t.Error(err)
	}
}
