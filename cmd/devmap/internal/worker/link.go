package worker

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// environment says in a worker's environment that it is one.
const environment = "DEVMAP_WORKER"

// The worker's ends of both pipes.
const (
	saysFile = 3
	lifeFile = 4
)

// orphaned is how long a worker without a supervisor may take to put away what it has
// begun to write.
var orphaned = 2 * time.Second

// Self is how a process was called that may have its work done by another one, or is
// that other one.
type Self struct {
	Args []string // a worker gets the same; none: there can be no worker
	Link *Link    // nil: it is no worker
}

// Link is a worker's end of what joins it with its supervisor.
type Link struct {
	lock       sync.Mutex
	says       *os.File
	life       *os.File
	supervisor int // the system's number of the process that waits for it
}

// Inherited is the link that the process was started with; nil: it is no worker.
// Processes that it starts are none.
func Inherited() (*Link, error) {
	said := os.Getenv(environment)
	if said == "" {
		return nil, nil //nolint:nilnil // it is no worker
	}
	if err := os.Unsetenv(environment); err != nil {
		return nil, err
	}
	link := &Link{says: os.NewFile(saysFile, "supervisor"), life: os.NewFile(lifeFile, "life")}
	for _, file := range []*os.File{link.says, link.life} {
		if info, err := file.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			return nil, fmt.Errorf("%s is set, and no supervisor has left its pipes: unset it", environment)
		}
	}
	var err error
	link.supervisor, err = strconv.Atoi(said)
	return link, err
}

// Say sends a message; in the place of one that cannot be written it says that the work
// failed, and why. If the supervisor has ended, the worker is about to end by
// [Link.Until].
func (link *Link) Say(message *Message) {
	link.lock.Lock()
	defer link.lock.Unlock()
	text, err := message.text()
	if err != nil {
		text, _ = (&Message{Broke: "telling what came of it: " + strings.ToValidUTF8(err.Error(), "?")}).text()
	}
	link.says.Write(text) //nolint:errcheck // nobody is left to tell
}

// Until is a context that ends when the worker is to end. A worker whose supervisor has
// ended ends on its own, whatever it does: no one else would end it.
func (link *Link) Until(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		io.Copy(io.Discard, link.life) //nolint:errcheck // however it ends
		cancel()
		for os.Getppid() == link.supervisor { // which waits, and kills it after a while
			time.Sleep(orphaned)
		}
		time.Sleep(orphaned)
		os.Exit(1)
	}()
	return ctx
}
