package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/fixtures"
)

func TestManual(t *testing.T) {
	texts := map[string]string{
		"help":            "About it.\n\nUsage:\n  devmap COMMAND\n\nPlan:\n  plan        Find it\n\nOther:\n  help        Help\n\nHelp topics:\n  exit-codes  Statuses\n\nOutput:\n  -h, --help   Show this help\n",
		"help plan":       "Finds\\it.\n.so be it\n\nUsage:\n  devmap plan MODEL [flags]\n\nGPUs:\n      --gpus N           how many\n\nOutput:\n  -o, --output FILE      a file\n  -h, --help             Show this help\n\nHelp topics: devmap help exit-codes\n",
		"help exit-codes": "  0  done\n",
	}
	ask := func(arguments ...string) (string, error) {
		text, found := texts[strings.Join(arguments, " ")]
		if !found {
			return "", errors.New("it was not asked for")
		}
		return text, nil
	}
	made := &commitMade{version: "1.2.3", when: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}
	page := fixtures.Must(manual(ask, made))(t)
	want := `.TH DEVMAP 1 "2026-11-22" "devmap 1.2.3" "User Commands"
.SH NAME
devmap \- plan how a neural network is split across GPUs, with a proof
.SH SYNOPSIS
.B devmap
.I COMMAND
[\fIARGUMENT\fR ...] [\fIFLAG\fR ...]
.SH DESCRIPTION
.nf
About it.
.fi
.SH COMMANDS
.SS devmap plan
.nf
Finds\eit.
\&.so be it

Usage:
  devmap plan MODEL [flags]
.fi
.TP
.B \-\-gpus N
how many
.TP
.B \-o, \-\-output FILE
a file
.SS exit\-codes
.nf
0  done
.fi
`
	if page != want {
		t.Errorf("the page is\n%s\nnot\n%s", page, want)
	}
}

func TestTar(t *testing.T) {
	when := time.Unix(1.7e9, 0).UTC()
	var packed, again bytes.Buffer
	files := []file{{"a/devmap", 0o755, []byte("program")}, {"a/LICENSE", 0o644, []byte("text")}}
	for _, to := range []*bytes.Buffer{&packed, &again} {
		if err := writeTar(to, files, when); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(packed.Bytes(), again.Bytes()) {
		t.Error("two archives of the same files differ")
	}
	unzipped := fixtures.Must(gzip.NewReader(&packed))(t)
	reader := tar.NewReader(unzipped)
	for i := range files {
		header := fixtures.Must(reader.Next())(t)
		data, err := io.ReadAll(reader)
		if err != nil || header.Name != files[i].name || header.Mode != files[i].mode || !header.ModTime.Equal(when) || !bytes.Equal(data, files[i].data) {
			t.Errorf("file %d is %+v, %q, %v", i, header, data, err)
		}
	}
}

func TestChoose(t *testing.T) {
	chosen, err := choose("darwin-arm64,windows-amd64")
	if err != nil || len(chosen) != 2 || chosen[0].name() != "darwin-arm64" {
		t.Errorf("%v, %v", chosen, err)
	}
	if chosen, err := choose("host,windows-amd64"); err != nil || len(chosen) < 2 {
		t.Errorf("host and another: %v, %v", chosen, err)
	}
	for _, only := range []string{"plan9-amd64", "darwin-arm64,plan9-amd64"} {
		if _, err := choose(only); err == nil || !strings.Contains(err.Error(), "known: linux-amd64-cuda, linux-amd64, ") {
			t.Errorf("-only %s: error %v", only, err)
		}
	}
}
