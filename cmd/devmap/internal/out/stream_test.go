package out

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"model.layers.0":        "model.layers.0",
		"größer – 模型 🙂":         "größer – 模型 🙂",
		"a\nnote: b\r\tc":       `a\u000anote: b\u000d\u0009c`,
		"\x1b[31mred":           `\u001b[31mred`,
		"\u009b31m":             `\u009b31m`,
		"a\x00\x7fb":            `a\u0000\u007fb`,
		"abc\u202edef\u2066ghi": `abc\u202edef\u2066ghi`,
		"p\u2029q\u2028":        `p\u2029q\u2028`,
		"cut\xe2\x82":           `cut\xe2\x82`,
	} {
		if got := OneLine(in); got != want {
			t.Errorf("%q: %s, not %s", in, got, want)
		}
	}
}

// TestStream: for any pieces of a text, control characters are escaped and letters stay whole.
func TestStream(t *testing.T) {
	const text = "é\u202e\x1b[2J\u009b\n\t模\xff🙂"
	want := "é\\u202e\\u001b[2J\\u009b\n\t模\\xff🙂"
	for size := 1; size <= len(text); size++ {
		var b bytes.Buffer
		s := NewStream(&b)
		for at := 0; at < len(text); at += size {
			if _, err := s.Write([]byte(text[at:min(at+size, len(text))])); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Flush(); err != nil || b.String() != want {
			t.Errorf("in pieces of %d: %v %s, not %s", size, err, b.String(), want)
		}
	}
}

func TestErrorText(t *testing.T) {
	joined := errors.Join(errors.New("b\nforged"), errors.New("c"))
	var many []error
	for i := range 100 {
		many = append(many, fmt.Errorf("fault %d", i))
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("a\ndevmap: forged"), `a\u000adevmap: forged`},
		{fmt.Errorf("x\ny: %w", joined), "x\\u000ay: b\\u000aforged\nc"},
		{fmt.Errorf("x: %w: z", errors.Join(joined, errors.New("d"))), "x: b\\u000aforged\nc\nd: z"},
		{errors.Join(many...), ""},
		{errors.New(strings.Repeat("é", 5000) + " end"), ""},
	} {
		got := errorText(c.err, error.Error)
		if c.want != "" && got != c.want {
			t.Errorf("%q:\n%s\nnot\n%s", c.err, got, c.want)
		}
		if lines := strings.Count(got, "\n") + 1; lines > maxLines+1 || len(got) > MaxLine+100 {
			t.Errorf("%d lines, %d bytes", lines, len(got))
		}
	}
	if got := errorText(errors.Join(many...), error.Error); !strings.HasSuffix(got, "\nand 75 more faults") {
		t.Error(got)
	}
	if got := errorText(errors.New(strings.Repeat("x", 5000)+" end"), error.Error); !strings.Contains(got, "bytes left out") || !strings.HasSuffix(got, " end") {
		t.Error(got)
	}
}

// FuzzOneLine: for any bytes, the result is valid UTF-8 in one line without control characters. A
// text that is so already is unchanged.
func FuzzOneLine(f *testing.F) {
	for _, s := range []string{"", "plain", "a\nb", "\x1b]0;t\x07", "\u202e", "\xf0\x9f", "é🙂"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line := OneLine(s)
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unsafeRune) {
			t.Errorf("%q: %q", s, line)
		}
		if again := OneLine(line); again != line {
			t.Errorf("%q: %q, and again %q", s, line, again)
		}
		if short := Shortened(line, 50); len(short) > 50+40 || !utf8.ValidString(short) {
			t.Errorf("%q: %d bytes", s, len(short))
		}
	})
}
