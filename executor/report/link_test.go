package report

import (
	"encoding/json"
	"testing"

	"github.com/devmap-dev/devmap/executor"
)

// The host is no device: it is null.
func TestLink(t *testing.T) {
	for _, test := range []struct {
		link executor.Link
		want string
	}{
		{executor.Link{From: executor.TheHost, Transport: "host", Checked: 7}, `{"from":null,"to":0,"transport":"host","checked_bytes":7,"staging_bytes":0}`},
		{executor.Link{From: 3, To: 1, Transport: "peer", Staging: 9}, `{"from":3,"to":1,"transport":"peer","checked_bytes":0,"staging_bytes":9}`},
	} {
		got, err := json.Marshal(linkOf(&test.link))
		if err != nil || string(got) != test.want {
			t.Errorf("%s, %v; want %s", got, err, test.want)
		}
	}
}
