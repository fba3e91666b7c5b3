// Package filekind recognises files of another kind than was wanted by their
// first bytes.
package filekind

import (
	"bytes"
	"unicode/utf8"
)

// Recognised names a file of another kind by its first bytes, and the user's next step; empty for
// all others.
func Recognised(data []byte) string {
	for _, f := range foreign {
		if bytes.HasPrefix(data, []byte(f.magic)) {
			return f.what
		}
	}
	if page := data[:min(len(data), 1024)]; bytes.Contains(page, []byte(`<meta name="generator" content="devmap`)) {
		return "a page of devmap report: give the plan's JSON, as devmap plan -o writes it"
	}
	start := bytes.ToLower(bytes.TrimLeft(data[:min(len(data), 1024)], " \t\r\n"))
	if bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html")) {
		return "an HTML page, as a browser or curl saves where a download asks for a login: download the file itself"
	}
	return ""
}

// NotText is [Recognised] for a file that should be text. Every format here is UTF-8 without a byte
// order mark. JSON does not have one (RFC 8259, section 8.1), and Transformers refuses it.
func NotText(data []byte) string {
	if what := Recognised(data); what != "" {
		return what
	}
	text := bytes.TrimLeft(data, " \t\r\n")
	start := text
	if len(text) > 1024 {
		start = whole(text[:1024])
	}
	switch {
	case len(data) == 0:
		return "the file is empty"
	case len(text) == 0:
		return "the file holds nothing but blanks"
	case text[0] == '<':
		return "XML or HTML, not JSON"
	case len(data) > 3 && (data[0] == 0) != (data[1] == 0):
		return "UTF-16 text without a byte order mark: save it as UTF-8"
	case bytes.IndexByte(start, 0) >= 0:
		return "a binary file, not text"
	case text[0] != '{' && text[0] != '[' && !utf8.Valid(start): // inside JSON its reader reports the place
		return "not UTF-8 text: save it as UTF-8"
	}
	return ""
}

// whole drops a character that is cut off at the end.
func whole(text []byte) []byte {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return text[:at]
			}
			break
		}
	}
	return text
}

// foreign are the first bytes of files that people give by mistake. If two fit, the longer comes
// first.
var foreign = []struct{ magic, what string }{
	{"version https://git-lfs.github.com/spec/", "a Git LFS pointer, not the file: run git lfs pull"},
	{"\xff\xfe\x00\x00", "UTF-32 text: save it as UTF-8"},
	{"\xff\xfe", "UTF-16 text: save it as UTF-8"},
	{"\xfe\xff", "UTF-16 text: save it as UTF-8"},
	{"\xef\xbb\xbf", "it begins with a byte order mark, which JSON must not: save it as UTF-8 without BOM"},
	{"\x1f\x8b", "gzip-compressed: gunzip it first"},
	{"BZh", "bzip2-compressed: bunzip2 it first"},
	{"\xfd7zXZ\x00", "xz-compressed: unxz it first"},
	{"\x28\xb5\x2f\xfd", "zstd-compressed: unzstd it first"},
	{"PK\x03\x04", "a ZIP archive (PyTorch's .pt and .bin are such): unpack it, or give the folder with its config.json"},
	{"\x80\x02", "a Python pickle, not text"},
	{"\x80\x03", "a Python pickle, not text"},
	{"\x80\x04", "a Python pickle, not text"},
	{"\x80\x05", "a Python pickle, not text"},
	{"\x93NUMPY", "a NumPy array, not text"},
	{"%PDF-", "a PDF document"},
	{"\x89PNG", "a PNG image"},
	{"\x89HDF", "an HDF5 file"},
	{"\x7fELF", "a program"},
}
