package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/dags"
)

const lists = "../../../fixtures/workloads/random/"

func readKnown(t *testing.T) []known {
	t.Helper()
	data, err := os.ReadFile(lists + "prices.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	all, err := knownOf("prices.jsonl", data)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestKnown: the problems that bounds by prices are shown on are those that solvers are
// tuned on, each with an answer.
func TestKnown(t *testing.T) {
	t.Parallel()
	var tuned []dags.Line
	for _, name := range []string{"tuning.jsonl", "tuning-2.jsonl"} {
		data, err := os.ReadFile(lists + name)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := dags.Read(name, data)
		if err != nil {
			t.Fatal(err)
		}
		tuned = append(tuned, lines...)
	}
	all := readKnown(t)
	for i := range all {
		if !slices.Contains(tuned, all[i].Line) {
			t.Errorf("%s is in no list for tuning", all[i].Name())
		}
	}
	if len(all) != 12 {
		t.Errorf("%d problems", len(all))
	}
	for text, want := range map[string]string{
		`{"mode":"any"}`:   "list:1: no known answer",
		"{\"known\":1}\n{": "list:2: unexpected end of JSON input",
	} {
		if _, err := knownOf("list", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestPrices: the table has what prices prove in the time given, by a clock that a turn
// takes a second of, and more of it where there is more time.
func TestPrices(t *testing.T) {
	t.Parallel()
	small := slices.DeleteFunc(readKnown(t), func(one known) bool { return one.Nodes > 65 })
	bounds := func(limit time.Duration) (found []float64) {
		seconds := time.Duration(0)
		var out bytes.Buffer
		err := pricesOf(context.Background(), &out, small, limit, func() time.Duration { seconds += time.Second; return seconds })
		if err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(rows) != len(small)+3 || !strings.HasPrefix(rows[len(rows)-1], fmt.Sprint(len(small), " problems, mean gap ")) {
			t.Fatalf("%s", out.String())
		}
		for i, row := range rows[2 : len(rows)-1] {
			var name, gap string
			var value, bound, share, used float64
			if _, err := fmt.Sscan(row, &name, &value, &bound, &share, &gap, &used); err != nil {
				t.Fatalf("%s: %v", row, err)
			}
			if name != small[i].Name() || value != small[i].Known || bound <= 0 || bound > value || used < limit.Seconds() {
				t.Errorf("%s", row)
			}
			if want := 100 * (1 - bound/value); share < want-0.01 || share > want+0.01 {
				t.Errorf("%s: a gap of %v, want %v", row, share, want)
			}
			found = append(found, bound)
		}
		return found
	}
	short, long := bounds(2*time.Second), bounds(8*time.Second)
	if len(short) != 2 {
		t.Fatalf("%d problems", len(short))
	}
	for i := range short {
		if long[i] <= short[i] {
			t.Errorf("%s: a bound of %v after 2 seconds, %v after 8", small[i].Name(), short[i], long[i])
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := pricesOf(ended, new(bytes.Buffer), small, time.Second, cpuTime); err == nil {
		t.Error("a table, and the time is over")
	}
}
