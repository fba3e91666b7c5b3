package wheel

import "testing"

func TestVersion(t *testing.T) {
	tests := map[string]string{
		"v1.2.3-0-gabcdef0":            "1.2.3",
		"v1.2.3-5-gabcdef0":            "1.2.4.dev5+gabcdef0",
		"v1.2.9-5-gabcdef0":            "1.2.10.dev5+gabcdef0",
		"v1.2.3-0-gabcdef0-dirty":      "1.2.4.dev0+gabcdef0.dirty",
		"v1.2.3-rc.1-0-gabcdef0":       "1.2.3rc1",
		"v1.2.3-rc.1-7-gabcdef0":       "1.2.3rc2.dev7+gabcdef0",
		"v1.2.3-beta.2-7-gabc-dirty":   "1.2.3b3.dev7+gabc.dirty",
		"0.0.0-1234-g0b21957":          "0.0.1.dev1234+g0b21957",
		"v1.2.3-5":                     "",
		"compile-base-engine-3-gabcde": "",
		"v1.2-3-gabcde":                "",
	}
	for described, want := range tests {
		got, err := Version(described)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("Version(%q) = %q, %v; want %q", described, got, err, want)
		}
	}
}
