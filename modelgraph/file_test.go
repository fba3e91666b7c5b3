package modelgraph

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestForeign(t *testing.T) {
	for data, want := range map[string]string{
		"":         "the file is empty",
		" \n\t":    "nothing but blanks",
		`{"a": 1}`: "",
		"[1]":      "",
		"node1 -- Conv2d -- forward_compute_time=1": "",
		"größer":                        "",
		strings.Repeat("x", 1023) + "é": "", // a letter over the edge of what is looked at
		"\xef\xbb\xbf{}":                "byte order mark",
		"\xff\xfe{\x00}\x00":            "UTF-16 text: save it as UTF-8",
		"\xfe\xff\x00{\x00}":            "UTF-16",
		"{\x00\"\x00a\x00":              "UTF-16 text without",
		"\x00{\x00\"\x00a":              "UTF-16 text without",
		"\xff\xfe\x00\x00{\x00\x00\x00": "UTF-32",
		"\x1f\x8b\x08\x00":              "gunzip it first",
		"\x28\xb5\x2f\xfdx":             "zstd",
		"PK\x03\x04\x00":                "ZIP archive",
		"\x80\x04\x95":                  "pickle",
		"<!DOCTYPE html><html>":         "an HTML page",
		"\n <HTML lang=en>":             "an HTML page",
		"<?xml version='1.0'?>":         "XML",
		"version https://git-lfs.github.com/spec/v1\noid sha256:0\n": "git lfs pull",
		"caf\xe9":            "not UTF-8",
		"ab\x01\x02\x00\x00": "a binary file",
	} {
		if got := Foreign([]byte(data)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%.40q: %q, want %q", data, got, want)
		}
	}
}

func TestReadSmall(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadSmall(path, "a map", 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	for _, c := range []struct {
		path string
		most int64
		want string
	}{{path, 4, "larger than the 0 MiB that a map may have"}, {dir, 9, "a directory, not a map"}, {os.DevNull, 9, "a device, not a map"}} {
		if _, err := ReadSmall(c.path, "a map", c.most); err == nil || err.Error() != c.path+": "+c.want {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}
