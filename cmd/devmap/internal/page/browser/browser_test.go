// Package browser tests the report's page in a headless Chromium. It is a module of its
// own, so that the driver of the browser is no dependency of devmap.
package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const root = "../../../../.."

// session is what all tests share: the command, a folder for files and the browser.
type session struct {
	devmap, folder string
	browser        context.Context
}

var shared session

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "devmap-browser")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	shared = session{devmap: filepath.Join(folder, "devmap"), folder: folder}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return m.Run()
	}
	if given := os.Getenv("DEVMAP_BINARY"); given != "" {
		shared.devmap = given
	} else if said, err := build(shared.devmap); err != nil {
		fmt.Fprintf(os.Stderr, "building devmap: %v\n%s", err, said)
		return 1
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox,
		chromedp.WindowSize(1280, 900), chromedp.Flag("hide-scrollbars", false))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	browser, stop := chromedp.NewContext(allocator)
	defer stop()
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "starting chromium:", err)
		return 1
	}
	shared.browser = browser
	return m.Run()
}

func build(file string) ([]byte, error) {
	command := exec.Command("go", "build", "-o", file, "./cmd/devmap")
	command.Dir = root
	return command.CombinedOutput()
}

// limit ends a wait for what a page never shows.
const limit = time.Minute

// view is a page in a tab, with what it did that it must not do.
type view struct {
	context.Context
	t     *testing.T
	mutex sync.Mutex
	wrong []string
}

// open loads a page and lets all pictures draw.
func open(t *testing.T, file string) *view {
	t.Helper()
	if shared.browser == nil {
		t.Skip("no chromium on this machine: apt-get install chromium")
	}
	tab, stop := chromedp.NewContext(shared.browser)
	t.Cleanup(stop)
	page := &view{Context: tab, t: t}
	address := "file://" + file
	if err := chromedp.Listen(tab, func(event any) { page.watch(event, address) }); err != nil {
		t.Fatal(err)
	}
	page.do(chromedp.Navigate(address), chromedp.WaitVisible("#answer"))
	return page
}

// watch notes errors of scripts, what the console says, and requests for other files.
func (page *view) watch(event any, address string) {
	page.mutex.Lock()
	defer page.mutex.Unlock()
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		page.wrong = append(page.wrong, "exception: "+event.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		page.wrong = append(page.wrong, "console: "+string(event.Type))
	case *log.EventEntryAdded:
		page.wrong = append(page.wrong, "log: "+event.Entry.Text)
	case *network.EventRequestWillBeSent:
		url := event.Request.URL
		if before, _, _ := strings.Cut(url, "#"); before != address && !strings.HasPrefix(url, "data:") {
			page.wrong = append(page.wrong, "request: "+url)
		}
	}
}

func (page *view) do(actions ...chromedp.Action[chromedp.Void]) {
	page.t.Helper()
	limited, stop := context.WithTimeout(page.Context, limit)
	defer stop()
	if err := chromedp.Do(limited, actions...); err != nil {
		page.t.Fatal(err)
	}
}

// renderAll draws what a reader has not reached yet.
func (page *view) renderAll() {
	page.t.Helper()
	page.script(`for (const node of document.querySelectorAll('details.pictures')) node.open = true;
		for (const node of [...pending.keys()]) drawNow(node);`)
}

// value evaluates an expression.
func value[T any](page *view, expression string) T {
	page.t.Helper()
	limited, stop := context.WithTimeout(page.Context, limit)
	defer stop()
	result, err := chromedp.Run(limited, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		page.t.Fatal(err)
	}
	return result
}

// script runs statements.
func (page *view) script(statements string) {
	page.t.Helper()
	page.do(chromedp.Evaluate[chromedp.Void](statements))
}

// looks sets the colours that a reader prefers.
func (page *view) looks(scheme string) {
	page.t.Helper()
	feature := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	if _, err := chromedp.Call(page.Context, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: feature}); err != nil {
		page.t.Fatal(err)
	}
}

// clean fails the test if the page did what it must not do.
func (page *view) clean() {
	page.t.Helper()
	page.mutex.Lock()
	defer page.mutex.Unlock()
	for _, wrong := range page.wrong {
		page.t.Error(wrong)
	}
}

// devmap runs a command. A plan that does not fit (status 3) is a plan as well.
func devmap(t *testing.T, arguments ...string) {
	t.Helper()
	if shared.browser == nil {
		t.Skip("no chromium on this machine: apt-get install chromium")
	}
	command := exec.Command(shared.devmap, arguments...)
	command.Dir = root
	var said bytes.Buffer
	command.Stderr = &said
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 3) {
		t.Fatalf("devmap %s: %v\n%s", strings.Join(arguments, " "), err, said.String())
	}
}

// report plans and writes the page of the plan.
func report(t *testing.T, arguments ...string) string {
	t.Helper()
	page := filepath.Join(t.TempDir(), "report.html")
	devmap(t, append(append([]string{"plan"}, arguments...), "--report", page, "-o", filepath.Join(t.TempDir(), "plan.json"))...)
	return page
}
