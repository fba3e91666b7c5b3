package worker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/fixtures"
)

// said returns every kind of message.
func said() []*Message {
	loss, status := 2.5, 4
	return []*Message{
		{Missing: "no CUDA driver"},
		{Plan: &Plan{File: "plan.json", Title: "toy on GPU 0", Predicted: &report.Report{Plan: "plan.json", Verdict: report.Fail, Devices: []report.Device{{Device: 1}}, GPUs: []report.GPU{{GPU: 3, Name: "H200", Devices: []int{1}}}}}},
		{At: "in step 3 of 10"},
		{Step: &report.Step{Step: 3, Loss: &loss, Seconds: 0.25}},
		{Ran: &Ran{Document: "{}\n", Text: "pass: …\n"}},
		{Broke: "a path is corrupted"},
		{Done: &status},
	}
}

func textOf(tb testing.TB, message *Message) []byte {
	tb.Helper()
	text := fixtures.Must(message.text())(tb)
	return text
}

// TestUnsayable: a message that cannot be encoded is replaced by one about that.
func TestUnsayable(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // opened for reading
	(&Link{says: writer}).Say(&Message{Ran: &Ran{Text: "\xff"}})
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if message, err := read(reader); err != nil || !strings.HasPrefix(message.Broke, "telling what came of it: ") {
		t.Errorf("%+v, %v", message, err)
	}
}

// TestMessages: messages read back as written, one after another.
func TestMessages(t *testing.T) {
	t.Parallel()
	var pipe bytes.Buffer
	for _, message := range said() {
		pipe.Write(textOf(t, message))
	}
	for i, want := range said() {
		got := fixtures.Must(read(&pipe))(t)
		if got.Plan != nil { // nil lists become empty ones
			if got.Plan.File != want.Plan.File || got.Plan.Predicted.GPUs[0].Name != "H200" || got.Plan.Predicted.Devices[0].Device != 1 {
				t.Errorf("%+v", got.Plan)
			}
			continue
		}
		if i != 3 && !reflect.DeepEqual(got, want) || i == 3 && *got.Step.Loss != *want.Step.Loss {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	if _, err := read(&pipe); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last: %v", err)
	}
}

// TestBrokenMessages: invalid bytes are an error. A false length takes no memory.
func TestBrokenMessages(t *testing.T) {
	t.Parallel()
	length := func(size uint32, text string) string {
		return string(binary.LittleEndian.AppendUint32(nil, size)) + text
	}
	for text, want := range map[string]string{
		"\x01\x00":                            "cut off in its length",
		length(10, "{}"):                      "10 bytes is cut off behind 2",
		length(1<<30, "{"):                    "1073741824 bytes is cut off behind 1",
		length(1<<30+1, "{"):                  "at most 1073741824 are sent",
		length(2, "[]"):                       "a message of the worker: ",
		length(9, `{"done":}`):                "a message of the worker: ",
		length(9, `{"over":1}`):               "a message of the worker: ",
		length(23, `{"at":"one","at":"two"}`): "a message of the worker: ",
	} {
		if message, err := read(strings.NewReader(text)); message != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, message, err, want)
		}
	}
}

// FuzzRead: any bytes are a message or an error. A message is the same after writing and reading.
func FuzzRead(f *testing.F) {
	for _, message := range said() {
		f.Add(textOf(f, message))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		message, err := read(bytes.NewReader(data))
		if err != nil {
			return
		}
		first := textOf(t, message)
		again := fixtures.Must(read(bytes.NewReader(first)))(t)
		if second := textOf(t, again); !bytes.Equal(first, second) {
			t.Errorf("%q became %q", first, second)
		}
	})
}
