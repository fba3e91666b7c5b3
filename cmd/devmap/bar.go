package main

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

const barWidth = 24

// bar draws what a device needs, a stretch per category, on the scale of the
// device that needs most, so that bars compare; then its share of the budget.
func (t *tables) bar(p *devicemap.Prediction, most int64) string {
	var b strings.Builder
	var sum int64
	drawn := 0
	for i := range categories {
		c := &categories[i]
		sum += c.of(&p.Predicted)
		end := int(float64(sum)/float64(max(most, 1))*barWidth + 0.5)
		if end > drawn {
			b.WriteString(t.stretch(c, end-drawn))
			drawn = end
		}
	}
	return fmt.Sprintf("%s%s %5.1f%%", b.String(), strings.Repeat("·", barWidth-drawn), 100*p.Share())
}

func (t *tables) stretch(c *category, n int) string {
	if t.colour {
		return c.colour.Sprint(strings.Repeat("█", n))
	}
	return strings.Repeat(string(c.letter), n)
}

// legend explains the bar's letters or colours.
func (t *tables) legend(used []bool) string {
	var parts []string
	for i := range categories {
		if !used[i] {
			continue
		}
		c := &categories[i]
		if t.colour {
			parts = append(parts, c.colour.Sprint("█")+" "+c.name)
		} else {
			parts = append(parts, string(c.letter)+" "+c.name)
		}
	}
	s := "bar: " + strings.Join(parts, ", ")
	if t.colour {
		return text.Faint.Sprint("bar:") + strings.TrimPrefix(s, "bar:")
	}
	return s
}
