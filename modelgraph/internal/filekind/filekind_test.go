package filekind

import (
	"strings"
	"testing"
)

func TestNotText(t *testing.T) {
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
		if got := NotText([]byte(data)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%.40q: %q, want %q", data, got, want)
		}
	}
}
