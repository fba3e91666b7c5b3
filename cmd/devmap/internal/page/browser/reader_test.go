package browser

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func decimal(value float64) string { return strconv.FormatFloat(value, 'f', 0, 64) }

const trained = "llama-3.2-1b --gpus 2 --mode train --batch 8 --micro-batches 4 --strategy pipeline"

// A mouse lists the live buffers at the peak, and so does the key Enter.
func TestPeakByMouseAndKey(t *testing.T) {
	file := report(t, strings.Fields(trained)...)
	page := open(t, file)
	page.do(chromedp.ScrollIntoView("#memory .plot"), chromedp.Click("#memory .peak"), chromedp.WaitVisible("#live-0 table"))
	page = open(t, file)
	page.do(chromedp.ScrollIntoView("#memory .plot"), chromedp.Focus("#memory .plot"), chromedp.KeyEvent(kb.Home))
	steps := value[int](page, `data.memory[0].peak`)
	for range steps {
		page.do(chromedp.KeyEvent(kb.ArrowRight))
	}
	if hidden := value[bool](page, `document.getElementById('live-0').hidden`); hidden {
		page.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#live-0 table"))
	} else {
		t.Error("the list is open before Enter")
	}
	page.clean()
}

// One cursor and one zoom serve memory and time.
func TestOneCursorAndZoom(t *testing.T) {
	page := open(t, report(t, strings.Fields(plans["pipeline, devmap"])...))
	page.renderAll()
	page.do(chromedp.Focus("#time .plot"), chromedp.KeyEvent(kb.End))
	page.checkCursor(1)
	page.do(chromedp.ScrollIntoView("#time .plot"))
	at := page.box("#time .u-over")
	page.do(chromedp.MouseEvent(chromedp.MouseMoved, at.X+at.Width/4, at.Y+at.Height/3))
	page.checkCursor(0.25)
	ranges := `new Set([...groups.get('time').charts].map((u) => u.scales.x.min + ' ' + u.scales.x.max))`
	page.do(chromedp.KeyEvent("+"), chromedp.KeyEvent("+"))
	if near, one := value[bool](page, `groups.get('time').range !== null`), value[int](page, ranges+`.size`); !near || one != 1 {
		t.Errorf("after +: zoomed is %v, %d different ranges", near, one)
	}
	page.do(chromedp.KeyEvent("0"))
	if whole, one := value[bool](page, `groups.get('time').range === null`), value[int](page, ranges+`.size`); !whole || one != 1 {
		t.Errorf("after 0: whole is %v, %d different ranges", whole, one)
	}
	page.clean()
}

// The first arrow starts at the peak, and a zoom leaves the cursor at its moment.
func TestCursorStartsAtPeak(t *testing.T) {
	page := open(t, report(t, strings.Fields(trained)...))
	page.renderAll()
	page.do(chromedp.ScrollIntoView("#memory .plot"), chromedp.Focus("#memory .plot"), chromedp.KeyEvent(kb.ArrowLeft))
	const at = `(() => { const u = [...charts].find((u) => u.box === document.querySelector('#memory .plot')); return lastAtMost(data.memory[0].x, u.posToVal(u.cursor.left, 'x') * (1 + 1e-6)); })()`
	before := value[int](page, `data.memory[0].peak`) - 1
	if got := value[int](page, at); got < before-1 || got > before {
		t.Errorf("the first arrow goes to moment %d, one before the peak is %d", got, before)
	}
	was := value[int](page, at)
	for _, key := range []string{"+", "+", "0"} {
		page.do(chromedp.KeyEvent(key))
		if got := value[int](page, at); got < was-1 || got > was+1 {
			t.Errorf("after %s the cursor is at moment %d, not %d", key, got, was)
		}
	}
	page.clean()
}

// Equal GPUs share a bar, and the arena has the bands' colours.
func TestEqualGPUsShareBar(t *testing.T) {
	page := open(t, report(t, strings.Fields("llama-3.2-1b --gpus 8 --mode train --batch 2 --strategy ddp")...))
	page.renderAll()
	if bars := value[string](page, `[...document.querySelectorAll('#gpus figure:first-of-type .bars strong')].map((node) => node.textContent).join()`); bars != "GPUs 0–7" {
		t.Errorf("the bars are of %q", bars)
	}
	page = open(t, report(t, strings.Fields(plans["device map, devmap"])...))
	page.renderAll()
	const inks = `data.arenas.kinds.map((kind, i) => [kind, categories[inkOf(i) % colours].key].join('=')).sort().join()`
	if got := value[string](page, inks); !strings.Contains(got, "gradient=grads") || !strings.Contains(got, "weight=params") {
		t.Errorf("colours of the arena: %s", got)
	}
	page.clean()
}

// checkCursor fails the test if a chart has its cursor at another part of the step.
func (page *view) checkCursor(part float64) {
	page.t.Helper()
	type cursors struct {
		Charts, There int
		Readout       string
	}
	got := value[cursors](page, `(() => {
		const charts = [...groups.get('time').charts];
		const there = (u) => Math.abs(u.posToVal(u.cursor.left, 'x') / data.time.makespan - `+strconv.FormatFloat(part, 'f', -1, 64)+`) < 0.02;
		return {Charts: charts.length, There: charts.filter(there).length, Readout: document.querySelector('#memory .readout').textContent};
	})()`)
	if got.Charts < 2 || got.There != got.Charts || strings.HasPrefix(got.Readout, "At the peak") {
		page.t.Errorf("%d of %d charts have the cursor at %v of the step; memory says %q", got.There, got.Charts, part, got.Readout)
	}
}

// A drag over a chart zooms all charts of the group.
func TestDragZooms(t *testing.T) {
	page := open(t, report(t, strings.Fields(trained)...))
	page.renderAll()
	page.do(chromedp.ScrollIntoView("#time .plot"))
	page.drag("#time .u-over", 0.25, 0.5)
	type span struct{ From, To float64 }
	got := value[span](page, `(() => { const {min, max} = [...groups.get('time').charts][0].scales.x; return {From: min / data.time.makespan, To: max / data.time.makespan}; })()`)
	if got.From < 0.2 || got.From > 0.3 || got.To < 0.45 || got.To > 0.55 {
		t.Errorf("a drag from 0.25 to 0.5 of the step shows %.2f to %.2f", got.From, got.To)
	}
	page.clean()
}

// Names are text: no markup of a name becomes an element, and signs that turn the
// direction of text are visible.
func TestHostileNames(t *testing.T) {
	folder := filepath.Join(t.TempDir(), `</script><img src=x onerror=alert(1)>"'`+"\u202e\u2066&amp;")
	folder = strings.ReplaceAll(folder, "</script>", "<script>")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(root, "fixtures", "models", "gpt2", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "config.json"), config, 0o644); err != nil {
		t.Fatal(err)
	}
	page := open(t, report(t, folder, "--gpus", "2", "--gpu", "rtx-4090", "--mode", "train", "--batch", "4"))
	page.renderAll()
	page.checkHostile()
	if text := value[string](page, `el('bdi', {title: '\u2066'}, '<b>\u202e').outerHTML`); text != `<bdi title="\u2066">&lt;b&gt;\u202e</bdi>` {
		t.Errorf("a name becomes %q", text)
	}
	page.clean()
}

// So are names of layers.
func TestHostileLayers(t *testing.T) {
	declared := `"declared": {"params_bytes": 104857600, "activation_bytes": 1048576, "output_bytes": 1048576}`
	name := `</script><img src=x onerror=alert(1)>\"'\u202e`
	model := write(t, "model.json", `{"format_version": "devmap.model/v1", "name": "toy", "layers": [
		{"name": "a`+name+`", `+declared+`}, {"name": "b`+name+`", `+declared+`}]}`, 0o644)
	page := open(t, report(t, model, "--gpus", "2", "--gpu", "rtx-4090"))
	page.renderAll()
	checkSums(t, page)
	page.checkHostile()
	page.clean()
}

func (page *view) checkHostile() {
	page.t.Helper()
	if count := value[int](page, `document.querySelectorAll('img, #main script, iframe, object').length`); count != 0 {
		page.t.Errorf("%d elements come from names", count)
	}
	if text := value[string](page, `document.body.innerText`); !strings.Contains(text, "<img src=x onerror=alert(1)>") || !strings.Contains(text, `\u202e`) || strings.ContainsRune(text, '\u202e') {
		page.t.Error("the hostile name is not there as visible text")
	}
}

// box is the place of an element in the window.
type box struct{ X, Y, Width, Height float64 }

func (page *view) box(selector string) box {
	page.t.Helper()
	return value[box](page, `(() => { const box = document.querySelector('`+selector+`').getBoundingClientRect(); return {X: box.x, Y: box.y, Width: box.width, Height: box.height}; })()`)
}

// drag moves the pressed mouse over an element, between two parts of its width.
func (page *view) drag(selector string, from, to float64) {
	page.t.Helper()
	at := page.box(selector)
	y := at.Y + at.Height/3
	page.do(chromedp.DragAndDropXY(at.X+from*at.Width, y, at.X+to*at.Width, y))
}
