package browser

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestFirstPaint prints the sizes of pages and the times to their first paint, for
// docs/benchmarks/report.md. It fails for no time. COMPARE has more HTML files, as that
// of torch's memory_viz.
func TestFirstPaint(t *testing.T) {
	if os.Getenv("PAINT") == "" {
		t.Skip("make paint measures")
	}
	files, names := []string{}, map[string]string{}
	for _, arguments := range []string{
		"llama-3.2-1b --gpus 1 --mode train --seq 2048",
		"llama-3.2-1b --gpus 1 --mode train --seq 2048 --batch 16 --micro-batches 16",
		"llama-3.1-405b --gpus 64 --gpu h200-141gb --mode train --batch 64 --micro-batches 64 --strategy pipeline --recompute full",
	} {
		file := report(t, strings.Fields(arguments)...)
		files, names[file] = append(files, file), arguments
	}
	files = append(files, strings.Fields(os.Getenv("COMPARE"))...)
	for _, file := range files {
		size, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		var paints, loads []float64
		for range 5 {
			paint, load := firstPaint(t, file)
			paints, loads = append(paints, paint), append(loads, load)
		}
		slices.Sort(paints)
		slices.Sort(loads)
		t.Logf("%s: %d bytes, first paint %.0f ms (%.0f to %.0f), first picture %.0f ms (%.0f to %.0f)", cmp.Or(names[file], filepath.Base(file)), size.Size(), paints[2], paints[0], paints[4], loads[2], loads[0], loads[4])
	}
}

// firstPaint returns the milliseconds to the first paint of content, and to the first
// picture: a bar, a canvas or a shape of SVG.
func firstPaint(t *testing.T, file string) (paint, picture float64) {
	t.Helper()
	tab, stop := chromedp.NewContext(shared.browser)
	defer stop()
	page := &view{Context: tab, t: t}
	// The tab lives as long as the context of its first action, which has no limit.
	if err := chromedp.Do(tab); err != nil {
		t.Fatal(err)
	}
	page.do(chromedp.Navigate("file://" + file))
	if _, err := chromedp.Call(tab, cdpage.BringToFront, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	picture = value[float64](page, `new Promise((done) => {
		const look = () => {
			if (document.querySelector('canvas, .bar .part, svg path, svg polygon, svg rect')) requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
			else requestAnimationFrame(look);
		};
		look();
	})`)
	paint = value[float64](page, `new Promise((done) => new PerformanceObserver((list) => {
		const found = list.getEntriesByName('first-contentful-paint')[0];
		if (found) done(found.startTime);
	}).observe({type: 'paint', buffered: true}))`)
	return paint, picture
}
