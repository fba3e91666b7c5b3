package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestScreenshots looks at the page as light, dark, on a phone and on paper. With
// SCREENSHOTS it writes the pictures into that folder.
func TestScreenshots(t *testing.T) {
	file := report(t, strings.Fields(plans["pipeline, devmap"])...)
	for _, look := range []struct {
		name, scheme string
		width        int64
	}{{"light", "light", 1280}, {"dark", "dark", 1280}, {"phone", "light", 390}} {
		t.Run(look.name, func(t *testing.T) {
			view := open(t, file)
			view.looks(look.scheme)
			view.do(chromedp.EmulateViewport(look.width, 900))
			view.renderAll()
			checkPictures(t, value[shown](view, pictures))
			picture, err := chromedp.Run(view.Context, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			save(t, look.name+".png", picture)
			view.clean()
		})
	}
	t.Run("paper", func(t *testing.T) {
		view := open(t, file)
		view.looks("dark")
		printed, err := chromedp.Run(view.Context, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperSize{Width: 8.27, Height: 11.69})))
		if err != nil {
			t.Fatal(err)
		}
		if left := value[int](view, `pending.size`); left != 0 {
			t.Errorf("%d pictures are not on paper", left)
		}
		save(t, "paper.pdf", printed)
		view.clean()
	})
}

func save(t *testing.T, name string, content []byte) {
	t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	file := filepath.Join(folder, name)
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(name) != ".pdf" {
		return
	}
	if said, err := exec.Command("pdftoppm", "-png", "-r", "60", file, strings.TrimSuffix(file, ".pdf")).CombinedOutput(); err != nil {
		t.Logf("the pages of %s stay a PDF: %v %s", name, err, said)
	}
}
