package program

import (
	"strings"
	"testing"
)

// TestCheckFlow swaps routines that add to one buffer: no race and nothing
// unwritten, but another order than that of the other passes.
func TestCheckFlow(t *testing.T) {
	const head = `device 0 arena 100 budget 100
buffer 0 x 0 +10 stream
buffer 0 ids 10 +10 stream
buffer 0 y 20 +10 result
routine a a
routine b b
routine c c
`
	generate := []string{
		"forward a mb0 >x", "forward b mb0 +x", "forward c mb0 x >y >ids",
		"decode a mb0 ids >x", "decode b mb0 +x", "decode c mb0 x >y >ids",
		"decode a mb0 ids >x", "decode b mb0 +x", "decode c mb0 x >y",
	}
	infer := []string{
		"forward a mb0 >x", "forward b mb0 +x", "forward c mb0 x >y",
		"forward a mb1 >x", "forward b mb1 +x", "forward c mb1 x >y",
	}
	train := []string{
		"forward a mb0 >x", "forward b mb0 x >ids", "forward c mb0 ids",
		"backward c mb0 >x", "backward b mb0 +x", "backward a mb0 x",
	}
	halves := make([]string, len(train))
	for i, line := range train {
		halves[i] = strings.Replace(line, "backward", "backward-input", 1)
	}
	for _, test := range []struct {
		name  string
		lines []string
		order string // of these lines
		want  string
	}{
		{"generation", generate, "012345678", ""},
		{"a micro-batch after the other", infer, "012345", ""},
		{"backward", train, "012345", ""},
		{"another order of one micro-batch", infer, "012354", `V7: device 0, 0.4 forward c mb1: finds in "x" what routine "a" left there; for another micro-batch it was what "b" left: want all in one order`},
		{"backward the way that forward came", train, "012354", `V7: device 0, 0.4 backward a mb0: finds in "x" what routine "c" left there, whose forward takes from "b": want backwards in the opposite order of forwards`},
		{"first halves of backwards", halves, "012345", ""},
		{"first halves the way that forward came", halves, "012354", `V7: device 0, 0.4 backward-input a mb0: finds in "x" what routine "c" left there, whose forward takes from "b": want backwards in the opposite order of forwards`},
		{"decodes in another order", generate, "012354687", `V7: device 0, 0.4 decode c mb0: finds in "x" what routine "a" left there; its forward takes from "b": want decodes in the order of forwards`},
		{"a token too early", generate, "012346578", `V7: device 0, 0.5 decode a mb0: finds in "ids" what is 2 tokens old; for another token it was 1: want as many for all`},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := head
			for number, line := range test.order {
				text += "0." + string(rune('0'+number)) + " compute " + test.lines[line-'0'] + "\n"
			}
			err := parsed(t, text).Check().Err()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v\nwant %q", err, test.want)
			}
		})
	}
}
