package duties

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestTroubleOfRoundsIsLoggedOnceAndItsEndToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := hclog.New(&hclog.LoggerOptions{Output: &text})
		away, full := errors.New("it is away"), errors.New("it is full")
		results := []error{nil, away, away, full, nil, nil, away}
		ctx, cancel := context.WithCancel(t.Context())
		begun, rounds := time.Now(), 0
		Repeat(ctx, log, "x", time.Second, func(context.Context) error {
			defer func() { rounds++ }()
			if rounds == len(results) {
				cancel() // a round that is cut off by the end is no trouble
				return ctx.Err()
			}
			return results[rounds]
		})
		if took := time.Since(begun); took != 7*time.Second || rounds != 8 {
			t.Errorf("%d rounds took %s, want the first at once and 7 more in 7s", rounds, took)
		}
		var lines []string
		for line := range strings.Lines(text.String()) {
			_, what, _ := strings.Cut(line, "duties: ")
			lines = append(lines, strings.TrimSpace(what))
		}
		want := `of=x trouble="it is away"|of=x trouble="it is full"|of=x trouble=over|of=x trouble="it is away"`
		if got := strings.Join(lines, "|"); got != want {
			t.Errorf("the log says %s\nwant %s", got, want)
		}
	})
}
