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

// environment is the variable that makes a process a worker.
const environment = "DEVMAP_WORKER"

// The worker's file numbers of both pipes.
const (
	saysFile = 3
	lifeFile = 4
)

// orphaned is how long a worker without a supervisor may take to remove unfinished files.
var orphaned = 2 * time.Second

// Self describes how a process was called. It is a worker, or may start one.
type Self struct {
	Args []string // a worker gets the same; none: it cannot start a worker
	Link *Link    // nil: it is no worker
}

// Link is a worker's end of the pipes to its supervisor.
type Link struct {
	lock       sync.Mutex
	says       *os.File
	life       *os.File
	supervisor int // process number of the supervisor
}

// Inherited returns the link that the process was started with; nil if it is no worker. Its
// children are not workers.
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

// Say sends a message. If it cannot be encoded, Say sends that the work failed, and why. If the
// supervisor has ended, [Link.Until] is about to end the worker.
func (link *Link) Say(message *Message) {
	link.lock.Lock()
	defer link.lock.Unlock()
	text, err := message.text()
	if err != nil {
		text, _ = (&Message{Broke: "telling what came of it: " + strings.ToValidUTF8(err.Error(), "?")}).text()
	}
	link.says.Write(text) //nolint:errcheck // nobody is left to tell
}

// Until returns a context that ends when the worker must end. If the supervisor has ended, the
// process exits after a while, as no other process would end it.
func (link *Link) Until(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		io.Copy(io.Discard, link.life) //nolint:errcheck // however it ends
		cancel()
		for os.Getppid() == link.supervisor { // it waits, and kills the worker after a while
			time.Sleep(orphaned)
		}
		time.Sleep(orphaned)
		os.Exit(1)
	}()
	return ctx
}
