package main

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

const barWidth = 16

// bar draws what a device needs, a stretch per category, on the scale of the
// device that needs most, so that bars compare; then its share of the budget.
func (t *deviceTable) bar(p *devicemap.Prediction) string {
	var b strings.Builder
	var sum int64
	drawn := 0
	for _, c := range t.shown {
		sum += c.of(&p.Predicted)
		end := int(float64(sum)/float64(max(t.most, 1))*barWidth + 0.5)
		if end > drawn {
			b.WriteString(t.stretch(c, end-drawn))
			drawn = end
		}
	}
	share := fmt.Sprintf("%5.1f%%", 100*p.Share())
	if t.colour && p.Share() > 1 {
		share = text.FgRed.Sprint(share)
	}
	return fmt.Sprintf("%s%s %s", b.String(), strings.Repeat("·", barWidth-drawn), share)
}

func (t *tables) stretch(c *category, n int) string {
	if t.colour {
		return c.colour.Sprint(strings.Repeat("█", n))
	}
	return strings.Repeat(string(c.letter), n)
}

// legend explains the bar's letters or colours; empty where no bar is drawn.
func (t *deviceTable) legend() string {
	if len(t.shown) == 0 {
		return ""
	}
	var parts []string
	for _, c := range t.shown {
		if t.colour {
			parts = append(parts, c.colour.Sprint("█")+" "+c.name)
		} else {
			parts = append(parts, string(c.letter)+" "+c.name)
		}
	}
	head := "bar:"
	if t.colour {
		head = text.Faint.Sprint(head)
	}
	return head + " " + strings.Join(parts, ", ") + "\n"
}
