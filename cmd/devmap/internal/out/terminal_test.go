package out

import (
	"bytes"
	"testing"
)

// TestASCII: a locale has no UTF-8 only if its name says so.
func TestASCII(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", false},
		{"C", "", "", true},
		{"POSIX", "", "en_US.UTF-8", true},
		{"", "", "C.UTF-8", false},
		{"", "de_DE.ISO-8859-1", "", true},
		{"", "", "en_US", false},
		{"", "C.utf8", "C", false},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", c.ctype)
		t.Setenv("LANG", c.lang)
		if got := ascii(); got != c.want {
			t.Errorf("LC_ALL=%s LC_CTYPE=%s LANG=%s: %v", c.all, c.ctype, c.lang, got)
		}
	}
	if got := asciiOnly.Replace("── 1 × 2 · – … │"); got != "-- 1 x 2 . - ~ |" {
		t.Errorf("%q", got)
	}
}

// TestColoured: --color overrides NO_COLOR. By default only a terminal is coloured.
func TestColoured(t *testing.T) {
	stream := NewStream(&bytes.Buffer{})
	t.Setenv("NO_COLOR", "1")
	for when, want := range map[string]bool{Auto: false, Always: true, Never: false} {
		if err := stream.SetColour(when); err != nil {
			t.Fatal(err)
		}
		if got := Coloured(stream); got != want {
			t.Errorf("--color %s: %v", when, got)
		}
		if words := Red(stream, "no"); (words != "no") != want {
			t.Errorf("--color %s: %q", when, words)
		}
	}
	if err := stream.SetColour("red"); err == nil {
		t.Error("--color red is taken")
	}
}

// TestReadable: help and lists use the letters of the locale, also on a pipe.
func TestReadable(t *testing.T) {
	for locale, want := range map[string]string{"C": "-- ~", "C.UTF-8": "── …"} {
		t.Setenv("LC_ALL", locale)
		if got := Readable("── …"); got != want {
			t.Errorf("LC_ALL=%s: %q", locale, got)
		}
	}
}
