package program

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

var torchAction = regexp.MustCompile(`^(\d+)(F|B|I|W|SEND_F|RECV_F|SEND_B|RECV_B)(\d+)$`)

// lowered returns the text of a sequence in the form of torch.distributed.pipelining: a row of
// actions for each rank, one stream a rank, a channel each way between neighbouring stages, and
// slots as given.
//
// torch receives every micro-batch into a buffer of its own, so that a slot is free once its
// message is received. I, the gradient of a stage's input, and B are backwards of its routine. W,
// the gradient of its weights, is a backward of another routine.
func lowered(t *testing.T, rows []string, slots int) string {
	t.Helper()
	var head, lines strings.Builder
	rankOf, channels, routines := map[string]int{}, map[string]string{}, map[string]bool{}
	next := map[string]int{}
	for rank, row := range rows {
		fmt.Fprintf(&head, "device %d arena 0 budget 0\n", rank)
		number := 0
		add := func(format string, args ...any) {
			fmt.Fprintf(&lines, "%d.%d compute %s\n", rank, number, fmt.Sprintf(format, args...))
			number++
		}
		for _, cell := range strings.FieldsFunc(row, func(char rune) bool { return char == ',' || char == ' ' }) {
			action := torchAction.FindStringSubmatch(cell)
			if action == nil {
				t.Fatalf("%q is no action", cell)
			}
			micro := action[3]
			stage := fixtures.Must(strconv.Atoi(action[1]))(t)
			rankOf[action[1]] = rank
			routine := "s" + action[1]
			switch kind := action[2]; kind {
			case "F", "B", "I", "W":
				op := "backward"
				switch kind {
				case "F":
					op = "forward"
				case "W":
					routine += "w"
				}
				routines[routine] = true
				add("%s %s mb%s", op, routine, micro)
			default:
				op, way, _ := strings.Cut(strings.ToLower(kind), "_")
				from, to := stage, stage+1
				if way == "b" {
					to = stage - 1
				}
				if op == "recv" {
					from, to = 2*from-to, from
				}
				channel := fmt.Sprintf("%s%d", way, to)
				channels[channel] = fmt.Sprintf("%d %d", from, to)
				sequence := next[op+channel]
				next[op+channel]++
				add("%s mb%s %s#%d", op, micro, channel, sequence)
				if op == "recv" {
					add("free mb%s %s#%d", micro, channel, sequence)
				}
			}
		}
	}
	for routine := range routines {
		fmt.Fprintf(&head, "routine %s %s\n", routine, routine)
	}
	for channel, ends := range channels {
		from, to, _ := strings.Cut(ends, " ")
		fmt.Fprintf(&head, "channel %s %d>%d slots %d bytes 0\n", channel, rankOf[from], rankOf[to], slots)
	}
	return head.String() + lines.String()
}

// TestCheckTorchHangs: the two sequences of github.com/pytorch/pytorch/issues/172668
// that hung, what the thread leaves out before and behind them completed. They
// hang where a send waits for its receive; one slot a channel is enough.
func TestCheckTorchHangs(t *testing.T) {
	for name, rows := range map[string][]string{
		"both send first": {
			"0F0 0SEND_F0 0F1" + " 0SEND_F1 2RECV_F0 2F0 " + "2SEND_F0 2RECV_F1 2F1 2SEND_F1",
			"1RECV_F0 1F0" + " 1SEND_F0 1RECV_F1 1F1 " + "1SEND_F1 3RECV_F0 3F0 3RECV_F1 3F1",
		},
		"odd ranks receive first": {
			"0F0 0SEND_F0 0F1 0SEND_F1 2RECV_F0 2F0 2SEND_F0 2RECV_F1 2F1" + " 2SEND_F1 0F2 0SEND_F2 2RECV_B0 2B0 " +
				"2SEND_B0 2RECV_B1 2B1 2SEND_B1 0RECV_B0 0B0 0RECV_B1 0B1 2RECV_F2 2F2 2SEND_F2 2RECV_B2 2B2 2SEND_B2 0RECV_B2 0B2",
			"1RECV_F0 1F0 1RECV_F1 1SEND_F0 1F1 3RECV_F0 1SEND_F1 3F0 3B0" + " 3RECV_F1 3SEND_B0 3F1 3B1 1RECV_F2 3SEND_B1 1F2 " +
				"1SEND_F2 1RECV_B0 1B0 1SEND_B0 1RECV_B1 1B1 1SEND_B1 3RECV_F2 3F2 3B2 3SEND_B2 1RECV_B2 1B2 1SEND_B2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := parsed(t, lowered(t, rows, 0)).Check().Err()
			if err == nil || !strings.HasPrefix(err.Error(), "V6: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("slots 0: %v; want a deadlock and nothing else", err)
			}
			t.Log(err)
			for slots := 1; slots < 3; slots++ {
				if err := parsed(t, lowered(t, rows, slots)).Check().Err(); err != nil {
					t.Errorf("slots %d: %v", slots, err)
				}
			}
		})
	}
}

// TestCheckTorchZeroBubble: what ScheduleInterleavedZeroBubble and _add_send_recv
// of torch 2.11 make (torch/distributed/pipelining/schedules.py) for 2 ranks, 4
// stages, 4 micro-batches, and for 4 ranks, 8 stages, 8 micro-batches.
func TestCheckTorchZeroBubble(t *testing.T) {
	for _, name := range []string{"zero_bubble_2x2.csv", "zero_bubble_4x2.csv"} {
		data := fixtures.Must(os.ReadFile(filepath.Join("testdata", name)))(t)
		rows := strings.Split(strings.TrimSpace(string(data)), "\n")
		for slots := range 3 {
			if err := parsed(t, lowered(t, rows, slots)).Check().Err(); err != nil {
				t.Errorf("%s, slots %d: %v", name, slots, err)
			}
		}
	}
}
