package watching

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// screen is the last lines of a terminal, below the command's output, which scrolls separately
// (DECSTBM of ECMA-48 terminals, as in apt's progress).
type screen struct {
	file          *os.File
	rows, columns int
	height        int // our lines; 0: none yet
}

// minLines is the least number of lines for the command.
const minLines = 6

// newScreen returns the screen of a stream; nil if it is not a terminal that supports it.
func newScreen(stderr io.Writer) *screen {
	if !out.Terminal(stderr) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &screen{file: out.FileOf(stderr)}
}

// width returns the terminal's current width.
func (screen *screen) width() int {
	columns, _, err := term.GetSize(int(screen.file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// render draws lines over the previous ones, each cut at the terminal's width.
func (screen *screen) render(lines []string) {
	columns, rows, err := term.GetSize(int(screen.file.Fd()))
	if err != nil || rows < len(lines)+minLines {
		screen.close()
		return
	}
	var text strings.Builder
	if rows != screen.rows || columns != screen.columns || len(lines) != screen.height {
		text.WriteString(screen.release())
		text.WriteString(reserve(rows, len(lines)))
		screen.rows, screen.columns, screen.height = rows, columns, len(lines)
	}
	text.WriteString("\x1b7") // saves the command's cursor
	for i, line := range lines {
		fmt.Fprintf(&text, "\x1b[%d;1H\x1b[2K%s", rows-len(lines)+1+i, line)
	}
	text.WriteString("\x1b8")
	screen.file.WriteString(text.String()) //nolint:errcheck // only the picture suffers
}

// reserve scrolls the terminal up by height lines, and limits scrolling to the lines above them.
func reserve(rows, height int) string {
	return strings.Repeat("\n", height) + fmt.Sprintf("\x1b[%dA\x1b7\x1b[1;%dr\x1b8", height, rows-height)
}

// release clears our lines and gives them back to the command.
func (screen *screen) release() string {
	if screen.height == 0 {
		return ""
	}
	first := max(1, screen.rows-screen.height+1)
	screen.height = 0
	return fmt.Sprintf("\x1b7\x1b[r\x1b[%d;1H\x1b[J\x1b8", first)
}

// close restores the terminal.
func (screen *screen) close() {
	if text := screen.release(); text != "" {
		screen.file.WriteString(text) //nolint:errcheck // likewise
	}
}
