package executor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTokensOfLines(t *testing.T) {
	tokens, err := readTokens("ids.jsonl", strings.NewReader("[1, 2,3]\r\n\n\t[ 4,5 , 0 ]"), 3, 6)
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range [][]int32{{1, 2, 3}, {4, 5, 0}, {1, 2, 3}} {
		if got := tokens.sequence(int64(number)); !slices.Equal(got, want) {
			t.Errorf("sequence %d is %d, want %d", number, got, want)
		}
	}
}

func TestTokensThatAreNone(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "f: line 1: it has no sequence: want a JSON array of token ids a line"},
		{"\n\n", "f: line 1: it has no sequence: want a JSON array of token ids a line"},
		{"[1,2]\n[1]\n", "f: line 2: 1 token ids, and a sequence has 2: want exactly as many"},
		{"[1,2]\n\n[1,2,3,4]", "f: line 3: 4 token ids, and a sequence has 2: want exactly as many"},
		{"[]", "f: line 1: 0 token ids, and a sequence has 2: want exactly as many"},
		{"[1,6]", "f: line 1: 6 is no token id of the model: want 0 to 5"},
		{"[-1,2]", "f: line 1: -1 is no token id of the model: want 0 to 5"},
		{"[99999999999999999999999999,2]", "f: line 1: 1099511627776 is no token id of the model: want 0 to 5"},
		{"[1,2.0]", "f: line 1: 2.… is no token id: want a whole number"},
		{"[1e1,2]", "f: line 1: 1e… is no token id: want a whole number"},
		{"[01,2]", "f: line 1: a number that begins with 0: want a token id as JSON has it"},
		{"[1,]", `f: line 1: "]": want a token id`},
		{"[1 2]", `f: line 1: "2": want a comma, or ] behind the last id`},
		{"[1,\"2\"]", `f: line 1: "\"": want a token id`},
		{"[1,\n2]", "f: line 1: the line ends: want a token id"},
		{"[1,2", "f: line 1: the file ends in an array of token ids"},
		{"[1,2] [1,2]", `f: line 1: "[": want the end of the line behind the array`},
		{"{}", `f: line 1: "{": want an array of token ids: [17, 4, …]`},
	} {
		_, err := readTokens("f", strings.NewReader(test.text), 2, 6)
		if fmt.Sprint(err) != test.want {
			t.Errorf("%q: %v\nwant %s", test.text, err, test.want)
		}
	}
}

// FuzzTokens: what is read is what was written again.
func FuzzTokens(f *testing.F) {
	f.Add("[1,2]\n[3,4]\n")
	f.Add("[ 0 , 2 ]\r\n\n[3,4]")
	f.Add("[1,2")
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := readTokens("f", strings.NewReader(text), 2, 1000)
		if err != nil {
			return
		}
		var again strings.Builder
		for number := range tokens.count() {
			ids := tokens.sequence(number)
			for _, id := range ids {
				if id < 0 || id >= 1000 {
					t.Fatalf("%q: %d is out of range", text, id)
				}
			}
			fmt.Fprintf(&again, "[%d,%d]\n", ids[0], ids[1])
		}
		second, err := readTokens("f", strings.NewReader(again.String()), 2, 1000)
		if err != nil || !slices.Equal(tokens.ids, second.ids) || tokens.digest() != second.digest() {
			t.Fatalf("%q is read as %d, and %q as %v, %v", text, tokens.ids, again.String(), second, err)
		}
	})
}

func TestRandomIDsDependOnSeedAndSequence(t *testing.T) {
	const vocab = 1000
	one, other := make([]int32, 4096), make([]int32, 4096)
	randomIDs(7, 3, vocab, one)
	randomIDs(7, 3, vocab, other)
	if !slices.Equal(one, other) {
		t.Error("the same sequence was drawn twice, differently")
	}
	randomIDs(7, 4, vocab, other)
	if slices.Equal(one, other) {
		t.Error("two sequences are equal")
	}
	if low, high := slices.Min(one), slices.Max(one); low < 0 || low > 20 || high < vocab-20 || high >= vocab {
		t.Errorf("ids lie in [%d, %d], want them all over [0, %d)", low, high, vocab)
	}
}
