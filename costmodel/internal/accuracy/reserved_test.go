package accuracy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestReservedDebug(t *testing.T) {
	var out strings.Builder
	for _, file := range []string{"fake_group_h200.jsonl", "fake_group_lora.jsonl", "fake_group_zero.jsonl"} {
		for _, r := range fakeRows(t, "../../../fixtures/measured/"+file) {
			if only := os.Getenv("ONLY"); only != "" && !strings.Contains(r.name, only) {
				continue
			}
			_, table := costsOf(t, distConfig(t, r.model), r.w)
			if table.Marks == nil {
				continue
			}
			early, late := table.Marks(false), table.Marks(true)
			m := r.ranks[0]
			if early == nil {
				fmt.Fprintf(&out, "%-52s not followed\n", r.name)
				continue
			}
			most := func(marks [][2]int64) (res int64) {
				for _, mark := range marks {
					res = max(res, mark[1])
				}
				return
			}
			pct := func(a, b int64) float64 { return 100 * (float64(a)/float64(b) - 1) }
			fmt.Fprintf(&out, "%-52s res %6.2f early %+6.1f%% late %+6.1f%% ", r.name, gib(m.Reserved), pct(most(early), m.Reserved), pct(most(late), m.Reserved))
			each, alloc := m.ReservedEach, m.PeakEach
			for i := range each {
				if i < len(early) {
					fmt.Fprintf(&out, " | r %.2f %+.1f%% a %.2f %+.2f%%", gib(each[i]), pct(early[i][1], each[i]), gib(alloc[i]), pct(early[i][0], alloc[i]))
				}
			}
			out.WriteByte('\n')
		}
	}
	for _, r := range distRows(t) {
		if only := os.Getenv("ONLY"); only != "" && !strings.Contains(r.name, only) {
			continue
		}
		_, table := costsOf(t, distConfig(t, r.model), r.w)
		if table.Marks == nil {
			continue
		}
		early := table.Marks(false)
		var res, alloc int64
		for _, m := range early {
			res, alloc = max(res, m[1]), max(alloc, m[0])
		}
		m := r.ranks[0]
		fmt.Fprintf(&out, "%-52s res %.2f %+.1f%% alloc %.2f %+.2f%%\n", r.name, gib(m.Reserved), 100*(float64(res)/float64(m.Reserved)-1), gib(m.Peak), 100*(float64(alloc)/float64(m.Peak)-1))
	}
	fmt.Println(out.String())
}
